//! Does a connection live on after an exchange (RFC 9112, 9.3)?

use crate::http::message::{Fields, Version};

/// Who received the message that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// An origin server received a request.
    Server,
    /// A proxy received a request.
    Proxy,
    /// A client (or the client side of a proxy) received a response.
    Client,
}

/// Does the sender of a message with these fields keep the connection open? A body that ends with the connection
/// ends it whatever the fields say.
pub fn persists(version: Version, fields: &Fields, receiver: Receiver) -> bool {
    // Browsers sent Proxy-Connection to proxies, and some still do; it means Connection there.
    let says = |token| {
        fields.list_has("connection", token)
            || (receiver == Receiver::Proxy && fields.list_has("proxy-connection", token))
    };
    if says("close") {
        return false;
    }
    //= RFC 9112 (9.3): 1.1 persists; 1.0 with keep-alive too, unless the receiver is a proxy that got a request.
    version >= Version::Http11 || (says("keep-alive") && receiver != Receiver::Proxy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_wins_then_the_version_then_keep_alive() {
        let none = Fields::default();
        let close = Fields::from_iter([("Connection", "keep-alive, Close")]);
        let keep = Fields::from_iter([("Connection", "Keep-Alive")]);
        for receiver in [Receiver::Server, Receiver::Proxy, Receiver::Client] {
            assert!(persists(Version::Http11, &none, receiver));
            assert!(!persists(Version::Http11, &close, receiver));
            assert!(!persists(Version::Http10, &none, receiver));
            assert!(!persists(Version::Http10, &close, receiver));
            assert_eq!(persists(Version::Http10, &keep, receiver), receiver != Receiver::Proxy);
        }
    }

    #[test]
    fn proxy_connection_counts_at_a_proxy_only() {
        let close = Fields::from_iter([("Proxy-Connection", "close")]);
        assert!(!persists(Version::Http11, &close, Receiver::Proxy));
        assert!(persists(Version::Http11, &close, Receiver::Server));
    }
}
