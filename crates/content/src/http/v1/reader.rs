//! From the octets of a stream, cut anywhere, to messages.

use std::collections::VecDeque;

use airloom_base::Body;

use super::chunked::SizeLine;
use super::head::{Collector, Rules, parse_trailers};
use super::{BodyLength, Error, Framing, Limits, of_request, of_response, parse_request, parse_response};
use crate::http::message::{Fields, Method, RequestHead, ResponseHead, Version};

/// One thing that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<H> {
    /// A response that is not the final one (1xx); no body, no [`Item::End`].
    Interim(H),
    /// A head, and how its body is framed.
    Head(H, Framing),
    /// A piece of the body, chunks taken apart.
    Data(Body),
    /// The message is complete; these are its trailers.
    End(Fields),
}

/// Where in a message the stream is.
enum Phase {
    Head,
    /// So many octets of the body (or of a chunk) are still to come.
    Data {
        left: u64,
        chunked: bool,
    },
    Size(SizeLine),
    Trailers,
    UntilClose,
}

/// What requests and responses have in common.
struct Reader {
    limits: Limits,
    strict: bool,
    pending: VecDeque<Body>,
    collector: Collector,
    phase: Phase,
}

/// Octets looked at in one go where octets must be looked at.
const WINDOW: usize = 1024;

impl Reader {
    fn new(limits: Limits, strict: bool) -> Self {
        Reader {
            limits,
            strict,
            pending: VecDeque::new(),
            collector: Collector::default(),
            phase: Phase::Head,
        }
    }

    fn feed(&mut self, body: Body) {
        if !body.is_empty() {
            self.pending.push_back(body);
        }
    }

