//! PPP Multilink: several links of any kind carry the pieces of packets as one.
//!
//! ```text
//!               ┌─ fragment 0, B ──► member 0 ═══► ┐
//!   packet ──►  ├─ fragment 1 ─────► member 1 ═══► ├──► put together by their numbers ──► packet
//!               └─ fragment 2, E ──► member 2 ═══► ┘
//! ```
//!
//! A member is any bearer: what a plain link would carry as packets are PPP frames here. Both ends negotiate with each other on
//! each link that comes (LCP) and for the bundle (IPCP), in packets that travel over the members and may be lost there. At
//! the beginning of a run all of it has been done.
//!
//! All fragments of a direction are numbered together and keep their order on a member, so that a number is lost which all
//! members are past. A member that says nothing holds the others up until it does, it leaves the bundle, or patience ends:
//! this is what makes a bundle as good as its worst member.
//!
//! When a member is lost its ends do not know at once (`detect`), and go on sending over it. What was on its way there is
//! not moved to other members: their numbers would no longer increase.
//!
//! | file | concern |
//! |---|---|
//! | `config.rs` | the scenario's keys |
//! | `header.rs` | the header of a fragment |
//! | `plan.rs`, `pieces.rs` | which member carries how much; cutting and joining |
//! | `reassembly.rs` | the receiving end: what is lost, what is whole, what is waited for |
//! | `member.rs`, `way.rs` | a link; a direction |
//! | `bundle.rs` | the [`Bearer`](airloom_base::Bearer): who joins, who leaves, what is sent when |
//! | `control.rs` | its changes, and its summary |
//! | `records.rs` | what it tells about frames |
//!
//! **Sources.** RFC 1990; RFC 1661, 1662 and 1332 for PPP (see [`ppp`](crate::ppp)). That packets wait while fewer than half of the
//! members are free is the rule of Linux' `ppp_generic.c`.
//!
//! **Left out, and why.** Classes (RFC 2686) and the bandwidth allocation protocol: nobody here negotiates them. LCP echoes
//! that find a dead link: `detect` is the time they take. Flags, FCS and escaping: members with serial lines add them, and
//! the others keep frames whole by themselves. IPV6CP: IPv6 packets need no more than IPCP has opened.

mod bundle;
mod config;
mod control;
pub mod header;
mod member;
mod pieces;
mod plan;
pub mod reassembly;
mod records;
#[cfg(test)]
mod tests;
mod way;

pub use bundle::Mlppp;
pub use config::{Fragments, MlpppConfig};
