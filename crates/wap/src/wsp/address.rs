//! Addresses of redirections and aliases (WAP-230, 8.2.2.3), and what reads octets from the front.

use std::net::{IpAddr, SocketAddr};

use airloom_wire::{Error, uintvar};
use bytes::{BufMut, Bytes};

/// An address of a redirection or an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Bearer type (WAP-259), if said.
    pub bearer: Option<u8>,
    /// Port, if said.
    pub port: Option<u16>,
    /// Octets of the address: four for IPv4, sixteen for IPv6.
    pub octets: Bytes,
}

impl Address {
    /// It as one of IP, with `port` if it says none; `None` if it is of another kind of bearer.
    pub fn socket(&self, port: u16) -> Option<SocketAddr> {
        let octets = self.octets.as_ref();
        let ip = match octets.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
        };
        Some(SocketAddr::new(ip, self.port.unwrap_or(port)))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let octets = &self.octets[..self.octets.len().min(0x3F)];
        let included = u8::from(self.bearer.is_some()) << 7 | u8::from(self.port.is_some()) << 6;
        out.put_u8(included | octets.len() as u8);
        out.extend(self.bearer);
        out.extend(self.port.map(u16::to_be_bytes).into_iter().flatten());
        out.put_slice(octets);
    }
}

/// The addresses in all of `octets`.
pub fn addresses(octets: Bytes) -> Result<Vec<Address>, Error> {
    let mut at = Reader { rest: octets };
    let mut addresses = Vec::new();
    while !at.rest.is_empty() {
        let head = at.octet()?;
        let bearer = if head & 0x80 != 0 { Some(at.octet()?) } else { None };
        let port = if head & 0x40 != 0 { Some(u16::from_be_bytes([at.octet()?, at.octet()?])) } else { None };
        addresses.push(Address { bearer, port, octets: at.take(u32::from(head & 0x3F))? });
    }
    Ok(addresses)
}

/// The octets of addresses.
pub fn emit_addresses(addresses: &[Address]) -> Bytes {
    let mut out = Vec::new();
    addresses.iter().for_each(|a| a.emit(&mut out));
    out.into()
}

/// Reads from the front.
pub(super) struct Reader {
    pub(super) rest: Bytes,
}

impl Reader {
    pub(super) fn octet(&mut self) -> Result<u8, Error> {
        let octet = *self.rest.first().ok_or(Error::Truncated)?;
        self.rest = self.rest.slice(1..);
        Ok(octet)
    }

    pub(super) fn uintvar(&mut self) -> Result<u32, Error> {
        let (n, len) = uintvar::parse(&self.rest)?;
        self.rest = self.rest.slice(len..);
        Ok(n)
    }

    pub(super) fn take(&mut self, len: u32) -> Result<Bytes, Error> {
        let len = len as usize;
        if len > self.rest.len() {
            return Err(Error::Truncated);
        }
        Ok(self.rest.split_to(len))
    }
}