    /// Lets `look` at the next octets until it has found what it looks for or none are left; it says how many it
    /// used.
    fn scan<T>(
        pending: &mut VecDeque<Body>,
        mut look: impl FnMut(&[u8]) -> Result<(usize, Option<T>), Error>,
    ) -> Result<Option<T>, Error> {
        while let Some(first) = pending.front_mut() {
            let mut window = [0; WINDOW];
            let len = first.write(0, &mut window);
            let (used, found) = look(&window[..len])?;
            first.split_to(used);
            if first.is_empty() {
                pending.pop_front();
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn section(&mut self, skip_blank: bool) -> Result<Option<bytes::Bytes>, Error> {
        let rules = Rules { strict: self.strict, skip_blank };
        let (collector, limits) = (&mut self.collector, self.limits);
        Self::scan(&mut self.pending, |octets| collector.take(octets, rules, limits))
    }

    /// The body begins (or there is none).
    fn begin(&mut self, length: BodyLength) {
        self.phase = match length {
            BodyLength::None => Phase::Data { left: 0, chunked: false },
            BodyLength::Exactly(left) => Phase::Data { left, chunked: false },
            BodyLength::Chunked => Phase::Size(SizeLine::default()),
            BodyLength::UntilClose | BodyLength::Tunnel => Phase::UntilClose,
        };
    }

    /// The next piece of the body, or its end. Not called while a head is awaited.
    fn body<H>(&mut self) -> Result<Option<Item<H>>, Error> {
        loop {
            match &mut self.phase {
                Phase::Head => return Ok(None),
                Phase::Data { left: 0, chunked: false } => {
                    self.phase = Phase::Head;
                    return Ok(Some(Item::End(Fields::default())));
                }
                Phase::Data { left: 0, chunked: true } => self.phase = Phase::Size(SizeLine::after_data()),
                Phase::Data { left, .. } => {
                    let Some(first) = self.pending.front_mut() else { return Ok(None) };
                    let piece = first.split_to(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= piece.len() as u64;
                    if first.is_empty() {
                        self.pending.pop_front();
                    }
                    return Ok(Some(Item::Data(piece)));
                }
                Phase::Size(line) => match Self::scan(&mut self.pending, |octets| line.take(octets))? {
                    None => return Ok(None),
                    Some(0) => self.phase = Phase::Trailers,
                    Some(left) => self.phase = Phase::Data { left, chunked: true },
                },
                Phase::Trailers => {
                    let Some(section) = self.section(false)? else { return Ok(None) };
                    self.phase = Phase::Head;
                    return Ok(Some(Item::End(parse_trailers(&section)?)));
                }
                Phase::UntilClose => return Ok(self.pending.pop_front().map(Item::Data)),
            }
        }
    }

    fn is_between_messages(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.collector.is_empty() && self.pending.is_empty()
    }
}

/// Reads the requests of a connection.
pub struct RequestReader(Reader);

impl RequestReader {
    /// A reader at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        RequestReader(Reader::new(limits, true))
    }

    /// Adds what the stream gave. Hold it back while a message is being worked on: whatever is fed is kept.
    pub fn feed(&mut self, body: Body) {
        self.0.feed(body);
    }

    /// The next item, `None` if more octets are needed. After an error nothing more can be read.
    pub fn poll(&mut self) -> Result<Option<Item<RequestHead>>, Error> {
        if !matches!(self.0.phase, Phase::Head) {
            return self.0.body();
        }
        let Some(octets) = self.0.section(true)? else { return Ok(None) };
        let head = parse_request(&octets)?;
        check_host(&head)?;
        let framing = of_request(&head)?;
        self.0.begin(framing.length);
        Ok(Some(Item::Head(head, framing)))
    }

    /// What was fed and belongs to no request that was read: the beginning of a tunnel.
    pub fn take_rest(&mut self) -> Vec<Body> {
        self.0.pending.drain(..).collect()
    }

    /// Is nothing of a request waiting: neither half a message nor octets of a next one?
    pub fn is_between_messages(&self) -> bool {
        self.0.is_between_messages()
    }
}

fn check_host(head: &RequestHead) -> Result<(), Error> {
    //= RFC 9112 (3.2): no Host in a 1.1 request, several, or an invalid one: 400.
    let mut hosts = head.fields.all("host");
    let valid = match (hosts.next(), hosts.next()) {
        (None, _) => head.version == Version::Http10,
        (Some(host), None) => is_authority(host),
        (Some(_), Some(_)) => false,
    };
    let target_valid = head.target_parts().0.is_none_or(|host| !host.is_empty() && is_authority(host));
    if valid && target_valid { Ok(()) } else { Err(Error::Host) }
}

/// Octets that a host with a port may consist of (RFC 3986, 3.2.2). A host may be empty.
fn is_authority(host: &[u8]) -> bool {
    host.iter().all(|b| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(b))
}

/// Reads the responses of a connection, in the order of the requests.
pub struct ResponseReader {
    reader: Reader,
    expected: VecDeque<Method>,
}

impl ResponseReader {
    /// A reader at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        ResponseReader { reader: Reader::new(limits, false), expected: VecDeque::new() }
    }

    /// A request with `method` was sent: one more response is expected.
    pub fn expect(&mut self, method: Method) {
        self.expected.push_back(method);
    }

    /// Adds what the stream gave.
    pub fn feed(&mut self, body: Body) {
        self.reader.feed(body);
    }

    /// The next item, `None` if more octets are needed. After an error nothing more can be read.
    pub fn poll(&mut self) -> Result<Option<Item<ResponseHead>>, Error> {
        if matches!(self.reader.phase, Phase::Head) {
            return self.head();
        }
        let item = self.reader.body()?;
        if matches!(item, Some(Item::End(_))) {
            self.expected.pop_front();
        }
        Ok(item)
    }

    fn head(&mut self) -> Result<Option<Item<ResponseHead>>, Error> {
        if self.reader.pending.is_empty() {
            return Ok(None);
        }
        //= RFC 9112 (6.3): what follows the final response is never taken as a response.
        let method = self.expected.front().ok_or(Error::Unsolicited)?;
        let Some(octets) = self.reader.section(true)? else { return Ok(None) };
        let head = parse_response(&octets)?;
        if head.status < 200 {
            return Ok(Some(Item::Interim(head)));
        }
        let framing = of_response(&head, method)?;
        self.reader.begin(framing.length);
        Ok(Some(Item::Head(head, framing)))
    }

    /// Is nothing of a response waiting: neither half a message nor octets of a next one?
    pub fn is_between_messages(&self) -> bool {
        self.reader.is_between_messages()
    }

    /// The stream ended: does that end a message ([`Item::End`]), come between two (`None`) or break one off?
    pub fn finish(&mut self) -> Result<Option<Item<ResponseHead>>, Error> {
        if matches!(self.reader.phase, Phase::UntilClose) && self.reader.pending.is_empty() {
            self.reader.phase = Phase::Head;
            self.expected.pop_front();
            return Ok(Some(Item::End(Fields::default())));
        }
        if self.is_between_messages() { Ok(None) } else { Err(Error::Incomplete) }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
