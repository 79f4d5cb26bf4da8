//! Numbers of 32 bits on the wire are 64 bits wide inside, so that they never wrap (RFC 1982 arithmetic at the edge).

/// Where unwrapped numbers begin: far enough from zero that nothing lies before it.
const BASE: u64 = 1 << 32;

/// The unwrapped form of the first number.
pub(super) fn first(wire: u32) -> u64 {
    BASE + u64::from(wire)
}

/// The number nearest to `near` that has these 32 bits.
pub(super) fn unwrap(near: u64, wire: u32) -> u64 {
    near.saturating_add_signed(i64::from(wire.wrapping_sub(near as u32).cast_signed()))
}

/// The number nearest to `near` that has these 16 bits (SSN).
pub(super) fn unwrap16(near: u64, wire: u16) -> u64 {
    near.saturating_add_signed(i64::from(wire.wrapping_sub(near as u16).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_around_a_wrap_are_neighbours() {
        let near = first(u32::MAX);
        assert_eq!(unwrap(near, 0), near + 1);
        assert_eq!(unwrap(near + 1, u32::MAX), near);
        assert_eq!(unwrap16(BASE + 65_535, 1), BASE + 65_537);
        assert_eq!(unwrap16(BASE + 65_537, 65_535), BASE + 65_535);
    }
}
