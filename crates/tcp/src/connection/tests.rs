//! What needs a whole connection from within.

use std::sync::Arc;

use airloom_base::service::{Identity, Path};
use airloom_base::{Body, Cx, Duration, Outbox, Transport};

use super::*;
use crate::config::{Config, InitialWindow, LossDetection};
use crate::profile::Profile;
use crate::wire::{Flags, Header, Options, SackBlocks};

/// A sender with ten segments outstanding.
fn sender(loss_detection: LossDetection) -> (Connection, Outbox) {
    let config = Config {
        loss_detection,
        initial_window: InitialWindow::Segments(10),
        timestamps: false,
        ..Profile::Rfc.settings()
    };
    let address = |n| std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, n));
    let path = Path { local: address(1), remote: address(2), mtu: 1500 };
    let controllers: congestion::Make = Arc::new(congestion::build);
    let who = Identity::default();
    let mut c = Connection::new(Arc::new(config), &controllers, Instant::ZERO, path, (1, 2), who, (0, 0));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    c.connect(&mut cx);
    assert!(c.poll_transmit(&mut cx).is_some(), "the SYN");
    let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
    let syn_ack =
        Header { flags: Flags::SYN.with(Flags::ACK), ack: 1, window: 65_535, options, ..Header::default() };
    c.segment_arrives(cx.now, &syn_ack, 0, Body::EMPTY);
    c.write(&mut cx, 0, Body::filler(1, 100_000)).unwrap();
    while c.poll_transmit(&mut cx).is_some() {}
    assert_eq!(c.tx.snd.segments_out(), 10);
    (c, outbox)
}

#[test]
fn blocks_of_single_octets_make_no_more_ranges_than_there_are_segments() {
    for loss_detection in [LossDetection::Rack, LossDetection::DupAcks] {
        let (mut c, mut outbox) = sender(loss_detection);
        let mut ranges = 0;
        for i in 0..3000_u32 {
            let mut sack = SackBlocks::default();
            for k in 0..4 {
                // Every second octet, from the top down so that no two touch.
                let left = 14_600 - 2 * (4 * i + k) % 13_000;
                sack.push(left, left + 1);
            }
            let options = Options { sack, ..Options::default() };
            let ack =
                Header { flags: Flags::ACK, seq: 1, ack: 1, window: 65_535, options, ..Header::default() };
            let mut cx = Cx { now: Instant::ZERO + Duration::from_millis(1), records: &mut outbox };
            c.segment_arrives(cx.now, &ack, 0, Body::EMPTY);
            while c.poll_transmit(&mut cx).is_some() {}
            let (count, segments) = (c.recovery.ranges(), c.tx.snd.segments_out() as usize);
            assert!(count <= segments + 1, "{count} ranges of {segments} segments");
            ranges = ranges.max(count);
        }
        assert!(ranges >= 10, "the flood was not felt: {ranges}");
    }
}
