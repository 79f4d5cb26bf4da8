//! Probing before repairing: a controller that hears of a loss may have sending suspended, measure the path with probes, and
//! only then let the loss be repaired, with the window that it chooses (what TCP-Probing needs; Tsaoussidis and Badr, ICNP
//! 2000).
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

use airloom_base::{CloseReason, Duration, Instant, Outgoing};

use super::congestion::{Estimate, Reaction, Suspicion};
use super::connection::{Connection, hold, pending};
use super::timers::Alarm;
use super::wire::{Flags, Header, Options, ProbeOption, ProbeStep};

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    /// Both ends know the option.
    pub agreed: bool,
    /// A cycle is on.
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

impl Connection {
    /// Does our SYN (or SYN-ACK) say that the option is known?
    pub fn offers_probing(&self, answer: bool) -> bool {
        if answer { self.probing.agreed } else { self.about.probes }
    }

    /// What the peer's SYN (or SYN-ACK) says of it. Whoever was asked answers probes, whatever its own controller.
    pub fn negotiate_probing(&mut self, h: &Header) {
        let knows = h.options.probe.is_some_and(|p| p.step == ProbeStep::Permitted);
        self.probing.agreed = knows && (!h.flags.has(Flags::ACK) || self.about.probes);
    }

    /// A loss was found. Does the controller want to probe first? Then nothing else is done about it now.
    pub fn suspends(&mut self, now: Instant, suspicion: Suspicion) -> bool {
        if !self.probing.agreed || self.hold & hold::PROBING != 0 {
            return self.hold & hold::PROBING != 0;
        }
        let estimate = self.estimate();
        let Reaction::Probe { wait } = self.controller.on_suspicion(&self.window, suspicion, estimate) else {
            return false;
        };
        self.hold |= hold::PROBING;
        self.timers.stop(Alarm::Retransmission);
        self.probing.cycle = Some(Cycle { suspicion, since: now, step: ProbeStep::Probe1, sent: now });
        self.probe(now, ProbeStep::Probe1, wait);
        true
    }

    fn estimate(&self) -> Estimate {
        let (srtt, rttvar) = self.rtt.estimate();
        Estimate { srtt, rttvar, rto: self.rtt.rto(&self.config) }
    }

    fn probe(&mut self, now: Instant, step: ProbeStep, wait: Duration) {
        if step == ProbeStep::Probe1 {
            self.probing.number = self.probing.number.wrapping_add(1);
        }
        if let Some(cycle) = &mut self.probing.cycle {
            (cycle.step, cycle.sent) = (step, now);
        }
        self.probing.due = Some(ProbeOption { step, cycle: self.probing.number });
        self.pending |= pending::PROBING;
        // However short a time the controller names, the agenda must not spin.
        self.timers.arm(Alarm::Probe, now + wait.max(Duration::from_millis(1)));
    }

    /// The segment at hand is a probe, or the answer to one.
    pub fn probe_arrives(&mut self, now: Instant, option: ProbeOption) {
        let answer = match option.step {
            ProbeStep::Probe1 => ProbeStep::Answer1,
            ProbeStep::Probe2 => ProbeStep::Answer2,
            ProbeStep::Answer1 | ProbeStep::Answer2 => {
                self.probe_is_answered(now, option);
                return;
            }
            ProbeStep::Permitted => return,
        };
        if self.probing.agreed {
            self.probing.due = Some(ProbeOption { step: answer, cycle: option.cycle });
            self.pending |= pending::PROBING;
        }
    }

    fn probe_is_answered(&mut self, now: Instant, answer: ProbeOption) {
        let Some(cycle) = self.probing.cycle.filter(|_| answer.cycle == self.probing.number) else { return };
        let expected = match cycle.step {
            ProbeStep::Probe1 => ProbeStep::Answer1,
            _ => ProbeStep::Answer2,
        };
        if answer.step == expected {
            let next = if cycle.step == ProbeStep::Probe1 { ProbeStep::Probe2 } else { ProbeStep::Probe1 };
            self.ask(now, Some(now.since(cycle.sent)), next);
        }
    }

    /// No answer has come in time.
    pub fn probe_expires(&mut self, now: Instant) {
        let Some(cycle) = self.probing.cycle else { return };
        //= RFC 9293 (3.8.3): a peer that answers nothing, no probe either, is given up after R2.
        if now.since(cycle.since) >= self.config.give_up {
            self.abort(CloseReason::TimedOut);
            return;
        }
        self.ask(now, None, ProbeStep::Probe1);
    }

    fn ask(&mut self, now: Instant, rtt: Option<Duration>, next: ProbeStep) {
        let estimate = self.estimate();
        match self.controller.on_probe(&self.window, rtt, estimate) {
            Reaction::Probe { wait } => self.probe(now, next, wait),
            Reaction::Repair => self.resume(now),
        }
    }

    /// Sending goes on: what made the controller suspicious is dealt with as ever.
    fn resume(&mut self, now: Instant) {
        let Some(cycle) = self.probing.cycle.take() else { return };
        self.hold &= !hold::PROBING;
        self.timers.stop(Alarm::Probe);
        self.pending = (self.pending & !pending::PROBING) | pending::DATA;
        if self.snd.una == self.snd.nxt {
            // All has arrived meanwhile.
            self.controller.on_event(&mut self.window, now, super::congestion::Event::Open);
            return;
        }
        let at = self.rtt.deadline(&self.config, now);
        self.timers.arm(Alarm::Retransmission, at);
        match cycle.suspicion {
            Suspicion::Duplicates => self.begin_recovery(now),
            Suspicion::Timeout => self.time_out(now),
        }
    }

    /// The probe, or the answer, that is due.
    pub fn transmit_probing(&mut self, now: Instant) -> Option<Outgoing> {
        self.pending &= !(pending::PROBING | pending::ACK);
        let due = self.probing.due.take()?;
        if !self.state.is_synchronized() {
            return None;
        }
        self.timers.stop(Alarm::Ack);
        self.rcv.last_ack = self.rcv.nxt;
        // Beyond the right edge (a FIN, a window that shrank) it would not be taken, and an answer never come.
        let seq = self.snd.nxt.min(self.snd.window_edge()).max(self.snd.una);
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq: seq as u32,
            ack: self.rcv.nxt as u32,
            flags: Flags::ACK.with(self.ecn.echo_flags()),
            window: self.rcv.announce(self.rcv.shift),
            urgent: 0,
            options: Options {
                timestamps: self.agreed.timestamps.then(|| (self.timestamp(now), self.rcv.ts_recent)),
                probe: Some(due),
                ..Options::default()
            },
        };
        Some(self.emit(&header, airloom_base::Body::EMPTY))
    }
}
