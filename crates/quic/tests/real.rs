//! Hosts beside real ones, which speak TLS.

use airloom_base::ProtocolParts;
use airloom_quic::Quic;
use serde_json::json;

#[test]
fn what_tls_has_not_is_refused_whether_it_was_chosen_or_not() {
    for session in ["auto", "tls", "model"] {
        for (key, what) in [("zero_rtt", "early data"), ("post_quantum", "key shares")] {
            let made = |is_set: bool| {
                let parts = ProtocolParts { seed: 1, host: "server", captured: false, has_real_hosts: true };
                Quic::from_table(&json!({ "session": session, key: is_set }), &parts)
            };
            assert!(made(false).is_ok());
            let said = made(true).err().map(|error| error.to_string());
            match session {
                "model" => assert_eq!(said, None),
                _ => assert!(
                    said.is_some_and(|said| said.contains(key) && said.contains(what)),
                    "{session} {key}"
                ),
            }
        }
    }
}
