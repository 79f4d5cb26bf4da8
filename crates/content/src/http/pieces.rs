//! What a transport gave, cut anywhere: collected where it has to be whole, and handed on by reference where it need not.

use std::collections::VecDeque;

use airloom_base::Body;

/// Octets of a stream that were not looked at yet, and what is collected of them.
#[derive(Default)]
pub struct Pieces {
    pending: VecDeque<Body>,
    collected: Vec<u8>,
}

impl Pieces {
    /// Adds what came.
    pub fn feed(&mut self, body: Body) {
        if !body.is_empty() {
            self.pending.push_back(body);
        }
    }

    /// Drops what was not looked at.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// Collects up to `wanted` octets. Are they all there?
    pub fn collect(&mut self, wanted: usize) -> bool {
        while self.collected.len() < wanted {
            let Some(first) = self.pending.front_mut() else { return false };
            let piece = first.split_to(wanted - self.collected.len());
            if first.is_empty() {
                self.pending.pop_front();
            }
            let from = self.collected.len();
            self.collected.resize(from + piece.len(), 0);
            piece.write(0, &mut self.collected[from..]);
        }
        true
    }

    /// The octets that come next, as far as they came at once and are written down.
    pub fn next(&self) -> &[u8] {
        match self.pending.front() {
            Some(Body::Real(octets)) => octets,
            _ => &[],
        }
    }

    /// What is collected so far.
    pub fn so_far(&self) -> &[u8] {
        &self.collected
    }

    /// Takes what is collected.
    pub fn collected(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.collected)
    }

    /// Forgets what is collected, and goes on behind it.
    pub fn start_over(&mut self) {
        self.collected.clear();
    }

    /// At most so many octets of those that follow what is collected, as they came.
    pub fn take(&mut self, most: usize) -> Option<Body> {
        let first = self.pending.front_mut()?;
        let piece = first.split_to(most);
        if first.is_empty() {
            self.pending.pop_front();
        }
        Some(piece)
    }

    /// Is nothing waiting and nothing collected?
    pub fn is_empty(&self) -> bool {
        self.collected.is_empty() && self.pending.is_empty()
    }
}
