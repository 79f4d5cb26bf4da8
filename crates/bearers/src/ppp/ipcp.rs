//! What is negotiated for IPv4 (RFC 1332): that it is spoken. Hosts have their addresses already, so that none is asked for or given.

use super::automaton::{Negotiation, Verdict};

/// One end's side of it.
pub struct Ipcp;

impl Negotiation for Ipcp {
    fn request(&self, _out: &mut Vec<u8>) {}

    fn begin(&mut self) {}

    fn judge(&mut self, _kind: u8, _data: &[u8]) -> Verdict {
        Verdict::Reject
    }

    fn grant(&mut self) {}

    fn nak(&mut self, _kind: u8, _data: &[u8]) {}

    fn reject(&mut self, _kind: u8) {}
}
