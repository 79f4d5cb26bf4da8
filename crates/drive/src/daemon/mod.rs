//! Machines on real sockets: what `airloom serve` runs.
//!
//! A daemon is a loop around a machine that knows nothing of it: it feeds datagrams and answers of origin servers, then
//! sends what the machine has to say, and wakes up when that asks for it.

pub mod browse;
mod browser_guard;
mod clock;
pub mod fetch;
mod http_cache;
mod http_face;
pub(crate) mod listening;
pub mod origins;
mod prometheus;
pub mod settings;
mod split_tcp;
pub(crate) mod stop;
pub mod streams;
pub(crate) mod udp;
pub mod wap_gateway;

pub use clock::today;
pub use listening::CannotListen;

/// A name in `Via` for a daemon that was given none.
///
/// # Errors
/// As the system says, where it has no random octets.
pub fn pseudonym() -> std::io::Result<String> {
    //= RFC 9110 (7.6.3): a name for each, on one machine too, and one that does not tell the machine's.
    Ok(format!("airloom-{:08x}", crate::secret::key()?.0 as u32))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_daemons_have_the_same_name_by_themselves() {
        let (one, other) = (super::pseudonym().expect("random"), super::pseudonym().expect("random"));
        assert!(one.starts_with("airloom-") && one != other, "{one} {other}");
    }
}
