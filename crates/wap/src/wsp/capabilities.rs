//! Capabilities of a session and their negotiation (WAP-230 sections 6.3 and 8.3).

use smart_default::SmartDefault;

use airloom_wire::{Error, uintvar};
use bytes::Bytes;

use super::address::{Address, Reader, addresses, emit_addresses};

/// SDU size of both sides unless they agree on another, in octets.
pub const DEFAULT_SDU: u32 = 1_400;

/// Bits of the protocol options.
pub mod option {
    /// Confirmed push.
    pub const CONFIRMED_PUSH: u8 = 0x80;
    /// Push.
    pub const PUSH: u8 = 0x40;
    /// Suspend and resume.
    pub const SESSION_RESUME: u8 = 0x20;
    /// Acknowledgement headers.
    pub const ACKNOWLEDGEMENT_HEADERS: u8 = 0x10;
    /// Large data transfer.
    pub const LARGE_DATA: u8 = 0x08;
}

/// One capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// The largest SDU that the client takes; 0 for any.
    ClientSduSize(u32),
    /// The largest SDU that the server takes; 0 for any.
    ServerSduSize(u32),
    /// Bits of [`option`].
    ProtocolOptions(u8),
    /// Methods that may be outstanding at a time.
    MethodMor(u8),
    /// Pushes that may be outstanding at a time.
    PushMor(u8),
    /// Codes and names of methods.
    ExtendedMethods(Vec<(u8, Bytes)>),
    /// Codes and names of header code pages.
    HeaderCodePages(Vec<(u8, Bytes)>),
    /// Other addresses of the sender.
    Aliases(Vec<Address>),
    /// Refused: a known capability without a value.
    Refused(u8),
    /// One that is not known here: its name and its value.
    Unknown(Bytes, Bytes),
}

mod id {
    pub const CLIENT_SDU: u8 = 0;
    pub const SERVER_SDU: u8 = 1;
    pub const OPTIONS: u8 = 2;
    pub const METHOD_MOR: u8 = 3;
    pub const PUSH_MOR: u8 = 4;
    pub const METHODS: u8 = 5;
    pub const PAGES: u8 = 6;
    pub const ALIASES: u8 = 7;
}

/// The capabilities in all of `octets`.
pub fn parse(octets: Bytes) -> Result<Vec<Capability>, Error> {
    let mut at = Reader { rest: octets };
    let mut found = Vec::new();
    while !at.rest.is_empty() {
        let len = at.uintvar()?;
        found.push(one(at.take(len)?)?);
    }
    Ok(found)
}

fn one(octets: Bytes) -> Result<Capability, Error> {
    let mut at = Reader { rest: octets };
    let first = at.octet()?;
    if first & 0x80 == 0 {
        // A name as text, up to its NUL.
        let end = at.rest.iter().position(|o| *o == 0).ok_or(Error::Truncated)?;
        let mut name = vec![first];
        name.extend_from_slice(&at.take(end as u32)?);
        at.octet()?;
        return Ok(Capability::Unknown(name.into(), at.rest));
    }
    let number = first & 0x7F;
    let capability = match number {
        id::CLIENT_SDU..=id::ALIASES if at.rest.is_empty() => return Ok(Capability::Refused(number)),
        id::CLIENT_SDU => Capability::ClientSduSize(at.uintvar()?),
        id::SERVER_SDU => Capability::ServerSduSize(at.uintvar()?),
        // Options beyond the first octet are not assigned.
        id::OPTIONS => return Ok(Capability::ProtocolOptions(at.octet()?)),
        id::METHOD_MOR => Capability::MethodMor(at.octet()?),
        id::PUSH_MOR => Capability::PushMor(at.octet()?),
        id::METHODS => return Ok(Capability::ExtendedMethods(names(at)?)),
        id::PAGES => return Ok(Capability::HeaderCodePages(names(at)?)),
        id::ALIASES => return Ok(Capability::Aliases(addresses(at.rest)?)),
        _ => return Ok(Capability::Unknown(Bytes::copy_from_slice(&[first]), at.rest)),
    };
    if at.rest.is_empty() { Ok(capability) } else { Err(Error::Malformed("capability")) }
}

fn names(mut at: Reader) -> Result<Vec<(u8, Bytes)>, Error> {
    let mut names = Vec::new();
    while !at.rest.is_empty() {
        let code = at.octet()?;
        let end = at.rest.iter().position(|o| *o == 0).ok_or(Error::Truncated)?;
        names.push((code, at.take(end as u32)?));
        at.octet()?;
    }
    Ok(names)
}

