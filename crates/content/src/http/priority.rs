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
    fn what_is_not_understood_has_the_default() {
        let of = |urgency, incremental| Priority { urgency, incremental };
        assert_eq!(Priority::parse(b" u=5;x=1 ,i=?1, z"), of(5, true));
        assert_eq!(Priority::parse(b"u=8, i=1"), of(3, false));
        assert_eq!(Priority::parse(b"u=-1,u=2,i, i=?0"), of(2, false));
        assert_eq!(Priority::parse(b"\xff\0,,;"), of(3, false));
    }
}
