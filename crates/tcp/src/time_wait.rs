//! TIME-WAIT in a few words.
//!
//! A server with thousands of closed connections keeps one of these for each: enough to acknowledge the peer's FIN
//! again and to know a new connection when it comes.

use std::sync::Arc;

use airloom_base::service::{FlowFacts, WriteError};
use airloom_base::timer::Timer;
use airloom_base::{Body, CloseReason, Cx, Instant, Outgoing, Packet, PathId, Transport, TransportEvent};

use super::config::Config;
use super::wire::{Flags, Header, Plain};

/// A connection that is over.
pub(super) struct TimeWait {
    config: Arc<Config>,
    expiry: Timer,
    ports: (u16, u16),
    /// What acknowledges everything. Its timestamp is the offset of the clock.
    last: Plain,
    /// The acknowledgement is due.
    ack: bool,
    gone: bool,
}

impl TimeWait {
    /// What is left of a connection: `last` acknowledges all, with the offset of the timestamp clock where timestamps were
    /// agreed on; `ack`: that is due.
    pub fn new(config: Arc<Config>, ports: (u16, u16), last: Plain, expiry: Timer, ack: bool) -> Self {
        TimeWait { gone: !expiry.is_armed(), config, expiry, ports, last, ack }
    }

    fn end(&mut self) {
        self.expiry.stop();
        self.ack = false;
        self.gone = true;
    }
}

impl Transport for TimeWait {
    fn connect(&mut self, _cx: &mut Cx) {}

    fn handle_packet(&mut self, cx: &mut Cx, _path: PathId, _ecn: u8, packet: Packet) {
        let Ok((h, len)) = Header::parse(packet.head()) else { return };
        if h.flags.has(Flags::RST) {
            //= RFC 5961 (3): only at exactly RCV.NXT.
            if h.seq == self.last.ack {
                self.end();
            }
            return;
        }
        // Empty segments are not answered: two ends that are both over must not talk for ever.
        if h.flags.has(Flags::FIN) {
            //= RFC 9293 (3.10.7.4): acknowledge the FIN again, and wait twice the MSL from now.
            self.ack = true;
            self.expiry.arm_after(cx.now, self.config.time_wait);
        } else if h.flags.has(Flags::SYN) || packet.wire_len() > len {
            self.ack = true;
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Outgoing> {
        if !self.ack {
            return None;
        }
        self.ack = false;
        let mut last = self.last;
        if let Some((timestamp, _)) = &mut last.timestamps {
            let ticks = cx.now.as_nanos() / self.config.timestamp_tick.as_nanos().max(1);
            *timestamp = timestamp.wrapping_add(ticks as u32);
        }
        let mut packet = Packet::build(|_| 0, Body::EMPTY);
        last.emit(self.ports, packet.room(last.header_len()));
        Some(Outgoing { path: PathId(0), ecn: 0, packet, last: false })
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        std::mem::take(&mut self.gone).then_some(TransportEvent::Gone)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.expiry.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        if self.expiry.is_due(cx.now) {
            self.end();
        }
    }

    fn write(&mut self, _cx: &mut Cx, _stream: u32, _body: Body) -> Result<usize, WriteError> {
        Err(WriteError::Closed)
    }

    fn read(&mut self, _cx: &mut Cx, _stream: u32, _max: usize) -> Option<Body> {
        None
    }

    fn finish(&mut self, _cx: &mut Cx, _stream: u32) {}

    fn reset(&mut self, _cx: &mut Cx) {
        self.end();
    }

    fn path_mtu(&mut self, _cx: &mut Cx, _path: PathId, _mtu: u16) {}

    /// Only how it ended: the host asks for the rest before it asks for this form.
    fn facts(&self) -> FlowFacts {
        FlowFacts { end: Some(CloseReason::Finished), ..FlowFacts::default() }
    }

    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }

    fn yields_to(&self, unit: &Packet) -> bool {
        let Ok((h, _)) = Header::parse(unit.head()) else { return false };
        let opens = h.flags.has(Flags::SYN) && h.flags.0 & (Flags::ACK.0 | Flags::RST.0) == 0;
        let newer = match (h.options.timestamps, self.last.timestamps) {
            (Some((value, _)), Some((_, recent))) => value.wrapping_sub(recent).cast_signed() > 0,
            _ => false,
        };
        //= RFC 9293 (3.6.1): a SYN beyond the old connection, by sequence number or timestamp, may open a new one.
        opens && (newer || h.seq.wrapping_sub(self.last.ack).cast_signed() > 0)
    }
}
