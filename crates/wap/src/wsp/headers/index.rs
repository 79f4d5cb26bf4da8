//! Places in a table by name, without regard to case.

/// Where in a table each name may be. Names are found by a number made of them, eight octets at a time; whether it is the
/// name, the table tells.
pub(super) struct Index(Vec<(u64, u16)>);

impl Index {
    /// Of the names of a table, in its order.
    pub(super) fn new(names: impl Iterator<Item = &'static str>) -> Index {
        let mut places: Vec<_> = (0..).zip(names).map(|(place, name)| (number(name), place)).collect();
        places.sort_unstable();
        Index(places)
    }

    /// The places at which `name` may be, in the order of the table.
    pub(super) fn places(&self, name: &str) -> impl Iterator<Item = usize> {
        let number = number(name);
        let first = self.0.partition_point(|(n, _)| *n < number);
        self.0[first..].iter().take_while(move |(n, _)| *n == number).map(|(_, place)| usize::from(*place))
    }
}

fn number(name: &str) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut number = name.len() as u64;
    let (words, rest) = name.as_bytes().as_chunks();
    for word in words {
        number = (number ^ lower_case(u64::from_be_bytes(*word))).wrapping_mul(MIX).rotate_left(29);
    }
    let rest = rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet));
    (number ^ lower_case(rest)).wrapping_mul(MIX)
}

/// Eight octets at once: those from `A` to `Z` get the bit that makes them small.
const fn lower_case(octets: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let seven_bits = octets & (0x7F * EACH);
    let from_a = seven_bits + (0x80 - b'A' as u64) * EACH;
    let beyond_z = seven_bits + (0x7F - b'Z' as u64) * EACH;
    let is_capital = (from_a ^ beyond_z) & !octets & (0x80 * EACH);
    octets | is_capital >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_get_their_lower_case() {
        for octet in 0..=u8::MAX {
            let word = u64::from_be_bytes([octet, 0, 255, octet, b'Q', octet, b'@', b'[']);
            assert_eq!(lower_case(word).to_be_bytes(), word.to_be_bytes().map(|o| o.to_ascii_lowercase()));
        }
    }

    #[test]
    fn names_are_found_whatever_their_case_and_in_the_order_of_the_table() {
        let names = ["accept", "Accept-Charset", "x", "", "accept", "image/vnd.wap.wbmp"];
        let index = Index::new(names.into_iter());
        for name in names {
            let found: Vec<usize> = index.places(&name.to_ascii_uppercase()).collect();
            let expected: Vec<usize> =
                (0..names.len()).filter(|n| names[*n].eq_ignore_ascii_case(name)).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(index.places("accept-charse").count(), 0);
    }
}
