//! Machines that live by deadlines of their own, however late they are called.

use airloom_base::{Cx, Instant};

/// What has deadlines, and does everything at its own time.
pub trait Timed {
    /// The next deadline; [`Instant::FAR_FUTURE`] if there is none.
    fn next_timeout(&self) -> Instant;
    /// What is due at `cx.now`, which is the next deadline: all of it, or a part that comes before the rest.
    fn step(&mut self, cx: &mut Cx);

    /// Does what is due at `now` or before.
    fn catch_up(&mut self, cx: &mut Cx, now: Instant) {
        loop {
            let at = self.next_timeout();
            if at > now || at == Instant::FAR_FUTURE {
                break;
            }
            self.step(&mut Cx { now: at, records: &mut *cx.records });
        }
    }

    /// What should have happened before this call happens first: in real time a timer may be handled late.
    fn catch_up_before(&mut self, cx: &mut Cx) {
        if self.next_timeout() < cx.now {
            self.catch_up(cx, Instant::from_nanos(cx.now.as_nanos() - 1));
        }
    }
}
