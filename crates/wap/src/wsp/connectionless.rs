//! WSP without a session (WAP-230 section 7.2): a PDU in one datagram, behind an octet that the answer repeats.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_wire::Error;
use bytes::Bytes;

use super::wire::{Method, Pdu};

/// The octets of a unit.
pub fn emit(tid: u8, pdu: &Pdu) -> Bytes {
    let mut out = vec![tid];
    pdu.emit(&mut out);
    out.into()
}

/// The unit in a datagram. Only methods, replies and unconfirmed pushes exist without a session.
pub fn parse(datagram: &Bytes) -> Result<(u8, Pdu), Error> {
    let tid = *datagram.first().ok_or(Error::Truncated)?;
    let pdu = Pdu::parse(&datagram.slice(1..))?;
    match pdu {
        Pdu::Get { .. } | Pdu::Post { .. } | Pdu::Reply { .. } | Pdu::Push { confirmed: false, .. } => {
            Ok((tid, pdu))
        }
        _ => Err(Error::Malformed("PDU type")),
    }
}

/// Something for the user of a [`Client`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// S-Unit-MethodResult.ind: the reply to a request.
    Reply {
        /// To which one.
        request: u8,
        /// Status in its octet: see `status`.
        status: u8,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// S-Unit-Push.ind.
    Push {
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
}

/// A client without a session. Nothing is repeated here and nothing has a time limit: both are its user's business.
/// Feed it, then take all of `poll_event` and `poll_transmit`.
pub struct Client {
    server: SocketAddr,
    next: u8,
    /// Requests without a reply, for repetitions.
    outstanding: BTreeMap<u8, Bytes>,
    out: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<Event>,
}

impl Client {
    /// Of this server; `first` is the number of the first request.
    pub fn new(server: SocketAddr, first: u8) -> Client {
        let (outstanding, out, events) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Client { server, next: first, outstanding, out, events }
    }

    /// The next datagram, and where to.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.out.pop_front()
    }

    /// The next thing for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// S-Unit-MethodInvoke.req. `None` if all 256 numbers wait for replies.
    pub fn request(&mut self, method: Method, uri: Bytes, headers: Bytes, data: Bytes) -> Option<u8> {
        let pdu = match method.has_body() {
            true => Pdu::Post { method, uri, headers, data },
            false => Pdu::Get { method, uri, headers },
        };
        let tid = (0..=u8::MAX).map(|n| self.next.wrapping_add(n));
        let tid = tid.into_iter().find(|tid| !self.outstanding.contains_key(tid))?;
        self.next = tid.wrapping_add(1);
        let unit = emit(tid, &pdu);
        self.out.push_back((self.server, unit.clone()));
        self.outstanding.insert(tid, unit);
        Some(tid)
    }

    /// Sends a request without a reply once more, in the same octets: whichever is answered, it is the reply.
    pub fn repeat(&mut self, request: u8) {
        if let Some(unit) = self.outstanding.get(&request) {
            self.out.push_back((self.server, unit.clone()));
        }
    }

    /// A reply to this request is of no more interest.
    pub fn forget(&mut self, request: u8) {
        self.outstanding.remove(&request);
    }

    /// A datagram arrived. What is no reply of the server to something outstanding, and no push, is ignored.
    pub fn handle_datagram(&mut self, from: SocketAddr, datagram: &Bytes) {
        match parse(datagram) {
            Ok((tid, Pdu::Reply { status, headers, data }))
                if from == self.server && self.outstanding.remove(&tid).is_some() =>
            {
                self.events.push_back(Event::Reply { request: tid, status, headers, data });
            }
            Ok((_, Pdu::Push { confirmed: false, headers, data })) => {
                self.events.push_back(Event::Push { headers, data });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get() -> Pdu {
        let (method, uri) = (Method::Get, Bytes::from_static(b"http://o/"));
        Pdu::Get { method, uri, headers: Bytes::from_static(&[0x80, 0x80]) }
    }

    #[test]
    fn units_carry_the_octet_of_their_request() {
        assert_eq!(parse(&emit(0x12, &get())), Ok((0x12, get())));
        assert_eq!(parse(&emit(0x12, &Pdu::Disconnect { session: 1 })), Err(Error::Malformed("PDU type")));
        assert_eq!(parse(&Bytes::new()), Err(Error::Truncated));
    }

    #[test]
    fn a_request_has_one_reply_however_often_it_is_sent() {
        let server: SocketAddr = "10.0.0.2:9200".parse().unwrap();
        let stranger: SocketAddr = "10.0.0.3:9200".parse().unwrap();
        let mut client = Client::new(server, 255);
        let ask = |client: &mut Client| {
            client.request(Method::Get, Bytes::from_static(b"http://o/"), Bytes::new(), Bytes::new())
        };
        assert_eq!((ask(&mut client), ask(&mut client)), (Some(255), Some(0)));
        client.repeat(0);
        let sent: Vec<_> = std::iter::from_fn(|| client.poll_transmit()).collect();
        assert_eq!(sent.len(), 3);
        assert_eq!(sent[1], sent[2]);
        let reply = |tid| {
            let (headers, data) = (Bytes::from_static(&[0x83]), Bytes::from_static(b"x"));
            emit(tid, &Pdu::Reply { status: 0x20, headers, data })
        };
        client.handle_datagram(stranger, &reply(0));
        client.handle_datagram(server, &reply(7));
        client.handle_datagram(server, &Bytes::from_static(&[0, 4]));
        assert_eq!(client.poll_event(), None);
        client.handle_datagram(server, &reply(0));
        client.handle_datagram(server, &reply(0));
        assert!(matches!(client.poll_event(), Some(Event::Reply { request: 0, status: 0x20, .. })));
        assert_eq!(client.poll_event(), None);
        client.repeat(0);
        assert_eq!(client.poll_transmit(), None);
        // 255 still waits; 255 more may.
        let more = std::iter::from_fn(|| ask(&mut client)).count();
        assert_eq!(more, 255);
        client.forget(255);
        assert_eq!(ask(&mut client), Some(255));
    }
}
