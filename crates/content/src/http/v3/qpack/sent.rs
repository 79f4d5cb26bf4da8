//! Sections that the decoder has not acknowledged: entries that they mean, and streams that they may block.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a section means of the table that grows.
pub(super) struct Meant {
    /// How many entries the decoder needs for it.
    pub(super) required: u64,
    /// The oldest entry that it means.
    pub(super) least: u64,
}

/// Those of a stream.
#[derive(Default)]
struct OfStream {
    sections: VecDeque<Meant>,
    /// The most entries that any of them needed, with those that were acknowledged.
    most: u64,
}

/// All of them. What is asked for each section that is written is kept by numbers: how many there are is for the peer to say.
#[derive(Default)]
pub(super) struct Sent {
    streams: BTreeMap<u64, OfStream>,
    /// Streams that could be blocked, behind the most entries that they need.
    waiting: BTreeSet<(u64, u64)>,
    /// The oldest entries that sections mean, and how many sections those are of.
    least: BTreeMap<u64, usize>,
    count: usize,
}

impl Sent {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The oldest entry that one of them means.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.least.first_key_value().map(|(least, _)| *least)
    }

    /// Streams that could be blocked.
    //= RFC 9204 (2.1.2): those that could be count, whether they are or not.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Could this stream be blocked?
    pub(super) fn waits(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_some_and(|of| self.waiting.contains(&(of.most, stream)))
    }

    /// One more of a stream; the decoder is known to have `known` entries.
    pub(super) fn push(&mut self, stream: u64, section: Meant, known: u64) {
        let of = self.streams.entry(stream).or_default();
        if section.required > known {
            self.waiting.remove(&(of.most, stream));
            of.most = of.most.max(section.required);
            self.waiting.insert((of.most, stream));
        }
        self.count += 1;
        *self.least.entry(section.least).or_default() += 1;
        of.sections.push_back(section);
    }

    /// The decoder is known to have so many entries.
    pub(super) fn told(&mut self, known: u64) {
        while self.waiting.first().is_some_and(|(most, _)| *most <= known) {
            self.waiting.pop_first();
        }
    }

    /// The first one of a stream is acknowledged, if there is one: how many entries it needed.
    pub(super) fn acknowledged(&mut self, stream: u64) -> Option<u64> {
        let of = self.streams.get_mut(&stream)?;
        let section = of.sections.pop_front()?;
        if of.sections.is_empty() {
            self.streams.remove(&stream);
        }
        self.release(&section);
        self.told(section.required);
        Some(section.required)
    }

    /// Those of a stream will not be read.
    pub(super) fn cancelled(&mut self, stream: u64) {
        let Some(of) = self.streams.remove(&stream) else { return };
        self.waiting.remove(&(of.most, stream));
        of.sections.iter().for_each(|section| self.release(section));
    }

    fn release(&mut self, section: &Meant) {
        self.count -= 1;
        if let Some(count) = self.least.get_mut(&section.least) {
            *count -= 1;
            if *count == 0 {
                self.least.remove(&section.least);
            }
        }
    }

    /// How many there are, the oldest entry and the streams that could be blocked: as they are kept.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, Option<u64>, BTreeSet<u64>) {
        (self.count(), self.oldest(), self.waiting.iter().map(|(_, stream)| *stream).collect())
    }

    /// The same, found by looking at each of them.
    #[cfg(test)]
    pub(super) fn counted(&self, known: u64) -> (usize, Option<u64>, BTreeSet<u64>) {
        let all = || self.streams.values().flat_map(|of| &of.sections);
        let waits = |of: &OfStream| of.sections.iter().any(|section| section.required > known);
        let waiting = self.streams.iter().filter(|(_, of)| waits(of)).map(|(stream, _)| *stream);
        (all().count(), all().map(|section| section.least).min(), waiting.collect())
    }
}
