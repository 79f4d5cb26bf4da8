//! The field `Alt-Svc` of others.

use std::fmt::Write;

use airloom_content::http::alt_svc::{AltSvc, Service, parse};

/// Lines of the field: what is read of them is written and read again as the same.
pub fn alt_svc(octets: &[u8]) {
    let Some(read) = parse(octets.split(|octet| *octet == b'\n')) else { return };
    let AltSvc::Services(services) = &read else { return };
    assert!(!services.is_empty(), "a list of nothing is malformed");
    let mut written = String::new();
    for Service { protocol, host, port, max_age, persists } in services {
        assert!(*port > 0 && *max_age <= 1 << 31, "{read:?}");
        for octet in protocol {
            write!(written, "%{octet:02x}").expect("there is memory");
        }
        let (host, persists) = (host.as_deref().unwrap_or_default(), u8::from(*persists));
        write!(written, "=\"{host}:{port}\"; ma={max_age}; persist={persists}, ").expect("there is memory");
    }
    assert_eq!(parse([written.as_bytes()].into_iter()).as_ref(), Some(&read), "{written}");
}
