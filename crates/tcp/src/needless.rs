//! What was sent again for nothing is counted once, though two signs may tell of it: a proof (F-RTO, RFC 5682; a timestamp,
//! RFC 3522) and, later or before, the report of a duplicate (RFC 2883).

/// What the two signs have said so far. A proof is of the segment at the head of what a recovery sends again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needless {
    /// Where the head begins.
    head: u64,
    /// Its duplicate was reported.
    is_reported: bool,
    /// The head that was proved needless last, until its duplicate is reported.
    proved: Option<u64>,
}

impl Needless {
    /// What begins at `head` is about to be sent again.
    pub fn begins(&mut self, head: u64) {
        (self.head, self.is_reported) = (head, false);
    }

    /// The head was sent again for nothing: how many segments that is more.
    pub fn proves(&mut self) -> u64 {
        if self.is_reported {
            return 0;
        }
        self.proved = Some(self.head);
        1
    }

    /// `left..right`, so many segments, arrived twice: how many that is more.
    pub fn reports(&mut self, left: u64, right: u64, segments: u64) -> u64 {
        let reported = left..right;
        self.is_reported |= reported.contains(&self.head);
        let is_known = self.proved.take_if(|head| reported.contains(head)).is_some();
        segments - u64::from(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_signs_tell_of_is_counted_once() {
        let mut needless = Needless::default();
        needless.begins(1000);
        assert_eq!((needless.proves(), needless.reports(1000, 2000, 1)), (1, 0));
        // A second copy of it.
        assert_eq!(needless.reports(1000, 2000, 1), 1);
        needless.begins(5000);
        assert_eq!((needless.reports(5000, 6000, 1), needless.proves()), (1, 0));
    }

    #[test]
    fn a_report_of_others_is_counted() {
        let mut needless = Needless::default();
        needless.begins(1000);
        assert_eq!((needless.proves(), needless.reports(2000, 4000, 2)), (1, 2));
        needless.begins(9000);
        // Late, after another recovery has begun.
        assert_eq!(needless.reports(0, 2000, 2), 1);
    }
}
