//! Between the library and its congestion controllers: what paces a connection, and what can be counted there and nowhere else.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airloom_base::Instant;
use airloom_base::random::Stream;

#[cfg(not(feature = "quinn"))]
use crate::bbr::bbr;
use crate::clock::{Moment, from_library};
use crate::config::{Config, Controller as Kind, Pacing};
#[cfg(feature = "quinn")]
use crate::library::bbr;
use crate::library::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use crate::library::noq_controller::{AnyFactory, Cubic};
use crate::library::{AT_ONCE, Lost, Watch, Watched};
use crate::qlog::Trace;

/// What a connection's controller has seen.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Octets of packets that were acknowledged.
    pub(crate) acknowledged: AtomicU64,
    /// Packets that were taken for lost.
    pub(crate) lost: AtomicU64,
    /// Times that all losses of an episode were none.
    pub(crate) spurious: AtomicU64,
    /// In nanoseconds; 0: not measured yet. The smoothed round trip is that before the last acknowledgement.
    srtt: AtomicU64,
    pub(crate) min_rtt: AtomicU64,
    /// The last packet that asks for an acknowledgement: its number, and when it was sent, in nanoseconds from 1; 0: it was acknowledged.
    last_number: AtomicU64,
    last_sent: AtomicU64,
    /// When its one path last became another, in nanoseconds from 1, and the first number that was not sent by then; 0: never.
    left_at: AtomicU64,
    left_number: AtomicU64,
    /// Octets of packets that were sent before that and taken for lost after it, and of those that were sent after it.
    left: AtomicU64,
    stayed: AtomicU64,
    /// Octets that the library had taken for lost in all when its path first became another.
    lost_before: AtomicU64,
}

impl Meter {
    /// When the last packet was sent that asks for an acknowledgement and has none.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        self.last_sent.load(Relaxed).checked_sub(1).map(Instant::from_nanos)
    }

    /// The one path there is becomes another. `lost`: octets that the library has taken for lost in all, if it says so.
    pub(crate) fn leave(&self, now: Instant, lost: Option<u64>) {
        if self.left_at.swap(now.as_nanos().saturating_add(1), Relaxed) == 0 {
            self.lost_before.store(lost.unwrap_or(0), Relaxed);
        }
        self.left_number.store(self.last_number.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Octets that went away with paths. Where no controller is told what was lost of a path that is given up, it is all that was `lost`
    /// since, but for what a controller was told of and had not left by then.
    pub(crate) fn left(&self, lost: Option<u64>) -> u64 {
        match lost.filter(|_| self.left_at.load(Relaxed) > 0) {
            Some(lost) => {
                let since = lost.saturating_sub(self.lost_before.load(Relaxed));
                since.saturating_sub(self.stayed.load(Relaxed))
            }
            None => self.left.load(Relaxed),
        }
    }

    /// The smoothed round trip, once there is one.
    pub(crate) fn smoothed(&self) -> Option<airloom_base::Duration> {
        Some(airloom_base::Duration::from_nanos(self.srtt.load(Relaxed))).filter(|time| !time.is_zero())
    }
}

/// A moment as the meter has it.
fn mark(at: Moment) -> u64 {
    from_library(at).as_nanos().saturating_add(1)
}

/// Makes the controllers of one connection.
pub(crate) struct Factory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    pace: Pace,
}

impl Factory {
    /// `packet`: octets of one at the beginning. `draws`: where controllers have their chances from.
    pub(crate) fn new(
        config: &Config,
        packet: u16,
        meter: Arc<Meter>,
        trace: Option<Trace>,
        draws: &Arc<Mutex<Stream>>,
    ) -> Factory {
        let window = config.initial_window.octets(packet);
        let inner: Arc<dyn ControllerFactory + Send + Sync> = match config.controller {
            Kind::NewReno => {
                let mut settings = NewRenoConfig::default();
                settings.initial_window(window);
                Arc::new(settings)
            }
            Kind::Cubic => {
                let mut settings = CubicConfig::default();
                settings.initial_window(window);
                Arc::new(settings)
            }
            Kind::Bbr => bbr(window, draws.clone()),
        };
        Factory { inner, pace: Pace { pacing: config.pacing, meter, trace, path: 0, is_measured: false } }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Moment, mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched { inner: self.inner.clone().build(now, mtu), watch: self.pace.clone() })
    }
}

/// CUBIC as noq-proto has it, for connections outside of a simulated host; losses are told to `trace`.
pub fn cubic(pacing: Pacing, trace: Option<&Trace>) -> AnyFactory {
    Arc::new(Cubic(Pace {
        pacing,
        meter: Arc::default(),
        trace: trace.cloned(),
        path: 0,
        is_measured: false,
    }))
}

/// Counts what a controller is told, and says when packets need not be spread.
#[derive(Clone, Debug)]
struct Pace {
    pacing: Pacing,
    meter: Arc<Meter>,
    trace: Option<Trace>,
    /// The path whose packets it sees.
    path: u32,
    is_measured: bool,
}

impl Watch for Pace {
    fn sent(&mut self, now: Moment, number: u64) {
        self.meter.last_number.store(number, Relaxed);
        self.meter.last_sent.store(mark(now), Relaxed);
        if let Some(trace) = &self.trace {
            self.path = trace.last_path();
        }
    }
    fn acknowledged(
        &mut self,
        now: Moment,
        sent: Moment,
        octets: u64,
        number: Option<u64>,
        smoothed: Duration,
    ) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.is_measured = true;
        let last = self.meter.last_number.load(Relaxed);
        if number.is_none_or(|number| number == last) && self.meter.last_sent.load(Relaxed) == mark(sent) {
            self.meter.last_sent.store(0, Relaxed);
        }
        self.meter.acknowledged.fetch_add(octets, Relaxed);
        self.meter.srtt.store(nanos(smoothed), Relaxed);
        // The library has measured it only when all of an acknowledgement has been told.
        let took = nanos(now.saturating_duration_since(sent)).max(1);
        let least = self.meter.min_rtt.load(Relaxed);
        self.meter.min_rtt.store(if least == 0 { took } else { least.min(took) }, Relaxed);
    }
    fn lost(&mut self, lost: Lost) {
        self.meter.lost.fetch_add(1, Relaxed);
        let (had_left, octets) = match lost {
            Lost::Packet(number, octets) => (number < self.meter.left_number.load(Relaxed), octets),
            Lost::Until(sent, octets) => (mark(sent) <= self.meter.left_at.load(Relaxed), octets),
        };
        if had_left {
            self.meter.left.fetch_add(octets, Relaxed);
        } else if self.meter.left_at.load(Relaxed) > 0 {
            self.meter.stayed.fetch_add(octets, Relaxed);
        }
        match (&self.trace, lost) {
            (Some(trace), Lost::Packet(number, octets)) => trace.lost(self.path, number, octets),
            // Of what was only marked no octet was lost.
            (Some(trace), Lost::Until(sent, 1..)) => trace.lost_until(from_library(sent)),
            _ => {}
        }
    }
    fn spurious(&mut self) {
        self.meter.spurious.fetch_add(1, Relaxed);
    }
    fn rate(&self) -> Option<u64> {
        match self.pacing {
            Pacing::Always => None,
            //= RFC 9002 (7.7): a sender paces, or limits bursts to the initial congestion window, which is all it has now.
            Pacing::Measured => (!self.is_measured).then_some(AT_ONCE),
            Pacing::Off => Some(u64::MAX),
        }
    }
}
