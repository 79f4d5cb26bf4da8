//! Pushes that are not over, by name, by transaction and by client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use airloom_base::Instant;
use airloom_transports::wtp::Transaction;

use super::message::{Push, PushId, PushOutcome};

/// Outcomes that are kept for whoever takes them.
const MOST_OUTCOMES: usize = 4_096;

/// What a push waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its time.
    Early,
    /// A session that its client was asked to open, until then.
    Invited { until: Instant },
    /// Its turn in a session.
    Queued,
    /// Its confirmation.
    Sent(Transaction),
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(super) push: Push,
    pub(super) stage: Stage,
    /// Its moment in the agenda.
    pub(super) due: Option<Instant>,
}

impl Open {
    pub(super) fn new(push: Push) -> Open {
        Open { push, stage: Stage::Early, due: None }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    open: BTreeMap<PushId, Open>,
    transactions: BTreeMap<Transaction, PushId>,
    clients: BTreeSet<(IpAddr, PushId)>,
    outcomes: VecDeque<(PushId, PushOutcome)>,
}

impl Book {
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn insert(&mut self, id: PushId, open: Open) {
        self.clients.insert((open.push.to, id));
        self.open.insert(id, open);
    }

    pub(super) fn get(&self, id: PushId) -> Option<&Open> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: PushId) -> Option<&mut Open> {
        self.open.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: PushId) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.clients.remove(&(open.push.to, id));
        if let Stage::Sent(transaction) = open.stage {
            self.transactions.remove(&transaction);
        }
        Some(open)
    }

    pub(super) fn stage(&mut self, id: PushId, stage: Stage) {
        if let Some(open) = self.open.get_mut(&id) {
            open.stage = stage;
        }
    }

    pub(super) fn sent(&mut self, id: PushId, transaction: Transaction) {
        self.transactions.insert(transaction, id);
        self.stage(id, Stage::Sent(transaction));
    }

    pub(super) fn of(&self, transaction: Transaction) -> Option<PushId> {
        self.transactions.get(&transaction).copied()
    }

    /// Transactions of pushes with a client at `peer`.
    pub(crate) fn transactions_with(&self, peer: std::net::SocketAddr) -> Vec<Transaction> {
        self.transactions.keys().filter(|push| push.peer == peer).copied().collect()
    }

    fn at(&self, to: IpAddr) -> impl Iterator<Item = (PushId, &Open)> {
        let range = (to, PushId(0))..=(to, PushId(u64::MAX));
        self.clients.range(range).filter_map(|(_, id)| Some((*id, self.open.get(id)?)))
    }

    /// Does a push to this client wait for its confirmation?
    pub(super) fn is_outstanding_at(&self, to: IpAddr) -> bool {
        self.at(to).any(|(_, open)| matches!(open.stage, Stage::Sent(_)))
    }

    /// When a client that was asked for a session will be asked again.
    pub(super) fn invited_at(&self, to: IpAddr) -> Option<Instant> {
        self.at(to)
            .filter(|(_, open)| matches!(open.stage, Stage::Invited { .. }))
            .find_map(|(_, open)| open.due)
    }

    /// Pushes to this client that wait for a session or for their turn in one.
    pub(super) fn waiting_at(&self, to: IpAddr) -> Vec<PushId> {
        if self.clients.is_empty() {
            return Vec::new();
        }
        let waits = |open: &Open| matches!(open.stage, Stage::Invited { .. } | Stage::Queued);
        self.at(to).filter(|(_, open)| waits(open)).map(|(id, _)| id).collect()
    }

    pub(super) fn tell(&mut self, id: PushId, outcome: PushOutcome) {
        if self.outcomes.len() >= MOST_OUTCOMES {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back((id, outcome));
    }

    pub(super) fn poll(&mut self) -> Option<(PushId, PushOutcome)> {
        self.outcomes.pop_front()
    }
}
