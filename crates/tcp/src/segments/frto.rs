//! F-RTO (RFC 5682): was a retransmission timeout spurious? Two acknowledgements tell.

use super::super::connection::Connection;
use super::Next;
use super::acked::News;

impl Connection {
    /// An acknowledgement in the loss state. Says whether F-RTO has dealt with it.
    ///
    /// One form for both variants of the standard, as in Linux: without SACK a duplicate takes the place of a report.
    pub(super) fn detect_spurious_timeout(&mut self, news: &News, duplicate: bool, recovered: bool) -> bool {
        if !self.segments.frto {
            return false;
        }
        //= RFC 5682 (3.1, step 3b): data that was not sent again has arrived: the timeout was spurious.
        if news.original && self.undo_loss(true) {
            return true;
        }
        if self.snd.nxt > self.recover {
            //= RFC 5682 (2.1, step 3a): a duplicate, or a report of the new data: the loss was real.
            if news.sacked || duplicate {
                self.segments.frto = false;
            }
        } else if news.advanced && !recovered {
            //= RFC 5682 (2.1, step 2b): the window moved: new data, if there is any, will tell.
            self.recover = self.snd.nxt;
            if self.snd.has_unsent() && self.snd.window_edge() > self.snd.nxt {
                self.segments.next = Next::New;
                return true;
            }
            self.segments.frto = false;
        }
        false
    }
}
