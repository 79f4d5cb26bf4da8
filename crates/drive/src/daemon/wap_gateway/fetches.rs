//! The exchanges with origins that are under way.

use std::collections::BTreeMap;
use std::rc::Rc;

use airloom_proxies::wap_gateway::{FetchId, FetchOrder, Fetched};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::super::fetch::Fetcher;

/// Pieces of answers that wait for the machine, of all exchanges together: an origin that sends faster is held back.
const WAITING: usize = 64;

/// Starts and cancels exchanges; what comes of them goes into a channel.
pub(super) struct Fetches {
    fetcher: Rc<Fetcher>,
    running: BTreeMap<FetchId, AbortHandle>,
    parts: mpsc::Sender<(FetchId, Fetched)>,
}

impl Fetches {
    pub(super) fn new(fetcher: Fetcher) -> (Fetches, mpsc::Receiver<(FetchId, Fetched)>) {
        let (parts, receiver) = mpsc::channel(WAITING);
        (Fetches { fetcher: Rc::new(fetcher), running: BTreeMap::new(), parts }, receiver)
    }

    pub(super) fn order(&mut self, order: FetchOrder) {
        match order {
            FetchOrder::Start { id, request } => {
                let (fetcher, parts) = (Rc::clone(&self.fetcher), self.parts.clone());
                let task = tokio::task::spawn_local(async move {
                    // The receiver lives as long as the daemon.
                    let take = |part| {
                        let parts = parts.clone();
                        async move { drop(parts.send((id, part)).await) }
                    };
                    fetcher.fetch(*request, take).await;
                });
                self.running.insert(id, task.abort_handle());
            }
            FetchOrder::Cancel(id) => {
                if let Some(task) = self.running.remove(&id) {
                    task.abort();
                }
            }
        }
    }

    /// A piece of an answer was taken out of the channel.
    pub(super) fn arrived(&mut self, id: FetchId, part: &Fetched) {
        if matches!(part, Fetched::End | Fetched::Failed(_)) {
            self.running.remove(&id);
        }
    }
}
