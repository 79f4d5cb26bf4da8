//! When something has to be done about one of many connections.

use std::collections::BTreeSet;

use smart_default::SmartDefault;

use airloom_base::{Instant, SocketId};

/// The deadline of one connection. It may be moved at every packet: only moves to an earlier time touch the
/// common queue, later ones are noticed when the old time comes.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct Alarm {
    #[default(Instant::FAR_FUTURE)]
    at: Instant,
    #[default(Instant::FAR_FUTURE)]
    queued: Instant,
}

/// The deadlines of all connections of an application: at most one entry for each.
#[derive(Default)]
pub struct Deadlines(BTreeSet<(Instant, SocketId)>);

impl Deadlines {
    /// The deadline of `socket` is `at` from now on.
    #[inline]
    pub fn set(&mut self, socket: SocketId, alarm: &mut Alarm, at: Instant) {
        alarm.at = at;
        if at < alarm.queued {
            self.queue(socket, alarm);
        }
    }

    fn queue(&mut self, socket: SocketId, alarm: &mut Alarm) {
        if alarm.queued != Instant::FAR_FUTURE {
            self.0.remove(&(alarm.queued, socket));
        }
        alarm.queued = alarm.at;
        self.0.insert((alarm.at, socket));
    }

    /// `socket` has no deadline any more.
    pub fn forget(&mut self, socket: SocketId, alarm: &Alarm) {
        self.0.remove(&(alarm.queued, socket));
    }

    /// When to look again.
    pub fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// A socket whose entry is due; ask [`Deadlines::rings`] with its alarm before doing anything.
    pub fn pop_due(&mut self, now: Instant) -> Option<SocketId> {
        self.0.first().filter(|(at, _)| *at <= now)?;
        self.0.pop_first().map(|(_, socket)| socket)
    }

    /// Has the deadline of a popped socket really come? If it was moved, the socket is queued again.
    pub fn rings(&mut self, now: Instant, socket: SocketId, alarm: &mut Alarm) -> bool {
        alarm.queued = Instant::FAR_FUTURE;
        let rings = alarm.at <= now;
        if !rings && alarm.at != Instant::FAR_FUTURE {
            self.queue(socket, alarm);
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::*;

    const SOCKET: SocketId = SocketId { slot: 1, generation: 1, stream: 0 };

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn a_deadline_moved_later_rings_once_and_then() {
        let (mut deadlines, mut alarm) = (Deadlines::default(), Alarm::default());
        deadlines.set(SOCKET, &mut alarm, at(1));
        deadlines.set(SOCKET, &mut alarm, at(5));
        assert_eq!(deadlines.next(), Some(at(1)));
        assert_eq!(deadlines.pop_due(at(1)), Some(SOCKET));
        assert!(!deadlines.rings(at(1), SOCKET, &mut alarm));
        assert_eq!(deadlines.next(), Some(at(5)));
        assert_eq!(deadlines.pop_due(at(5)), Some(SOCKET));
        assert!(deadlines.rings(at(5), SOCKET, &mut alarm));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn a_deadline_moved_earlier_rings_then_and_a_forgotten_one_never() {
        let (mut deadlines, mut alarm) = (Deadlines::default(), Alarm::default());
        deadlines.set(SOCKET, &mut alarm, at(9));
        deadlines.set(SOCKET, &mut alarm, at(2));
        assert_eq!(deadlines.next(), Some(at(2)));
        deadlines.forget(SOCKET, &alarm);
        assert_eq!((deadlines.next(), deadlines.pop_due(at(99))), (None, None));
    }
}
