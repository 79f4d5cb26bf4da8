//! The earliest deadline of many mobiles, in O(1) to read and O(log n) to change.

use airloom_base::Instant;

/// A tournament of deadlines: leaf `i` belongs to mobile `i`, each inner node holds the earlier of its two.
pub struct Deadlines {
    nodes: Vec<Instant>,
    leaves: usize,
}

impl Deadlines {
    /// For `count` mobiles, none with a deadline.
    pub fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        Deadlines { nodes: vec![Instant::FAR_FUTURE; 2 * leaves], leaves }
    }
    /// Mobile `index` has its deadline at `at`.
    #[inline]
    pub fn set(&mut self, index: usize, at: Instant) {
        let mut node = self.leaves + index;
        self.nodes[node] = at;
        while node > 1 {
            node /= 2;
            let earlier = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == earlier {
                break;
            }
            self.nodes[node] = earlier;
        }
    }
    /// The earliest deadline.
    #[inline]
    pub fn earliest(&self) -> Instant {
        self.nodes[1]
    }
    /// The first mobile that has it.
    #[inline]
    pub fn holder(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.nodes[node] != self.nodes[node / 2] {
                node += 1;
            }
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::*;

    #[test]
    fn the_earliest_is_found_and_ties_go_to_the_first() {
        for count in [1, 2, 5, 50] {
            let mut d = Deadlines::new(count);
            let at = |n| Instant::ZERO + Duration::from_millis(n);
            assert_eq!(d.earliest(), Instant::FAR_FUTURE);
            for i in (0..count).rev() {
                d.set(i, at(10));
            }
            assert_eq!((d.earliest(), d.holder()), (at(10), 0));
            d.set(count - 1, at(5));
            assert_eq!((d.earliest(), d.holder()), (at(5), count - 1));
            d.set(count - 1, Instant::FAR_FUTURE);
            let rest = if count == 1 { Instant::FAR_FUTURE } else { at(10) };
            assert_eq!(d.earliest(), rest);
        }
    }
}
