//! Run lengths of the compressed bitmap (TS 44.060 9.1.10 and its tables).
//!
//! The code words are those of facsimile (ITU-T T.4), white for runs of ones and black for runs of zeros, but
//! for the runs of one and of three zeros, whose words are exchanged. Deployed networks decode it so.

/// Code words as text: 0 to 63, then 64 to 960 in steps of 64. Runs of ones.
const ONES: [&str; 79] = [
    "00110101",
    "000111",
    "0111",
    "1000",
    "1011",
    "1100",
    "1110",
    "1111",
    "10011",
    "10100",
    "00111",
    "01000",
    "001000",
    "000011",
    "110100",
    "110101",
    "101010",
    "101011",
    "0100111",
    "0001100",
    "0001000",
    "0010111",
    "0000011",
    "0000100",
    "0101000",
    "0101011",
    "0010011",
    "0100100",
    "0011000",
    "00000010",
    "00000011",
    "00011010",
    "00011011",
    "00010010",
    "00010011",
    "00010100",
    "00010101",
    "00010110",
    "00010111",
    "00101000",
    "00101001",
    "00101010",
    "00101011",
    "00101100",
    "00101101",
    "00000100",
    "00000101",
    "00001010",
    "00001011",
    "01010010",
    "01010011",
    "01010100",
    "01010101",
    "00100100",
    "00100101",
    "01011000",
    "01011001",
    "01011010",
    "01011011",
    "01001010",
    "01001011",
    "00110010",
    "00110011",
    "00110100",
    "11011",
    "10010",
    "010111",
    "0110111",
    "00110110",
    "00110111",
    "01100100",
    "01100101",
    "01101000",
    "01100111",
    "011001100",
    "011001101",
    "011010010",
    "011010011",
    "011010100",
];

/// Runs of zeros.
const ZEROS: [&str; 79] = [
    "0000110111",
    "10",
    "11",
    "010",
    "011",
    "0011",
    "0010",
    "00011",
    "000101",
    "000100",
    "0000100",
    "0000101",
    "0000111",
    "00000100",
    "00000111",
    "000011000",
    "0000010111",
    "0000011000",
    "0000001000",
    "00001100111",
    "00001101000",
    "00001101100",
    "00000110111",
    "00000101000",
    "00000010111",
    "00000011000",
    "000011001010",
    "000011001011",
    "000011001100",
    "000011001101",
    "000001101000",
    "000001101001",
    "000001101010",
    "000001101011",
    "000011010010",
    "000011010011",
    "000011010100",
    "000011010101",
    "000011010110",
    "000011010111",
    "000001101100",
    "000001101101",
    "000011011010",
    "000011011011",
    "000001010100",
    "000001010101",
    "000001010110",
    "000001010111",
    "000001100100",
    "000001100101",
    "000001010010",
    "000001010011",
    "000000100100",
    "000000110111",
    "000000111000",
    "000000100111",
    "000000101000",
    "000001011000",
    "000001011001",
    "000000101011",
    "000000101100",
    "000001011010",
    "000001100110",
    "000001100111",
    "0000001111",
    "000011001000",
    "000011001001",
    "000001011011",
    "000000110011",
    "000000110100",
    "000000110101",
    "0000001101100",
    "0000001101101",
    "0000001001010",
    "0000001001011",
    "0000001001100",
    "0000001001101",
    "0000001110010",
    "0000001110011",
];

const fn table(ones: bool) -> &'static [&'static str; 79] {
    if ones { &ONES } else { &ZEROS }
}

/// The code words of one run: make-up words as long as 64 or more remain, and a terminating word.
fn words(ones: bool, run: usize) -> impl Iterator<Item = &'static str> {
    let mut rest = run / 64;
    let make_up = std::iter::from_fn(move || {
        let step = rest.min(15);
        rest -= step;
        (step > 0).then(|| table(ones)[63 + step])
    });
    make_up.chain(std::iter::once(table(ones)[run % 64]))
}

/// As much of `bitmap`, from its beginning and in whole runs, as `room` bits hold: the colour of the first run, the
/// compressed bits, and how many bits of the bitmap they stand for.
pub fn compress(bitmap: &[bool], room: usize) -> (bool, Vec<bool>, usize) {
    let first = bitmap.first().copied().unwrap_or(true);
    let (mut out, mut covered) = (Vec::new(), 0);
    for run in bitmap.chunk_by(|a, b| a == b) {
        let len: usize = words(run[0], run.len()).map(str::len).sum();
        if out.len() + len > room {
            break;
        }
        out.extend(words(run[0], run.len()).flat_map(|word| word.bytes().map(|b| b == b'1')));
        covered += run.len();
    }
    (first, out, covered)
}

/// The bitmap that compressed `bits` stand for, at most `limit` bits of it; `None` if there is a word that is none.
pub fn expand(first: bool, bits: &[bool], limit: usize) -> Option<Vec<bool>> {
    let (mut out, mut colour, mut rest) = (Vec::new(), first, bits);
    while !rest.is_empty() {
        // No word is the beginning of another, so at most one matches.
        let is_here =
            |word: &&str| word.len() <= rest.len() && word.bytes().zip(rest).all(|(w, b)| (w == b'1') == *b);
        let index = table(colour).iter().position(is_here)?;
        rest = &rest[table(colour)[index].len()..];
        let run = if index < 64 { index } else { (index - 63) * 64 };
        if out.len() + run > limit {
            return None;
        }
        out.resize(out.len() + run, colour);
        if index < 64 {
            colour = !colour;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_word_begins_another() {
        for ones in [true, false] {
            let words = table(ones);
            for (i, a) in words.iter().enumerate() {
                assert!(words.iter().enumerate().all(|(j, b)| i == j || !b.starts_with(a)), "{a}");
            }
        }
    }

    #[test]
    fn a_long_run_takes_few_bits() {
        let mut bitmap = vec![true; 100];
        bitmap.push(false);
        bitmap.extend([true; 199]);
        let (first, bits, covered) = compress(&bitmap, 100);
        // 64 + 36 ones, one zero, 192 + 7 ones.
        assert_eq!((first, bits.len(), covered), (true, 5 + 8 + 2 + 6 + 4, 300));
        assert_eq!(expand(first, &bits, 1024), Some(bitmap));
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(runs in proptest::collection::vec(1usize..300, 0..12), room in 0usize..140) {
            let bitmap: Vec<bool> = runs.iter().enumerate().flat_map(|(i, n)| vec![i % 2 == 0; *n]).collect();
            let (first, bits, covered) = compress(&bitmap, room);
            prop_assert!(bits.len() <= room);
            prop_assert_eq!(expand(first, &bits, 4096).unwrap(), &bitmap[..covered]);
        }

        #[test]
        fn any_bits_are_read_without_a_panic(first: bool, bits in proptest::collection::vec(any::<bool>(), 0..130)) {
            if let Some(bitmap) = expand(first, &bits, 1024) {
                prop_assert!(bitmap.len() <= 1024);
            }
        }
    }
}
