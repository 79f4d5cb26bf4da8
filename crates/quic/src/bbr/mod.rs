//! BBR, version 3 (draft-ietf-ccwg-bbr, as of August 2026), as a controller of the library.
//!
//! The library has one, too; its times between two probes are the machine's chance, and there is no way in for a seed. This one draws
//! from the run's.
//!
//! ```text
//!   mod: what the library tells  --->  rate: samples  --->  model: the path  <---  cycle: its states
//!                                                             |
//!                                                           window: window and rate
//! ```
//!
//! What the draft leaves open, and where this differs:
//! - After the first round trip the rate is the initial window's over it (5.6.2).
//! - A mark (ECN) ends a probe at once, and Startup where it comes in two rounds on end; otherwise it counts as losses do.
//! - What bounds a probe after one that lost too much is what was in flight before the acknowledgement, as in Linux.
//! - The greatest lump of acknowledgements is that of five to ten rounds; a round without a sample of its rate does not count for a full
//!   pipe; a persistent congestion leaves four packets.
//! - The library says only with acknowledgements that the application has no more to send, and says the same where the peer's flow
//!   control holds data back: such a connection stays in Startup. Nor is the peer asked for other acknowledgements in some states.

mod cycle;
mod model;
mod rate;
mod state;
#[cfg(test)]
mod tests;
mod window;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airloom_base::random::Stream;

use crate::clock::{Moment, from_library};
use crate::library::RttEstimator;
use crate::library::congestion::{Controller, ControllerFactory, ControllerMetrics};
use crate::library::noq_controller::AnyFactory;
use model::Model;

fn ours(time: Duration) -> airloom_base::Duration {
    airloom_base::Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// What makes the controllers of a host's paths, each with a stream of its own that `draws` begins.
pub(crate) fn bbr(initial_window: u64, draws: Arc<Mutex<Stream>>) -> AnyFactory {
    #[cfg(test)]
    if tests::LIBRARYS.get() {
        let mut settings = crate::library::congestion::Bbr3Config::default();
        settings.initial_window(initial_window);
        return Arc::new(settings);
    }
    Arc::new(Factory { initial_window, draws })
}

struct Factory {
    initial_window: u64,
    draws: Arc<Mutex<Stream>>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Moment, mtu: u16) -> Box<dyn Controller> {
        let seed = self.draws.lock().unwrap_or_else(PoisonError::into_inner).bits();
        let model = Model::new(from_library(now), mtu.into(), self.initial_window, Stream::new(seed, "bbr"));
        Box::new(Bbr { model, is_acknowledging: false })
    }
}

/// The controller of one path.
#[derive(Clone, Debug)]
struct Bbr {
    model: Model,
    /// Is an acknowledgement being told of?
    is_acknowledging: bool,
}

impl Controller for Bbr {
    fn on_packet_sent(&mut self, now: Moment, bytes: u16, number: u64) {
        let now = from_library(now);
        // Of an acknowledgement that was inferred (Retry) no end is told.
        self.is_acknowledging = false;
        self.model.on_transmit(now);
        self.model.packets.sent(now, number, bytes.into(), self.model.round_count);
    }
    fn on_cwnd_limited(&mut self) {
        self.model.on_cwnd_limited();
    }
    fn on_ack(
        &mut self,
        now: Moment,
        sent: Moment,
        bytes: u64,
        number: u64,
        app_limited: bool,
        _: &RttEstimator,
    ) {
        if !self.is_acknowledging && app_limited {
            self.model.packets.limit();
        }
        self.is_acknowledging = true;
        let sent = from_library(sent);
        self.model.on_arrived(sent);
        self.model.packets.acknowledged(from_library(now), sent, number, bytes);
    }
    fn on_end_acks(&mut self, now: Moment, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.is_acknowledging = false;
        if let Some(sample) = self.model.packets.sample(from_library(now), in_flight) {
            self.model.on_ack(&sample);
            self.model.packets.forget(self.model.round_count);
        }
    }
    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Moment) {
        self.model.on_packet_lost(from_library(now), number, bytes.into());
    }
    fn on_congestion_event(
        &mut self,
        now: Moment,
        sent: Moment,
        is_persistent: bool,
        is_ecn: bool,
        _lost: u64,
        _largest: u64,
    ) {
        let (now, sent) = (from_library(now), from_library(sent));
        if is_ecn {
            self.model.on_marked(now, sent);
        }
        if is_persistent {
            self.model.on_persistent_congestion();
        }
    }
    fn on_spurious_congestion_event(&mut self) {
        self.model.on_spurious();
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.model.smss = mtu.into();
        self.model.bound_cwnd();
    }
    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.model.ack_packets = threshold;
        self.model.ack_delay = ours(delay);
    }
    fn window(&self) -> u64 {
        self.model.cwnd
    }
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.model.cwnd;
        metrics.pacing_rate = Some(self.model.pacing_rate);
        metrics.send_quantum = Some(self.model.send_quantum());
        metrics.bandwidth_estimate = Some(self.model.max_bw().saturating_mul(8));
        metrics
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        self.model.initial_cwnd
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
