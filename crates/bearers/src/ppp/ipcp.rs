//! What is negotiated for IPv4 (RFC 1332): addresses, if they are asked for.

use std::net::Ipv4Addr;

use super::automaton::{Negotiation, Verdict};
use super::control::append_option;

const IP_ADDRESS: u8 = 3;

/// One end's side of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ipcp {
    /// The address of this end, if the other end is told: all zeros asks for one.
    pub ours: Option<Ipv4Addr>,
    /// The address that the other end gets, should it ask for one.
    pub gives: Option<Ipv4Addr>,
    asked: Option<Ipv4Addr>,
    /// The address of the other end, if it told one.
    pub theirs: Option<Ipv4Addr>,
}

impl Ipcp {
    /// An end with this address, which gives the other end that one.
    pub fn new(ours: Option<Ipv4Addr>, gives: Option<Ipv4Addr>) -> Ipcp {
        Ipcp { ours, gives, asked: None, theirs: None }
    }
}

fn address(data: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(data).ok().map(Ipv4Addr::from)
}

impl Negotiation for Ipcp {
    fn request(&self, out: &mut Vec<u8>) {
        if let Some(ours) = self.ours {
            append_option(out, IP_ADDRESS, &ours.octets());
        }
    }

    fn begin(&mut self) {
        self.asked = None;
    }

    fn judge(&mut self, kind: u8, data: &[u8]) -> Verdict {
        match (kind, address(data)) {
            (IP_ADDRESS, Some(wanted)) if wanted.is_unspecified() => {
                self.gives.map_or(Verdict::Reject, |gives| Verdict::Nak(gives.octets().to_vec()))
            }
            (IP_ADDRESS, Some(wanted)) => {
                self.asked = Some(wanted);
                Verdict::Ack
            }
            _ => Verdict::Reject,
        }
    }

    fn grant(&mut self) {
        self.theirs = self.asked;
    }

    fn nak(&mut self, kind: u8, data: &[u8]) {
        // Only an end that asked for an address takes one.
        if let (IP_ADDRESS, Some(given)) = (kind, address(data))
            && self.ours.is_some_and(|ours| ours.is_unspecified())
        {
            self.ours = Some(given);
        }
    }

    fn reject(&mut self, kind: u8) {
        if kind == IP_ADDRESS {
            self.ours = None;
        }
    }
}
