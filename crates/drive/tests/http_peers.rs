//! The simulated HTTP server serves real curl, and the simulated client fetches from a real nginx.

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
fn curl_gets_the_same_octets_from_the_simulated_server_in_every_mode() {
    let Some(_guard) = laboratory("http_peers::modes", &["curl"]) else { return };
    for (mode, config, options) in [
        ("1.1", json!({}), ""),
        ("1.0", json!({}), "-0"),
        ("chunked", json!({ "coding": "chunked", "chunk": "1000B" }), ""),
        ("closed", json!({ "coding": "close" }), ""),
        ("old", json!({ "http": "1.0" }), ""),
    ] {
        let folder = Folder::new(&format!("http-{mode}"));
        let out = folder.file("out");
        // The second object comes over the same connection where it may.
        let urls = format!("-o {out}.1 http://{ORIGIN}/200kB -o {out}.2 http://{ORIGIN}/10240");
        let written = "-w '%{http_code} %{num_connects}\\n'";
        let (report, world) =
            serve(&config, &format!("curl -sS -m 20 {options} {written} {urls} > {out}.said"));
        assert_eq!(report.exit_code, Some(0), "{mode}");
        assert!(fs::read(format!("{out}.1")).unwrap() == object("/200kB", 200_000), "{mode}");
        assert!(fs::read(format!("{out}.2")).unwrap() == object("/10240", 10_240), "{mode}");
        let said = fs::read_to_string(format!("{out}.said")).unwrap();
        let kept = matches!(mode, "1.1" | "chunked");
        assert_eq!(said, format!("200 1\n200 {}\n", if kept { 0 } else { 1 }), "{mode}");
        let summary = world.summary();
        assert_eq!(summary.values["requests"], 2.0, "{mode}");
        assert_eq!(summary.values["requests_malformed"], 0.0, "{mode}");
    }
}

#[test]
fn curl_understands_heads_errors_forms_and_refused_uploads() {
    let Some(_guard) = laboratory("http_peers::errors", &["curl"]) else { return };
    let folder = Folder::new("http-errors");
    let out = folder.file("out");
    let body = folder.file("body");
    fs::write(&body, vec![b'x'; 100_000]).unwrap();
    let code = "curl -sS -m 20 -o /dev/null -w '%{http_code} '";
    let shell = format!(
        "{{ {code} http://{ORIGIN}/; {code} -I http://{ORIGIN}/5MB; {code} http://{ORIGIN}/none; \
         {code} -X BREW http://{ORIGIN}/; {code} --data-binary @{body} http://{ORIGIN}/; \
         {code} -T {body} http://{ORIGIN}/; }} > {out}"
    );
    let (report, _) = serve(&json!({ "objects": { "/a": "1kB" } }), &shell);
    assert_eq!(report.exit_code, Some(0));
    assert_eq!(fs::read_to_string(out).unwrap(), "200 200 404 501 200 405 ");
}

#[test]
fn the_simulated_client_fetches_from_nginx_in_every_mode() {
    let Some(_guard) = laboratory("http_peers::nginx", &["nginx"]) else { return };
    for (config, connections) in [
        (json!({ "http": "1.0" }), 4.0),
        (json!({ "http": "1.0-keep-alive", "connections": 1 }), 1.0),
        (json!({ "http": "1.1", "connections": 2 }), 2.0),
        (json!({ "http": "1.1", "connections": 1, "pipeline": 8 }), 1.0),
    ] {
        let folder = Folder::new("http-nginx");
        let (mut b, mobile, origin) = wire();
        b.real(origin, Some(nginx(&folder, "80", 7_000)));
        b.transport(mobile, "tcp", &json!({ "profile": "linux" })).unwrap();
        let image = json!({ "path": "/image.png", "size": "7kB" });
        let mut config = config;
        config["pages"] = json!([[{ "path": "/page.html", "size": "20kB" }, image, image, image]]);
        b.app(mobile, "http-client", &config, Some("origin")).unwrap();
        let mut world = b.build().unwrap();
        let report = real_time::run(&mut world, None, LIMIT, |_, _| true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((report.outcome, report.malformed), (Outcome::Complete, 0), "{config}");
        let values = world.summary().values;
        assert_eq!((values["objects"], values["failed"], values["asked_again"]), (4.0, 0.0, 0.0), "{config}");
        assert_eq!(values["connections"], connections, "{config}");
    }
}
