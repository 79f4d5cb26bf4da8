//! Controllers of noq-proto, watched.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use delegate::delegate;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};

use super::{Lost, MOST_RATE, Watch};
use crate::clock::Moment;

/// What makes controllers for connections of noq-proto.
pub(crate) type AnyFactory = Arc<dyn ControllerFactory + Send + Sync>;

/// CUBIC that is watched.
pub(crate) struct Cubic<W>(pub(crate) W);

impl<W: Watch> ControllerFactory for Cubic<W> {
    fn build(self: Arc<Self>, now: Moment, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::new(CubicConfig::default()).build(now, mtu);
        Box::new(Watched { inner, watch: self.0.clone() })
    }
}

/// A controller that is watched.
#[derive(Debug)]
pub(crate) struct Watched<W> {
    pub(crate) inner: Box<dyn Controller>,
    pub(crate) watch: W,
}

impl<W: Watch> Controller for Watched<W> {
    delegate! {
        to self.inner {
            fn on_sent(&mut self, now: Moment, bytes: u64, largest: u64);
            fn on_cwnd_limited(&mut self);
            fn on_end_acks(&mut self, now: Moment, in_flight: u64, app_limited: bool, largest: Option<u64>);
            fn on_congestion_event(
                &mut self,
                now: Moment,
                sent: Moment,
                is_persistent: bool,
                is_ecn: bool,
                lost: u64,
                largest: u64,
            );
            fn on_mtu_update(&mut self, mtu: u16);
            fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration);
            fn window(&self) -> u64;
            fn initial_window(&self) -> u64;
        }
    }

    fn on_packet_sent(&mut self, now: Moment, bytes: u16, number: u64) {
        self.watch.sent(now, number);
        self.inner.on_packet_sent(now, bytes, number);
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
        self.watch.acknowledged(now, sent, bytes, Some(number), rtt.get());
        self.inner.on_ack(now, sent, bytes, number, app_limited, rtt);
    }
    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Moment) {
        self.watch.lost(Lost::Packet(number, bytes.into()));
        self.inner.on_packet_lost(bytes, number, now);
    }
    fn on_spurious_congestion_event(&mut self) {
        self.watch.spurious();
        self.inner.on_spurious_congestion_event();
    }
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        match self.watch.rate() {
            // The library's pacer, which is who reads this, lets all of a window beyond 4 GiB go.
            Some(u64::MAX) => (metrics.congestion_window, metrics.pacing_rate) = (u64::MAX, None),
            rate => metrics.pacing_rate = rate.or(metrics.pacing_rate).map(|rate| rate.min(MOST_RATE)),
        }
        metrics
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { inner: self.inner.clone_box(), watch: self.watch.clone() })
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
