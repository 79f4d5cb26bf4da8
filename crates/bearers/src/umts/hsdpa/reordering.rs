//! The mobile's end of the HS-DSCH: blocks that overtook each other go on in order (TS 25.321, 11.6.2).

use std::collections::BTreeMap;

use airloom_base::{Duration, Instant};

use super::super::dch::Blocks;
use super::WINDOW;

/// Transport blocks by their number (TSN). Numbers do not wrap here: at most [`WINDOW`] are open.
pub struct Reordering {
    next: u64,
    held: BTreeMap<u64, Blocks>,
    /// T1: when it expires, and the number that it runs for.
    timer: Option<(Instant, u64)>,
    t1: Duration,
    /// How often T1 expired.
    pub timeouts: u64,
}

impl Reordering {
    /// Missing blocks are waited for so long.
    pub fn new(t1: Duration) -> Reordering {
        Reordering { next: 0, held: BTreeMap::new(), timer: None, t1, timeouts: 0 }
    }

    /// A block comes; what is in order goes to `out`. What comes after it was given up is thrown away.
    pub fn receive(&mut self, now: Instant, tsn: u64, blocks: Blocks, out: &mut Blocks) {
        if tsn < self.next {
            return;
        }
        self.held.insert(tsn, blocks);
        if tsn >= self.next + WINDOW {
            self.give_up_below(tsn + 1 - WINDOW, out);
        }
        self.deliver(now, out);
    }

    /// When to call [`Reordering::handle_timeout`].
    pub fn next_timeout(&self) -> Instant {
        self.timer.map_or(Instant::FAR_FUTURE, |(at, _)| at)
    }

    /// T1 expires, if it is time.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Blocks) {
        if let Some((_, tsn)) = self.timer.filter(|(at, _)| *at <= now) {
            self.timer = None;
            self.timeouts += 1;
            self.give_up_below(tsn, out);
            self.deliver(now, out);
        }
    }

    /// Everything is forgotten.
    pub fn reset(&mut self, next: u64) {
        self.held.clear();
        (self.next, self.timer) = (next, None);
    }

    fn give_up_below(&mut self, tsn: u64, out: &mut Blocks) {
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() < tsn) {
            let mut blocks = entry.remove();
            blocks.hand_on(usize::MAX, out);
        }
        self.next = self.next.max(tsn);
    }

    fn deliver(&mut self, now: Instant, out: &mut Blocks) {
        while let Some(mut blocks) = self.held.remove(&self.next) {
            blocks.hand_on(usize::MAX, out);
            self.next += 1;
        }
        if self.timer.is_none_or(|(_, tsn)| tsn < self.next) {
            self.timer = self.held.last_key_value().map(|(tsn, _)| (now + self.t1, *tsn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rlc::am::Pdu;
    use super::*;

    const T1: Duration = Duration::from_millis(100);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn block(n: u32) -> Blocks {
        let mut blocks = Blocks::default();
        blocks.push(&Pdu::new(n, 0), &[n as u8], 1);
        blocks
    }

    fn numbers(out: &mut Blocks) -> Vec<u32> {
        let mut control = Vec::new();
        std::iter::from_fn(|| {
            let flight = out.pop(&mut control)?;
            assert_eq!(control, [flight.pdu.sdu as u8]);
            Some(flight.pdu.sdu)
        })
        .collect()
    }

    #[test]
    fn what_overtook_waits_for_what_is_missing() {
        let (mut reordering, mut out) = (Reordering::new(T1), Blocks::default());
        for n in [0, 2, 3] {
            reordering.receive(ms(n), n, block(n as u32), &mut out);
        }
        assert_eq!(numbers(&mut out), [0]);
        assert_eq!(reordering.next_timeout(), ms(102));
        reordering.receive(ms(14), 1, block(1), &mut out);
        assert_eq!(numbers(&mut out), [1, 2, 3]);
        assert_eq!((reordering.next_timeout(), reordering.timeouts), (Instant::FAR_FUTURE, 0));
    }

    #[test]
    fn after_t1_it_goes_on_without_it_and_waits_for_the_next_gap() {
        let (mut reordering, mut out) = (Reordering::new(T1), Blocks::default());
        for (at, n) in [(0, 1), (10, 3), (20, 4)] {
            reordering.receive(ms(at), n, block(n as u32), &mut out);
        }
        reordering.handle_timeout(ms(99), &mut out);
        assert_eq!(numbers(&mut out), [0u32; 0]);
        reordering.handle_timeout(ms(100), &mut out);
        assert_eq!(numbers(&mut out), [1]);
        assert_eq!(reordering.next_timeout(), ms(200));
        reordering.receive(ms(110), 0, block(0), &mut out);
        reordering.handle_timeout(ms(200), &mut out);
        assert_eq!((numbers(&mut out), reordering.timeouts), (vec![3, 4], 2));
    }

    #[test]
    fn the_window_is_not_left() {
        let (mut reordering, mut out) = (Reordering::new(T1), Blocks::default());
        for n in [1, WINDOW] {
            reordering.receive(ms(0), n, block(n as u32), &mut out);
        }
        // What it has moved on from is not waited for any more, though T1 has not expired.
        assert_eq!((numbers(&mut out), reordering.timeouts), (vec![1], 0));
        assert_eq!(reordering.next_timeout(), ms(100), "block {WINDOW} waits for those before it");
        reordering.reset(40);
        reordering.receive(ms(1), 40, block(40), &mut out);
        assert_eq!(numbers(&mut out), [40]);
    }
}
