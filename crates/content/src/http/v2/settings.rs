//! Settings: what each side tells the other to keep to.

use smart_default::SmartDefault;

use super::error::{Error, ErrorCode, protocol};
use super::flow::MOST;
use super::frame::LEAST_MAX_FRAME;

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// The settings of one side, which the other keeps to (RFC 9113, 6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Settings {
    /// Octets of the table that header blocks for this side may refer to.
    #[default(4096)]
    pub header_table_size: u32,
    /// May responses be pushed to it?
    #[default(true)]
    pub enable_push: bool,
    /// Streams that may be open at a time that the other side opened; no limit if not given.
    pub max_concurrent_streams: Option<u32>,
    /// Octets of DATA that it takes on a new stream.
    #[default(65_535)]
    pub initial_window_size: u32,
    /// Octets of the largest payload that it takes.
    #[default(LEAST_MAX_FRAME)]
    pub max_frame_size: u32,
    /// Octets of fields that it takes, 32 more for each; no limit if not given.
    pub max_header_list_size: Option<u32>,
    /// It does not heed the priorities of RFC 7540 (RFC 9218, 2.1).
    pub no_rfc7540_priorities: bool,
}

impl Settings {
    /// Those that differ from the defaults, as they are sent.
    pub fn emit(&self) -> Vec<u8> {
        let usual = Settings::default();
        let differs = |ours: u32, usual: u32| (ours != usual).then_some(ours);
        let said = [
            (HEADER_TABLE_SIZE, differs(self.header_table_size, usual.header_table_size)),
            (ENABLE_PUSH, (!self.enable_push).then_some(0)),
            (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (INITIAL_WINDOW_SIZE, differs(self.initial_window_size, usual.initial_window_size)),
            (MAX_FRAME_SIZE, differs(self.max_frame_size, usual.max_frame_size)),
            (MAX_HEADER_LIST_SIZE, self.max_header_list_size),
            (NO_RFC7540_PRIORITIES, self.no_rfc7540_priorities.then_some(1)),
        ];
        let mut octets = Vec::new();
        for (identifier, value) in said {
            let Some(value) = value else { continue };
            octets.extend_from_slice(&identifier.to_be_bytes());
            octets.extend_from_slice(&value.to_be_bytes());
        }
        octets
    }

    /// The peer has sent this one.
    pub fn apply(&mut self, identifier: u16, value: u32) -> Result<(), Error> {
        match identifier {
            HEADER_TABLE_SIZE => self.header_table_size = value,
            ENABLE_PUSH if value <= 1 => self.enable_push = value == 1,
            ENABLE_PUSH => return Err(protocol("ENABLE_PUSH is 0 or 1")),
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = Some(value),
            INITIAL_WINDOW_SIZE if i64::from(value) <= MOST => self.initial_window_size = value,
            INITIAL_WINDOW_SIZE => {
                return Err(Error::Connection(ErrorCode::FLOW_CONTROL_ERROR, "a window above 2^31-1"));
            }
            MAX_FRAME_SIZE if (LEAST_MAX_FRAME..=0x00ff_ffff).contains(&value) => self.max_frame_size = value,
            MAX_FRAME_SIZE => return Err(protocol("a largest frame outside 2^14 to 2^24-1")),
            MAX_HEADER_LIST_SIZE => self.max_header_list_size = Some(value),
            //= RFC 9218 (2.1): a value other than 0 or 1 is an error of the connection.
            NO_RFC7540_PRIORITIES if value <= 1 => self.no_rfc7540_priorities = value == 1,
            NO_RFC7540_PRIORITIES => return Err(protocol("NO_RFC7540_PRIORITIES is 0 or 1")),
            //= RFC 9113 (6.5.2): unknown settings are ignored.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::v2::frame::{Frame, Header, kind};

    #[test]
    fn settings_say_what_differs_and_are_read_back() {
        assert!(Settings::default().emit().is_empty());
        let ours = Settings {
            header_table_size: 0,
            enable_push: false,
            max_concurrent_streams: Some(100),
            initial_window_size: 1 << 20,
            max_frame_size: 1 << 15,
            max_header_list_size: Some(9),
            no_rfc7540_priorities: true,
        };
        let octets = ours.emit();
        let header = Header { length: octets.len() as u32, kind: kind::SETTINGS, flags: 0, stream: 0 };
        let Ok(Frame::Settings(values)) = Frame::parse(&header, &octets) else { panic!("settings") };
        let mut read = Settings::default();
        values.iter().for_each(|(identifier, value)| read.apply(*identifier, *value).unwrap());
        assert_eq!(read, ours);
    }

    #[test]
    fn impossible_values_are_refused_and_unknown_settings_are_not() {
        let mut settings = Settings::default();
        for (identifier, value) in [(2, 2), (4, 1 << 31), (5, 16_383), (5, 1 << 24), (9, 2)] {
            assert!(settings.apply(identifier, value).is_err(), "{identifier} {value}");
        }
        assert_eq!(settings.apply(0x1234, 7), Ok(()));
        assert_eq!(settings, Settings::default());
    }
}
