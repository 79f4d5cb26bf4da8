//! What a sender has, whatever it keeps its books of losses by: sequence variables, window, timers, and what was agreed on.
//!
//! A connection holds it and lends it to its recovery (`recovery.rs`) with each call. It keeps its fields to itself, as its
//! parts do; the parts are open, so that two of them can be used at once.
//!
//! A circle of 2 files: `probing.rs` suspends the sender, which holds what it remembers.

use std::sync::Arc;

use airloom_base::service::FlowFacts;
use airloom_base::{Duration, Instant};

use super::config::{Config, IdleRestart, LossWindow, Nagle};
use super::congestion::delivery_rate::Sampler;
use super::congestion::validation::Usage;
use super::congestion::{
    About, Ack, Controller, Departure, Estimate, Event, FastRecovery, Hears, Phase, Prior, Reaction,
    Suspicion, Window, pacing,
};
use super::ecn::Ecn;
use super::liveness::Liveness;
use super::pace::Pace;
use super::probing::Probing;
use super::rtt::{self, Rtt};
use super::send::Send;
use super::timers::{Alarm, Timers};

/// The 64-bit sequence number nearest to `near` whose low half is `wire`.
#[inline]
pub(super) fn widen(near: u64, wire: u32) -> u64 {
    near.wrapping_add_signed(i64::from(wire.wrapping_sub(near as u32).cast_signed()))
}

/// What waits to be sent: bits of what [`Sender::want`] takes.
pub(super) mod pending {
    /// An acknowledgement, now.
    pub const ACK: u16 = 1;
    /// Data may be allowed out: try.
    pub const DATA: u16 = 2;
    /// The first segment not acknowledged, whatever the window says.
    pub const HEAD: u16 = 4;
    /// SYN or SYN-ACK.
    pub const SYN: u16 = 8;
    /// A probe of a closed window.
    pub const PROBE: u16 = 16;
    /// A keep-alive.
    pub const KEEPALIVE: u16 = 32;
    /// RST of a connection that we end.
    pub const RESET: u16 = 64;
    /// RST in answer to a segment that cannot be meant for us.
    pub const REFUSE: u16 = 128;
    /// A probe of a suspended sender, or the answer to one.
    pub const PROBING: u16 = 256;
    /// Acknowledgements that were made already.
    pub const MADE: u16 = 512;
    /// Any of the segments that ask the peer for an answer.
    pub const PROBES: u16 = PROBE | KEEPALIVE | PROBING;
}

/// Why data waits, beside the windows: what [`Sender::hold`] takes.
pub(super) mod hold {
    /// The path takes smaller datagrams: one segment only until it is acknowledged. Never with nothing outstanding.
    pub const MTU: u8 = 1;
    /// Congestion was reported for a window of one segment: nothing new until the retransmission timer expires.
    pub const ECN: u8 = 2;
    /// A controller probes the path before it lets anything be repaired: as long as a cycle of probes lasts.
    pub const PROBING: u8 = 4;
    /// Any of them.
    pub const ANY: u8 = MTU | ECN | PROBING;
}

/// What both sides have agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323 2).
    pub scaling: bool,
    /// Timestamps (RFC 7323 3).
    pub timestamps: bool,
}

/// How the sender is repairing losses, numbered as Linux does (`TCP_CA_Open` and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Mode {
    /// Nothing is known to be lost.
    Open,
    /// Duplicates or reports that prove nothing yet.
    Disorder,
    /// The window is being reduced, and nothing is known to be lost.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout (or Tahoe's fast retransmit): all is sent again.
    Loss,
}

impl Mode {
    /// As a controller hears of it.
    #[inline]
    pub const fn phase(self) -> Phase {
        match self {
            Mode::Open | Mode::Disorder | Mode::Cwr => Phase::Open,
            Mode::Recovery => Phase::Recovery,
            Mode::Loss => Phase::Loss,
        }
    }

    /// Is the window being reduced, segment by segment?
    #[inline]
    pub const fn reduces(self) -> bool {
        matches!(self, Mode::Cwr | Mode::Recovery)
    }

