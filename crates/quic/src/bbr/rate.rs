//! How fast a path delivers: a sample with each acknowledgement (draft-ietf-ccwg-bbr, 4.1).
//!
//! Each packet takes along how much had been delivered when it left, and when. When it is acknowledged, what was delivered since then,
//! divided by the time, is the rate: the longer one of the times that it took to send it and to acknowledge it.

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

/// A packet of which nothing has been heard for so many rounds is forgotten: nobody says what became of those of keys that were dropped
/// and of probes of the MTU.
const ROUNDS_KEPT: u64 = 8;

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// The moment.
    pub(super) now: Instant,
    /// The round trip of the newest packet that it acknowledges.
    pub(super) rtt: Duration,
    /// Octets that it acknowledges.
    pub(super) newly_acked: u64,
    /// Octets that had been delivered when that packet was sent, and those that were since.
    pub(super) prior_delivered: u64,
    pub(super) delivered: u64,
    /// Octets a second; 0: not to be relied on.
    pub(super) rate: u64,
    /// Had the application nothing to send then?
    pub(super) is_app_limited: bool,
    /// Octets in flight when that packet had been sent, and those that were lost since.
    pub(super) tx_in_flight: u64,
    pub(super) lost: u64,
}

/// What a packet took along. Names are the draft's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    number: u64,
    pub(super) octets: u64,
    pub(super) sent_at: Instant,
    first_sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    round: u64,
    pub(super) tx_in_flight: u64,
    pub(super) is_app_limited: bool,
    is_settled: bool,
}

/// The packets of one path and what is counted over them.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    /// In the order of sending.
    sent: VecDeque<Packet>,
    /// C.delivered, C.lost and C.inflight.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) in_flight: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// C.app_limited: samples are limited until so much is delivered; zero: they are not.
    app_limited: u64,
    /// The newest packet of those that the acknowledgement at hand is for, and the octets of all of them.
    newest: Option<Packet>,
    newly_acked: u64,
    /// The least round trip there was.
    least: Option<Duration>,
}

impl Packets {
    /// Has the application had nothing to send, and what was sent before is not all delivered?
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// What is in flight says less of the path than it could.
    pub(super) fn limit(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1);
    }

    /// One leaves, in this round.
    pub(super) fn sent(&mut self, now: Instant, number: u64, octets: u64, round: u64) {
        if self.in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.in_flight += octets;
        self.sent.push_back(Packet {
            number,
            octets,
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            round,
            tx_in_flight: self.in_flight,
            is_app_limited: self.is_app_limited(),
            is_settled: false,
        });
    }

    /// One has arrived that was sent then.
    pub(super) fn acknowledged(&mut self, now: Instant, sent_at: Instant, number: u64, octets: u64) {
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.delivered += octets;
        self.delivered_at = now;
        self.newly_acked += octets;
        let first = self.sent.partition_point(|packet| packet.sent_at < sent_at);
        let same_moment = self.sent.range_mut(first..).take_while(|packet| packet.sent_at == sent_at);
        let Some(packet) = same_moment.into_iter().find(|packet| packet.is_open(number)) else { return };
        packet.is_settled = true;
        let is_newest =
            self.newest.is_none_or(|newest| (packet.sent_at, number) > (newest.sent_at, newest.number));
        if is_newest {
            self.newest = Some(*packet);
        }
    }

    /// One is taken for lost. It, and what was lost since it was sent.
    // Packets of the handshake have numbers of their own: the oldest one of this number and size is meant. What went by a path before this
    // one is not known here.
    pub(super) fn lost(&mut self, number: u64, octets: u64) -> Option<(Packet, u64)> {
        let is_it = |packet: &&mut Packet| packet.is_open(number) && packet.octets == octets;
        let packet = self.sent.iter_mut().find(is_it)?;
        packet.is_settled = true;
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.lost += octets;
        Some((*packet, self.lost - packet.lost))
    }

    /// All that the acknowledgement at hand is for has been told; so much is in flight now. `None`: it said nothing of any packet.
    pub(super) fn sample(&mut self, now: Instant, in_flight: u64) -> Option<Sample> {
        self.in_flight = in_flight;
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newly_acked = std::mem::take(&mut self.newly_acked);
        let newest = self.newest.take()?;
        self.first_sent_at = newest.sent_at;
        let interval = (newest.sent_at - newest.first_sent_at).max(now - newest.delivered_at);
        let rtt = now - newest.sent_at;
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let delivered = self.delivered - newest.delivered;
        // An interval below the least round trip says more of a repeat that was in vain than of the path.
        let nanos = u128::from(interval.as_nanos());
        let rate = if interval < least || nanos == 0 {
            0
        } else {
            u64::try_from(u128::from(delivered) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
        };
        Some(Sample {
            now,
            rtt,
            newly_acked,
            prior_delivered: newest.delivered,
            delivered,
            rate,
            is_app_limited: newest.is_app_limited,
            tx_in_flight: newest.tx_in_flight,
            lost: self.lost - newest.lost,
        })
    }

    /// It is this round now: what nothing will be heard of any more is forgotten.
    pub(super) fn forget(&mut self, round: u64) {
        while let Some(packet) = self.sent.front()
            && (packet.is_settled || packet.round + ROUNDS_KEPT < round)
        {
            self.sent.pop_front();
        }
    }
}

impl Packet {
    /// Has nothing been heard of it, and is this its number?
    fn is_open(&self, number: u64) -> bool {
        self.number == number && !self.is_settled
    }
}
