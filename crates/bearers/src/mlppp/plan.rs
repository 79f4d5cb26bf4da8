//! Which member carries how much of a packet.

use super::config::Fragments;

/// A member that can take a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which one.
    pub member: u16,
    /// Octets that wait in it.
    pub backlog: u64,
    /// Its share of the bundle's rate.
    pub weight: u32,
}

/// A fragment to be: its member and its octets.
pub type Part = (u16, usize);

/// Deals packets out.
#[derive(Debug)]
pub struct Planner {
    fragments: Fragments,
    /// Fewest octets of a fragment, where a packet is split evenly.
    least: usize,
    /// Turns, so that no member is always the first one (RFC 1990, 4.1: members should not be left idle).
    turn: usize,
}

impl Planner {
    /// A planner by these rules.
    pub fn new(fragments: Fragments, least: usize) -> Planner {
        Planner { fragments, least: least.max(1), turn: 0 }
    }

    /// Do packets go whole, so that one free member is enough?
    pub fn is_whole(&self) -> bool {
        self.fragments == Fragments::Whole
    }

    /// The fragments of `octets`, in order; `free` members take them, at least one of which there is.
    pub fn split(&mut self, octets: usize, free: &mut [Candidate], out: &mut Vec<Part>) {
        out.clear();
        if free.is_empty() {
            return;
        }
        self.turn += 1;
        let turn = self.turn % free.len();
        free.rotate_left(turn);
        match self.fragments {
            Fragments::Whole => out.push((soonest(free, octets).member, octets)),
            Fragments::Equal => {
                let count = (octets / self.least).clamp(1, free.len());
                let sizes = (0..count).map(|n| octets / count + usize::from(n < octets % count));
                out.extend(free.iter().map(|candidate| candidate.member).zip(sizes));
            }
            Fragments::Proportional => self.proportional(octets, free, out),
            Fragments::Fixed(size) => {
                let size = (size.0 as usize).max(1);
                for from in (0..octets.max(1)).step_by(size) {
                    let len = size.min(octets - from);
                    let chosen = soonest(free, len);
                    chosen.backlog += len as u64;
                    out.push((chosen.member, len));
                }
            }
        }
    }

    /// By weight; the lightest go without as long as their share were too small.
    fn proportional(&self, octets: usize, free: &mut [Candidate], out: &mut Vec<Part>) {
        free.sort_by_key(|candidate| std::cmp::Reverse(candidate.weight));
        let weight_of = |of: &[Candidate]| of.iter().map(|c| u64::from(c.weight)).sum::<u64>().max(1);
        let share = |part: u64, all: u64| (octets as u128 * u128::from(part) / u128::from(all)) as usize;
        let mut count = free.len();
        while count > 1 && share(u64::from(free[count - 1].weight), weight_of(&free[..count])) < self.least {
            count -= 1;
        }
        let (all, mut sum, mut from) = (weight_of(&free[..count]), 0, 0);
        for (n, candidate) in free[..count].iter().enumerate() {
            sum += u64::from(candidate.weight);
            let to = if n + 1 == count { octets } else { share(sum, all) };
            out.push((candidate.member, to - from));
            from = to;
        }
    }
}

/// The member that would be through first with so many more octets.
fn soonest(free: &mut [Candidate], octets: usize) -> &mut Candidate {
    let time = |candidate: &Candidate| {
        u128::from(candidate.backlog + octets as u64) * 1_000_000 / u128::from(candidate.weight.max(1))
    };
    let (mut best, mut least) = (0, u128::MAX);
    for (n, candidate) in free.iter().enumerate() {
        if time(candidate) < least {
            (best, least) = (n, time(candidate));
        }
    }
    &mut free[best]
}

#[cfg(test)]
mod tests {
    use airloom_base::units::Octets;
    use proptest::prelude::*;

    use super::*;

    fn members(weights: &[u32]) -> Vec<Candidate> {
        let candidate =
            |(n, weight): (usize, &u32)| Candidate { member: n as u16, backlog: 0, weight: *weight };
        weights.iter().enumerate().map(candidate).collect()
    }

    fn split(fragments: Fragments, octets: usize, free: &[Candidate]) -> Vec<Part> {
        let (mut planner, mut out) = (Planner::new(fragments, 64), Vec::new());
        planner.split(octets, &mut free.to_vec(), &mut out);
        out.sort_unstable();
        out
    }

    #[test]
    fn equal_pieces_differ_by_an_octet_at_most_and_are_not_too_small() {
        let parts = split(Fragments::Equal, 1502, &members(&[1; 6]));
        let mut sizes: Vec<_> = parts.iter().map(|part| part.1).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [250, 250, 250, 250, 251, 251]);
        assert_eq!(split(Fragments::Equal, 200, &members(&[1; 6])).len(), 3);
        assert_eq!(split(Fragments::Equal, 42, &members(&[1; 6])).len(), 1);
    }

    #[test]
    fn members_take_turns() {
        let (mut planner, mut out, mut first) = (Planner::new(Fragments::Equal, 64), Vec::new(), vec![]);
        for _ in 0..6 {
            planner.split(42, &mut members(&[1; 3]), &mut out);
            first.push(out[0].0);
        }
        assert_eq!(first, [1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn proportional_pieces_follow_the_weights_and_the_weakest_go_without() {
        assert_eq!(
            split(Fragments::Proportional, 1500, &members(&[64, 384, 52])),
            [(0, 192), (1, 1152), (2, 156)]
        );
        assert_eq!(split(Fragments::Proportional, 400, &members(&[64, 384, 52])), [(1, 400)]);
    }

    #[test]
    fn whole_packets_and_fixed_pieces_go_where_they_are_through_first() {
        let mut free = members(&[1, 1, 4]);
        free[1].backlog = 3000;
        assert_eq!(split(Fragments::Whole, 1500, &free), [(2, 1500)]);
        let parts = split(Fragments::Fixed(Octets(256)), 1500, &free);
        assert_eq!(parts.iter().map(|part| part.1).sum::<usize>(), 1500);
        assert_eq!(parts.iter().filter(|part| part.0 == 2).count(), 5);
        assert_eq!(parts.iter().filter(|part| part.0 == 1).count(), 0);
    }

    proptest! {
        #[test]
        fn every_octet_is_dealt_out_once(
            octets in 1usize..3000,
            weights in prop::collection::vec(0u32..500, 1..9),
            which in 0u8..4,
            size in 0u64..600,
        ) {
            let fragments = match which {
                0 => Fragments::Whole,
                1 => Fragments::Equal,
                2 => Fragments::Proportional,
                _ => Fragments::Fixed(Octets(size)),
            };
            let parts = split(fragments, octets, &members(&weights));
            prop_assert_eq!(parts.iter().map(|part| part.1).sum::<usize>(), octets);
            prop_assert!(parts.iter().all(|part| part.1 > 0 && usize::from(part.0) < weights.len()));
        }
    }
}
