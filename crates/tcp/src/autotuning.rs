//! Buffers that grow with the path: dynamic right-sizing at the receiver, room for twice the congestion window at the sender.
//!
//! The receiver measures what the application reads in a round trip. A sender in slow start doubles its window in each, so
//! twice that is needed in the next one, and more where what is read grows from one to the next. The idea is that of Fisk
//! and Feng ("Dynamic Right-Sizing in TCP", 2001), the numbers are those of Linux (`tcp_rcv_space_adjust`, up to 6.15).
//! Linux counts the memory that segments take; here it is the octets they carry, and the limit is a window. Nothing is read while
//! there is a hole, so the buffer stays as it is then (Linux 6.18: a window that has reached its limit stands still).

use airloom_base::{Duration, Instant};

use super::config::Config;
use super::recv::Receive;

/// Linux adds so many segments to what the next round trip needs.
const SPARE_SEGMENTS: u64 = 16;
/// So much is taken for read in the round trip before the first: an initial window (Linux: TCP_INIT_CWND).
const FIRST_SEGMENTS: u64 = 10;

/// Linux: room for the headers below TCP's payload with what stands behind the data, and the descriptor of a buffer.
const HEADERS: u64 = 576;
const DESCRIPTOR: u64 = 256;

/// What the receiver measures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RightSize {
    /// The buffer is not raised above this.
    max: u64,
    /// The round-trip time as this side sees it; none yet.
    rtt: Option<Duration>,
    /// Without timestamps: when this window began to arrive, and where it ends.
    window: Option<(Instant, u64)>,
    /// The echo that gave the last time: each gives one.
    echo: Option<u32>,
    /// What the application had read when this round trip began, and when that was.
    read: u64,
    since: Instant,
    /// What it read in the round trip before; never zero once the connection is open.
    space: u64,
    /// When it looks at what was read next.
    due: Instant,
}

impl RightSize {
    /// For a connection that is not open yet.
    pub fn new(config: &Config) -> Self {
        let max = config.receive_buffer_max.0;
        let max = if config.window_scaling { max } else { max.min(65_535) };
        RightSize { max, due: Instant::FAR_FUTURE, ..Default::default() }
    }

    /// The connection is open.
    pub fn begin(&mut self, now: Instant, rcv: &Receive) {
        self.read_until_now(now, octets_read(rcv));
        self.space = rcv.wnd().min(FIRST_SEGMENTS * rcv.mss()).max(1);
    }

    /// Is it time to look at what was read? A round trip after the last look, once one is known.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    fn read_until_now(&mut self, now: Instant, read: u64) {
        (self.read, self.since) = (read, now);
    }

    /// A round-trip time. `of_window`: it is the time that a whole window took, which may be too long.
    fn sample(&mut self, rtt: Duration, of_window: bool) {
        self.rtt = Some(match self.rtt {
            None => rtt,
            Some(old) if of_window => old.min(rtt),
            Some(old) => old * 7 / 8 + rtt / 8,
        });
    }

    fn look_again_later(&mut self) {
        if let Some(rtt) = self.rtt {
            self.due = self.since + rtt;
        }
    }

    /// `len` octets arrived, and echo a timestamp. Has that to be looked at? Nearly all segments echo what the one before did.
    #[inline]
    pub fn is_new_echo(&mut self, echo: Option<u32>, len: u64, mss: u64) -> bool {
        let new = self.echo != echo && len >= mss.min(536);
        if new {
            self.echo = echo;
        }
        new
    }

    /// The timestamp that arrived is so old; a time below a tick is one. Nothing: that cannot be said.
    pub fn echo_arrived(&mut self, age: Option<Duration>, tick: Duration) {
        if let Some(age) = age {
            self.sample(age.max(tick), false);
        }
        self.look_again_later();
    }

    /// Data arrived without a timestamp.
    pub fn data_arrived(&mut self, now: Instant, rcv: &Receive) {
        match self.window {
            Some((_, end)) if rcv.nxt() < end => {}
            last => {
                if let Some((began, _)) = last {
                    self.sample(now.since(began), true);
                }
                self.window = Some((now, rcv.nxt() + rcv.wnd().max(1)));
                self.look_again_later();
            }
        }
    }

    /// The application has read something, and it is time to look.
    #[inline(never)]
    pub fn data_read(&mut self, now: Instant, rcv: &mut Receive) {
        let read = octets_read(rcv);
        let copied = read - self.read.min(read);
        if copied > self.space {
            let needed = 2 * copied + SPARE_SEGMENTS * rcv.mss();
            // Twice as much again as what is read has grown by, in proportion.
            let growth = u128::from(needed) * u128::from(copied - self.space) / u128::from(self.space);
            let limit = u128::from(needed) + 2 * growth;
            let limit = u64::try_from(limit).unwrap_or(u64::MAX).min(self.max);
            self.space = copied;
            rcv.raise_limit(limit);
        }
        self.read_until_now(now, read);
        self.look_again_later();
    }
}

fn octets_read(rcv: &Receive) -> u64 {
    rcv.nxt() - rcv.readable()
}

/// The send buffer becomes the memory that twice a congestion window of `cwnd` octets takes, filled with whole segments. That is
/// about three times the window's octets: a sender in recovery goes on with new data while nothing is acknowledged, and needs it
/// here. `reordering`: so many segments may arrive late.
pub(super) fn send_buffer(config: &Config, cwnd: u64, mss: u64, reordering: u64) -> u64 {
    let segments = (cwnd / mss).max(FIRST_SEGMENTS).max(reordering + 1);
    let octets = (2 * segments * memory_of(mss)).min(config.send_buffer_max.0);
    octets - octets % mss
}

/// Octets that Linux takes a segment of `mss` for when it sizes the send buffer (`tcp_sndbuf_expand`): room for headers and
/// bookkeeping, up to a power of two, and the descriptor. Data that waits is packed closely, so nearly as many octets of it fit.
///
/// Linux 6.18 over 2 Mbit/s and 100 ms, with 10, 22, 36 and 57 segments of 1448 octets in the window: a buffer of 2304 octets for
/// each of twice as many, full with 44,904, 110,048, 169,416 and 278,016 octets. (Kernels with room for the headers of wireless
/// devices arrive at the next power of two.)
fn memory_of(mss: u64) -> u64 {
    (mss + HEADERS).next_power_of_two() + DESCRIPTOR
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    #[test]
    fn times_of_whole_windows_only_become_shorter_and_echoes_are_smoothed() {
        let ms = Duration::from_millis;
        let mut r = RightSize::new(&Profile::Rfc.settings());
        r.sample(ms(200), true);
        r.sample(ms(400), true);
        assert_eq!(r.rtt, Some(ms(200)));
        r.sample(ms(100), true);
        assert_eq!(r.rtt, Some(ms(100)));
        r.sample(ms(180), false);
        assert_eq!(r.rtt, Some(ms(110)));
    }

    #[test]
    fn a_segment_takes_more_memory_than_it_carries() {
        assert_eq!([536, 1448, 1460, 1480, 8948].map(memory_of), [2304, 2304, 2304, 4352, 16_640]);
    }

    #[test]
    fn without_window_scaling_the_field_is_the_limit() {
        let config = Config { window_scaling: false, ..Profile::Rfc.settings() };
        assert_eq!(RightSize::new(&config).max, 65_535);
    }
}
