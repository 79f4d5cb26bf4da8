//! The Huffman code that HPACK and QPACK write strings in (RFC 7541, 5.2 and appendix B; RFC 9204, 4.1.2), through libraries.
//!
//! `httlib-huffman` writes (by a table), `loona-hpack` reads: it refuses every padding that is not the beginning of the
//! end-of-string symbol, and the symbol itself.

use loona_hpack::huffman::HuffmanDecoder;

/// Adds the code of `text` to `out`.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    // Only symbols beyond 8 bits could be refused.
    let _ = httlib_huffman::encode(text, out);
}

/// Is the code worth while: shorter than the text, or, for what it is made for, not longer?
pub fn shortens(text: &[u8]) -> bool {
    // Letters, digits and these have codes of at most eight bits.
    let is_short = |b: &u8| b.is_ascii_alphanumeric() || b" %-./:=&*,_;".contains(b);
    if text.iter().all(is_short) {
        return true;
    }
    let mut coded = Vec::with_capacity(text.len());
    encode(text, &mut coded);
    coded.len() < text.len()
}

/// Reads such strings. Its tables are made when the first one comes.
#[derive(Default)]
pub struct Decoder(Option<HuffmanDecoder>);

impl Decoder {
    /// The text that these octets are; `None` if they are none. It has 8/5 of their length at most.
    pub fn decode(&mut self, coded: &[u8]) -> Option<Vec<u8>> {
        self.0.get_or_insert_with(HuffmanDecoder::new).decode(coded).ok()
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
            assert_eq!(Decoder::default().decode(code).as_deref(), Some(text.as_bytes()));
            assert!(shortens(text.as_bytes()));
        }
        assert!(!shortens(b"\x01\x02"));
    }

    //= RFC 7541 (5.2): padding of more than 7 bits, padding of other bits than ones, and the end-of-string symbol are errors.
    #[test]
    fn paddings_that_may_not_be() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"\x1f").as_deref(), Some(&b"a"[..]));
        for wrong in [&b"\x18"[..], b"\x1f\xff", b"\xff\xff\xff\xff", b"\x1b"] {
            assert_eq!(decoder.decode(wrong), None, "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_there_and_back(text in vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            let wins = if shortens(&text) { coded.len() <= text.len() } else { coded.len() >= text.len() };
            prop_assert!(wins);
            prop_assert_eq!(Decoder::default().decode(&coded), Some(text));
        }
    }
}
