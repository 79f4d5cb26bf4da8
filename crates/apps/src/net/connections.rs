//! What an application knows of each of its connections, found by socket in constant time.

use airloom_base::SocketId;
use airloom_base::lookup::Table;

/// A table by socket. A host keeps the places of closed connections for long (TIME-WAIT), so the numbers of sockets
/// grow far beyond the number of connections that are open: memory here follows the latter.
pub(crate) struct Connections<T>(Table<u64, T>);

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Connections(Table::default())
    }
}

/// The connection a socket belongs to, whatever the stream.
#[inline]
fn key(socket: SocketId) -> u64 {
    u64::from(socket.generation) << 32 | u64::from(socket.slot)
}

impl<T> Connections<T> {
    /// Remembers `value` for `socket`.
    pub(crate) fn insert(&mut self, socket: SocketId, value: T) {
        self.0.insert(key(socket), value);
    }

    /// What is known of `socket`; `None` for a stale handle.
    #[inline]
    pub(crate) fn get_mut(&mut self, socket: SocketId) -> Option<&mut T> {
        self.0.get_mut(&key(socket))
    }

    /// Forgets `socket`.
    pub(crate) fn remove(&mut self, socket: SocketId) -> Option<T> {
        self.0.remove(&key(socket))
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
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
    fn a_socket_that_never_came_to_be_is_a_socket_like_others() {
        let mut table = Connections::default();
        table.insert(socket(u32::MAX, 1), 'a');
        table.insert(socket(u32::MAX, 2), 'b');
        assert_eq!(table.len(), 2);
        assert_eq!(table.get_mut(socket(u32::MAX, 2)), Some(&mut 'b'));
        assert_eq!(table.remove(socket(u32::MAX, 1)), Some('a'));
    }
}
