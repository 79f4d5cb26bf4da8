//! What an application knows of each of its connections, found by socket in constant time.

use airloom_base::SocketId;

/// A table by socket. Sockets are dense small numbers with a generation, so this is a plain list: no hashing,
/// no order to leak, and no memory per connection beyond the largest number open at once.
pub(crate) struct Connections<T> {
    slots: Vec<Option<(u32, T)>>,
    live: usize,
}

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Connections { slots: Vec::new(), live: 0 }
    }
}

impl<T> Connections<T> {
    /// Remembers `value` for `socket`; whatever an older socket left in the same place is forgotten.
    pub(crate) fn insert(&mut self, socket: SocketId, value: T) {
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
            _ => None,
        }
    }

    /// Forgets `socket`.
    pub(crate) fn remove(&mut self, socket: SocketId) -> Option<T> {
        self.get_mut(socket)?;
        self.live -= 1;
        self.slots[socket.slot as usize].take().map(|(_, value)| value)
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.live
    }
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
}
