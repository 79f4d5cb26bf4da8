//! Small numbers as Parquet's mixture of runs and packed bits (encoding RLE, and RLE_DICTIONARY's indices).
//!
//! Source: "Run Length Encoding / Bit-Packing Hybrid" in the format's Encodings.md.

use super::thrift::varint;

/// Bits that `largest` takes, at least one: not every reader knows numbers of no bits.
pub(super) fn bits(largest: usize) -> u32 {
    (usize::BITS - largest.leading_zeros()).max(1)
}

/// Appends `numbers`, each of `width` bits.
pub(super) fn hybrid(octets: &mut Vec<u8>, numbers: &[u32], width: u32) {
    let mut packed = 0; // from here on nothing is written yet
    let mut at = 0;
    while at < numbers.len() {
        let equal = numbers[at..].iter().take_while(|n| **n == numbers[at]).count();
        // Packed numbers come in eights, so the first ones of a run may have to fill an eight up.
        let fill = (at - packed).next_multiple_of(8) - (at - packed);
        if equal >= fill + 8 {
            pack(octets, &numbers[packed..at + fill], width);
            varint(octets, (equal - fill) as u64 * 2);
            octets.extend_from_slice(&numbers[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            packed = at + equal;
        }
        at += equal;
    }
    pack(octets, &numbers[packed..], width);
}

/// Packs numbers, the lowest bit first; the last eight is filled up with zeros.
fn pack(octets: &mut Vec<u8>, numbers: &[u32], width: u32) {
    if numbers.is_empty() {
        return;
    }
    let eights = numbers.len().div_ceil(8);
    varint(octets, eights as u64 * 2 + 1);
    let end = octets.len() + eights * width as usize;
    let (mut held, mut count) = (0u64, 0);
    for number in numbers {
        held |= u64::from(*number) << count;
        count += width;
        while count >= 8 {
            octets.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        octets.push(held as u8);
    }
    octets.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(numbers: &[u32], width: u32) -> Vec<u8> {
        let mut octets = Vec::new();
        hybrid(&mut octets, numbers, width);
        octets
    }

    /// The other direction, as Encodings.md describes it.
    fn decoded(octets: &[u8], width: u32) -> Vec<u32> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < octets.len() {
            let (mut head, mut shift) = (0u64, 0);
            loop {
                head |= u64::from(octets[at] & 0x7f) << shift;
                shift += 7;
                at += 1;
                if octets[at - 1] < 0x80 {
                    break;
                }
            }
            if head & 1 == 0 {
                let mut value = [0; 4];
                let size = width.div_ceil(8) as usize;
                value[..size].copy_from_slice(&octets[at..at + size]);
                at += size;
                found.extend(std::iter::repeat_n(u32::from_le_bytes(value), (head >> 1) as usize));
            } else {
                for n in 0..(head >> 1) as usize * 8 {
                    let bit = |b: usize| {
                        u32::from(
                            octets[at + (n * width as usize + b) / 8] >> ((n * width as usize + b) % 8) & 1,
                        )
                    };
                    found.push((0..width as usize).map(|b| bit(b) << b).sum());
                }
                at += (head >> 1) as usize * width as usize;
            }
        }
        found
    }

    #[test]
    fn the_example_of_the_format_is_packed_as_it_shows() {
        // Encodings.md: the numbers 0 to 7 of three bits.
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn equal_numbers_are_a_run() {
        assert_eq!(encoded(&[5; 1000], 3), [0xd0, 0x0f, 5]);
    }

    #[test]
    fn every_mixture_comes_back_as_it_was() {
        for width in [1, 3, 7, 8, 9, 17, 32] {
            let mask = u32::MAX >> (32 - width);
            let mut numbers = Vec::new();
            for round in 0..60u32 {
                let length = round.wrapping_mul(7) % 23;
                numbers.extend(std::iter::repeat_n(round.wrapping_mul(0x9e37_79b9) & mask, length as usize));
                let back = decoded(&encoded(&numbers, width), width);
                assert_eq!(back[..numbers.len()], numbers, "{width} bits");
                assert!(back[numbers.len()..].iter().all(|n| *n == 0) && back.len() < numbers.len() + 8);
            }
        }
    }

    #[test]
    fn a_width_holds_the_largest_number() {
        assert_eq!([0, 1, 2, 255, 256].map(bits), [1, 1, 2, 8, 9]);
    }
}
