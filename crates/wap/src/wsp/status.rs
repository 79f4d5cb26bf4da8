//! Status and reason codes (WAP-230, table 36 and section 8.4.3): HTTP's three digits in one octet, and why something was
//! aborted.

use std::fmt;

/// HTTP's status in WSP's octet. One that has no octet of its own becomes the x00 of its class.
pub fn encode(http: u16) -> u8 {
    let (class, number) = ((http / 100) as u8, (http % 100) as u8);
    match (class, number) {
        (4, 0..=15) | (1..=3, 0..=15) => class << 4 | number,
        (4, 16 | 17) => 0x50 + (number - 16),
        (5, 0..=5) => 0x60 + number,
        (1..=4, _) => class << 4,
        _ => 0x60,
    }
}

/// WSP's octet as HTTP's status; none if it is not assigned.
pub fn decode(octet: u8) -> Option<u16> {
    let number = u16::from(octet & 0x0F);
    match octet >> 4 {
        class @ 1..=4 => Some(u16::from(class) * 100 + number),
        5 if number <= 1 => Some(416 + number),
        6 => Some(500 + number),
        _ => None,
    }
}

/// Why a session, a method or a push was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A PDU that is not allowed.
    ProtocolError,
    /// The session is gone.
    Disconnect,
    /// The session was put to rest.
    Suspend,
    /// The session was taken up again.
    Resume,
    /// Too much to do.
    Congestion,
    /// The session could not be opened.
    ConnectError,
    /// The message is larger than what was agreed on.
    MruExceeded,
    /// More methods or pushes are outstanding than was agreed on.
    MorExceeded,
    /// The peer wants it so.
    PeerRequest,
    /// The network failed.
    NetworkError,
    /// The user wants it so.
    UserRequest,
    /// The user refuses, without a special cause.
    UserRefused,
    /// The push cannot be delivered.
    UserPushNotDelivered,
    /// The push was thrown away: no resources.
    UserDiscarded,
    /// The type of content cannot be processed.
    UserUnknownContent,
    /// A code that is not assigned.
    Other(u8),
}

impl Reason {
    const LIST: [Reason; 15] = [
        Reason::ProtocolError,
        Reason::Disconnect,
        Reason::Suspend,
        Reason::Resume,
        Reason::Congestion,
        Reason::ConnectError,
        Reason::MruExceeded,
        Reason::MorExceeded,
        Reason::PeerRequest,
        Reason::NetworkError,
        Reason::UserRequest,
        Reason::UserRefused,
        Reason::UserPushNotDelivered,
        Reason::UserDiscarded,
        Reason::UserUnknownContent,
    ];
    const FIRST: u8 = 0xE0;

    /// Its code.
    pub fn code(self) -> u8 {
        match self {
            Reason::Other(code) => code,
            known => Self::FIRST + Self::LIST.iter().position(|r| *r == known).unwrap_or(0) as u8,
        }
    }

    /// The reason of a code.
    pub fn of(code: u8) -> Reason {
        let place = code.checked_sub(Self::FIRST).map(usize::from);
        place.and_then(|n| Self::LIST.get(n)).copied().unwrap_or(Reason::Other(code))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::ProtocolError => "protocol error",
            Reason::Disconnect => "the session is gone",
            Reason::Suspend => "the session is suspended",
            Reason::Resume => "the session was resumed",
            Reason::Congestion => "congestion",
            Reason::ConnectError => "the session could not be opened",
            Reason::MruExceeded => "the message is larger than agreed",
            Reason::MorExceeded => "more requests outstanding than agreed",
            Reason::PeerRequest => "the peer ended it",
            Reason::NetworkError => "the network failed",
            Reason::UserRequest => "the user ended it",
            Reason::UserRefused => "refused",
            Reason::UserPushNotDelivered => "the push could not be delivered",
            Reason::UserDiscarded => "the push was discarded for want of resources",
            Reason::UserUnknownContent => "the type of content cannot be processed",
            Reason::Other(code) => return write!(f, "reason {code:#04x}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_go_into_an_octet_and_back() {
        for (http, octet) in [
            (100, 0x10),
            (200, 0x20),
            (206, 0x26),
            (302, 0x32),
            (404, 0x44),
            (406, 0x46),
            (415, 0x4F),
            (416, 0x50),
            (417, 0x51),
            (500, 0x60),
            (505, 0x65),
        ] {
            assert_eq!((encode(http), decode(octet)), (octet, Some(http)));
        }
    }

    #[test]
    fn statuses_without_an_octet_become_the_first_of_their_class() {
        assert_eq!([226, 429, 511, 700, 0].map(encode), [0x20, 0x40, 0x60, 0x60, 0x60]);
        assert_eq!([0x00, 0x52, 0x77].map(decode), [None, None, None]);
    }

    #[test]
    fn reasons_have_codes() {
        for code in 0..=255 {
            assert_eq!(Reason::of(code).code(), code);
        }
        assert_eq!((Reason::Disconnect.code(), Reason::UserUnknownContent.code()), (0xE1, 0xEE));
    }
}
