//! Asking a client for a session (WAP-235: session initiation).

use std::net::{IpAddr, SocketAddr};

use airloom_base::{Duration, Instant};
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::{Encoder, Version};
use airloom_transports::wsp::initiation::{APPLICATION, CONTENT_TYPE, SessionInitiation};
use airloom_transports::wsp::wire::{Address, Pdu};
use bytes::Bytes;

use super::book::Stage;
use super::{PUSH_PORT, Push, PushId};
use crate::wap_gateway::gateway::Gateway;

/// The application that takes a push which names none (WAP-235).
const USUAL: &str = "wml.ua";
/// A request of one datagram is lost now and then: it is said again after so long.
const AGAIN: Duration = Duration::from_secs(10);

impl Gateway {
    /// Where clients that are asked to open a session are to come to. Without it they come to where they were asked from,
    /// at the port for sessions.
    pub fn set_contact(&mut self, contact: Option<SocketAddr>) {
        self.contact = contact;
    }

    /// Asks the client of a push for a session, unless it was asked a moment ago.
    pub(super) fn invite(&mut self, now: Instant, id: PushId) {
        let Some(open) = self.pushes.get(id) else { return };
        let (push, stage) = (open.push.clone(), open.stage);
        let until = match stage {
            Stage::Invited { until } => until,
            _ => now + self.config.session_wait,
        };
        // Another push to the same client may have asked already; the next request is then that one's.
        let again = self.pushes.invited_at(push.to).filter(|at| *at > now);
        self.pushes.stage(id, Stage::Invited { until });
        let next = again.unwrap_or(now + AGAIN).min(until);
        self.push_at(id, Some(push.before.map_or(next, |before| before.min(next))));
        if again.is_none() {
            self.counters.initiations += 1;
            let unit = connectionless::emit(id.0 as u8, &request(&push, self.contact));
            self.pushed.push_back((SocketAddr::new(push.to, PUSH_PORT), unit));
        }
    }
}

fn request(push: &Push, contact: Option<SocketAddr>) -> Pdu {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("x-wap-application-id");
    let mut applications: Vec<String> =
        push.headers.iter().filter(named).map(|(_, application)| application.clone()).collect();
    if applications.is_empty() {
        applications.push(USUAL.to_owned());
    }
    let contacts = contact.map(address).into_iter().collect();
    let data = SessionInitiation { version: 0, applications, contacts }.to_bytes();
    let encoder = Encoder::new(Version::default());
    let mut headers = Vec::new();
    encoder.content_type(CONTENT_TYPE, &mut headers);
    // The name is one.
    let _ = encoder.header("X-Wap-Application-Id", APPLICATION, &mut headers);
    Pdu::Push { confirmed: false, headers: headers.into(), data }
}

fn address(contact: SocketAddr) -> Address {
    let octets = match contact.ip() {
        IpAddr::V4(ip) => Bytes::copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => Bytes::copy_from_slice(&ip.octets()),
    };
    Address { bearer: None, port: Some(contact.port()), octets }
}