/// The octets of capabilities, in the given order.
pub fn to_bytes(capabilities: &[Capability]) -> Bytes {
    let mut out = Vec::new();
    for capability in capabilities {
        let value = capability.value();
        let name: Bytes = match capability {
            Capability::Unknown(name, _) if name.first().is_some_and(|o| o & 0x80 == 0) => {
                [name.as_ref(), &[0]].concat().into()
            }
            Capability::Unknown(name, _) => name.clone(),
            known => Bytes::copy_from_slice(&[0x80 | known.number()]),
        };
        uintvar::emit((name.len() + value.len()) as u32, &mut out);
        out.extend_from_slice(&name);
        out.extend_from_slice(&value);
    }
    out.into()
}

impl Capability {
    /// Its assigned number; 0x7F for one that has none.
    pub fn number(&self) -> u8 {
        match self {
            Capability::ClientSduSize(_) => id::CLIENT_SDU,
            Capability::ServerSduSize(_) => id::SERVER_SDU,
            Capability::ProtocolOptions(_) => id::OPTIONS,
            Capability::MethodMor(_) => id::METHOD_MOR,
            Capability::PushMor(_) => id::PUSH_MOR,
            Capability::ExtendedMethods(_) => id::METHODS,
            Capability::HeaderCodePages(_) => id::PAGES,
            Capability::Aliases(_) => id::ALIASES,
            Capability::Refused(number) => *number,
            Capability::Unknown(..) => 0x7F,
        }
    }

    fn value(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Capability::ClientSduSize(n) | Capability::ServerSduSize(n) => uintvar::emit(*n, &mut out),
            Capability::ProtocolOptions(n) | Capability::MethodMor(n) | Capability::PushMor(n) => {
                out.push(*n)
            }
            Capability::ExtendedMethods(list) | Capability::HeaderCodePages(list) => {
                for (code, name) in list {
                    out.push(*code);
                    out.extend_from_slice(name);
                    out.push(0);
                }
            }
            Capability::Aliases(list) => out.extend_from_slice(&emit_addresses(list)),
            Capability::Refused(_) => {}
            Capability::Unknown(_, value) => out.extend_from_slice(value),
        }
        out
    }
}

/// What both sides of a session go by.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct Agreed {
    /// The largest SDU that the client takes; 0 for any.
    #[default(DEFAULT_SDU)]
    pub client_sdu: u32,
    /// The largest SDU that the server takes; 0 for any.
    #[default(DEFAULT_SDU)]
    pub server_sdu: u32,
    /// Bits of [`option`].
    pub options: u8,
    /// Methods that may be outstanding.
    #[default(1)]
    pub method_mor: u8,
    /// Pushes that may be outstanding.
    #[default(1)]
    pub push_mor: u8,
    /// Codes and names of extended methods.
    pub methods: Vec<(u8, Bytes)>,
}

impl Agreed {
    /// Does a message of `len` octets fit the client?
    pub fn client_takes(&self, len: usize) -> bool {
        self.client_sdu == 0 || len <= self.client_sdu as usize
    }

    /// Is this option agreed on?
    pub fn has(&self, option: u8) -> bool {
        self.options & option == option
    }

    /// A server's answer to what a client asked for, and what holds from then on: never more than `offer` has, every
    /// capability that was asked for answered, none that was not.
    pub fn answer(asked: &[Capability], offer: &Agreed) -> (Vec<Capability>, Agreed) {
        let mut agreed = Agreed { client_sdu: DEFAULT_SDU, server_sdu: DEFAULT_SDU, ..Agreed::default() };
        let mut answer = Vec::new();
        for capability in asked {
            answer.push(match capability {
                Capability::ClientSduSize(n) => {
                    agreed.client_sdu = smaller_sdu(*n, offer.client_sdu);
                    Capability::ClientSduSize(agreed.client_sdu)
                }
                Capability::ServerSduSize(n) => {
                    agreed.server_sdu = smaller_sdu(*n, offer.server_sdu);
                    Capability::ServerSduSize(agreed.server_sdu)
                }
                Capability::ProtocolOptions(bits) => {
                    agreed.options = bits & offer.options;
                    Capability::ProtocolOptions(agreed.options)
                }
                Capability::MethodMor(n) => {
                    agreed.method_mor = (*n).min(offer.method_mor).max(1);
                    Capability::MethodMor(agreed.method_mor)
                }
                Capability::PushMor(n) => {
                    agreed.push_mor = (*n).min(offer.push_mor);
                    Capability::PushMor(agreed.push_mor)
                }
                Capability::ExtendedMethods(list) => {
                    let known = |name: &Bytes| offer.methods.iter().any(|(_, n)| n == name);
                    agreed.methods = list.iter().filter(|(_, name)| known(name)).cloned().collect();
                    match agreed.methods.is_empty() {
                        true => Capability::Refused(id::METHODS),
                        false => Capability::ExtendedMethods(agreed.methods.clone()),
                    }
                }
                // No page beyond the default one is known, and other addresses of a client are not needed.
                Capability::Unknown(name, _) => Capability::Unknown(name.clone(), Bytes::new()),
                known => Capability::Refused(known.number()),
            });
        }
        (answer, agreed)
    }

