//! What an application knows of each of its connections, found by socket in constant time.

use airloom_base::SocketId;

/// Slots from here on are not kept as places of a list. A socket that never came to be has such a slot.
const DENSE: u32 = 1 << 20;

/// A table by socket. Sockets are dense small numbers with a generation, so this is a plain list: no hashing,
/// no order to leak, and no memory per connection beyond the largest number open at once.
pub(crate) struct Connections<T> {
    slots: Vec<Option<(u32, T)>>,
    /// The few with a slot that is no place in a list.
    odd: Vec<(SocketId, T)>,
    live: usize,
}

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Connections { slots: Vec::new(), odd: Vec::new(), live: 0 }
    }
}

impl<T> Connections<T> {
    /// Remembers `value` for `socket`; whatever an older socket left in the same place is forgotten.
    pub(crate) fn insert(&mut self, socket: SocketId, value: T) {
        if socket.slot >= DENSE {
            self.odd.retain(|(other, _)| !is_same(*other, socket));
            self.odd.push((socket, value));
            return;
        }
        let place = socket.slot as usize;
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        self.live += usize::from(self.slots[place].is_none());
        self.slots[place] = Some((socket.generation, value));
    }

    /// What is known of `socket`; `None` for a stale handle.
    #[inline]
    pub(crate) fn get_mut(&mut self, socket: SocketId) -> Option<&mut T> {
        match self.slots.get_mut(socket.slot as usize) {
            Some(Some((generation, value))) if *generation == socket.generation => Some(value),
            _ => self.odd.iter_mut().find(|(other, _)| is_same(*other, socket)).map(|(_, value)| value),
        }
    }

    /// Forgets `socket`.
    pub(crate) fn remove(&mut self, socket: SocketId) -> Option<T> {
        if let Some(place) = self.odd.iter().position(|(other, _)| is_same(*other, socket)) {
            return Some(self.odd.swap_remove(place).1);
        }
        self.get_mut(socket)?;
        self.live -= 1;
        self.slots[socket.slot as usize].take().map(|(_, value)| value)
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.live + self.odd.len()
    }
}

/// The same connection, whatever the stream?
fn is_same(one: SocketId, other: SocketId) -> bool {
    (one.slot, one.generation) == (other.slot, other.generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(slot: u32, generation: u32) -> SocketId {
        SocketId { slot, generation, stream: 0 }
    }

    #[test]
    fn a_stale_handle_finds_nothing() {
        let mut table = Connections::default();
        table.insert(socket(3, 0), 'a');
        assert_eq!(table.get_mut(socket(3, 1)), None);
        assert_eq!(table.remove(socket(3, 1)), None);
        assert_eq!(table.get_mut(socket(3, 0)), Some(&mut 'a'));
        table.insert(socket(3, 1), 'b');
        assert_eq!(table.get_mut(socket(3, 0)), None);
        assert_eq!(table.len(), 1);
        assert_eq!(table.remove(socket(3, 1).with_stream(7)), Some('b'));
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_socket_that_never_came_to_be_costs_no_memory() {
        let mut table = Connections::default();
        table.insert(socket(u32::MAX, 1), 'a');
        table.insert(socket(u32::MAX, 2), 'b');
        assert_eq!((table.len(), table.slots.len()), (2, 0));
        assert_eq!(table.get_mut(socket(u32::MAX, 2)), Some(&mut 'b'));
        assert_eq!(table.remove(socket(u32::MAX, 1)), Some('a'));
        assert_eq!(table.remove(socket(u32::MAX, 1)), None);
        assert_eq!(table.len(), 1);
    }
}
