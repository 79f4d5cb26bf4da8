//! Settings: what each side tells the other to keep to.

use super::varint;
use super::{Error, ErrorCode};

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;

/// The settings of one side, which the other keeps to (RFC 9114, 7.2.4.1; RFC 9204, 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Octets of fields that it takes, 32 more for each; no limit if not given.
    pub max_field_section_size: Option<u64>,
    /// Octets of the table that field sections for this side may refer to.
    pub qpack_max_table_capacity: u64,
    /// Streams that may wait for entries of that table.
    pub qpack_blocked_streams: u64,
}

impl Settings {
    /// Those that differ from the defaults, as they are sent.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut put = |identifier: u64, value: Option<u64>| {
            if let Some(value) = value {
                varint::emit(identifier, &mut octets);
                varint::emit(value, &mut octets);
            }
        };
        put(QPACK_MAX_TABLE_CAPACITY, Some(self.qpack_max_table_capacity).filter(|octets| *octets > 0));
        put(MAX_FIELD_SECTION_SIZE, self.max_field_section_size);
        put(QPACK_BLOCKED_STREAMS, Some(self.qpack_blocked_streams).filter(|streams| *streams > 0));
        octets
    }

    /// Reads the payload of a SETTINGS frame.
    pub fn parse(mut payload: &[u8]) -> Result<Settings, Error> {
        let (mut settings, mut seen) = (Settings::default(), Vec::new());
        while !payload.is_empty() {
            let pair = varint::parse(payload)
                .and_then(|(identifier, rest)| Some((identifier, varint::parse(rest)?)));
            let Some((identifier, (value, rest))) = pair else {
                return Err(Error::Connection(ErrorCode::FRAME_ERROR, "half a setting"));
            };
            payload = rest;
            seen.push(identifier);
            match identifier {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = Some(value),
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                //= RFC 9114 (7.2.4.1): identifiers of HTTP/2 without a counterpart are an error.
                0x0 | 0x2..=0x5 => return Err(wrong("a setting of HTTP/2")),
                //= RFC 9114 (7.2.4): unknown settings are ignored.
                _ => {}
            }
        }
        seen.sort_unstable();
        //= RFC 9114 (7.2.4): none may come twice.
        if seen.windows(2).any(|two| two[0] == two[1]) {
            return Err(wrong("a setting that comes twice"));
        }
        Ok(settings)
    }
}

const fn wrong(why: &'static str) -> Error {
    Error::Connection(ErrorCode::SETTINGS_ERROR, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::Code;

    #[test]
    fn settings_say_what_differs_and_are_read_back() {
        assert!(Settings::default().emit().is_empty());
        let ours = Settings {
            max_field_section_size: Some(16_384),
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
        };
        assert_eq!(Settings::parse(&ours.emit()), Ok(ours));
        assert_eq!(ours.emit(), b"\x01\x50\x00\x06\x80\x00\x40\x00\x07\x10");
    }

    #[test]
    fn what_may_not_be_is_refused_and_what_is_unknown_is_not() {
        let code = |octets: &[u8]| match Settings::parse(octets) {
            Err(Error::Connection(code, _)) => code.name(),
            _ => "",
        };
        for identifier in [0, 2, 3, 4, 5] {
            assert_eq!(code(&[identifier, 1]), "H3_SETTINGS_ERROR", "{identifier}");
        }
        assert_eq!(code(b"\x01\x00\x01\x00"), "H3_SETTINGS_ERROR");
        assert_eq!(code(b"\x21\x00\x21\x00"), "H3_SETTINGS_ERROR");
        assert_eq!(code(b"\x01"), "H3_FRAME_ERROR");
        assert_eq!(code(b"\x01\x40"), "H3_FRAME_ERROR");
        assert_eq!(Settings::parse(b"\x33\x01\x08\x01"), Ok(Settings::default()));
    }
}
