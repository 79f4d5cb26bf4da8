//! Transport parameters (RFC 9000, 18.2) in the words of qlog.

use serde_json::{Map, Value, json};

use super::frames::{field, hex};
use crate::session::padding::varint;

/// Numbers: their identifier, their name, and what they are where an end does not say them.
const NUMBERS: [(u64, &str, Option<u64>); 14] = [
    (MAX_IDLE_TIMEOUT, "max_idle_timeout", Some(0)),
    (0x03, "max_udp_payload_size", Some(65_527)),
    (ACK_DELAY_EXPONENT, "ack_delay_exponent", Some(3)),
    (MAX_ACK_DELAY, "max_ack_delay", Some(25)),
    (0x0E, "active_connection_id_limit", Some(2)),
    (0x04, "initial_max_data", Some(0)),
    (0x05, "initial_max_stream_data_bidi_local", Some(0)),
    (0x06, "initial_max_stream_data_bidi_remote", Some(0)),
    (0x07, "initial_max_stream_data_uni", Some(0)),
    (0x08, "initial_max_streams_bidi", Some(0)),
    (0x09, "initial_max_streams_uni", Some(0)),
    (0x20, "max_datagram_frame_size", None),
    // draft-ietf-quic-ack-frequency-07 and draft-ietf-quic-multipath.
    (0xFF04_DE1B, "min_ack_delay", None),
    (0x3E, "initial_max_path_id", None),
];

const MAX_IDLE_TIMEOUT: u64 = 0x01;
const ACK_DELAY_EXPONENT: u64 = 0x0A;
const MAX_ACK_DELAY: u64 = 0x0B;

/// Octets: their identifier and name.
const OCTETS: [(u64, &str); 4] = [
    (0x00, "original_destination_connection_id"),
    (SOURCE, "initial_source_connection_id"),
    (0x10, "retry_source_connection_id"),
    (0x02, "stateless_reset_token"),
];

const SOURCE: u64 = 0x0F;

/// There or not: their identifier and name.
const FLAGS: [(u64, &str); 2] = [(0x0C, "disable_active_migration"), (0x2AB2, "grease_quic_bit")];

/// What an end has said of itself.
pub(super) struct Parameters<'a>(Vec<(u64, &'a [u8])>);

impl<'a> Parameters<'a> {
    /// As they stand in the handshake; what is cut short is left out.
    pub(super) fn read(mut rest: &'a [u8]) -> Parameters<'a> {
        let mut found = Vec::new();
        while let Some(id) = varint(&mut rest) {
            let Some(value) = field(&mut rest) else { break };
            found.push((id, value));
        }
        Parameters(found)
    }

    fn get(&self, id: u64) -> Option<&'a [u8]> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    fn number(&self, id: u64) -> Option<u64> {
        varint(&mut self.get(id)?)
    }

    /// How far delays of acknowledgements are shifted.
    pub(super) fn ack_delay_exponent(&self) -> u64 {
        //= RFC 9000 (18.2): values above 20 are invalid.
        self.number(ACK_DELAY_EXPONENT).unwrap_or(3).min(20)
    }

    /// Milliseconds that an acknowledgement may wait.
    pub(super) fn max_ack_delay_ms(&self) -> u64 {
        self.number(MAX_ACK_DELAY).unwrap_or(25)
    }

    /// Milliseconds of silence after which the connection is over; 0: it says none.
    pub(super) fn max_idle_timeout_ms(&self) -> u64 {
        self.number(MAX_IDLE_TIMEOUT).unwrap_or(0)
    }

    /// The connection id that the end chose for itself at first.
    pub(super) fn source(&self) -> String {
        hex(self.get(SOURCE).unwrap_or_default())
    }

    /// All of them.
    pub(super) fn told(&self) -> Map<String, Value> {
        let mut told = Map::new();
        for (id, name) in OCTETS {
            told.extend(self.get(id).map(|value| (name.to_owned(), hex(value).into())));
        }
        for (id, name) in FLAGS {
            told.insert(name.to_owned(), self.get(id).is_some().into());
        }
        for (id, name, otherwise) in NUMBERS {
            told.extend(self.number(id).or(otherwise).map(|value| (name.to_owned(), value.into())));
        }
        let is_known = |id: u64| {
            NUMBERS.iter().any(|(known, ..)| *known == id)
                || OCTETS.iter().chain(&FLAGS).any(|(known, _)| *known == id)
        };
        let unknown: Vec<Value> = self
            .0
            .iter()
            .filter(|(id, _)| !is_known(*id))
            .map(|(id, value)| json!({ "id": id, "value": hex(value) }))
            .collect();
        if !unknown.is_empty() {
            told.insert("unknown_parameters".to_owned(), unknown.into());
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_what_the_standard_gives() {
        let said = [0x0F, 2, 0xAB, 0xCD, 0x0A, 1, 10, 0x04, 2, 0x44, 0, 0x0C, 0, 0x3D, 1, 7, 0x0B, 9];
        let read = Parameters::read(&said);
        assert_eq!(read.ack_delay_exponent(), 10);
        assert_eq!(read.max_ack_delay_ms(), 25);
        assert_eq!(read.source(), "abcd");
        let told = read.told();
        assert_eq!(told["initial_max_data"], 1024);
        assert_eq!(told["disable_active_migration"], true);
        assert_eq!(told["active_connection_id_limit"], 2);
        assert_eq!(told["unknown_parameters"], json!([{ "id": 0x3D, "value": "07" }]));
        assert!(!told.contains_key("max_datagram_frame_size"));
        // No exponent beyond what may be.
        assert_eq!(Parameters::read(&[0x0A, 1, 63]).ack_delay_exponent(), 20);
    }
}
