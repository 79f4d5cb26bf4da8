//! A connection as the sockets of an operating system hold it: options that change while it is open, and what it says of itself.
//!
//! Applications of a run need none of this; programs that were written against an operating system's TCP do.

use airloom_base::service::{Identity, Path};
use airloom_base::{Body, CloseReason, Cx, Duration, Instant, Packet, Transport};

use super::{Connection, pending};
use crate::config::Config;
use crate::protocol::Tcp;
use crate::send::corked;
use crate::state::State;
use crate::timers::Alarm;

/// A connection, held by its owner.
pub struct Socket(Box<Connection>);

/// What TCP_INFO of Linux tells, by its names; counts are segments, where recovery counts segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in `struct tcp_info`")]
pub struct Info {
    pub state: State,
    /// Open, Disorder, CWR, Recovery, Loss: 0 to 4.
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub timestamps: bool,
    pub sack: bool,
    pub window_scaling: bool,
    pub ecn: bool,
    pub snd_wscale: u8,
    pub rcv_wscale: u8,
    pub rto: Duration,
    pub ato: Duration,
    pub snd_mss: u64,
    pub rcv_mss: u64,
    pub unacked: u64,
    pub sacked: u64,
    pub lost: u64,
    pub retrans: u64,
    /// How long ago.
    pub last_data_sent: Duration,
    pub last_data_recv: Duration,
    pub last_ack_recv: Duration,
    pub pmtu: u16,
    pub rtt: Duration,
    pub rttvar: Duration,
    /// Segments; nothing before the first reduction.
    pub snd_ssthresh: Option<u64>,
    pub snd_cwnd: u64,
    pub advmss: u16,
    pub reordering: u64,
    /// How often reordering was seen.
    pub reord_seen: u32,
    pub total_retrans: u64,
    pub min_rtt: Option<Duration>,
    pub delivered: u64,
    /// Octets.
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub notsent_bytes: u64,
    pub readable: u64,
    pub snd_wnd: u64,
    /// The largest window the peer ever offered.
    pub max_window: u64,
    /// Octets written and not acknowledged, and how many may be before a writer waits.
    pub queued: u64,
    pub send_buffer: u64,
    pub rcv_wnd: u64,
    pub dsack_dups: u64,
    pub total_rto: u32,
    /// Does data wait for the peer's window?
    pub window_limited: bool,
}

impl Socket {
    /// A connection that will be opened from here.
    pub fn open(tcp: &Tcp, now: Instant, path: Path, ports: (u16, u16)) -> Socket {
        Socket(Box::new(tcp.connection(now, path, ports, Identity::default())))
    }

    /// One that `unit` opens, if it does; it still has to be handed over.
    pub fn accept(tcp: &Tcp, now: Instant, path: Path, ports: (u16, u16), unit: &Packet) -> Option<Socket> {
        Tcp::is_opening(unit).then(|| Socket::open(tcp, now, path, ports))
    }

    /// What its host calls.
    pub fn transport(&self) -> &dyn Transport {
        &*self.0
    }

    /// What its host calls.
    pub fn transport_mut(&mut self) -> &mut dyn Transport {
        &mut *self.0
    }

    /// What stays of it in TIME-WAIT.
    pub fn into_lingering(self) -> Box<dyn Transport> {
        self.0.into_lingering()
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        self.0.tx.config()
    }

    /// The largest segment that it sends.
    pub fn mss(&self) -> u64 {
        self.0.tx.snd.mss()
    }

    /// Changes settings of the open connection. Those that only matter while it opens change nothing any more.
    pub fn change(&mut self, now: Instant, f: impl FnOnce(&mut Config)) {
        let c = &mut *self.0;
        let before = c.tx.config().clone();
        c.tx.reconfigure(f);
        if c.tx.config().send_buffer != before.send_buffer {
            c.tx.snd.set_limit(c.tx.config().send_buffer.0);
            if c.tx.snd.take_room() {
                c.tell_writable();
            }
        }
        if c.tx.config().receive_buffer != before.receive_buffer {
            c.rcv.raise_limit(c.tx.config().receive_buffer.0);
        }
        let keepalive = |k: &Config| (k.keepalive, k.keepalive_idle, k.keepalive_interval);
        if keepalive(c.tx.config()) != keepalive(&before) && c.state.is_synchronized() {
            c.tx.timers.stop(Alarm::Keepalive);
            c.tx.arm_keepalive(now);
        }
        c.tx.want(pending::DATA);
    }

    /// TCP_CORK: while it is on a part of a segment waits for the rest.
    pub fn cork(&mut self, on: bool) {
        let c = &mut *self.0;
        c.tx.snd.cork(corked::CORK, on);
        c.tx.want(pending::DATA);
    }

