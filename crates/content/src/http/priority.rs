//! Priorities as clients say them and servers heed them (RFC 9218).

use smart_default::SmartDefault;

/// How urgent a response is. The default is `u=3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    #[default(3)]
    pub urgency: u8,
    /// Is a part of it of use before the rest? Then it shares with others of its urgency.
    pub incremental: bool,
}

impl Priority {
    /// Reads a field value: a dictionary of structured fields, of which `u` and `i` are heeded. What is not understood has the
    /// default.
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for member in value.split(|b| *b == b',') {
            // Parameters of a member say nothing to us.
            let member = member.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            match member {
                //= RFC 9218 (4): values out of range or of another type are ignored.
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// What this is of a request's stream to a transport that serves larger numbers first, and equals in turn.
    //= RFC 9218 (10): the more urgent first; of equals one after another, but for those that are of use in part.
    pub fn rank(self, stream: u64) -> i32 {
        const LAST: u32 = (1 << 27) - 1;
        let place = if self.incremental { LAST + 1 } else { (stream / 4).min(LAST.into()) as u32 };
        -(((u32::from(self.urgency.min(7)) << 28) + place) as i32)
    }

    /// The field value that says so; nothing where it is the default.
    pub fn text(self) -> Option<String> {
        let urgency = (self.urgency != 3).then(|| format!("u={}", self.urgency.min(7)));
        match (urgency, self.incremental) {
            (None, false) => None,
            (None, true) => Some("i".to_owned()),
            (Some(urgency), false) => Some(urgency),
            (Some(urgency), true) => Some(urgency + ", i"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_values_there_and_back() {
        for urgency in 0..8 {
            for incremental in [false, true] {
                let priority = Priority { urgency, incremental };
                assert_eq!(Priority::parse(priority.text().unwrap_or_default().as_bytes()), priority);
            }
        }
    }

    #[test]
    fn who_is_more_urgent_or_asked_before_has_the_larger_number() {
        let of = |urgency, incremental, stream| Priority { urgency, incremental }.rank(stream);
        let last = (1 << 62) - 4;
        let falling = [
            of(0, false, 0),
            of(0, false, 4),
            of(0, true, 0),
            of(1, false, last),
            of(7, false, 8),
            of(7, true, 8),
        ];
        assert!(falling.is_sorted_by(|a, b| a > b), "{falling:?}");
        assert_eq!(of(3, true, 0), of(3, true, last));
    }

    #[test]
    fn what_is_not_understood_has_the_default() {
        let of = |urgency, incremental| Priority { urgency, incremental };
        assert_eq!(Priority::parse(b" u=5;x=1 ,i=?1, z"), of(5, true));
        assert_eq!(Priority::parse(b"u=8, i=1"), of(3, false));
        assert_eq!(Priority::parse(b"u=-1,u=2,i, i=?0"), of(2, false));
        assert_eq!(Priority::parse(b"\xff\0,,;"), of(3, false));
    }
}
