//! F-RTO where recovery counts octets (RFC 5682: section 2 without SACK, section 3 with it): was a retransmission timeout
//! spurious? Two acknowledgements tell: the first one lets two new segments out instead of what the timeout declared lost,
//! the second one is for them, or for the originals.
//! A circle, of which `mod.rs` says why.
//!
//! `segments/frto.rs` is the same where recovery counts segments. The answer to a spurious timeout is that of RFC 4015 if
//! `eifel` is on (`eifel.rs`); else the window stays reduced, and only what is not needed is not sent again (RFC 5682 4).

use airloom_base::Instant;

use super::super::sender::{Limit, Mode, Sender, pending};
use super::Octets;

/// Where the algorithm stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// The timeout is taken for what it seems to be.
    #[default]
    Off,
    /// Step 2: the first segment was sent again; its acknowledgement is waited for.
    First,
    /// Step 3: so many new segments have left; the second acknowledgement is waited for.
    Second { sent: u8 },
}

impl Octets {
    /// Step 1: the retransmission timer has expired; the mode is what it was before.
    pub fn frto_begins(&mut self, tx: &mut Sender) {
        let fits = match tx.mode() {
            //= RFC 5682 (2.1, 3.1): a timeout in loss recovery is no question, unless the same segment timed out again.
            Mode::Loss => self.frto == Frto::First,
            //= RFC 5682 (2.1): nor in fast recovery, unless it is Reno's or NewReno's.
            Mode::Recovery => !tx.recovers_by_sack(),
            _ => true,
        };
        self.frto = if tx.config().frto && fits { Frto::First } else { Frto::Off };
    }

    /// In the loss state SND.UNA has moved to `ack`, by `octets`. Says whether the timeout was spurious and is answered.
    pub fn frto_advances(&mut self, tx: &mut Sender, now: Instant, ack: u64, octets: u64, ece: bool) -> bool {
        match self.frto {
            Frto::Off => false,
            Frto::First => {
                //= RFC 5682 (2.1, 3.1, step 2): not if it covers everything, or less than what was sent again; and not if
                //= nothing new can be sent.
                let part = ack < self.board.resent_up_to();
                let new = tx.snd.has_unsent() && tx.snd.window_edge() > tx.snd.nxt();
                self.frto = if ack >= tx.recover() || part || !new {
                    Frto::Off
                } else {
                    tx.begin_episode();
                    Frto::Second { sent: 0 }
                };
                false
            }
            Frto::Second { .. } if tx.recovers_by_sack() && self.frto_heard_of_new(tx, ack) => {
                self.frto_fails(tx);
                false
            }
            //= RFC 5682 (2.1, 3.1, step 3b): what was not sent again has arrived.
            Frto::Second { .. } => {
                self.frto_tells(tx, now, octets, ece);
                true
            }
        }
    }

    /// In the loss state an acknowledgement came that does not move SND.UNA; it reports `news` octets for the first time,
    /// and is otherwise a duplicate or not.
    pub fn frto_hears(&mut self, tx: &mut Sender, now: Instant, news: u64, duplicate: bool, ece: bool) {
        match self.frto {
            //= RFC 5682 (2.1, step 2a): a duplicate: conventional. (3.1, step 2): with SACK it is only noted.
            Frto::First if duplicate && !tx.recovers_by_sack() => self.frto = Frto::Off,
            Frto::Second { .. } if tx.recovers_by_sack() => {
                if news > 0 && !self.frto_heard_of_new(tx, tx.snd.una()) {
                    self.frto_tells(tx, now, 0, ece);
                } else if news > 0 || duplicate {
                    self.frto_fails(tx);
                }
            }
            Frto::Second { .. } if duplicate => self.frto_fails(tx),
            _ => {}
        }
    }

    /// Does the peer have some of what was sent since the timeout?
    fn frto_heard_of_new(&self, tx: &Sender, ack: u64) -> bool {
        ack.max(self.board.high_sacked().unwrap_or(0)) > tx.recover()
    }

    //= RFC 5682 (2.1, 3.1, step 3a): the loss was real; two round trips have passed, so three segments may be in flight.
    fn frto_fails(&mut self, tx: &mut Sender) {
        self.frto = Frto::Off;
        tx.window.set_cwnd(3 * tx.snd.mss());
        tx.want(pending::DATA);
    }

    /// The timeout was spurious.
    fn frto_tells(&mut self, tx: &mut Sender, now: Instant, octets: u64, ece: bool) {
        tx.facts.spurious += self.needless.proves();
        self.resume_after_spurious(tx, now);
        self.eifel_responds(tx, octets, ece);
    }

    /// Step 2: what leaves instead of what the timeout declared lost, if it is so.
    #[inline]
    pub fn frto_next(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Option<Result<u64, Limit>> {
        let Frto::Second { sent } = self.frto else { return None };
        //= RFC 5682 (2.1, step 2b): up to two new segments.
        let next = if sent < 2 { self.next_new(tx, now, room) } else { Err(Limit::Congestion) };
        if next.is_ok() {
            self.frto = Frto::Second { sent: sent + 1 };
        } else if sent == 0 {
            self.frto = Frto::Off;
            return None;
        }
        Some(next)
    }
}