    /// What a client goes by after a server's answer to what it asked for.
    pub fn after(asked: &[Capability], answer: &[Capability]) -> Agreed {
        let mut agreed = Agreed::default();
        // What was asked for holds where the answer is silent; where it speaks, the answer holds.
        for capability in asked.iter().chain(answer) {
            match capability {
                Capability::ClientSduSize(n) => agreed.client_sdu = *n,
                Capability::ServerSduSize(n) => agreed.server_sdu = *n,
                Capability::ProtocolOptions(n) => agreed.options = *n,
                Capability::MethodMor(n) => agreed.method_mor = *n,
                Capability::PushMor(n) => agreed.push_mor = *n,
                Capability::ExtendedMethods(list) => agreed.methods.clone_from(list),
                Capability::Refused(id::METHODS) => agreed.methods.clear(),
                Capability::Refused(id::OPTIONS) => agreed.options = 0,
                _ => {}
            }
        }
        agreed
    }
}

/// The smaller of two sizes, of which 0 means any.
fn smaller_sdu(a: u32, b: u32) -> u32 {
    match (a, b) {
        (0, n) | (n, 0) => n,
        (a, b) => a.min(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Agreed {
        Agreed {
            client_sdu: 0,
            server_sdu: 100_000,
            options: option::CONFIRMED_PUSH | option::PUSH | option::SESSION_RESUME,
            method_mor: 4,
            push_mor: 2,
            methods: vec![(0x50, Bytes::from_static(b"PATCH"))],
        }
    }

    #[test]
    fn a_server_grants_no_more_than_it_offers_and_answers_what_was_asked_only() {
        let asked = [
            Capability::ClientSduSize(30_000),
            Capability::ServerSduSize(0),
            Capability::ProtocolOptions(0xF8),
            Capability::MethodMor(9),
            Capability::ExtendedMethods(vec![
                (0x51, Bytes::from_static(b"MOVE")),
                (0x52, Bytes::from_static(b"PATCH")),
            ]),
            Capability::HeaderCodePages(vec![(16, Bytes::from_static(b"mine"))]),
            Capability::Unknown(Bytes::from_static(b"x-own"), Bytes::from_static(b"1")),
        ];
        let (answer, agreed) = Agreed::answer(&asked, &offer());
        assert_eq!(
            answer,
            [
                Capability::ClientSduSize(30_000),
                Capability::ServerSduSize(100_000),
                Capability::ProtocolOptions(0xE0),
                Capability::MethodMor(4),
                Capability::ExtendedMethods(vec![(0x52, Bytes::from_static(b"PATCH"))]),
                Capability::Refused(id::PAGES),
                Capability::Unknown(Bytes::from_static(b"x-own"), Bytes::new()),
            ]
        );
        assert_eq!(
            (agreed.push_mor, agreed.client_takes(30_000), agreed.client_takes(30_001)),
            (1, true, false)
        );
        assert!(agreed.has(option::PUSH) && !agreed.has(option::LARGE_DATA));
        assert_eq!(Agreed::after(&asked, &answer), agreed);
    }

    #[test]
    fn nothing_asked_for_leaves_the_defaults() {
        assert_eq!(Agreed::answer(&[], &offer()), (Vec::new(), Agreed::default()));
        assert_eq!(Agreed::after(&[], &[]), Agreed::default());
    }

    #[test]
    fn what_a_real_client_asks_for_is_read_and_written() {
        // Client and server SDU size of 1,048,576 octets.
        let octets = Bytes::from_static(&[4, 0x80, 0xC0, 0x80, 0x00, 4, 0x81, 0xC0, 0x80, 0x00]);
        let read = parse(octets.clone()).unwrap();
        assert_eq!(read, [Capability::ClientSduSize(1 << 20), Capability::ServerSduSize(1 << 20)]);
        assert_eq!(to_bytes(&read), octets);
    }

    #[test]
    fn refusals_and_own_names_come_back() {
        let all = [
            Capability::Refused(id::METHODS),
            Capability::Unknown(Bytes::from_static(b"x-own"), Bytes::from_static(b"\x01\x02")),
            Capability::PushMor(3),
        ];
        assert_eq!(parse(to_bytes(&all)).unwrap(), all);
        assert_eq!(parse(Bytes::from_static(&[3, 0x83, 1, 2])), Err(Error::Malformed("capability")));
        assert_eq!(parse(Bytes::from_static(&[0])), Err(Error::Truncated));
    }
}
