//! The Huffman code that HPACK and QPACK write strings in (RFC 7541, 5.2 and appendix B; RFC 9204, 4.1.2).
//!
//! `httlib-huffman` has the table. The code is canonical: codes of one length are numbers in a row, so that a symbol is found by its
//! length and its number. Every padding is refused that is not the beginning of the end-of-string
//! symbol, and so is the symbol itself.

use std::sync::OnceLock;

/// The shortest code and the longest one, that of the end of a string alone left out.
const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// Symbols in the order of their codes, and of each length its first code and where its symbols begin.
struct Codes {
    symbols: Vec<u8>,
    first: [u32; LONGEST + 1],
    begin: [u32; LONGEST + 2],
    /// The symbol and the length of the code that eight bits begin with, if it has no more than those; length 0: it has.
    short: [(u8, u8); 256],
    /// The code of each symbol, and its length.
    of: [(u32, u8); 256],
}

impl Codes {
    /// From what is written for each symbol.
    fn new() -> Codes {
        let encode = |text: &[u8], out: &mut Vec<u8>| {
            // Only symbols beyond 8 bits could be refused.
            let _ = httlib_huffman::encode(text, out);
        };
        let mut known: Vec<(usize, u32, u8)> = (0..=255)
            .map(|symbol| {
                let mut coded = Vec::new();
                encode(&[symbol; 8], &mut coded);
                // Eight times so many bits are so many octets.
                let length = coded.len();
                let front =
                    coded.iter().chain([&0; 4]).take(4).fold(0, |n, octet| n << 8 | u32::from(*octet));
                (length, front >> (32 - length), symbol)
            })
            .collect();
        known.sort_unstable();
        let (first, begin) = ([0; LONGEST + 1], [0; LONGEST + 2]);
        let mut codes = Codes { symbols: Vec::new(), first, begin, short: [(0, 0); 256], of: [(0, 0); 256] };
        for (length, code, symbol) in known {
            if codes.begin[length + 1] == 0 {
                codes.first[length] = code;
            }
            codes.symbols.push(symbol);
            codes.of[usize::from(symbol)] = (code, length as u8);
            codes.begin[length + 1] = codes.symbols.len() as u32;
        }
        for length in 1..codes.begin.len() {
            codes.begin[length] = codes.begin[length].max(codes.begin[length - 1]);
        }
        for bits in 0..=255_u8 {
            if let Some((symbol, length @ ..=8)) = codes.search(u64::from(bits) << 56) {
                codes.short[usize::from(bits)] = (symbol, length as u8);
            }
        }
        codes
    }

    fn get() -> &'static Codes {
        static CODES: OnceLock<Codes> = OnceLock::new();
        CODES.get_or_init(Codes::new)
    }

    /// The symbol that these bits begin with, from the highest on, and its length.
    fn symbol(&self, bits: u64) -> Option<(u8, usize)> {
        match self.short[(bits >> 56) as usize] {
            (_, 0) => self.search(bits),
            (symbol, length) => Some((symbol, length.into())),
        }
    }

    fn search(&self, bits: u64) -> Option<(u8, usize)> {
        (SHORTEST..=LONGEST).find_map(|length| {
            let number = ((bits >> (64 - length)) as u32).checked_sub(self.first[length])?;
            let (begin, end) = (self.begin[length], self.begin[length + 1]);
            (number < end - begin).then(|| (self.symbols[(begin + number) as usize], length))
        })
    }
}

/// Octets of the code of `text`, if it is worth while: shorter than the text, or, for what it is made for, not longer.
pub fn shortens(text: &[u8]) -> Option<usize> {
    let codes = Codes::get();
    let (mut bits, mut longest) = (0, 0);
    for octet in text {
        let (_, length) = codes.of[usize::from(*octet)];
        bits += usize::from(length);
        longest = longest.max(length);
    }
    let octets = bits.div_ceil(8);
    // Letters, digits and what stands between them have codes of at most eight bits.
    (longest <= 8 || octets < text.len()).then_some(octets)
}

/// Adds the code of `text` to `out`.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let codes = Codes::get();
    let (mut bits, mut held) = (0_u64, 0);
    for octet in text {
        let (code, length) = codes.of[usize::from(*octet)];
        (bits, held) = (bits << length | u64::from(code), held + length);
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    //= RFC 7541 (5.2): what is left of the last octet is filled with ones.
    let last = (bits << (32 - held)) as u32 | u32::MAX.checked_shr(held.into()).unwrap_or(0);
    out.extend_from_slice(&last.to_be_bytes()[..usize::from(held.div_ceil(8))]);
}

/// The text that these octets are; `None` if they are none. It has 8/5 of their length at most.
pub fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let codes = Codes::get();
    let mut text = Vec::with_capacity(coded.len() * 8 / SHORTEST);
    let (mut bits, mut held, mut rest) = (0_u64, 0_usize, coded);
    loop {
        if let Some(next) = rest.first_chunk() {
            // What goes beyond the last whole octet will come again, and be the same.
            bits |= u64::from_be_bytes(*next) >> held;
            let taken = (63 - held) / 8;
            (rest, held) = (&rest[taken..], held + 8 * taken);
        } else {
            while held <= 56
                && let Some((octet, after)) = rest.split_first()
            {
                bits |= u64::from(*octet) << (56 - held);
                (rest, held) = (after, held + 8);
            }
        }
        // Nearly all codes are short: several of them before there is a question of more octets.
        while held >= 8
            && let (symbol, length @ 1..) = codes.short[(bits >> 56) as usize]
        {
            text.push(symbol);
            bits <<= length;
            held -= usize::from(length);
        }
        if held < LONGEST && !rest.is_empty() {
            continue;
        }
        match codes.symbol(bits) {
            Some((symbol, length)) if length <= held => {
                text.push(symbol);
                bits <<= length;
                held -= length;
            }
            //= RFC 7541 (5.2): padding has fewer than 8 bits, all of them ones.
            _ => return (held < 8 && bits >> 56 == 0xff & !(0xff >> held)).then_some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    // RFC 7541, C.4.1 and C.6.1.
    #[test]
    fn strings_of_the_standard() {
        for (text, code) in [
            ("www.example.com", &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            ("302", b"\x64\x02"),
            ("private", b"\xae\xc3\x77\x1a\x4b"),
        ] {
            let mut coded = Vec::new();
            encode(text.as_bytes(), &mut coded);
            assert_eq!(coded, code);
            assert_eq!(decode(code).as_deref(), Some(text.as_bytes()));
            assert_eq!(shortens(text.as_bytes()), Some(code.len()));
        }
        assert_eq!(shortens(b"\x01\x02"), None);
    }

    //= RFC 7541 (5.2): padding of more than 7 bits, padding of other bits than ones, and the end-of-string symbol are errors.
    #[test]
    fn paddings_that_may_not_be() {
        assert_eq!(decode(b"\x1f").as_deref(), Some(&b"a"[..]));
        for wrong in [&b"\x18"[..], b"\x1f\xff", b"\xff\xff\xff\xff", b"\x1b"] {
            assert_eq!(decode(wrong), None, "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_there_and_back(text in vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            let mut known = Vec::new();
            httlib_huffman::encode(&text, &mut known).unwrap();
            prop_assert_eq!(&coded, &known);
            match shortens(&text) {
                Some(octets) => prop_assert!(octets == coded.len() && octets <= text.len()),
                None => prop_assert!(coded.len() >= text.len()),
            }
            prop_assert_eq!(decode(&coded), Some(text));
        }
    }
}
