//! Global tokens, which mean the same in every document type and on every code page (WAP-192, section 7.1), and versions.

/// The next octet is the code page from here on, of the tag or attribute space that it stands in.
pub const SWITCH_PAGE: u8 = 0x00;
/// End of an attribute list or of an element's content.
pub const END: u8 = 0x01;
/// A character by number: mb_u_int32 follows.
pub const ENTITY: u8 = 0x02;
/// A string in place, ended by NUL.
pub const STR_I: u8 = 0x03;
/// A name from the string table: mb_u_int32 follows. With [`HAS_ATTRIBUTES`] and [`HAS_CONTENT`] as any tag.
pub const LITERAL: u8 = 0x04;
/// Extension 0 with a string in place; 1 and 2 follow.
pub const EXT_I_0: u8 = 0x40;
/// Processing instruction: attributes and END follow.
pub const PI: u8 = 0x43;
/// Extension 0 with an offset into the string table; 1 and 2 follow.
pub const EXT_T_0: u8 = 0x80;
/// A string from the table: its offset follows as mb_u_int32.
pub const STR_T: u8 = 0x83;
/// Extension 0, alone; 1 and 2 follow.
pub const EXT_0: u8 = 0xC0;
/// Octets: their number follows as mb_u_int32, then they.
pub const OPAQUE: u8 = 0xC3;

/// Bit of a tag: attributes follow.
pub const HAS_ATTRIBUTES: u8 = 0x80;
/// Bit of a tag: content follows.
pub const HAS_CONTENT: u8 = 0x40;
/// Bits of a tag that name the element.
pub const TAG_CODE: u8 = 0x3F;

/// Attribute values have this bit, attribute starts do not.
pub const IS_VALUE: u8 = 0x80;

/// Public identifier zero: the real one stands in the string table.
pub const PUBLIC_ID_IN_TABLE: u32 = 0;
/// Public identifier one: unknown or missing.
pub const PUBLIC_ID_UNKNOWN: u32 = 1;

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Version {
    /// 1.0: the header has no character set.
    V1_0,
    /// 1.1
    #[default]
    V1_1,
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

impl Version {
    /// The first octet of a document: the major version less one in the high half, the minor in the low.
    pub fn octet(self) -> u8 {
        self as u8
    }

    /// The version of a document's first octet. Later minor versions are read as 1.3, since WAP-192 (5.3) asks them to stay
    /// readable; other major versions are unknown.
    pub fn from_octet(octet: u8) -> Option<Version> {
        match octet {
            0x00 => Some(Version::V1_0),
            0x01 => Some(Version::V1_1),
            0x02 => Some(Version::V1_2),
            0x03..=0x0F => Some(Version::V1_3),
            _ => None,
        }
    }
}
