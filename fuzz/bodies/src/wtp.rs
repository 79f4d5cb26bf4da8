//! WTP and WSP below the gateway.

use std::net::SocketAddr;

use airloom_base::{Duration, Instant};
use airloom_transports::wsp::initiation::SessionInitiation;
use airloom_transports::wsp::{address, capabilities, connectionless, wire as wsp};
use airloom_transports::wtp::wire::{self, Class};
use airloom_transports::wtp::{Config, Indication, Provider};
use bytes::Bytes;

use crate::octets::Octets;

/// Calls without an end.
const ENDLESS: u32 = 100_000;

/// Two providers, between which datagrams get lost, doubled and forged, as the octets say.
pub fn wtp(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let ends: [SocketAddr; 2] = ["10.0.0.1:9201", "10.0.0.2:9201"].map(|at| at.parse().expect("an address"));
    let config = if octets.is_set() { Config::kannel() } else { Config::default() };
    let mut providers = [1, 0x7FF0].map(|first| Provider::new(config.clone(), first));
    let mut now = Instant::ZERO;
    let mut on_the_way: Vec<(usize, Bytes)> = Vec::new();
    while let Some(what) = octets.next() {
        let end = usize::from(what & 1);
        match what >> 1 & 7 {
            0 => {
                let class = octets.one_of(&[Class::WithResult, Class::Reliable, Class::Unreliable]);
                let message = octets.piece().repeat(1 + usize::from(octets.octet() & 31));
                providers[end].invoke(now, ends[1 - end], class, what & 16 != 0, message.into());
            }
            1 | 2 => {
                let is_for = |(to, _): &(usize, Bytes)| *to == end;
                let Some(first) = on_the_way.iter().position(is_for) else { continue };
                let (_, datagram) =
                    if what & 16 == 0 { on_the_way.remove(first) } else { on_the_way[first].clone() };
                if what & 32 == 0 {
                    providers[end].handle_datagram(now, ends[1 - end], &datagram);
                }
            }
            3 => {
                let datagram = Bytes::copy_from_slice(octets.piece());
                for pdu in wire::split(&datagram).into_iter().flatten() {
                    assert_eq!(
                        wire::Pdu::parse(&pdu.to_bytes()).as_ref(),
                        Ok(&pdu),
                        "what was read is written"
                    );
                }
                providers[end].handle_datagram(now, ends[1 - end], &datagram);
            }
            4 => {
                // One that was sent, with other octets at one place.
                let Some((_, datagram)) = on_the_way.last() else { continue };
                let mut datagram = datagram.to_vec();
                let at = usize::from(octets.octet()) % datagram.len().max(1);
                if let Some(octet) = datagram.get_mut(at) {
                    *octet = octets.octet();
                }
                providers[end].handle_datagram(now, ends[1 - end], &datagram.into());
            }
            _ => {
                now += Duration::from_millis(u64::from(what >> 3) * 250);
                for provider in &mut providers {
                    provider.handle_timeout(now);
                }
            }
        }
        for (end, provider) in providers.iter_mut().enumerate() {
            settle(provider, end, now, &mut octets, &mut on_the_way);
        }
        on_the_way.truncate(64);
    }
    let mut calls = 0;
    for (end, provider) in providers.iter_mut().enumerate() {
        while let Some(at) = provider.poll_timeout() {
            now = now.max(at);
            provider.handle_timeout(now);
            settle(provider, end, now, &mut octets, &mut Vec::new());
            calls += 1;
            assert!(calls < ENDLESS, "timers without an end");
        }
    }
}

/// Users of both ends take what comes, answer, and give up now and then.
fn settle(
    provider: &mut Provider,
    end: usize,
    now: Instant,
    octets: &mut Octets<'_>,
    on_the_way: &mut Vec<(usize, Bytes)>,
) {
    while let Some(event) = provider.poll_event() {
        match (event.what, octets.octet()) {
            (_, 255) => provider.abort(now, event.transaction, 1),
            (Indication::Invoke { class: Class::WithResult, message, .. }, how) => {
                provider.accept(now, event.transaction);
                if how & 1 == 0 {
                    provider.result(now, event.transaction, message);
                }
            }
            (Indication::Invoke { .. }, _) => provider.accept(now, event.transaction),
            (Indication::Result(_), how) if how & 1 == 0 => provider.acknowledge(now, event.transaction),
            _ => {}
        }
    }
    while let Some((_, datagram)) = provider.poll_transmit() {
        on_the_way.push((1 - end, datagram));
    }
}

/// Every parser of WSP; what is read is written and read again as the same.
pub fn wsp(octets: &[u8]) {
    let octets = Bytes::copy_from_slice(octets);
    if let Ok(pdu) = wsp::Pdu::parse(&octets) {
        assert_eq!(wsp::Pdu::parse(&pdu.to_bytes()).as_ref(), Ok(&pdu), "what was read is written");
    }
    if let Ok((tid, pdu)) = connectionless::parse(&octets) {
        let again = connectionless::parse(&connectionless::emit(tid, &pdu));
        assert_eq!(again, Ok((tid, pdu)), "what was read is written");
    }
    if let Ok(known) = capabilities::parse(octets.clone()) {
        let again = capabilities::parse(capabilities::to_bytes(&known));
        assert_eq!(again, Ok(known), "what was read is written");
    }
    if let Ok(addresses) = address::addresses(octets.clone()) {
        assert_eq!(
            address::addresses(address::emit_addresses(&addresses)),
            Ok(addresses),
            "what was read is written"
        );
    }
    if let Ok(known) = SessionInitiation::parse(&octets) {
        // Names are written by their numbers, and read as they are registered.
        let again = SessionInitiation::parse(&known.to_bytes()).expect("it is ours");
        assert_eq!(again.applications.len(), known.applications.len());
        assert_eq!(again.contacts, known.contacts);
    }
}
