//! As much of Thrift's compact protocol as the headers of a Parquet file need.
//!
//! Source: "Thrift Compact protocol encoding" in the documents of Apache Thrift. Fields are written in ascending order.

/// Kinds of fields and of the elements of lists.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    True = 1,
    False = 2,
    Byte = 3,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// Writes one structure and what is nested in it.
#[derive(Default)]
pub(super) struct Writer {
    octets: Vec<u8>,
    /// Numbers of the last fields of the structures that are open.
    last: Vec<i16>,
}

impl Writer {
    /// A structure: `fields` writes what is in it.
    pub(super) fn whole(fields: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.element(fields);
        writer.octets
    }

    pub(super) fn i32(&mut self, field: i16, value: i32) {
        self.head(field, Kind::I32);
        self.zigzag(i64::from(value));
    }
    pub(super) fn i64(&mut self, field: i16, value: usize) {
        self.head(field, Kind::I64);
        self.zigzag(i64::try_from(value).unwrap_or(i64::MAX));
    }
    pub(super) fn byte(&mut self, field: i16, value: u8) {
        self.head(field, Kind::Byte);
        self.octets.push(value);
    }
    pub(super) fn bool(&mut self, field: i16, value: bool) {
        self.head(field, if value { Kind::True } else { Kind::False });
    }
    pub(super) fn text(&mut self, field: i16, value: &str) {
        self.head(field, Kind::Binary);
        self.text_element(value);
    }
    pub(super) fn structure(&mut self, field: i16, fields: impl FnOnce(&mut Writer)) {
        self.head(field, Kind::Struct);
        self.element(fields);
    }
    /// The head of a list; its elements follow.
    pub(super) fn list(&mut self, field: i16, kind: Kind, length: usize) {
        self.head(field, Kind::List);
        if length < 15 {
            self.octets.push((length as u8) << 4 | kind as u8);
        } else {
            self.octets.push(0xf0 | kind as u8);
            varint(&mut self.octets, length as u64);
        }
    }

    /// An element of a list of structures.
    pub(super) fn element(&mut self, fields: impl FnOnce(&mut Writer)) {
        self.last.push(0);
        fields(self);
        self.last.pop();
        self.octets.push(0);
    }
    /// An element of a list of 32-bit integers.
    pub(super) fn i32_element(&mut self, value: i32) {
        self.zigzag(i64::from(value));
    }
    /// An element of a list of texts.
    pub(super) fn text_element(&mut self, value: &str) {
        varint(&mut self.octets, value.len() as u64);
        self.octets.extend_from_slice(value.as_bytes());
    }

    fn head(&mut self, field: i16, kind: Kind) {
        let last = self.last.last_mut().expect("a field is in a structure");
        let step = field - *last;
        debug_assert!((1..16).contains(&step), "fields ascend, and none is far from the one before");
        *last = field;
        self.octets.push((step as u8) << 4 | kind as u8);
    }
    fn zigzag(&mut self, value: i64) {
        varint(&mut self.octets, ((value << 1) ^ (value >> 63)) as u64);
    }
}

/// Appends a number, seven bits an octet, the lowest first.
pub(super) fn varint(octets: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        octets.push(value as u8 | 0x80);
        value >>= 7;
    }
    octets.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_carry_their_distance_and_numbers_alternate_in_sign() {
        // By hand from the protocol's description: field 1, i32 -1; field 3, the text "a"; field 4, true; stop.
        let octets = Writer::whole(|w| {
            w.i32(1, -1);
            w.text(3, "a");
            w.bool(4, true);
        });
        assert_eq!(octets, [0x15, 0x01, 0x28, 0x01, b'a', 0x11, 0x00]);
    }

    #[test]
    fn long_lists_say_their_length_in_a_number_of_its_own() {
        let list = |length: usize| {
            Writer::whole(|w| {
                w.list(2, Kind::I32, length);
                (0..length).for_each(|_| w.i32_element(1));
            })
        };
        assert_eq!(list(2), [0x29, 0x25, 2, 2, 0]);
        assert_eq!(list(200)[..4], [0x29, 0xf5, 0xc8, 0x01]);
    }
}