    /// Writes all of `body`, whatever the buffer holds: its owner keeps the books. `more`: the write goes on (MSG_MORE), and a
    /// part of a segment waits for the rest until the next acknowledgement. Says whether the connection takes data.
    pub fn write(&mut self, cx: &mut Cx, body: Body, more: bool) -> bool {
        let limit = self.0.tx.snd.limit();
        self.0.tx.snd.set_limit(u64::MAX);
        self.0.tx.snd.cork(corked::MORE | corked::UNPUSHED, more);
        let taken = self.0.write(cx, 0, body).is_ok_and(|octets| octets > 0);
        self.0.tx.snd.set_limit(limit);
        taken
    }

    /// What has been written has left as far as it may.
    pub fn written(&mut self) {
        self.0.tx.snd.cork(corked::MORE, false);
    }

    /// A writer waits for room in the buffer.
    pub fn wants_room(&mut self) {
        self.0.tx.snd.want_room();
    }

    /// Octets that leave as one group at most (segmentation offload), or a segment.
    pub fn block(&mut self) -> u64 {
        let c = &mut *self.0;
        c.recovery.block(&c.tx)
    }

    /// The application is gone and text arrived: it is refused, as a segment of no connection would be.
    pub fn refuse_text(&mut self) {
        //= RFC 9293 (3.10.7.1): the number of the RST is the acknowledgement number of the segment.
        self.0.refusal = (self.0.tx.snd.una() as u32, None);
        self.0.tx.want(pending::REFUSE);
        self.0.fail(CloseReason::Aborted);
    }

    /// TCP_NODELAY was switched on: what waits leaves, even if it is corked.
    pub fn push(&mut self) {
        self.0.tx.snd.cork(corked::PUSH, true);
        self.0.tx.want(pending::DATA);
    }

    /// MSG_EOR: what was written last ends a record, and no segment goes on beyond that.
    pub fn end_record(&mut self) {
        self.0.tx.snd.end_record();
    }

    /// What the connection says of itself.
    pub fn info(&self, now: Instant) -> Info {
        let c = &*self.0;
        let (snd, facts, counts) = (&c.tx.snd, &c.tx.facts, c.recovery.counts());
        let (rtt, rttvar) = c.tx.rtt().estimate();
        Info {
            state: c.state,
            ca_state: c.tx.mode() as u8,
            retransmits: c.tx.liveness.timeouts(),
            probes: c.tx.liveness.probes().max(c.tx.liveness.keepalives()),
            backoff: c.tx.rtt().backoff().max(c.tx.liveness.probes()),
            timestamps: c.tx.agreed().timestamps,
            sack: c.tx.agreed().sack,
            window_scaling: c.tx.agreed().scaling,
            ecn: c.tx.ecn.is_on(),
            snd_wscale: snd.shift(),
            rcv_wscale: c.rcv.shift(),
            rto: c.tx.rto(),
            ato: c.acks.delay(),
            snd_mss: snd.mss(),
            rcv_mss: c.acks.full(u64::from(c.local_mss())),
            unacked: c.recovery.segments_out(&c.tx),
            sacked: counts.sacked,
            lost: counts.lost,
            retrans: counts.resent,
            last_data_sent: now.since(c.tx.liveness.last_sent()),
            last_data_recv: now.since(c.acks.last_data().max(facts.established.unwrap_or(now))),
            last_ack_recv: now.since(c.tx.liveness.last_received()),
            pmtu: c.path.mtu,
            rtt,
            rttvar,
            snd_ssthresh: (c.tx.window.ssthresh() < u64::MAX).then(|| c.tx.window.ssthresh() / snd.mss()),
            snd_cwnd: c.tx.cwnd_segments(),
            advmss: c.local_mss(),
            reordering: counts.reordering,
            reord_seen: counts.reordered,
            total_retrans: facts.resent,
            min_rtt: c.tx.rtt().min(),
            delivered: counts.delivered,
            bytes_acked: facts.app_sent.saturating_sub(snd.outstanding()),
            bytes_received: facts.app_received + c.rcv.readable(),
            bytes_sent: facts.app_sent,
            notsent_bytes: snd.unsent(),
            readable: c.rcv.readable(),
            snd_wnd: snd.wnd(),
            max_window: snd.max_wnd(),
            queued: snd.unacknowledged(),
            send_buffer: snd.limit(),
            rcv_wnd: c.rcv.wnd(),
            dsack_dups: counts.duplicates,
            total_rto: facts.rto_count,
            // Linux looks at the congestion window first.
            window_limited: snd.unsent() > 0
                && snd.window_edge() < snd.nxt() + snd.unsent().min(snd.mss())
                && !c.recovery.fills_window(&c.tx),
        }
    }
}
