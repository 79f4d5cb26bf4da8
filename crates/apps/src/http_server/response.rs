//! A response on its way: head, then a filler, whole or in chunks.

use airloom_base::{Cx, Filler, SocketId, Sockets};
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version, reason};
use airloom_content::http::v1::chunk_size_line;
use bytes::Bytes;

use super::site::{self, Object};
use super::{Coding, Config, Http};
use crate::net::Outgoing;

/// What follows a response on its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Other exchanges may.
    Keep,
    /// Nothing: the connection ends with it, or (over SCTP) its stream is used no more.
    Close,
    /// Other exchanges may, as long as the association lives; HTTP has no say in it.
    Lasts,
}

/// A response, as much of it as is not written yet. Its memory does not depend on the size of the object.
#[derive(Default)]
pub(super) struct Response {
    outgoing: Outgoing,
    chunks: Option<Chunks>,
    /// Does the connection end with it?
    pub(super) close: bool,
    /// Its status.
    pub(super) status: u16,
    /// Octets of a text of our own, which stands behind the head.
    text: usize,
    /// Is the head still to be written by itself?
    apart: bool,
}

struct Chunks {
    source: u32,
    /// Where in the source it begins.
    first: u64,
    offset: u64,
    size: u64,
    chunk: u64,
    ended: bool,
}

impl Chunks {
    fn next(&mut self) -> Option<Outgoing> {
        if self.ended {
            return None;
        }
        let len = self.chunk.min(self.size - self.offset);
        self.ended = len == 0;
        let line = chunk_size_line(len, self.offset == 0);
        let piece = Outgoing::piece(line.into(), self.source, self.first + self.offset, len);
        self.offset += len;
        Some(piece)
    }
}

/// Status, media type and content of the answer to a request, whatever the version.
pub(super) fn content(config: &Config, request: &RequestHead) -> (u16, &'static str, Object) {
    let status = match &request.method {
        //= RFC 9110 (15.5.20): who is asked for another server says so, and is not that server.
        _ if !config.answers_for(request) => 421,
        // What is posted is read and dropped: it makes no difference to what is there.
        Method::Get | Method::Head | Method::Post => match site::find(config, &request.target_parts().1) {
            Some((object, media)) => return (200, media, object),
            None => 404,
        },
        //= RFC 9110 (15.6.2): a method that is not recognised is answered with 501, a known one with 405.
        Method::Other(_) => 501,
        _ => 405,
    };
    (status, "text/plain", Object::Text(line(status)))
}

/// A status in words.
pub(super) fn line(status: u16) -> Bytes {
    format!("{status} {}\n", reason(status)).into()
}

impl Response {
    /// The answer to a request.
    pub(super) fn to(config: &Config, request: &RequestHead, after: After) -> Response {
        let after = if after == After::Keep && !config.keep_alive { After::Close } else { after };
        match content(config, request) {
            (status, media, Object::Text(text)) => {
                Response::text(config, status, media, text, after, Some(request))
            }
            (_, media, Object::Filler { source, size }) => {
                Response::object(config, media, source, size, after, request)
            }
        }
    }

    /// An error with a line of text, to a request that could not be read.
    pub(super) fn error(config: &Config, status: u16) -> Response {
        Response::text(config, status, "text/plain", line(status), After::Close, None)
    }

    fn text(
        config: &Config,
        status: u16,
        media: &'static str,
        text: Bytes,
        after: After,
        request: Option<&RequestHead>,
    ) -> Response {
        let mut fields = Fields::default();
        if status == 405 {
            fields.push("Allow", "GET, HEAD, POST");
        }
        fields.push("Content-Type", media);
        fields.push("Content-Length", text.len().to_string());
        let bodiless = request.is_some_and(|r| r.method == Method::Head);
        let mut octets = head(config, status, fields, after, request);
        if !bodiless {
            octets.extend_from_slice(&text);
        }
        let text = if bodiless { 0 } else { text.len() };
        let close = after == After::Close;
        Response { outgoing: Outgoing::new(octets.into(), 0, 0), close, status, text, ..Response::default() }
    }

