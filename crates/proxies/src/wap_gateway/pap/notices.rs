//! Result notifications: an initiator that asked for it is told by HTTP what became of its push.

use airloom_base::{Duration, Instant};
use airloom_content::http::message::{Fields, Method};
use url::Url;

use super::answers::TYPE;
use super::submissions::Notice;
use crate::wap_gateway::fetch::{FetchId, FetchOrder, FetchRequest, Fetched};
use crate::wap_gateway::gateway::{Due, Gateway};
use crate::wap_gateway::request::authority;

/// How often an initiator that cannot be reached is told.
const ATTEMPTS: u32 = 3;
/// How long after a failure it is told again.
const AGAIN: Duration = Duration::from_secs(10);
/// Notifications that are being told; further ones are dropped.
const MOST: usize = 1_000;

impl Gateway {
    /// Tells `to` what `document` says.
    pub(super) fn notify(&mut self, now: Instant, to: Url, document: String) {
        if self.notices.len() >= MOST {
            self.counters.notices_failed += 1;
            return;
        }
        let mut fields = Fields::default();
        fields.push("Host", authority(&to));
        fields.push("User-Agent", "airloom");
        fields.push("Content-Type", TYPE);
        fields.push("Content-Length", document.len().to_string());
        let request = FetchRequest { method: Method::Post, url: to, fields, body: document.into() };
        self.tell_notice(now, Notice { request, attempts: 0, asking: false, due: now });
    }

    fn tell_notice(&mut self, now: Instant, notice: Notice) {
        let id = self.name();
        let request = Box::new(notice.request.clone());
        let due = now + self.config.origin_timeout;
        self.orders.push_back(FetchOrder::Start { id, request });
        self.agenda.insert((due, Due::Notice(id)));
        self.notices.insert(id, Notice { attempts: notice.attempts + 1, asking: true, due, ..notice });
    }

    /// Is this exchange about a notification? Then what came of it is seen to.
    pub(in crate::wap_gateway) fn notice_fetched(
        &mut self,
        now: Instant,
        id: FetchId,
        fetched: &Fetched,
    ) -> bool {
        let Some(notice) = self.notices.get(&id).filter(|notice| notice.asking) else { return false };
        let due = notice.due;
        match fetched {
            Fetched::Head { status: 100..200, .. } => {}
            Fetched::Head { status, .. } => {
                // What the answer says besides is of no interest.
                self.orders.push_back(FetchOrder::Cancel(id));
                self.agenda.remove(&(due, Due::Notice(id)));
                match status {
                    200..300 => self.notice_over(id, true),
                    500.. => self.notice_failed(now, id),
                    _ => self.notice_over(id, false),
                }
            }
            Fetched::Failed(_) => {
                self.agenda.remove(&(due, Due::Notice(id)));
                self.notice_failed(now, id);
            }
            Fetched::Chunk(_) | Fetched::End => {}
        }
        true
    }

    /// Its moment has come: nobody answered, or it is to be told again.
    pub(in crate::wap_gateway) fn notice_due(&mut self, now: Instant, id: FetchId) {
        let Some(notice) = self.notices.get(&id) else { return };
        if notice.asking {
            self.orders.push_back(FetchOrder::Cancel(id));
            self.notice_failed(now, id);
        } else if let Some(notice) = self.notices.remove(&id) {
            self.tell_notice(now, notice);
        }
    }

    fn notice_failed(&mut self, now: Instant, id: FetchId) {
        let Some(notice) = self.notices.get_mut(&id) else { return };
        if notice.attempts >= ATTEMPTS {
            return self.notice_over(id, false);
        }
        (notice.asking, notice.due) = (false, now + AGAIN);
        self.agenda.insert((notice.due, Due::Notice(id)));
    }

    fn notice_over(&mut self, id: FetchId, told: bool) {
        self.notices.remove(&id);
        if told {
            self.counters.notices += 1;
        } else {
            self.counters.notices_failed += 1;
        }
    }
}
