//! Session initiation requests (`application/vnd.wap.sia`): a server that has something for a client without a session asks
//! it, by a push without one, to open one.
//!
//! Source: WAP-235 (version 0 of the format), as two other implementations have it. They differ in the list of applications:
//! Wireshark reads headers, `X-Wap-Application-Id` with its name each; Kannel writes values without the name. Headers are
//! written here, and both are read. What later versions put behind the contact points is not read.

use airloom_wire::{Error, uintvar};
use bytes::{BufMut, Bytes};

use super::address::{Address, Reader, addresses, emit_addresses};
use super::headers::{Encoder, Pages, decode};

/// Its type.
pub const CONTENT_TYPE: &str = "application/vnd.wap.sia";
/// The application of a client that takes it, as `X-Wap-Application-Id` has it.
pub const APPLICATION: &str = "push.sia";

/// Name of the header that the list of applications consists of, in its compact form.
const APPLICATION_ID: u8 = 0xAF;

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInitiation {
    /// Version of the format.
    pub version: u8,
    /// The applications that something waits for, by their names in the registry or by number.
    pub applications: Vec<String>,
    /// Where to open a session; with none, where the request came from.
    pub contacts: Vec<Address>,
}

impl SessionInitiation {
    /// Reads the body of a push.
    ///
    /// # Errors
    /// [`Error`] if it is cut off or an application or address cannot be read.
    pub fn parse(octets: &Bytes) -> Result<SessionInitiation, Error> {
        let mut at = Reader { rest: octets.clone() };
        let version = at.octet()?;
        let len = at.uintvar()?;
        let list = at.take(len)?;
        let len = at.uintvar()?;
        Ok(SessionInitiation {
            version,
            applications: applications(&list)?,
            contacts: addresses(at.take(len)?)?,
        })
    }

    /// The body of a push.
    pub fn to_bytes(&self) -> Bytes {
        let mut list = Vec::new();
        for application in &self.applications {
            // The name is one.
            let _ = Encoder::default().header("X-Wap-Application-Id", application, &mut list);
        }
        let contacts = emit_addresses(&self.contacts);
        let mut out = vec![self.version];
        for part in [&list[..], &contacts] {
            uintvar::emit(part.len() as u32, &mut out);
            out.put_slice(part);
        }
        out.into()
    }
}

/// The values of a list, each a short number or a text with its NUL, behind the header's name or not.
fn applications(list: &[u8]) -> Result<Vec<String>, Error> {
    let (mut applications, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        // As the number of an application the name's octet stands for none.
        rest = rest.strip_prefix(&[APPLICATION_ID]).unwrap_or(rest);
        let first = rest.first().ok_or(Error::Truncated)?;
        let len = match first {
            0x80.. => 1,
            // A number of more than seven bits: how many octets follow.
            len @ 0..0x1F => usize::from(*len) + 1,
            _ => rest.iter().position(|octet| *octet == 0).ok_or(Error::Truncated)? + 1,
        };
        let value = rest.get(..len).ok_or(Error::Truncated)?;
        let header = [&[APPLICATION_ID], value].concat();
        let read = decode(&header, &Pages::new())?;
        let text = read.first().and_then(|header| header.value.text()).filter(|text| !text.trim().is_empty());
        let text = text.ok_or(Error::Malformed("application"))?;
        applications.push(text.to_owned());
        rest = &rest[len..];
    }
    Ok(applications)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_and_read() {
        let contact = Address { bearer: None, port: Some(9201), octets: Bytes::from_static(&[10, 0, 0, 2]) };
        let request = SessionInitiation {
            version: 0,
            applications: vec!["wml.ua".into(), "http://example.org:news.ua".into()],
            contacts: vec![contact],
        };
        let octets = request.to_bytes();
        // Version, 30 octets of applications (number 2, then text with its NUL), an address of four octets with its port. Wireshark
        // 4.0 reads it so.
        assert_eq!(octets[..5], [0x00, 30, 0xAF, 0x82, 0xAF]);
        assert_eq!(octets[32..], [0x07, 0x44, 0x23, 0xF1, 10, 0, 0, 2]);
        assert_eq!(SessionInitiation::parse(&octets), Ok(request));
        for len in 0..octets.len() {
            assert!(SessionInitiation::parse(&octets.slice(..len)).is_err(), "{len}");
        }
    }

    #[test]
    fn applications_may_stand_without_the_headers_name() {
        let kannels = Bytes::from_static(&[0, 3, 0x82, b'x', 0, 0]);
        let request = SessionInitiation::parse(&kannels).map(|request| request.applications);
        assert_eq!(request, Ok(vec!["wml.ua".to_owned(), "x".to_owned()]));
    }

    #[test]
    fn an_application_without_a_name_is_none() {
        // Written again they would have become two applications, or none.
        assert!(SessionInitiation::parse(&Bytes::from_static(&[3, 1, 0, 0])).is_err());
        assert!(SessionInitiation::parse(&Bytes::from_static(&[0, 2, b' ', 0, 0])).is_err());
    }

    #[test]
    fn lists_may_be_empty_and_must_be_whole() {
        let empty = SessionInitiation::default();
        assert_eq!(empty.to_bytes(), &[0, 0, 0][..]);
        assert_eq!(SessionInitiation::parse(&empty.to_bytes()), Ok(empty));
        for bad in [&[0, 3, b'a', b'b', b'c', 0][..], &[0, 1, 0x02, 0], &[0, 0, 1, 0x44], &[0, 1, 0xAF, 1]] {
            assert!(SessionInitiation::parse(&Bytes::from_static(bad)).is_err(), "{bad:?}");
        }
    }
}
