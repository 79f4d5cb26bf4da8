//! Frames of a packet in the words of qlog, and what they mean for loss recovery.

use serde_json::{Value, json};

use crate::config::BASE_DATAGRAM;
use crate::session::padding::varint;

/// Packets that an end says have arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ack {
    /// The path by which they were sent.
    pub(super) path: u32,
    /// First and last numbers, the lowest first.
    pub(super) ranges: Vec<[u64; 2]>,
    /// How long the last one waited, in microseconds.
    pub(super) delay_us: u64,
}

/// What a packet holds.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Frame by frame, as qlog has them.
    pub(crate) told: Vec<Value>,
    pub(super) acks: Vec<Ack>,
    /// It asks for an acknowledgement (RFC 9002, 2).
    pub(super) is_eliciting: bool,
    pub(super) is_padded: bool,
    /// It is filled up to a size beyond that of the handshake, and says nothing: it searches for a larger size (RFC 8899).
    pub(super) is_search: bool,
    /// It ends the connection.
    pub(super) is_close: bool,
}

/// Frames of nothing but numbers: their type, their name, and what the numbers are called.
const NUMBERS: [(u64, &str, &[&str]); 18] = [
    (0x01, "ping", &[]),
    (0x10, "max_data", &["maximum"]),
    (0x11, "max_stream_data", &["stream_id", "maximum"]),
    (0x14, "data_blocked", &["limit"]),
    (0x15, "stream_data_blocked", &["stream_id", "limit"]),
    (0x19, "retire_connection_id", &["sequence_number"]),
    (0x1E, "handshake_done", &[]),
    (0x1F, "immediate_ack", &[]),
    (0x04, "reset_stream", &["stream_id", "error_code", "final_size"]),
    (0x05, "stop_sending", &["stream_id", "error_code"]),
    // draft-ietf-quic-ack-frequency.
    (
        0xAF,
        "ack_frequency",
        &["sequence_number", "ack_eliciting_threshold", "requested_max_ack_delay", "reordering_threshold"],
    ),
    // draft-ietf-quic-multipath.
    (0x3E75, "path_abandon", &["path_id", "error_code"]),
    (0x3E76, "path_status_backup", &["path_id", "path_status_sequence_number"]),
    (0x3E77, "path_status_available", &["path_id", "path_status_sequence_number"]),
    (0x3E79, "path_retire_connection_id", &["path_id", "sequence_number"]),
    (0x3E7A, "max_path_id", &["maximum_path_id"]),
    (0x3E7B, "paths_blocked", &["maximum_path_id"]),
    (0x3E7C, "path_cids_blocked", &["path_id", "next_sequence_number"]),
];

/// Codes of errors of the transport (RFC 9000, 20.1), from 0 on.
const ERRORS: [&str; 17] = [
    "no_error",
    "internal_error",
    "connection_refused",
    "flow_control_error",
    "stream_limit_error",
    "stream_state_error",
    "final_size_error",
    "frame_encoding_error",
    "transport_parameter_error",
    "connection_id_limit_error",
    "protocol_violation",
    "invalid_token",
    "application_error",
    "crypto_buffer_exceeded",
    "key_update_error",
    "aead_limit_reached",
    "no_viable_path",
];

/// Octets in hexadecimal.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// So many octets.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

/// Octets behind their number.
pub(super) fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(varint(rest)?).ok()?;
    take(rest, len)
}

/// What this payload holds, of which delays of acknowledgements are shifted by `exponent`.
pub(crate) fn read(payload: &[u8], exponent: u64) -> Frames {
    let mut frames = Frames::default();
    let mut rest = payload;
    while !rest.is_empty() {
        let all = rest;
        if frames.next(&mut rest, exponent).is_none() {
            // Whatever stands behind it cannot be told either.
            frames.is_eliciting = true;
            let kind = varint(&mut &*all);
            frames.told.push(json!({
                "frame_type": "unknown", "frame_type_bytes": kind, "raw": { "length": all.len() },
            }));
            break;
        }
    }
    let says_nothing =
        |told: &Value| ["ping", "padding", "immediate_ack"].map(Value::from).contains(&told["frame_type"]);
    frames.is_search =
        frames.is_padded && payload.len() >= BASE_DATAGRAM.into() && frames.told.iter().all(says_nothing);
    frames
}

