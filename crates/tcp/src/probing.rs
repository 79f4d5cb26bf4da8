//! Probing before repairing: a controller that hears of a loss may have sending suspended, measure the path with probes, and
//! only then let the loss be repaired, with the window that it chooses (what TCP-Probing needs; Tsaoussidis and Badr, ICNP
//! 2000).
//! A circle, of which `sender.rs` says why.
//!
//! ```text
//!   three duplicates or a timeout ─► on_suspicion ─ Repair ─► as ever
//!                                          │ Probe: nothing leaves any more
//!                                     PROBE1 ─► PR1_ACK ─► PROBE2 ─► PR2_ACK    on_probe(round-trip time), twice
//!                                          └ no answer in time: on_probe(None), a new cycle
//!                                     on_probe ─ Repair ─► ssthresh and on_event say with which window
//! ```
//!
//! Probes and their answers are segments without data with an option of the experimental kind (RFC 6994). Both ends say in
//! their SYNs that they know it; where the peer does not, the controller is not asked.
//!
//! ASSUMPTION(wave-and-wait): only abstracts of the papers were at hand. That probes are options of empty segments, and
//! that a lost one begins a new cycle, is from there; layout, numbers and the waiting time are ours.

use airloom_base::{Duration, Instant};

use super::congestion::{Event, Reaction, Suspicion};
use super::sender::{Sender, hold, pending};
use super::timers::Alarm;
use super::wire::{Flags, ProbeOption, ProbeStep};

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    /// Both ends know the option.
    agreed: bool,
    /// A cycle is on: sending is suspended.
    cycle: Option<Cycle>,
    /// The last cycle's number: an answer to an older one says nothing.
    number: u8,
    /// What leaves next.
    due: Option<ProbeOption>,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    suspicion: Suspicion,
    /// Since when sending is suspended.
    since: Instant,
    /// What was sent last, and when.
    step: ProbeStep,
    sent: Instant,
}

impl Probing {
    /// Does our SYN-ACK say that the option is known?
    pub fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// What the peer's SYN (or SYN-ACK) says of the option. Whoever was asked answers probes, whatever its own controller;
    /// `probes`: that of ours sends them.
    pub fn negotiate(&mut self, flags: Flags, option: Option<ProbeOption>, probes: bool) {
        let knows = option.is_some_and(|p| p.step == ProbeStep::Permitted);
        self.agreed = knows && (!flags.has(Flags::ACK) || probes);
    }

    /// The option of the segment that leaves now.
    pub fn take_due(&mut self) -> Option<ProbeOption> {
        self.due.take()
    }
}

impl Sender {
    /// A loss was found. Does the controller want to probe first? Then nothing else is done about it now.
    pub fn suspends(&mut self, now: Instant, suspicion: Suspicion) -> bool {
        if !self.probing.agreed || self.is_held(hold::PROBING) {
            return self.is_held(hold::PROBING);
        }
        let Reaction::Probe { wait } = self.suspect(suspicion) else { return false };
        self.hold(hold::PROBING);
        self.timers.stop(Alarm::Retransmission);
        self.probing.cycle = Some(Cycle { suspicion, since: now, step: ProbeStep::Probe1, sent: now });
        self.probe(now, ProbeStep::Probe1, wait);
        true
    }

    fn probe(&mut self, now: Instant, step: ProbeStep, wait: Duration) {
        if step == ProbeStep::Probe1 {
            self.probing.number = self.probing.number.wrapping_add(1);
        }
        if let Some(cycle) = &mut self.probing.cycle {
            (cycle.step, cycle.sent) = (step, now);
        }
        self.probing.due = Some(ProbeOption { step, cycle: self.probing.number });
        self.want(pending::PROBING);
        // However short a time the controller names, the agenda must not spin.
        self.timers.arm(Alarm::ProbeAnswer, now + wait.max(Duration::from_millis(1)));
    }

    /// The segment at hand is a probe, or the answer to one. Says what is to be repaired, if sending goes on now.
    pub fn probe_arrives(&mut self, now: Instant, option: ProbeOption) -> Option<Suspicion> {
        let answer = match option.step {
            ProbeStep::Probe1 => ProbeStep::Answer1,
            ProbeStep::Probe2 => ProbeStep::Answer2,
            ProbeStep::Answer1 | ProbeStep::Answer2 => return self.probe_is_answered(now, option),
            ProbeStep::Permitted => return None,
        };
        if self.probing.agreed {
            self.probing.due = Some(ProbeOption { step: answer, cycle: option.cycle });
            self.want(pending::PROBING);
        }
        None
    }

    fn probe_is_answered(&mut self, now: Instant, answer: ProbeOption) -> Option<Suspicion> {
        let cycle = self.probing.cycle.filter(|_| answer.cycle == self.probing.number)?;
        let (expected, next) = match cycle.step {
            ProbeStep::Probe1 => (ProbeStep::Answer1, ProbeStep::Probe2),
            _ => (ProbeStep::Answer2, ProbeStep::Probe1),
        };
        if answer.step != expected {
            return None;
        }
        self.ask(now, Some(now.since(cycle.sent)), next)
    }

    /// No answer has come in time. Says what is to be repaired, if sending goes on now. An error: the peer has answered
    /// nothing for so long that the connection is given up.
    pub fn probe_expires(&mut self, now: Instant) -> Result<Option<Suspicion>, ()> {
        let Some(cycle) = self.probing.cycle else { return Ok(None) };
        //= RFC 9293 (3.8.3): a peer that answers nothing, no probe either, is given up after R2.
        if now.since(cycle.since) >= self.config().give_up {
            return Err(());
        }
        Ok(self.ask(now, None, ProbeStep::Probe1))
    }

    fn ask(&mut self, now: Instant, rtt: Option<Duration>, next: ProbeStep) -> Option<Suspicion> {
        match self.weigh_probe(rtt) {
            Reaction::Probe { wait } => {
                self.probe(now, next, wait);
                None
            }
            Reaction::Repair => self.resume(now),
        }
    }

    /// Sending goes on: what made the controller suspicious is dealt with as ever.
    fn resume(&mut self, now: Instant) -> Option<Suspicion> {
        let cycle = self.probing.cycle.take()?;
        self.release(hold::PROBING);
        self.timers.stop(Alarm::ProbeAnswer);
        self.clear(pending::PROBING);
        self.want(pending::DATA);
        if self.snd.una() == self.snd.nxt() {
            // All has arrived meanwhile.
            self.tell_controller(now, Event::Open);
            return None;
        }
        self.arm_retransmission(now);
        Some(cycle.suspicion)
    }
}