    /// As a record has it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing is left.
    Nothing,
    /// The congestion window.
    Congestion,
    /// The peer's window.
    Window,
    /// It is short and waits for more.
    Short,
}

/// What leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// So many octets of new data; none: a bare FIN.
    New(u64),
    /// From the one number to below the other, again; the last may be the FIN's.
    Again(u64, u64),
    /// Nothing more now.
    Nothing(Limit),
}

/// What is known of the segments outstanding; of octets nothing is known by the segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Reported by the peer.
    pub sacked: u64,
    /// Marked lost.
    pub lost: u64,
    /// Sent again, and still under way.
    pub resent: u64,
    /// So many segments arrive late at most.
    pub reordering: u64,
    /// How often reordering was seen.
    pub reordered: u32,
    /// Delivered in all.
    pub delivered: u64,
    /// Reported twice on this connection.
    pub duplicates: u64,
}

/// What the header of an acknowledgement says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived<'a> {
    /// SEG.ACK.
    pub ack: u64,
    /// The echoed timestamp, if there is one.
    pub echo: Option<u32>,
    /// SACK blocks as on the wire.
    pub blocks: &'a [(u32, u32)],
    /// It carries data or moves the window, so it is no duplicate.
    pub not_duplicate: bool,
    /// It carries no data, and its window is that of the last one.
    pub is_bare: bool,
    /// It carries the option of a probe, or of an answer to one.
    pub is_probe: bool,
    /// ECN-Echo.
    pub ece: bool,
    /// The connection is ESTABLISHED.
    pub established: bool,
}

/// The sending half of a connection. Public fields are parts with fields of their own.
#[derive(getset::CopyGetters, getset::Getters)]
pub(super) struct Sender {
    /// The settings in force. What has copied one, as the send buffer its size, is told by who changes it.
    #[getset(get = "pub")]
    config: Arc<Config>,
    /// As both SYNs say; the same ever after.
    #[getset(get_copy = "pub")]
    agreed: Agreed,
    /// What waits to be sent, of the receiving half, too: bits of [`pending`]. While there is any the connection is asked for
    /// more; an acknowledgement waits no longer once anything has left that carries it.
    #[getset(get_copy = "pub")]
    pending: u16,
    /// How losses are being repaired: `Open` if and only if none is known and the window is not being reduced. By the octet
    /// never `Disorder` nor `Cwr`.
    #[getset(get_copy = "pub")]
    mode: Mode,
    /// One past the highest number sent when the last recovery or loss state began, or one below SND.UNA, so that no duplicate
    /// can be of that time; never above SND.NXT.
    #[getset(get_copy = "pub")]
    recover: u64,
    /// Duplicate acknowledgements since SND.UNA moved or a recovery ended; none where recovery counts segments.
    #[getset(get_copy = "pub")]
    dupacks: u32,
    /// Something was sent since nothing more could be.
    sent_something: bool,
    /// Why data waits, beside the windows: bits of [`hold`]. While there is one, [`Sender::next_new`] gives nothing.
    holds: u8,
    /// The next segment carries PSH, whatever it ends with; that segment takes it away.
    #[getset(get_copy = "pub")]
    push: bool,
    pub snd: Send,
    pub window: Window,
    /// Is lent this sender's window with each call, and no other.
    controller: Box<dyn Controller>,
    /// What the controller said of itself when the connection was made; the same ever after.
    #[getset(get_copy = "pub")]
    about: About,
    /// Samples of the delivery rate: there if and only if the controller hears everything.
    rate: Option<Box<Sampler>>,
    usage: Usage,
    pub pace: Pace,
    pub ecn: Ecn,
    pub probing: Probing,
    /// By this connection's settings alone, so that the timeout always follows from them.
    #[getset(get = "pub")]
    rtt: Rtt,
    pub timers: Timers,
    pub liveness: Liveness,
    pub facts: FlowFacts,
    /// The timestamp clock is so many ticks ahead of the run's; the same ever after.
    #[getset(get_copy = "pub")]
    timestamp_offset: u32,
}

