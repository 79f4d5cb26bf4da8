//! What an application knows of each of its connections, found by socket in constant time.

use airloom_base::SocketId;
use airloom_base::lookup::Table;
use smart_default::SmartDefault;

/// A table by socket. A host keeps the places of closed connections for long (TIME-WAIT), so the numbers of sockets
/// grow far beyond the number of connections that are open: memory here follows the latter.
#[derive(SmartDefault)]
pub struct Connections<T> {
    entries: Vec<(u64, T)>,
    /// Where the entry of a connection stands.
    places: Table<u64, u32>,
    /// The entry that was asked for last: events come in trains.
    last: usize,
}

/// The connection a socket belongs to, whatever the stream.
#[inline]
fn key(socket: SocketId) -> u64 {
    u64::from(socket.generation) << 32 | u64::from(socket.slot)
}

impl<T> Connections<T> {
    /// Remembers `value` for `socket`.
    pub fn insert(&mut self, socket: SocketId, value: T) {
        let key = key(socket);
        if let Some(place) = self.places.get(&key) {
            self.entries[*place as usize].1 = value;
            return;
        }
        self.last = self.entries.len();
        self.places.insert(key, self.last as u32);
        self.entries.push((key, value));
    }

    /// What is known of `socket`; `None` for a stale handle.
    #[inline]
    pub fn get_mut(&mut self, socket: SocketId) -> Option<&mut T> {
        let key = key(socket);
        if self.entries.get(self.last).is_none_or(|e| e.0 != key) {
            self.last = self.place(key)?;
        }
        Some(&mut self.entries[self.last].1)
    }

    /// Where the entry of a connection stands. Not inlined, or the key is hashed where nothing is looked up.
    #[inline(never)]
    fn place(&self, key: u64) -> Option<usize> {
        self.places.get(&key).map(|place| *place as usize)
    }

    /// What is known of `socket`, to look at.
    pub fn get(&self, socket: SocketId) -> Option<&T> {
        self.entries.get(self.place(key(socket))?).map(|(_, value)| value)
    }

    /// What is known of all sockets, in no order that means anything.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Forgets `socket`.
    pub fn remove(&mut self, socket: SocketId) -> Option<T> {
        let place = self.places.remove(&key(socket))? as usize;
        let (_, value) = self.entries.swap_remove(place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.places.insert(*moved, place as u32);
        }
        Some(value)
    }

    /// All sockets, in no order that means anything.
    pub fn sockets(&self) -> Vec<SocketId> {
        let socket = |key: u64| SocketId { slot: key as u32, generation: (key >> 32) as u32, stream: 0 };
        self.entries.iter().map(|(key, _)| socket(*key)).collect()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.entries.len()
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
        assert_eq!(table.remove(socket(3, 0).with_stream(7)), Some('a'));
        assert_eq!(table.get_mut(socket(3, 0)), None);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn entries_are_found_whatever_left_before() {
        let mut table = Connections::default();
        for n in 0..10 {
            table.insert(socket(n, 0), n);
        }
        for n in [3, 9, 0] {
            assert_eq!(table.get_mut(socket(n, 0)), Some(&mut n.clone()));
            assert_eq!(table.remove(socket(n, 0)), Some(n));
            assert_eq!(table.get_mut(socket(n, 0)), None);
        }
        for n in [1, 2, 4, 5, 6, 7, 8] {
            assert_eq!(table.get_mut(socket(n, 0)), Some(&mut n.clone()));
        }
        assert_eq!(table.len(), 7);
    }

    #[test]
    fn a_socket_that_never_came_to_be_is_a_socket_like_others() {
        let mut table = Connections::default();
        table.insert(socket(u32::MAX, 1), 'a');
        table.insert(socket(u32::MAX, 2), 'b');
        assert_eq!(table.len(), 2);
        assert_eq!(table.get_mut(socket(u32::MAX, 2)), Some(&mut 'b'));
        assert_eq!(table.remove(socket(u32::MAX, 1)), Some('a'));
    }
}
