//! Status and reason codes (WAP-230, table 36 and section 8.4.3): HTTP's three digits in one octet, and why something was
//! aborted.

use strum::IntoEnumIterator;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, strum::EnumIter)]
pub enum Reason {
    /// A PDU that is not allowed.
    #[error("protocol error")]
    ProtocolError,
    /// The session is gone.
    #[error("the session is gone")]
    Disconnect,
    /// The session was put to rest.
    #[error("the session is suspended")]
    Suspend,
    /// The session was taken up again.
    #[error("the session was resumed")]
    Resume,
    /// Too much to do.
    #[error("congestion")]
    Congestion,
    /// The session could not be opened.
    #[error("the session could not be opened")]
    ConnectError,
    /// The message is larger than what was agreed on.
    #[error("the message is larger than agreed")]
    MruExceeded,
    /// More methods or pushes are outstanding than was agreed on.
    #[error("more requests outstanding than agreed")]
    MorExceeded,
    /// The peer wants it so.
    #[error("the peer ended it")]
    PeerRequest,
    /// The network failed.
    #[error("the network failed")]
    NetworkError,
    /// The user wants it so.
    #[error("the user ended it")]
    UserRequest,
    /// The user refuses, without a special cause.
    #[error("refused")]
    UserRefused,
    /// The push cannot be delivered.
    #[error("the push could not be delivered")]
    UserPushNotDelivered,
    /// The push was thrown away: no resources.
    #[error("the push was discarded for want of resources")]
    UserDiscarded,
    /// The type of content cannot be processed.
    #[error("the type of content cannot be processed")]
    UserUnknownContent,
    /// A code that is not assigned.
    #[error("reason {0:#04x}")]
    #[strum(disabled)]
    Other(u8),
}

impl Reason {
    const FIRST: u8 = 0xE0;

    /// Its code.
    pub fn code(self) -> u8 {
        match self {
            Reason::Other(code) => code,
            known => Self::FIRST + Self::iter().position(|reason| reason == known).unwrap_or(0) as u8,
        }
    }

    /// The reason of a code.
    pub fn of(code: u8) -> Reason {
        let place = code.checked_sub(Self::FIRST).map(usize::from);
        place.and_then(|place| Self::iter().nth(place)).unwrap_or(Reason::Other(code))
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