impl Sender {
    /// Nothing was sent or agreed on; numbers begin at `iss`, and segments have `mss` octets of payload at most.
    pub fn new(
        config: Arc<Config>,
        now: Instant,
        controller: Box<dyn Controller>,
        iss: u64,
        mss: u64,
        timestamp_offset: u32,
    ) -> Self {
        let about = controller.about();
        let controls = about.hears == Hears::Everything;
        Sender {
            agreed: Agreed::default(),
            pending: 0,
            mode: Mode::Open,
            recover: iss,
            dupacks: 0,
            sent_something: false,
            holds: 0,
            push: false,
            snd: Send::new(iss, mss, config.send_buffer.0),
            window: Window::new(&config, mss),
            controller,
            about,
            rate: controls.then(|| Box::new(Sampler::new(now))),
            usage: Usage::new(now),
            pace: Pace::new(config.pacing, controls),
            ecn: Ecn::default(),
            probing: Probing::default(),
            rtt: Rtt::new(&config),
            timers: Timers::default(),
            liveness: Liveness::new(now),
            facts: FlowFacts::default(),
            timestamp_offset,
            config,
        }
    }

    /// The SYNs have said what both sides can do.
    pub fn agree(&mut self, agreed: Agreed) {
        self.agreed = agreed;
    }

    /// Changes the settings.
    pub fn reconfigure(&mut self, f: impl FnOnce(&mut Config)) {
        f(Arc::make_mut(&mut self.config));
    }

    /// This waits to be sent.
    #[inline]
    pub fn want(&mut self, what: u16) {
        self.pending |= what;
    }

    /// Does any of these wait to be sent?
    #[inline]
    pub fn wants(&self, any: u16) -> bool {
        self.pending & any != 0
    }

    /// These do not wait any more: they left, or something else makes them needless.
    #[inline]
    pub fn clear(&mut self, what: u16) {
        self.pending &= !what;
    }

    /// Nothing but these waits any more.
    #[inline]
    pub fn keep(&mut self, only: u16) {
        self.pending &= only;
    }

