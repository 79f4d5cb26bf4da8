//! Ports at their end.

use std::thread::{self, JoinHandle};

use super::port::Port;

/// Threads that close ports.
const MOST_CLOSING: usize = 16;

/// Ports that are being closed; dropped, it waits for that.
///
/// To close a packet socket takes the kernel ten milliseconds, in which it waits for all processors (`synchronize_net`), and
/// it waits for several sockets as long as for one. The laboratory ends meanwhile.
pub(super) struct Closing(Vec<JoinHandle<()>>);

impl Closing {
    pub(super) fn begin(mut ports: Vec<Box<dyn Port>>) -> Closing {
        let each = ports.len().div_ceil(MOST_CLOSING).max(1);
        let mut threads = Vec::new();
        while !ports.is_empty() {
            let some = ports.split_off(ports.len().saturating_sub(each));
            // Where there can be no further thread, this one does it.
            threads.extend(thread::Builder::new().name("airloom-close".to_owned()).spawn(move || drop(some)));
        }
        Closing(threads)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join();
        }
    }
}
