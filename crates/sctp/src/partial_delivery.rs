//! Messages that are larger than the receive buffer, handed over in parts (RFC 9260, 6.9).
//!
//! When the buffer is full and nothing in it can be read, what is there of a message whose turn it is becomes a
//! [`Message`](super::Message) that says that it [`continues`](super::Message::continues). The rest follows on the same stream. In
//! DATA one message is handed over in parts at a time, since its fragments have consecutive TSNs; in I-DATA one of each stream.

use std::ops::RangeInclusive;

use super::chunk::Data;
use super::inbound::{Inbound, Message, Parts};
use super::serial::{unwrap, unwrap16};

impl Inbound {
    /// Hands over what is there of a message. False: there is no beginning of one whose turn it is.
    pub fn deliver_part(&mut self) -> bool {
        match self.part_of_data().or_else(|| self.part_of_i_data()) {
            Some(message) => {
                self.ready(message);
                true
            }
            None => false,
        }
    }

    fn part_of_data(&mut self) -> Option<Message> {
        let tsns = self.next_part()?;
        let mut fragments = tsns.clone().map_while(|tsn| self.fragments.remove(&tsn));
        let first = fragments.next()?;
        let parts = Parts { next: tsns.end() + 1, stream: first.stream, unordered: first.unordered };
        let mut message = Message::of(first);
        message.continues = true;
        fragments.for_each(|data| message.push(data.body));
        self.parts = Some(parts);
        Some(message)
    }

    /// TSNs of the fragments that can be handed over: those that follow the last part, or the beginning of a message.
    fn next_part(&self) -> Option<RangeInclusive<u64>> {
        let is_next = |tsn: u64, data: &Data| match &self.parts {
            Some(parts) => parts.next == tsn,
            None => data.begin && (data.unordered || self.is_next_of_stream(data)),
        };
        let (&begin, _) = self.fragments.iter().find(|(tsn, data)| is_next(**tsn, data))?;
        let follows = |tsn: u64| self.fragments.get(&tsn).is_some_and(|data| !data.begin);
        let end = (begin..).find(|tsn| !follows(tsn + 1))?;
        Some(begin..=end)
    }

    fn is_next_of_stream(&self, data: &Data) -> bool {
        let next = self.next_of(data.stream);
        unwrap16(next, data.sequence as u16) == next
    }

    fn part_of_i_data(&mut self) -> Option<Message> {
        for stream in self.streams_mut() {
            let next = stream.next;
            let turn = |unordered: bool, mid: u32| unordered || unwrap(next, mid) == next;
            let mut partials = stream.partial.iter_mut();
            let found = partials.find(|(key, p)| turn(key.0, key.1) && p.fragments.contains_key(&p.taken));
            let Some((_, partial)) = found else { continue };
            let first = partial.fragments.remove(&partial.taken)?;
            partial.taken += 1;
            let mut message = Message::of(first);
            message.continues = true;
            while let Some(data) = partial.fragments.remove(&partial.taken) {
                partial.taken += 1;
                message.push(data.body);
            }
            return Some(message);
        }
        None
    }

    /// Is this the TSN that the next part begins with?
    pub(super) fn is_next_part(&self, tsn: u64) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.next == tsn)
    }

    /// Does this chunk stand where the next part has to begin, and is it none?
    pub(super) fn breaks_parts(&self, tsn: u64, data: &Data) -> bool {
        let is_other = |parts: &Parts| (parts.stream, parts.unordered) != (data.stream, data.unordered);
        self.parts.as_ref().is_some_and(|parts| parts.next == tsn && (data.begin || is_other(parts)))
    }

    /// The rest of a message that was handed over in part will not come: an empty message ends it.
    pub(super) fn break_off(&mut self, stream: u16, unordered: bool) {
        self.ready(Message::given_up(stream, unordered));
    }
}
