//! Sessions that go on: tickets that a server gives and knows again, and those that a client keeps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::messages::{TICKET, Ticket};
use crate::library::transport_parameters::TransportParameters;
use crate::secret::Secret;

/// Tickets whose early data was taken that are remembered one by one.
const MOST_USED: usize = 4096;
/// Servers that a client keeps tickets of, and tickets of each.
const MOST_SERVERS: usize = 256;
const MOST_TICKETS: usize = 4;

/// What a server's tickets begin with: a number and what shows that it is this server's.
const NUMBER: usize = 8;
const TAG: usize = 16;

/// Tickets of a server.
pub(crate) struct Office {
    secret: Secret,
    given: u64,
    /// Numbers of tickets whose early data was taken; of those below the floor it is not known any more, so none is taken.
    used: BTreeSet<u64>,
    floor: u64,
}

impl Office {
    pub(crate) fn new(secret: Secret) -> Office {
        Office { secret, given: 0, used: BTreeSet::new(), floor: 0 }
    }

    /// A new ticket.
    pub(super) fn give(&mut self) -> [u8; TICKET] {
        self.given += 1;
        let mut ticket = [0; TICKET];
        let (number, rest) = ticket.split_at_mut(NUMBER);
        number.copy_from_slice(&self.given.to_be_bytes());
        // What is behind the tag is as long as a sealed session is.
        self.secret.say(&[b"ticket", number], rest);
        ticket
    }

    /// The number of a ticket that is ours.
    pub(super) fn number(&self, ticket: &[u8]) -> Option<u64> {
        let (number, rest) = ticket.split_first_chunk::<NUMBER>()?;
        let mut own = [0; TAG];
        self.secret.say(&[b"ticket", number], &mut own);
        (rest.first_chunk() == Some(&own)).then(|| u64::from_be_bytes(*number))
    }

    /// May early data be taken that comes with this ticket? Once.
    pub(super) fn take_early(&mut self, number: u64) -> bool {
        //= RFC 8446 (8.1): early data of a ticket is taken once; what is not known any more is refused.
        let is_new = number >= self.floor && self.used.insert(number);
        if self.used.len() > MOST_USED
            && let Some(oldest) = self.used.pop_first()
        {
            self.floor = oldest + 1;
        }
        is_new
    }
}

/// What a client remembers of a server.
struct Remembered {
    tickets: VecDeque<Ticket>,
    parameters: TransportParameters,
}

/// Tickets of a client, by whom they are of and what was spoken.
#[derive(Default)]
pub(crate) struct Wallet(BTreeMap<(SocketAddr, &'static str), Remembered>);

impl Wallet {
    pub(super) fn keep(
        &mut self,
        server: (SocketAddr, &'static str),
        parameters: TransportParameters,
        ticket: Ticket,
    ) {
        if self.0.len() >= MOST_SERVERS && !self.0.contains_key(&server) {
            self.0.pop_first();
        }
        let of = self.0.entry(server).or_insert(Remembered { tickets: VecDeque::new(), parameters });
        of.parameters = parameters;
        of.tickets.push_back(ticket);
        if of.tickets.len() > MOST_TICKETS {
            of.tickets.pop_front();
        }
    }

    /// The newest ticket of this server, which is used once (RFC 8446, C.4), with what the server said of itself.
    pub(super) fn take(
        &mut self,
        server: (SocketAddr, &'static str),
    ) -> Option<(Ticket, TransportParameters)> {
        let of = self.0.get_mut(&server)?;
        Some((of.tickets.pop_back()?, of.parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airloom_base::random::Stream;

    #[test]
    fn a_ticket_is_known_again_and_no_other() {
        let mut office = Office::new(Secret::of(&mut Stream::new(1, "office")));
        let ticket = office.give();
        assert_eq!(office.number(&ticket), Some(1));
        for octet in 0..NUMBER + TAG {
            let mut forged = ticket;
            forged[octet] ^= 1;
            assert_eq!(office.number(&forged), None);
        }
        assert_eq!(office.number(&ticket[..20]), None);
        let other = Office::new(Secret::of(&mut Stream::new(2, "office")));
        assert_eq!(other.number(&ticket), None);
    }

    #[test]
    fn early_data_of_a_ticket_is_taken_once_however_many_came_since() {
        let mut office = Office::new(Secret::of(&mut Stream::new(1, "office")));
        assert!((1..10_000).all(|number| office.take_early(number)));
        assert!((1..10_000).all(|number| !office.take_early(number)));
        assert!(office.used.len() <= MOST_USED);
    }
}
