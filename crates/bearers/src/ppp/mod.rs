//! The point-to-point protocol (RFC 1661, 1662) as links need it.
//!
//! | file | concern |
//! |---|---|
//! | `hdlc.rs` | frames on an octet stream: flags, octet stuffing, FCS-16 |
//! | `frame.rs` | what a frame says: address, control, protocol, and how they are left out |
//! | `control.rs` | packets of the control protocols: codes, identifiers, options |
//! | `automaton.rs` | the option negotiation automaton |
//! | `lcp.rs`, `ipcp.rs` | what is negotiated for a link, and for IPv4 |

pub mod automaton;
pub mod control;
pub mod frame;
pub mod hdlc;
pub mod ipcp;
pub mod lcp;
