//! `struct tcp_info` of Linux, as `getsockopt` gives it.

use airloom_base::Duration;
use airloom_transports::tcp::socket::Info;
use airloom_transports::tcp::state::State;

use crate::stack::Chronograph;

/// `struct tcp_info` (`linux/tcp.h`), up to the fields of 5.5; names and order are the interface.
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(missing_docs, reason = "named as in the header")]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    /// The peer's shift in the low half, ours in the high one.
    pub wscales: u8,
    pub flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
}

/// TCPI_OPT_TIMESTAMPS and those after it.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WSCALE: u8 = 4;
const ECN: u8 = 8;
/// What Linux says of a threshold that was never set.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

fn number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1000
}

fn micros_u32(time: Duration) -> u32 {
    micros(time) as u32
}

impl TcpInfo {
    /// From what a connection says; a socket without one is closed.
    pub fn of(info: Option<Info>, chronograph: Chronograph) -> TcpInfo {
        let Some(i) = info else { return TcpInfo { state: number(State::Closed), ..TcpInfo::default() } };
        let option = |on: bool, bit: u8| if on { bit } else { 0 };
        TcpInfo {
            state: number(i.state),
            ca_state: i.ca_state,
            retransmits: i.retransmits,
            probes: i.probes,
            backoff: i.backoff,
            options: option(i.timestamps, TIMESTAMPS)
                | option(i.sack, SACK)
                | option(i.window_scaling, WSCALE)
                | option(i.ecn, ECN),
            wscales: i.snd_wscale | i.rcv_wscale << 4,
            rto: micros_u32(i.rto),
            ato: micros_u32(i.ato),
            snd_mss: i.snd_mss as u32,
            rcv_mss: i.rcv_mss as u32,
            unacked: i.unacked as u32,
            sacked: i.sacked as u32,
            lost: i.lost as u32,
            retrans: i.retrans as u32,
            last_data_sent: i.last_data_sent.as_millis() as u32,
            last_data_recv: i.last_data_recv.as_millis() as u32,
            last_ack_recv: i.last_ack_recv.as_millis() as u32,
            pmtu: u32::from(i.pmtu),
            rtt: micros_u32(i.rtt),
            rttvar: micros_u32(i.rttvar),
            snd_ssthresh: i.snd_ssthresh.map_or(NO_THRESHOLD, |n| n as u32),
            snd_cwnd: i.snd_cwnd as u32,
            advmss: u32::from(i.advmss),
            reordering: i.reordering as u32,
            total_retrans: i.total_retrans as u32,
            bytes_acked: i.bytes_acked,
            bytes_received: i.bytes_received,
            notsent_bytes: i.notsent_bytes as u32,
            min_rtt: i.min_rtt.map_or(u32::MAX, micros_u32),
            busy_time: micros(chronograph.busy),
            rwnd_limited: micros(chronograph.window),
            sndbuf_limited: micros(chronograph.buffer),
            delivered: i.delivered as u32,
            bytes_sent: i.bytes_sent,
            dsack_dups: i.dsack_dups as u32,
            reord_seen: i.reord_seen,
            snd_wnd: i.snd_wnd as u32,
            rcv_wnd: i.rcv_wnd as u32,
            total_rto: i.total_rto as u16,
            ..TcpInfo::default()
        }
    }
}
