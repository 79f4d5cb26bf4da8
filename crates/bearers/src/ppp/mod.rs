//! The point-to-point protocol (RFC 1661, 1662) as links need it.
//!
//! | file | concern |
//! |---|---|
//! | `hdlc.rs` | frames on an octet stream: flags, octet stuffing, FCS-16 |

pub mod hdlc;
