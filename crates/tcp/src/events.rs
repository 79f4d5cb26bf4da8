//! What a connection has to tell its application, and in which order.

/// Bits of [`Events`], in the order in which an application wants to hear of them.
pub(super) mod event {
    pub const OPENED: u8 = 1;
    pub const READABLE: u8 = 2;
    pub const WRITABLE: u8 = 4;
    pub const FINISHED: u8 = 8;
    pub const CLOSED: u8 = 16;
    pub const LINGERING: u8 = 32;
    pub const GONE: u8 = 64;
}

/// Events that wait to be told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Events {
    waiting: u8,
    /// Of FINISHED and CLOSED: which were told, and are not told again.
    told: u8,
}

impl Events {
    #[inline]
    pub fn raise(&mut self, bits: u8) {
        self.waiting |= bits;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    #[inline]
    pub fn was_told(&self, bit: u8) -> bool {
        self.told & bit != 0
    }

    /// Both sides have finished: nothing lingers.
    pub fn close(&mut self) {
        self.waiting = (self.waiting & !event::LINGERING) | event::GONE | (event::CLOSED & !self.told);
    }

    /// It is over, with an error: what was received is not told any more.
    pub fn fail(&mut self) {
        self.waiting = (self.waiting & event::OPENED) | event::CLOSED | event::GONE;
        self.told |= event::FINISHED;
    }

    /// If there is something to read and nothing else to tell: takes it and says yes.
    #[inline]
    pub fn take_readable_alone(&mut self) -> bool {
        let alone = self.waiting == event::READABLE;
        if alone {
            self.waiting = 0;
        }
        alone
    }

    /// The next one. `is_read`: the application has read all it will. `is_silent`: no segment waits to leave.
    pub fn take(&mut self, is_read: bool, is_silent: bool) -> Option<u8> {
        let mut may = event::OPENED | event::READABLE | event::WRITABLE | event::FINISHED;
        if is_read {
            may |= event::CLOSED;
        }
        if self.was_told(event::CLOSED) {
            may |= event::LINGERING | if is_silent { event::GONE } else { 0 };
        }
        let there = self.waiting & may;
        let next = there & there.wrapping_neg();
        self.waiting &= !next;
        self.told |= next & (event::FINISHED | event::CLOSED);
        (next != 0).then_some(next)
    }
}