impl Frames {
    fn next(&mut self, rest: &mut &[u8], exponent: u64) -> Option<()> {
        if rest.first() == Some(&0) {
            let len = rest.iter().take_while(|octet| **octet == 0).count();
            *rest = &rest[len..];
            self.is_padded = true;
            let raw = json!({ "length": len, "payload_length": len });
            self.told.push(json!({ "frame_type": "padding", "raw": raw }));
            return Some(());
        }
        let kind = varint(rest)?;
        let told = match kind {
            0x02 | 0x03 => self.ack(rest, "ack", None, kind == 0x03, exponent)?,
            0x3E | 0x3F => {
                let path = u32::try_from(varint(rest)?).ok()?;
                self.ack(rest, "path_ack", Some(path), kind == 0x3F, exponent)?
            }
            0x1C | 0x1D => {
                self.is_close = true;
                close(rest, kind == 0x1D)?
            }
            _ => {
                let told = other(rest, kind)?;
                self.is_eliciting = true;
                told
            }
        };
        self.told.push(told);
        Some(())
    }

    fn ack(
        &mut self,
        rest: &mut &[u8],
        name: &str,
        path: Option<u32>,
        counts: bool,
        exponent: u64,
    ) -> Option<Value> {
        let (largest, delay, count) = (varint(rest)?, varint(rest)?, varint(rest)?);
        let mut ranges = vec![[largest.checked_sub(varint(rest)?)?, largest]];
        for _ in 0..count {
            //= RFC 9000 (19.3.1): the largest number of the next range is two below the gap's.
            let last = ranges.last()?[0].checked_sub(varint(rest)?)?.checked_sub(2)?;
            ranges.push([last.checked_sub(varint(rest)?)?, last]);
        }
        ranges.reverse();
        let delay_us = delay.saturating_mul(1 << exponent);
        let said = ranges.iter().map(|ends| if ends[0] == ends[1] { json!([ends[0]]) } else { json!(ends) });
        let said: Vec<Value> = said.collect();
        let mut told =
            json!({ "frame_type": name, "ack_delay": delay_us as f64 / 1e3, "acked_ranges": said });
        if let Some(path) = path {
            told["path_id"] = path.into();
        }
        if counts {
            for count in ["ect0", "ect1", "ce"] {
                told[count] = varint(rest)?.into();
            }
        }
        self.acks.push(Ack { path: path.unwrap_or(0), ranges, delay_us });
        Some(told)
    }
}

fn close(rest: &mut &[u8], by_application: bool) -> Option<Value> {
    let code = varint(rest)?;
    let trigger = if by_application { None } else { Some(varint(rest)?) };
    let reason = String::from_utf8_lossy(field(rest)?);
    let space = if by_application { "application" } else { "transport" };
    let mut told = json!({
        "frame_type": "connection_close", "error_space": space, "error_code": code, "reason": reason,
    });
    if let Some(trigger) = trigger {
        told["trigger_frame_type"] = trigger.into();
        if let Some(name) = usize::try_from(code).ok().and_then(|code| ERRORS.get(code)) {
            told["error"] = (*name).into();
        }
    }
    Some(told)
}

/// All but acknowledgements, padding and the end.
fn other(rest: &mut &[u8], kind: u64) -> Option<Value> {
    if let Some((_, name, members)) = NUMBERS.iter().find(|(known, ..)| *known == kind) {
        let mut told = json!({ "frame_type": name });
        for member in *members {
            told[*member] = varint(rest)?.into();
        }
        if matches!(kind, 0x04 | 0x05) {
            // What a code means is the application's.
            told["error"] = "unknown".into();
        }
        return Some(told);
    }
    let direction = |uni: u64| if kind == uni { "unidirectional" } else { "bidirectional" };
    Some(match kind {
        0x06 => {
            let offset = varint(rest)?;
            json!({ "frame_type": "crypto", "offset": offset, "raw": { "length": field(rest)?.len() } })
        }
        0x07 => {
            let token = field(rest)?;
            let raw = json!({ "length": token.len(), "data": hex(token) });
            json!({ "frame_type": "new_token", "token": { "type": "retry", "raw": raw } })
        }
        0x08..=0x0F => {
            let stream = varint(rest)?;
            let offset = if kind & 4 != 0 { varint(rest)? } else { 0 };
            let data = if kind & 2 != 0 { field(rest)? } else { std::mem::take(rest) };
            json!({
                "frame_type": "stream", "stream_id": stream, "offset": offset, "fin": kind & 1 != 0,
                "raw": { "length": data.len() },
            })
        }
        0x12 | 0x13 => {
            json!({ "frame_type": "max_streams", "stream_type": direction(0x13), "maximum": varint(rest)? })
        }
        0x16 | 0x17 => {
            json!({ "frame_type": "streams_blocked", "stream_type": direction(0x17), "limit": varint(rest)? })
        }
        0x18 => new_connection_id(rest, json!({ "frame_type": "new_connection_id" }))?,
        0x3E78 => {
            let path = varint(rest)?;
            new_connection_id(rest, json!({ "frame_type": "path_new_connection_id", "path_id": path }))?
        }
        0x1A => json!({ "frame_type": "path_challenge", "data": hex(take(rest, 8)?) }),
        0x1B => json!({ "frame_type": "path_response", "data": hex(take(rest, 8)?) }),
        0x30 => json!({ "frame_type": "datagram", "raw": { "length": std::mem::take(rest).len() } }),
        0x31 => json!({ "frame_type": "datagram", "raw": { "length": field(rest)?.len() } }),
        _ => return None,
    })
}

