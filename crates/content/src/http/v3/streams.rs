//! One end and the streams below it: the loop that everybody needs who has both.

use airloom_base::Body;

use super::connection::{Connection, Transmit};
use super::error::ErrorCode;

/// The streams of one connection, whoever carries them.
pub trait Streams {
    /// Takes as much of `body` as there is room for, and says how many octets that was.
    ///
    /// # Errors
    /// The peer reads no more of it: its code.
    fn write(&mut self, stream: u64, body: Body) -> Result<usize, ErrorCode>;
    /// Nothing more will be written to it.
    fn finish(&mut self, stream: u64);
    /// Gives our side of it up.
    fn reset(&mut self, stream: u64, code: ErrorCode);
    /// Reads no more of it.
    fn stop(&mut self, stream: u64, code: ErrorCode);
    /// What has come of it next.
    fn read(&mut self, stream: u64) -> Read;
}

/// What is to be read of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// These octets, and perhaps more.
    Octets(Body),
    /// Nothing now.
    Nothing,
    /// Nothing more: the peer has ended it.
    Ended,
    /// Nothing more: the peer has given it up.
    Reset(ErrorCode),
}

impl Connection {
    /// Writes what streams have room for. True: something was done.
    pub fn write_to(&mut self, streams: &mut impl Streams) -> bool {
        let mut moved = false;
        while let Some(action) = self.poll_transmit() {
            match action {
                Transmit::Write { stream, body, ends } => {
                    let offered = body.len();
                    let taken = if offered == 0 { Ok(0) } else { streams.write(stream, body) };
                    match taken {
                        Ok(taken) => {
                            let is_over = ends && taken >= offered;
                            if is_over {
                                streams.finish(stream);
                            }
                            self.written(stream, taken.min(offered));
                            moved |= taken > 0 || is_over;
                        }
                        Err(code) => self.was_stopped(stream, code),
                    }
                }
                Transmit::Reset(stream, code) => {
                    streams.reset(stream, code);
                    moved = true;
                }
                Transmit::Stop(stream, code) => {
                    streams.stop(stream, code);
                    moved = true;
                }
            }
        }
        moved
    }

    /// Reads what has come on a stream. False: it [`waits`](Self::waits), and this is to be called again when it is
    /// [`Unblocked`](super::Event::Unblocked).
    pub fn read_from(&mut self, streams: &mut impl Streams, stream: u64) -> bool {
        while !self.waits(stream) {
            match streams.read(stream) {
                Read::Octets(body) => self.feed(stream, body),
                Read::Nothing => return true,
                Read::Ended => {
                    self.ended(stream);
                    return true;
                }
                Read::Reset(code) => {
                    self.was_reset(stream, code);
                    return true;
                }
            }
        }
        false
    }
}
