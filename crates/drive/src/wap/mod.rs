//! A WAP client on real sockets: the machines of `airloom_transports::wsp` behind a UDP socket, one call at a time.
//!
//! [`Client`] asks a gateway, in a session over WTP or in single datagrams; [`Listener`] takes pushes without a session.
//! Calls block until they are answered, until their time is over, or until the caller's `watch` says to stop: it is looked
//! at ten times a second.

mod client;
mod error;
mod headers;
mod push;
mod socket;

pub use client::{Client, Options, Request, Response};
pub use error::Error;
pub use push::{Listener, PORT, Push};

/// Says whether to go on; called now and then.
pub type Watch<'a> = &'a mut dyn FnMut() -> bool;
