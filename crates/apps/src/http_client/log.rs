//! What a browser writes down of each object: the rows of a waterfall.

use airloom_base::Cx;
use airloom_base::record::{ObjectRecord, ObjectSource, Record};

use super::lane::Exchange;
use super::servers::Servers;
use crate::pages::{Job, Page, Plan};

/// What has come of an object.
pub(super) struct Loaded<'a> {
    pub(super) source: ObjectSource,
    pub(super) job: Job,
    /// The last request for it, if there was one, and the connection that it was on.
    pub(super) exchange: Option<&'a Exchange>,
    pub(super) flow: Option<u32>,
}

/// Who writes, and of which page.
pub(super) struct Log {
    client: String,
    page: u32,
}

impl Log {
    /// The log of a client on this host, at its first page.
    pub(super) fn new(client: &str) -> Log {
        Log { client: client.to_owned(), page: 1 }
    }

    /// The host.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// The next page follows.
    pub(super) fn page_ended(&mut self) {
        self.page = self.page.saturating_add(1);
    }

    /// An object of the page is settled. Costs a branch where nobody asked for it.
    pub(super) fn object(&self, cx: &mut Cx, page: &Page, plan: &Plan, servers: &Servers, loaded: &Loaded) {
        if !cx.records.wants_objects() {
            return;
        }
        let Loaded { source, job, exchange, flow } = loaded;
        let object = &plan.objects(page)[job.object as usize];
        let (scheme, authority) = (servers.scheme, &servers.of(object).authority);
        let url = format!("{scheme}://{authority}{}", object.target(page.round));
        cx.records.push(Record::Object(ObjectRecord {
            page: self.page,
            object: job.object,
            url,
            client: self.client.clone(),
            known: job.known,
            asked: exchange.map(|exchange| exchange.asked),
            first_byte: exchange.and_then(|exchange| exchange.first_byte),
            done: cx.now,
            bytes: exchange.map_or(0, |exchange| exchange.got),
            status: exchange.map(|exchange| exchange.status).filter(|status| *status > 0),
            flow: *flow,
            request: exchange.map(|exchange| exchange.request),
            failures: job.failures,
            source: *source,
        }));
    }
}
