//! What tshark makes of protected packets, with the secrets that were noted.

mod ends;

use airloom_base::{Body, TransportEvent};
use airloom_quic::{Config, Session};
use airloom_testkit::tshark;

use ends::{Ends, at};

/// A capture of raw IP with these datagrams (UDP headers and what is behind them), a millisecond apart.
fn pcap(sent: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (n, (end, udp)) in (0u32..).zip(sent) {
        let len = 20 + udp.len() as u32;
        for word in [n / 1000, n % 1000 * 1000, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&[0x45, 0]);
        file.extend_from_slice(&(len as u16).to_be_bytes());
        let own = 1 + *end as u8;
        file.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, own, 10, 0, 0, 3 - own]);
        file.extend_from_slice(udp);
    }
    file
}

#[test]
fn tshark_reads_all_of_a_connection_with_the_noted_secrets() {
    if !tshark::are_installed(&["tshark"], "quic/capture") {
        return;
    }
    let text = b"readable by whoever knows the secrets";
    let mut ends =
        Ends::new(&Config { session: Session::Seeded, ..Config::default() }, 1, Some("airloom/test"));
    ends.run(at(100));
    assert!(ends.told(0, TransportEvent::Opened));
    let stream = ends.with(0, |client, cx| client.open_stream(cx, airloom_base::StreamKind::Bi)).unwrap();
    let body = Body::Real(text.to_vec().into());
    ends.with(0, |client, cx| client.write(cx, stream, body)).unwrap();
    ends.with(0, |client, cx| client.finish(cx, stream));
    ends.run(at(200));
    let place = |kind| std::env::temp_dir().join(format!("airloom-quic-{}.{kind}", std::process::id()));
    let (capture, keys) = (place("pcap"), place("keys"));
    std::fs::write(&capture, pcap(&ends.sent)).unwrap();
    std::fs::write(&keys, ends.protocols[0].key_log().lines()).unwrap();
    let log = format!("tls.keylog_file:{}", keys.display());
    let fields = |filter: &str, fields: &[&str]| {
        let options = ["-o", &log, "-Y", filter, "-T", "fields", "-E", "separator=|"];
        let words: Vec<&str> =
            options.iter().copied().chain(fields.iter().flat_map(|field| ["-e", field])).collect();
        tshark::tshark(&capture, &words)
    };
    let complaints = fields(
        "_ws.malformed || quic.decryption_failed || _ws.expert.severity >= 0x600000",
        &["frame.number", "_ws.expert.message"],
    );
    assert_eq!(complaints, "");
    let hello = fields("tls.handshake.type == 1", &["tls.handshake.extensions_alpn_str", "quic.version"]);
    assert_eq!(hello.trim(), "airloom/test|0x00000001");
    let data: String = fields("quic.stream_data", &["quic.stream_data"]);
    let hex: String = text.iter().map(|octet| format!("{octet:02x}")).collect();
    assert!(data.contains(&hex), "{data}");
    // Server's extensions, certificate, its proof and its end; the client's end; tickets.
    for kind in [2, 8, 11, 15, 20, 4] {
        assert_ne!(fields(&format!("tls.handshake.type == {kind}"), &["frame.number"]), "", "{kind}");
    }
    std::fs::remove_file(capture).unwrap();
    std::fs::remove_file(keys).unwrap();
}
