//! One end of a control connection: lines that arrive, and lines on their way out.

use airloom_base::{Body, Cx, SocketId, Sockets};
use bytes::Bytes;

use super::wire::{Line, Lines};
use crate::net::Outgoing;

/// The lines of a control connection.
#[derive(getset::CopyGetters)]
pub(super) struct Control {
    pub(super) socket: SocketId,
    lines: Lines,
    /// What has arrived and was not looked at.
    arrived: Bytes,
    out: Outgoing,
    /// Has the socket taken all that was said? Nothing more is listened to before: a peer that does not read is held back.
    #[getset(get_copy = "pub(super)")]
    is_written: bool,
}

impl Control {
    pub(super) fn new(socket: SocketId) -> Control {
        Control {
            socket,
            lines: Lines::default(),
            arrived: Bytes::new(),
            out: Outgoing::default(),
            is_written: true,
        }
    }

    /// Says a line. There is one at a time on its way: see [`Control::is_written`].
    pub(super) fn say(&mut self, cx: &mut Cx, net: &mut dyn Sockets, line: &str) {
        self.out.append(format!("{line}\r\n").as_bytes());
        self.write(cx, net);
    }

    /// Goes on with what was said.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.is_written = self.out.pump(cx, net, self.socket);
    }

    /// The next line that has arrived.
    pub(super) fn line(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Option<Line> {
        loop {
            if self.arrived.is_empty() {
                self.arrived = net.read(cx, self.socket, 4096).as_ref().map(Body::to_bytes)?;
            }
            let (taken, line) = self.lines.feed(&self.arrived);
            self.arrived = self.arrived.slice(taken..);
            if line.is_some() {
                return line;
            }
        }
    }
}
