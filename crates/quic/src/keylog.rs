//! Secrets of connections in the form that other programs read (`SSLKEYLOGFILE`, draft-ietf-tls-keylogfile).

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::session::Epoch;

/// The lines of a host's connections, as they come.
#[derive(Clone, Default)]
pub struct KeyLog(Arc<Mutex<String>>);

fn hex(octets: &[u8], out: &mut String) {
    octets.iter().for_each(|octet| write!(out, "{octet:02x}").expect("a string takes everything"));
}

impl KeyLog {
    /// Adds the secrets of the client and of the server.
    pub(crate) fn note(&self, random: &[u8; 32], epoch: Epoch, secrets: &[[u8; 32]; 2]) {
        let kind = match epoch {
            Epoch::Handshake => "HANDSHAKE_TRAFFIC_SECRET",
            Epoch::Data(_) => "TRAFFIC_SECRET_0",
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (end, secret) in ["CLIENT", "SERVER"].into_iter().zip(secrets) {
            write!(lines, "{end}_{kind} ").expect("a string takes everything");
            hex(random, &mut lines);
            lines.push(' ');
            hex(secret, &mut lines);
            lines.push('\n');
        }
    }

    /// All lines so far.
    pub fn lines(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