    fn object(
        config: &Config,
        media: &'static str,
        source: u32,
        size: u64,
        after: After,
        request: &RequestHead,
    ) -> Response {
        let mut fields = Fields::default();
        fields.push("Content-Type", media);
        let both_11 = request.version >= Version::Http11 && config.http != Http::Http10;
        let (mut after, mut chunked) = (after, false);
        match config.coding {
            Coding::Length => fields.push("Content-Length", size.to_string()),
            //= RFC 9112 (6.1): chunked only towards a peer known to speak 1.1.
            Coding::Chunked if both_11 => {
                chunked = true;
                fields.push("Transfer-Encoding", "chunked");
            }
            // A stream of an association has no end that could mark anything.
            Coding::Chunked | Coding::Close if after == After::Lasts => {
                fields.push("Content-Length", size.to_string());
            }
            Coding::Chunked | Coding::Close => after = After::Close,
        }
        let octets = head(config, 200, fields, after, Some(request)).into();
        let close = after == After::Close;
        if request.method == Method::Head {
            return Response {
                outgoing: Outgoing::new(octets, 0, 0),
                close,
                status: 200,
                ..Response::default()
            };
        }
        // Chunks of SCTP are looked at one by one: in octets of any value readers of captures find header lines.
        let first = if after == After::Lasts { Filler::TEXT } else { 0 };
        let (outgoing, chunks) = if chunked {
            let chunks = Chunks { source, first, offset: 0, size, chunk: config.chunk.0, ended: false };
            (Outgoing::new(octets, 0, 0), Some(chunks))
        } else {
            (Outgoing::piece(octets, source, first, size), None)
        };
        let apart = config.head_apart && config.tls.is_none() && after != After::Lasts;
        Response { outgoing, chunks, close, status: 200, text: 0, apart }
    }

    /// Writes the head, if that is to leave by itself. True: it has to leave before the rest is written.
    pub(super) fn pump_apart(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        if !self.apart {
            return false;
        }
        let more = self.outgoing.pump_head(cx, net, socket);
        self.apart = false;
        more || self.chunks.is_some()
    }

    /// Writes until the socket takes no more. Is everything written, and how many octets of the body were?
    pub(super) fn pump(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> (bool, u64) {
        let mut octets = 0;
        loop {
            let before = self.unwritten();
            let is_written = self.outgoing.pump(cx, net, socket);
            octets += before - self.unwritten();
            if !is_written {
                return (false, octets);
            }
            match self.chunks.as_mut().and_then(Chunks::next) {
                Some(next) => self.outgoing = next,
                None => return (true, octets),
            }
        }
    }

    /// Octets of the body, or of the chunk that is being written, that are not.
    fn unwritten(&self) -> u64 {
        let (real, filler) = self.outgoing.unwritten();
        real.min(self.text) as u64 + filler
    }
}

/// The octets of a response head.
fn head(
    config: &Config,
    status: u16,
    mut fields: Fields,
    after: After,
    request: Option<&RequestHead>,
) -> Vec<u8> {
    fields.push("Server", "airloom");
    if let Some(alternatives) = config.alternatives() {
        fields.push("Alt-Svc", alternatives);
    }
    let version = if config.http == Http::Http10 { Version::Http10 } else { Version::Http11 };
    let is_old = version == Version::Http10 || request.is_some_and(|r| r.version == Version::Http10);
    match after {
        After::Close => fields.push("Connection", "close"),
        //= RFC 2068 (19.7.1): a 1.0 client learns that the connection is kept from the echoed token.
        After::Keep if is_old => fields.push("Connection", "keep-alive"),
        After::Keep | After::Lasts => {}
    }
    pad(&mut fields, status, config);
    let mut octets = Vec::with_capacity(160);
    ResponseHead { version, status, reason: reason(status).into(), fields }.emit(&mut octets);
    octets
}

/// Makes the head as long as asked for, by what it would be in HTTP/1.1.
pub(super) fn pad(fields: &mut Fields, status: u16, config: &Config) {
    let Some(wanted) = config.response else { return };
    let reason = reason(status).into();
    let head = ResponseHead { version: Version::Http11, status, reason, fields: fields.clone() };
    let mut octets = Vec::new();
    head.emit(&mut octets);
    if let Some(short) = (wanted.0 as usize).checked_sub(octets.len()).filter(|short| *short > 0) {
        // "X-Padding: " and its line end are 13 octets.
        fields.push("X-Padding", "p".repeat(short.saturating_sub(13).max(1)));
    }
}