    /// Losses are repaired in this way from now on.
    #[inline]
    pub fn enter(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Does the next segment carry PSH, whatever it ends with?
    #[inline]
    pub fn set_push(&mut self, push: bool) {
        self.push = push;
    }

    /// A recovery or a loss state begins: it is over when all that was sent is acknowledged.
    pub fn begin_episode(&mut self) {
        self.recover = self.snd.nxt();
    }

    /// Duplicates of what is outstanding mean something again, whatever began before.
    pub fn forget_episode(&mut self) {
        self.recover = self.snd.una().saturating_sub(1);
    }

    /// One more duplicate acknowledgement.
    pub fn count_dupack(&mut self) {
        self.dupacks = self.dupacks.saturating_add(1);
    }

    /// SND.UNA has moved, or a recovery is over.
    #[inline]
    pub fn forget_dupacks(&mut self) {
        self.dupacks = 0;
    }

    /// Was something sent since nothing more could be?
    #[inline]
    pub fn has_sent(&self) -> bool {
        self.sent_something
    }

    /// A segment with data leaves.
    #[inline]
    pub fn note_sent(&mut self) {
        self.sent_something = true;
    }

    /// Nothing more can be sent now.
    #[inline]
    pub fn note_pause(&mut self) {
        self.sent_something = false;
    }

    /// Does data wait for one of these reasons?
    #[inline]
    pub fn is_held(&self, by: u8) -> bool {
        self.holds & by != 0
    }

    /// Data waits for this reason.
    pub fn hold(&mut self, by: u8) {
        self.holds |= by;
    }

    /// This reason is gone.
    #[inline]
    pub fn release(&mut self, by: u8) {
        self.holds &= !by;
    }

    /// Are delivery rates sampled, because the controller hears everything?
    #[inline]
    pub fn samples_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// The sampler, if delivery rates are sampled.
    #[inline]
    pub fn rate(&mut self) -> Option<&mut Sampler> {
        self.rate.as_deref_mut()
    }

    /// May an acknowledgement enlarge the window: was it the window that limited the sender?
    #[inline]
    pub fn uses_window(&self) -> bool {
        !self.config.cwnd_validation || self.usage.is_limited(&self.window)
    }

    /// Does recovery follow RFC 6675?
    #[inline]
    pub fn recovers_by_sack(&self) -> bool {
        self.agreed.sack && self.about.recovery != FastRecovery::None
    }

    /// The timestamp clock.
    #[inline]
    pub fn timestamp(&self, now: Instant) -> u32 {
        let ticks = now.as_nanos() / self.config.timestamp_tick.as_nanos().max(1);
        (ticks as u32).wrapping_add(self.timestamp_offset)
    }

    /// How long ago the timestamp `echo` was sent, if timestamps were agreed on.
    pub fn age_of_echo(&self, now: Instant, echo: Option<u32>) -> Option<Duration> {
        let ticks = self.timestamp(now).wrapping_sub(echo.filter(|_| self.agreed.timestamps)?);
        // More than half of the number space is not an age.
        (ticks.cast_signed() >= 0).then(|| self.config.timestamp_tick * u64::from(ticks))
    }

    /// A round-trip time from an echoed timestamp, if timestamps were agreed on.
    pub fn sample_echo(&mut self, now: Instant, echo: Option<u32>) {
        if let Some(sample) = self.age_of_echo(now, echo) {
            let per_round_trip = self.snd.outstanding().div_ceil(2 * self.snd.mss());
            self.sample_rtt(sample, per_round_trip);
        }
    }

    /// A round-trip time; `per_round_trip` is how many of them one round trip gives.
    #[inline]
    pub fn sample_rtt(&mut self, r: Duration, per_round_trip: u64) {
        self.rtt.sample_at(&self.config, r, per_round_trip, (self.snd.una(), self.snd.nxt()));
    }

    /// One of a segment that was sent then, by a clock that may count ticks only.
    pub fn sample_ticks(&mut self, now: Instant, sent: Instant) {
        self.rtt.sample(&self.config, rtt::elapsed(&self.config, sent, now), 1);
    }

    /// A round trip took no longer than `r`.
    #[inline]
    pub fn note_min_rtt(&mut self, r: Duration) {
        self.rtt.note_min(r);
    }

    /// SRTT and RTTVAR are known from elsewhere.
    pub fn adopt_rtt(&mut self, srtt: Duration, rttvar: Duration) {
        self.rtt.adopt(&self.config, srtt, rttvar);
    }

    /// The retransmission timer has expired once more.
    pub fn back_off(&mut self) {
        self.rtt.back_off();
    }

    //= RFC 6298 (5.7): after a lost SYN the timeout is at least 3 seconds when data transfer begins.
    /// Data transfer begins after a SYN was lost.
    pub fn restart_rto_after_lost_syn(&mut self) {
        self.rtt.restart_at_least(&self.config, self.config.rto_after_lost_syn);
    }

    /// The retransmission timeout in force.
    #[inline]
    pub fn rto(&self) -> Duration {
        self.rtt.rto(&self.config)
    }

    /// The retransmission timer starts from now.
    #[inline]
    pub fn arm_retransmission(&mut self, now: Instant) {
        self.timers.arm(Alarm::Retransmission, self.rtt.deadline(&self.config, now));
    }

    /// The congestion window in segments: one at least, or nothing would ever leave.
    #[inline]
    pub fn cwnd_segments(&self) -> u64 {
        (self.window.cwnd() / self.snd.mss()).max(1)
    }

    /// What an acknowledgement that brings nothing would bring the controller.
    #[inline]
    pub fn brought(&self, now: Instant, in_flight: u64) -> Ack {
        Ack {
            now,
            una: self.snd.una(),
            nxt: self.snd.nxt(),
            in_flight,
            srtt: self.rtt.srtt(),
            phase: self.mode.phase(),
            paced: self.pace.is_on(),
            ..Ack::default()
        }
    }

    /// The window that a loss halves. `limited`: octets of it that limited transmit let out.
    fn loss_base(&self, limited: u64) -> u64 {
        match self.config.loss_window {
            //= RFC 5681 (3.2, step 2): what limited transmit let out does not count.
            LossWindow::FlightSize => self.snd.outstanding().saturating_sub(limited),
            LossWindow::Cwnd => self.window.cwnd(),
        }
    }

    /// The slow start threshold after a loss. `limited`: octets that limited transmit let out.
    pub fn threshold_after_loss(&mut self, limited: u64) -> u64 {
        let base = self.loss_base(limited);
        self.controller.ssthresh(&self.window, base)
    }

    /// The same after a report of congestion.
    pub fn threshold_after_report(&mut self, limited: u64) -> u64 {
        let base = self.loss_base(limited);
        self.controller.ssthresh_on_ecn(&self.window, base, self.config.abe)
    }

    /// Something happened to the window.
    #[inline]
    pub fn tell_controller(&mut self, now: Instant, event: Event) {
        self.controller.on_event(&mut self.window, now, event);
    }

    /// An acknowledgement brought this, whether or not the window may grow.
    #[inline]
    pub fn controller_observes(&mut self, brought: &Ack) {
        self.controller.observe(&mut self.window, brought);
    }

    /// An acknowledgement brought this, and the window may grow.
    #[inline]
    pub fn controller_grows(&mut self, brought: &Ack) {
        self.controller.on_ack(&mut self.window, brought);
    }

    /// What was taken for a loss was none.
    pub fn undo_reduction(&mut self, prior: Prior) {
        self.controller.undo(&mut self.window, prior);
    }

    /// Does the controller leave the window unused by itself?
    #[inline]
    pub fn is_limited_by_controller(&self) -> bool {
        self.controller.limits_itself()
    }

    /// A loss was found: what does the controller do about it?
    pub fn suspect(&mut self, suspicion: Suspicion) -> Reaction {
        let estimate = self.estimate();
        self.controller.on_suspicion(&self.window, suspicion, estimate)
    }

    /// A probe was answered after this time, or not: and now?
    pub fn weigh_probe(&mut self, rtt: Option<Duration>) -> Reaction {
        let estimate = self.estimate();
        self.controller.on_probe(&self.window, rtt, estimate)
    }

    fn estimate(&self) -> Estimate {
        let (srtt, rttvar) = self.rtt.estimate();
        Estimate { srtt, rttvar, rto: self.rto() }
    }

    //= RFC 3168 (6.1.2): a window of one segment cannot shrink: the retransmission timer starts again, and nothing new is
    //= sent before it expires (MUST).
    /// Is this what a report of congestion means now?
    pub fn must_wait_for_timer(&self) -> bool {
        self.config.ecn_wait && self.window.cwnd() <= self.snd.mss()
    }

    /// How many octets of new data (zero: a bare FIN) may be sent now, but for the congestion window. `room`: payload that
    /// fits beside the options.
    #[inline(always)]
    pub fn next_new(&mut self, now: Instant, room: u64) -> Result<u64, Limit> {
        let snd = &self.snd;
        if !snd.has_unsent() {
            return Err(Limit::Nothing);
        }
        if self.is_held(hold::ANY) {
            return Err(Limit::Congestion);
        }
        let idle = snd.una() == snd.nxt();
        if idle && self.facts.app_sent > 0 {
            self.restart_if_idle(now);
        }
        let snd = &self.snd;
        let mut unsent = snd.unsent();
        if snd.has_records() {
            unsent = unsent.min(snd.record_end(snd.nxt()) - snd.nxt());
        }
        let usable = snd.window_edge().saturating_sub(snd.nxt());
        let len = unsent.min(usable).min(room);
        if len < room {
            if usable == 0 {
                return Err(Limit::Window);
            }
            if unsent > usable {
                //= RFC 9293 (3.8.6.2.1): a part of a segment only if it is half of the largest window.
                if !(idle && usable >= snd.max_wnd() / 2) {
                    return Err(Limit::Window);
                }
            } else if len > 0 && (!idle || snd.holds_short()) && !snd.is_finished() && unsent == snd.unsent()
            {
                let waits = match self.config.nagle {
                    _ if snd.is_corked() => true,
                    _ if idle => false,
                    Nagle::Off => false,
                    //= RFC 9293 (3.7.4): while anything is outstanding a short segment waits.
                    Nagle::Nagle => true,
                    //= RFC 9293 (A.3): while a short segment is outstanding another one waits.
                    Nagle::Minshall => snd.short_end() > snd.una(),
                };
                if waits {
                    return Err(Limit::Short);
                }
            }
        }
        Ok(len)
    }

    /// The congestion window after an idle time, unless its controller sets it by itself.
    #[inline(never)]
    fn restart_if_idle(&mut self, now: Instant) {
        let rto = self.rto();
        let idle = now.since(self.liveness.idle_since());
        if idle <= rto || self.sent_something || self.samples_rate() {
            return;
        }
        let initial = self.config.initial_window.octets(self.snd.mss());
        match self.config.idle_restart {
            IdleRestart::Off => return,
            //= RFC 5681 (4.1): nothing sent for a timeout: not more than the initial window.
            IdleRestart::InitialWindow => self.window.restart(initial),
            IdleRestart::Halve => self.window.decay(idle, rto, initial),
        }
        //= RFC 9438 (4.2): the controller is told of the whole idle time, so this is not when something was sent.
        self.liveness.restarted(now);
        self.usage.restart(now);
    }

    /// New data is about to leave: the controller hears of it if it wants to.
    #[inline]
    pub fn tell_controller_of_departure(&mut self, now: Instant, octets: u64) {
        let nothing_outstanding = self.snd.nxt() == self.snd.una() && self.facts.app_sent > 0;
        if nothing_outstanding || self.about.hears == Hears::Everything {
            let idle = nothing_outstanding.then(|| now.since(self.liveness.last_sent()));
            self.controller.on_sent(&mut self.window, &Departure { now, octets, idle });
        }
    }

    /// `octets` of payload left: where data is paced, the next waits for its turn.
    pub fn paced_out(&mut self, now: Instant, octets: u64) {
        if self.pace.is_counted() {
            let rate = self.controller.pacing_rate();
            let rate = rate.unwrap_or_else(|| pacing::linux_rate(&self.window, self.rtt.srtt()));
            self.pace.wait_for(now, octets, rate);
        }
    }

    /// What is unused of the window for long, where that is the application's doing, is given up (RFC 2861 3.2).
    /// `in_flight`: octets as validation counts them; `limited`: the window held something back.
    #[inline]
    pub fn validate_window(&mut self, now: Instant, held: Limit, limited: bool, in_flight: u64) {
        let flight = (self.snd.una(), self.snd.nxt());
        let unused = self
            .usage
            .sent(now, &self.window, limited, in_flight, flight)
            .is_some_and(|idle| idle >= self.rto());
        // A full send buffer or a closed window is not the application's doing, and a controller may set the window by itself.
        let halves = self.config.idle_restart == IdleRestart::Halve && !self.samples_rate();
        if unused && held == Limit::Nothing && halves {
            let initial = self.config.initial_window.octets(self.snd.mss());
            self.usage.shrink(now, &mut self.window, initial);
        }
    }

    /// How long until the next probe of a closed window.
    pub fn probe_interval(&self) -> Duration {
        self.liveness.probe_interval(self.rto(), &self.config)
    }

    /// Keep-alive begins anew, if it is on.
    #[inline]
    pub fn arm_keepalive(&mut self, now: Instant) {
        if self.config.keepalive {
            self.liveness.heard();
            self.timers.arm(Alarm::Keepalive, now + self.config.keepalive_idle);
        }
    }
}
