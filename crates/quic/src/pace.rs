//! Between the library and its congestion controllers: what paces a connection, and what can be counted there and nowhere else.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use airloom_base::Instant;

use crate::clock::{Moment, from_library};
use crate::config::{Config, Controller as Kind, Pacing};
use crate::library::RttEstimator;
use crate::library::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

/// Octets a second at which nothing waits that matters: a packet takes some two microseconds. The library rounds waits to
/// nanoseconds, and one of none would come again and again, so an octet has to take one at least.
pub(crate) const AT_ONCE: u64 = 500_000_000;

/// What a connection's controller has seen.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Octets of packets that were acknowledged.
    pub(crate) acknowledged: AtomicU64,
    /// Packets that were taken for lost.
    pub(crate) lost: AtomicU64,
    /// Times that all losses of an episode were none.
    pub(crate) spurious: AtomicU64,
    /// In nanoseconds; 0: not measured yet.
    pub(crate) srtt: AtomicU64,
    pub(crate) min_rtt: AtomicU64,
    /// The last packet that asks for an acknowledgement: its number, and when it was sent, in nanoseconds from 1; 0: it was acknowledged.
    last_number: AtomicU64,
    last_sent: AtomicU64,
}

impl Meter {
    /// When the last packet was sent that asks for an acknowledgement and has none.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        self.last_sent.load(Relaxed).checked_sub(1).map(Instant::from_nanos)
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
    pacing: Pacing,
    meter: Arc<Meter>,
}

impl Factory {
    pub(crate) fn new(config: &Config, meter: Arc<Meter>) -> Factory {
        let window = config.initial_window.octets();
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
            Kind::Bbr => {
                let mut settings = Bbr3Config::default();
                settings.initial_window(window);
                Arc::new(settings)
            }
        };
        Factory { inner, pacing: config.pacing, meter }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Moment, mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, mtu);
        Box::new(Paced { inner, pacing: self.pacing, meter: self.meter.clone(), is_measured: false })
    }
}

/// CUBIC as the library has it, for connections outside of a simulated host; paced once a round trip has been measured
/// ([`Pacing::Measured`]).
pub fn once_measured() -> Arc<dyn ControllerFactory + Send + Sync> {
    let (inner, meter) = (Arc::new(CubicConfig::default()), Arc::new(Meter::default()));
    Arc::new(Factory { inner, pacing: Pacing::Measured, meter })
}

/// A controller that says when packets need not be spread.
#[derive(Debug)]
struct Paced {
    inner: Box<dyn Controller>,
    pacing: Pacing,
    meter: Arc<Meter>,
    is_measured: bool,
}

impl Controller for Paced {
    fn on_sent(&mut self, now: Moment, bytes: u64, largest: u64) {
        self.inner.on_sent(now, bytes, largest);
    }
    fn on_packet_sent(&mut self, now: Moment, bytes: u16, number: u64) {
        self.meter.last_number.store(number, Relaxed);
        self.meter.last_sent.store(mark(now), Relaxed);
        self.inner.on_packet_sent(now, bytes, number);
    }
    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }
    fn on_ack(
        &mut self,
        now: Moment,
        sent: Moment,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.is_measured = true;
        if self.meter.last_number.load(Relaxed) == number && self.meter.last_sent.load(Relaxed) == mark(sent)
        {
            self.meter.last_sent.store(0, Relaxed);
        }
        self.meter.acknowledged.fetch_add(bytes, Relaxed);
        self.meter.srtt.store(nanos(rtt.get()), Relaxed);
        self.meter.min_rtt.store(nanos(rtt.min()), Relaxed);
        self.inner.on_ack(now, sent, bytes, number, app_limited, rtt);
    }
    fn on_end_acks(&mut self, now: Moment, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }
    fn on_congestion_event(
        &mut self,
        now: Moment,
        sent: Moment,
        is_persistent: bool,
        is_ecn: bool,
        lost: u64,
        largest: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent, is_ecn, lost, largest);
    }
    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Moment) {
        self.meter.lost.fetch_add(1, Relaxed);
        self.inner.on_packet_lost(bytes, number, now);
    }
    fn on_spurious_congestion_event(&mut self) {
        self.meter.spurious.fetch_add(1, Relaxed);
        self.inner.on_spurious_congestion_event();
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }
    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }
    fn window(&self) -> u64 {
        self.inner.window()
    }
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        let at_once = match self.pacing {
            Pacing::Always => false,
            //= RFC 9002 (7.7): a sender paces, or limits bursts to the initial congestion window, which is all it has now.
            Pacing::Measured => !self.is_measured,
            Pacing::Off => true,
        };
        if at_once {
            metrics.pacing_rate = Some(AT_ONCE);
        }
        metrics
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        let (inner, meter) = (self.inner.clone_box(), self.meter.clone());
        Box::new(Paced { inner, meter, ..*self })
    }
    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
