//! What an end of a connection does, as other programs log it: streams, frames and parameters.
//!
//! Names: draft-ietf-quic-qlog-h3-events-12. Left out: QPACK's instructions, priorities as events of their own, unknown frames.

use serde_json::{Map, Value, json};

use super::{Settings, frame::kind};
use crate::http::fields::Line;

/// An event, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// It is known what a stream is for.
    Stream {
        /// Its number.
        stream: u64,
        /// What for.
        purpose: &'static str,
        /// Did this end open it?
        is_ours: bool,
    },
    /// What an end keeps to.
    Settings {
        /// All of it.
        settings: Settings,
        /// Is it this end?
        is_ours: bool,
    },
    /// A frame was made, or read.
    Frame {
        /// The stream it is on.
        stream: u64,
        /// What it says.
        frame: Frame,
        /// Octets behind its type and length.
        length: u64,
        /// Did this end make it?
        is_ours: bool,
    },
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A piece of a body.
    Data,
    /// A head, or trailers, line by line.
    Headers(Vec<Line>),
    /// What an end keeps to.
    Settings(Settings),
    /// No new requests from this number on.
    GoAway(u64),
    /// A request has another priority: what the field would say.
    PriorityUpdate(u64, Vec<u8>),
}

impl Logged {
    /// What the log calls it, and its data.
    pub fn event(&self) -> (&'static str, Value) {
        let initiator = |is_ours: bool| if is_ours { "local" } else { "remote" };
        match self {
            Logged::Stream { stream, purpose, is_ours } => {
                let data =
                    json!({ "initiator": initiator(*is_ours), "stream_id": stream, "stream_type": purpose });
                ("http3:stream_type_set", data)
            }
            Logged::Settings { settings, is_ours } => {
                let mut data = Map::new();
                data.insert("initiator".into(), initiator(*is_ours).into());
                if let Some(most) = settings.max_field_section_size {
                    data.insert("max_field_section_size".into(), most.into());
                }
                data.insert("max_table_capacity".into(), settings.qpack_max_table_capacity.into());
                data.insert("blocked_streams_count".into(), settings.qpack_blocked_streams.into());
                ("http3:parameters_set", Value::Object(data))
            }
            Logged::Frame { stream, frame, length, is_ours } => {
                let mut frame = frame.event();
                frame["raw"] = json!({ "payload_length": length });
                let name = if *is_ours { "http3:frame_created" } else { "http3:frame_parsed" };
                (name, json!({ "stream_id": stream, "frame": frame }))
            }
        }
    }

    /// A frame of the control stream, whole. `None`: it is of no kind that is logged.
    pub(super) fn control(stream: u64, kind: u64, payload: &[u8], is_ours: bool) -> Option<Logged> {
        let number = || super::varint::parse(payload);
        let frame = match kind {
            kind::SETTINGS => Frame::Settings(Settings::parse(payload).ok()?),
            kind::GOAWAY => Frame::GoAway(number()?.0),
            kind::PRIORITY_UPDATE => number().map(|(of, value)| Frame::PriorityUpdate(of, value.to_vec()))?,
            _ => return None,
        };
        Some(Logged::Frame { stream, frame, length: payload.len() as u64, is_ours })
    }
}

impl Frame {
    fn event(&self) -> Value {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        match self {
            Frame::Data => json!({ "frame_type": "data" }),
            Frame::Headers(lines) => {
                let line = |(name, value): &Line| json!({ "name": text(name), "value": text(value) });
                json!({ "frame_type": "headers", "headers": lines.iter().map(line).collect::<Vec<_>>() })
            }
            Frame::Settings(settings) => {
                let all = [
                    ("settings_qpack_max_table_capacity", Some(settings.qpack_max_table_capacity)),
                    ("settings_max_field_section_size", settings.max_field_section_size),
                    ("settings_qpack_blocked_streams", Some(settings.qpack_blocked_streams)),
                ];
                let said = all.into_iter().filter_map(|(name, value)| {
                    Some(json!({ "name": name, "value": value.filter(|value| *value > 0)? }))
                });
                json!({ "frame_type": "settings", "settings": said.collect::<Vec<_>>() })
            }
            Frame::GoAway(id) => json!({ "frame_type": "goaway", "id": id }),
            Frame::PriorityUpdate(stream, value) => {
                json!({ "frame_type": "priority_update", "stream_id": stream, "priority_field_value": text(value) })
            }
        }
    }
}
