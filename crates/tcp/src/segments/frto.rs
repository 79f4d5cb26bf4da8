//! F-RTO (RFC 5682): was a retransmission timeout spurious? Two acknowledgements tell.

use super::super::sender::Sender;
use super::Next;
use super::Segments;
use super::acked::News;

impl Segments {
    /// An acknowledgement in the loss state. Says whether F-RTO has dealt with it.
    ///
    /// One form for both variants of the standard, as in Linux: without SACK a duplicate takes the place of a report.
    pub(super) fn detect_spurious_timeout(
        &mut self,
        tx: &mut Sender,
        news: &News,
        duplicate: bool,
        recovered: bool,
    ) -> bool {
        if !self.frto {
            return false;
        }
        //= RFC 5682 (3.1, step 3b): data that was not sent again has arrived: the timeout was spurious.
        if news.original && self.undo_loss(tx, true) {
            return true;
        }
        if tx.snd.nxt() > tx.recover() {
            //= RFC 5682 (2.1, step 3a): a duplicate, or a report of the new data: the loss was real.
            if news.sacked || duplicate {
                self.frto = false;
            }
        } else if news.advanced && !recovered {
            //= RFC 5682 (2.1, step 2b): the window moved: new data, if there is any, will tell.
            tx.begin_episode();
            if tx.snd.has_unsent() && tx.snd.window_edge() > tx.snd.nxt() {
                self.next = Next::New;
                return true;
            }
            self.frto = false;
        }
        false
    }
}
