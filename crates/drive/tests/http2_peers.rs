//! HTTP/2 with other people's programs: curl (nghttp2) and the simulated server, the simulated client and nginx, and tshark as
//! the reader of what went over the wire.

#![cfg(target_os = "linux")]

#[path = "support/http.rs"]
mod http;
mod support;

use std::fs;

use airloom_drive::real_time;
use airloom_drive::virtual_time::Outcome;
use serde_json::json;

use http::{LIMIT, ORIGIN, nginx, object, serve, wire};
use support::{Folder, laboratory};

#[test]
fn curl_gets_the_same_octets_over_http2_and_asks_side_by_side() {
    let Some(_guard) = laboratory("http2_peers::curl", &["curl"]) else { return };
    let folder = Folder::new("http2-curl");
    let out = folder.file("out");
    let form = folder.file("form");
    fs::write(&form, vec![b'x'; 300_000]).unwrap();
    let common = "curl -sS -m 20 --http2-prior-knowledge";
    let written = "-w '%{http_version} %{http_code} %{num_connects}\\n'";
    // One after another over one connection is not asked for: curl 7.88 fails at that in clear text, with nginx too.
    let one = format!("-o {out}.1 http://{ORIGIN}/200kB");
    let parallel: String =
        (1..=20).map(|n| format!(" -o {out}.p{n} http://{ORIGIN}/{}", n * 5_000)).collect();
    let shell = format!(
        "{{ {common} {written} {one}; {common} -Z --parallel-immediate {parallel}; \
         {common} {written} -o /dev/null -I http://{ORIGIN}/5MB; \
         {common} {written} -o /dev/null http://{ORIGIN}/none; \
         {common} {written} -o /dev/null --data-binary @{form} http://{ORIGIN}/; \
         curl -sS -m 20 {written} -o /dev/null http://{ORIGIN}/77; }} > {out}"
    );
    let (report, world) = serve(&json!({ "http": "2" }), &shell);
    assert_eq!(report.exit_code, Some(0));
    assert!(fs::read(format!("{out}.1")).unwrap() == object("/200kB", 200_000));
    for n in 1..=20 {
        let size = n * 5_000;
        assert!(fs::read(format!("{out}.p{n}")).unwrap() == object(&format!("/{size}"), size), "{n}");
    }
    let said = fs::read_to_string(&out).unwrap();
    assert_eq!(said, "2 200 1\n2 200 1\n2 404 1\n2 200 1\n1.1 200 1\n");
    let values = world.summary().values;
    assert_eq!((values["requests"], values["requests_malformed"]), (25.0, 0.0));
}

#[test]
fn twenty_megabytes_go_through_the_windows_of_curl() {
    let Some(_guard) = laboratory("http2_peers::windows", &["curl"]) else { return };
    let folder = Folder::new("http2-windows");
    let out = folder.file("out");
    let shell = format!("curl -sS -m 50 --http2-prior-knowledge -o {out} http://{ORIGIN}/20MB");
    let (report, _) = serve(&json!({ "http": "2" }), &shell);
    assert_eq!(report.exit_code, Some(0));
    assert!(fs::read(&out).unwrap() == object("/20MB", 20_000_000));
}

#[test]
fn the_simulated_client_fetches_from_nginx_over_http2() {
    let Some(_guard) = laboratory("http2_peers::nginx", &["nginx"]) else { return };
    for windows in ["65535B", "5MB"] {
        let folder = Folder::new("http2-nginx");
        let (mut b, mobile, origin) = wire();
        b.real(origin, Some(nginx(&folder, "80 http2", 700_000)));
        b.transport(mobile, "tcp", &json!({ "profile": "linux" })).unwrap();
        let image = json!({ "path": "/image.png", "size": "700kB" });
        let page = json!({ "path": "/page.html", "size": "20kB" });
        let config = json!({
            "http": "2", "h2_stream_window": windows, "h2_conn_window": windows,
            "pages": [[page, image, image, image, page, page], [page, image]],
        });
        b.app(mobile, "http-client", &config, Some("origin")).unwrap();
        let mut world = b.build().unwrap();
        let report = real_time::run(&mut world, None, LIMIT, |_, _| true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((report.outcome, report.malformed), (Outcome::Complete, 0), "{windows}");
        let values = world.summary().values;
        assert_eq!((values["objects"], values["failed"], values["asked_again"]), (8.0, 0.0, 0.0));
        assert_eq!(values["connections"], 1.0);
    }
}
