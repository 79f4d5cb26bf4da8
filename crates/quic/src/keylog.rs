//! Secrets of connections in the form that other programs read (`SSLKEYLOGFILE`, draft-ietf-tls-keylogfile).

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::library::Side;
use crate::session::Epoch;

/// The lines of a host's connections, as they come.
#[derive(Clone, Default)]
pub struct KeyLog(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    /// Of connections as a client.
    client: String,
    /// Those that whoever sends first under them has to tell, since they were taken: of connections as a server, before the first
    /// packet leaves that they protect; of early data, the client's.
    told: String,
}

/// A line: whose secret it is, of which connection, and the secret.
fn line(label: &str, random: &[u8], secret: &[u8], out: &mut String) {
    out.push_str(label);
    for octets in [random, secret] {
        out.push(' ');
        octets.iter().for_each(|octet| write!(out, "{octet:02x}").expect("a string takes everything"));
    }
    out.push('\n');
}

impl KeyLog {
    /// Adds the secrets of the client and of the server, of whom `side` is this one.
    pub(crate) fn note(&self, side: Side, random: &[u8; 32], epoch: Epoch, secrets: &[[u8; 32]; 2]) {
        let kind = match epoch {
            Epoch::Early => "EARLY_TRAFFIC_SECRET",
            Epoch::Handshake => "HANDSHAKE_TRAFFIC_SECRET",
            Epoch::Data(_) => "TRAFFIC_SECRET_0",
        };
        let mut lines = String::new();
        let ends = if epoch == Epoch::Early { &["CLIENT"][..] } else { &["CLIENT", "SERVER"] };
        for (end, secret) in ends.iter().zip(secrets) {
            line(&format!("{end}_{kind}"), random, secret, &mut lines);
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if side.is_client() {
            all.client.push_str(&lines);
        }
        if side.is_client() == (epoch == Epoch::Early) {
            all.told.push_str(&lines);
        }
    }

    /// All lines of connections as a client so far.
    pub fn lines(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).client.clone()
    }

    /// Moves the lines that are to be told to where packets are kept.
    pub(crate) fn tell(&self, secrets: &mut String) {
        secrets.push_str(&std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).told));
    }
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whose connection it is TLS does not say. What is told twice is read once.
        line(label, client_random, secret, &mut all.client);
        line(label, client_random, secret, &mut all.told);
    }
}

impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyLog")
    }
}