fn new_connection_id(rest: &mut &[u8], mut told: Value) -> Option<Value> {
    told["sequence_number"] = varint(rest)?.into();
    told["retire_prior_to"] = varint(rest)?.into();
    let len = take(rest, 1)?[0];
    told["connection_id_length"] = len.into();
    told["connection_id"] = hex(take(rest, usize::from(len))?).into();
    told["stateless_reset_token"] = hex(take(rest, 16)?).into();
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(payload: &[u8]) -> Vec<Value> {
        read(payload, 3).told
    }

    #[test]
    fn acknowledged_ranges_begin_with_the_lowest_and_end_with_their_last_number() {
        // 8 and 7, then 3, with counts of ECN; 125 units of 8 us.
        let frames = read(&[0x03, 8, 0x40, 125, 1, 1, 2, 0, 1, 2, 3], 3);
        assert_eq!(
            frames.told,
            [json!({
                "frame_type": "ack", "ack_delay": 1.0, "acked_ranges": [[3], [7, 8]], "ect0": 1, "ect1": 2, "ce": 3,
            })]
        );
        assert_eq!(frames.acks, [Ack { path: 0, ranges: vec![[3, 3], [7, 8]], delay_us: 1000 }]);
        assert!(!frames.is_eliciting && !frames.is_padded);
        // The delay of an end that shifts more, and another path's.
        assert_eq!(
            read(&[0x3E, 2, 0, 5, 0, 0], 10).acks,
            [Ack { path: 2, ranges: vec![[0, 0]], delay_us: 5120 }]
        );
    }

    #[test]
    fn frames_follow_each_other_up_to_the_end_of_the_packet() {
        let found = told(&[0x06, 0, 3, 1, 2, 3, 0, 0, 0x1E, 0x12, 9, 0x0E, 4, 2, 1, 0xFF, 0x09, 3, 7, 7]);
        assert_eq!(
            found,
            [
                json!({"frame_type": "crypto", "offset": 0, "raw": {"length": 3}}),
                json!({"frame_type": "padding", "raw": {"length": 2, "payload_length": 2}}),
                json!({"frame_type": "handshake_done"}),
                json!({"frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 9}),
                json!({"frame_type": "stream", "stream_id": 4, "offset": 2, "fin": false, "raw": {"length": 1}}),
                json!({"frame_type": "stream", "stream_id": 3, "offset": 0, "fin": true, "raw": {"length": 2}}),
            ]
        );
    }

    #[test]
    fn the_end_of_a_connection_says_whose_code_it_is() {
        let frames = read(&[0x1C, 10, 0x06, 2, b'n', b'o'], 3);
        assert!(frames.is_close && !frames.is_eliciting);
        assert_eq!(
            frames.told,
            [json!({
                "frame_type": "connection_close", "error_space": "transport", "error_code": 10, "reason": "no",
                "trigger_frame_type": 6, "error": "protocol_violation",
            })]
        );
        assert_eq!(told(&[0x1D, 0x41, 0, 0])[0]["error_code"], 256);
    }

    #[test]
    fn what_is_not_known_or_cut_short_is_told_as_such() {
        for payload in
            [&[0x40, 0x21, 1, 2][..], &[0x06, 0, 9, 1], &[0x02, 1, 0, 0, 2], &[0x80], &[0x02, 0, 0, 63]]
        {
            let found = told(payload);
            assert_eq!(found.len(), 1, "{payload:?}");
            assert_eq!(found[0]["frame_type"], "unknown");
            assert_eq!(found[0]["raw"]["length"], payload.len());
        }
    }
}
