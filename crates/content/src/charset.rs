//! Octets in a character set <-> text. The conversions are `encoding_rs`'s; here are the number of each set and the sets
//! that the web has no encoder for (UTF-16) or reads as something larger (ISO-8859-1).

use std::borrow::Cow;

use airloom_wire::charset::{self, ISO_8859_1, MibEnum, UCS_2, US_ASCII, UTF_8, UTF_16, UTF_16BE, UTF_16LE};
use encoding_rs::{Encoding, UTF_16BE as WEB_UTF_16BE, UTF_16LE as WEB_UTF_16LE};

/// A character set that text can be read from and written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    mib: MibEnum,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One octet a character, numbered as in Unicode, up to this character.
    Latin {
        last: char,
    },
    /// Two octets a unit.
    Utf16 {
        little_endian: bool,
    },
    Web(&'static Encoding),
}

impl Charset {
    /// UTF-8.
    pub const UTF_8: Charset = Charset { mib: UTF_8, form: Form::Web(encoding_rs::UTF_8) };

    /// The set with this number, if it can be converted. Zero and UTF-8 are UTF-8: WBXML's zero leaves the set to the
    /// transport, and without word from there it is UTF-8 in practice.
    pub fn from_mib(mib: MibEnum) -> Option<Charset> {
        let form = match mib {
            0 | UTF_8 => return Some(Charset::UTF_8),
            US_ASCII => Form::Latin { last: '\u{7F}' },
            ISO_8859_1 => Form::Latin { last: '\u{FF}' },
            UCS_2 | UTF_16 | UTF_16BE => Form::Utf16 { little_endian: false },
            UTF_16LE => Form::Utf16 { little_endian: true },
            _ => {
                let web = Encoding::for_label(charset::name(mib)?.as_bytes())?;
                // `replacement` stands for sets that browsers refuse (ISO-2022-KR): nothing can be read with it.
                if web == encoding_rs::REPLACEMENT {
                    return None;
                }
                Form::Web(web)
            }
        };
        Some(Charset { mib, form })
    }

    /// The set called `name`, by any name that the IANA registry's preferred ones, or the web's, know.
    pub fn from_name(name: &str) -> Option<Charset> {
        let listed = charset::mib_enum(name).and_then(Charset::from_mib);
        listed.or_else(|| {
            let web = Encoding::for_label(name.trim().as_bytes())?;
            Charset::from_mib(charset::mib_enum(web.name())?)
        })
    }

    /// Its number.
    pub fn mib(self) -> MibEnum {
        self.mib
    }

    /// Its preferred name.
    pub fn name(self) -> &'static str {
        charset::name(self.mib).unwrap_or("utf-8")
    }

    /// Octets of the NUL that ends a string.
    pub fn nul_len(self) -> usize {
        if matches!(self.form, Form::Utf16 { .. }) { 2 } else { 1 }
    }

    /// Where the first NUL of `octets` begins.
    pub fn find_nul(self, octets: &[u8]) -> Option<usize> {
        match self.nul_len() {
            2 => octets.chunks_exact(2).position(|unit| unit == [0, 0]).map(|unit| 2 * unit),
            _ => memchr::memchr(0, octets),
        }
    }

    /// `octets` as text; what is no character of the set becomes U+FFFD.
    pub fn decode(self, octets: &[u8]) -> Cow<'_, str> {
        match self.form {
            Form::Latin { last } => match std::str::from_utf8(octets) {
                Ok(text) if octets.is_ascii() => Cow::Borrowed(text),
                _ => octets
                    .iter()
                    .map(|&o| if char::from(o) <= last { char::from(o) } else { '\u{FFFD}' })
                    .collect(),
            },
            Form::Utf16 { little_endian } => {
                let web = if little_endian { WEB_UTF_16LE } else { WEB_UTF_16BE };
                let web = Encoding::for_bom(octets).map_or(web, |(marked, _)| marked);
                web.decode_with_bom_removal(octets).0
            }
            Form::Web(web) => web.decode_without_bom_handling(octets).0,
        }
    }

    /// Appends `text`; characters that the set lacks go to `lacking`, which may write something in their place.
    pub fn encode(self, text: &str, out: &mut Vec<u8>, mut lacking: impl FnMut(char, &mut Vec<u8>)) {
        match self.form {
            Form::Web(web) if web == encoding_rs::UTF_8 => out.extend_from_slice(text.as_bytes()),
            Form::Latin { last } => {
                for c in text.chars() {
                    if c <= last { out.push(c as u8) } else { lacking(c, out) }
                }
            }
            Form::Utf16 { little_endian } => {
                for unit in text.encode_utf16() {
                    out.extend_from_slice(&if little_endian {
                        unit.to_le_bytes()
                    } else {
                        unit.to_be_bytes()
                    });
                }
            }
            Form::Web(web) => {
                let mut one = [0; 4];
                for c in text.chars() {
                    let text = &*c.encode_utf8(&mut one);
                    match web.encode(text) {
                        // Some encoders write one character as another that looks like it (a yen sign as a backslash).
                        (octets, _, false) if web.decode_without_bom_handling(&octets).0 == text => {
                            out.extend_from_slice(&octets);
                        }
                        _ => lacking(c, out),
                    }
                }
            }
        }
    }

    /// Whether the set has every character of `text`.
    pub fn has_all(self, text: &str) -> bool {
        let mut all = true;
        if self != Charset::UTF_8 {
            self.encode(text, &mut Vec::new(), |_, _| all = false);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(charset: Charset, text: &str) -> (Vec<u8>, String) {
        let mut octets = Vec::new();
        charset.encode(text, &mut octets, |_, out| out.push(b'?'));
        let back = charset.decode(&octets).into_owned();
        (octets, back)
    }

    #[test]
    fn text_comes_back_in_every_kind_of_set() {
        for (name, text) in [
            ("utf-8", "gr\u{fc}n \u{20ac} \u{1f4f1}"),
            ("utf-16", "gr\u{fc}n \u{20ac} \u{1f4f1}"),
            ("UTF-16LE", "gr\u{fc}n"),
            ("iso-8859-1", "gr\u{fc}n"),
            ("us-ascii", "green"),
            ("windows-1251", "\u{437}\u{435}\u{43b}"),
            ("shift_jis", "\u{7dd1}"),
            ("big5", "\u{7da0}"),
        ] {
            let charset = Charset::from_name(name).expect(name);
            assert_eq!(through(charset, text).1, text, "{name}");
            assert_eq!(Charset::from_mib(charset.mib()), Some(charset));
        }
    }

    #[test]
    fn iso_8859_1_is_not_windows_1252() {
        let charset = Charset::from_name("latin1").expect("known");
        assert_eq!(charset.decode(&[0x80]), "\u{80}");
        assert_eq!(through(charset, "\u{20ac}").0, b"?", "no euro sign in ISO-8859-1");
        assert!(!charset.has_all("\u{20ac}") && charset.has_all("\u{fc}"));
    }

    #[test]
    fn a_character_that_would_come_back_as_another_is_lacking() {
        let shift_jis = Charset::from_name("shift_jis").expect("known");
        assert!(shift_jis.has_all("\\") && !shift_jis.has_all("\u{a5}"));
    }

    #[test]
    fn a_nul_of_utf_16_is_two_octets_on_an_even_place() {
        let utf_16 = Charset::from_mib(UTF_16).expect("known");
        assert_eq!(utf_16.find_nul(&[1, 0, 0, 1, 0, 0]), Some(4));
        assert_eq!(Charset::UTF_8.find_nul(b"ab\0"), Some(2));
    }
}
