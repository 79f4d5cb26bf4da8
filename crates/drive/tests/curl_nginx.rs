//! Real curl on the kernel's TCP fetches from a real nginx, every packet through the model.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use airloom_base::Duration;
use airloom_drive::real_time::{self, Report};
use airloom_drive::virtual_time::{Outcome, Until};
use airloom_world::{Builder, End, HostId, World};
use serde_json::{Value, json};

use support::{Folder, laboratory, nginx};

/// Octets of the fetched object.
const SIZE: usize = 200_000;
const ORIGIN: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);

/// `mobile` (real) - radio - `gateway` - internet - `origin` (real).
fn chain(radio: &str, config: &Value, command: Vec<String>) -> World {
    let mut b = Builder::new(1);
    let hosts = ["mobile", "gateway", "origin"].map(|name| b.host(name));
    let internet = json!({ "rate": "10Mbit/s", "delay": "10ms", "queue": "100 packets" });
    for (n, (link, kind, config)) in
        [("radio", radio, config), ("internet", "wireline", &internet)].into_iter().enumerate()
    {
        let entry = airloom_bearers::find(kind).unwrap();
        let bearer = (entry.build)(config, &mut b.parts(link, 1)).unwrap();
        let end = |host: HostId, last| {
            let address = IpAddr::from(Ipv4Addr::new(10, 77, n as u8, last));
            End { host, addresses: vec![address] }
        };
        b.link_with(link, bearer, vec![end(hosts[n], 2)], end(hosts[n + 1], 1)).unwrap();
    }
    b.real(hosts[0], None);
    b.real(hosts[2], Some(command));
    b.build().unwrap()
}

/// Fetches the object; octets, seconds until connected and in total as curl saw them.
fn fetch(world: &mut World, folder: &Folder) -> (Report, [f64; 3]) {
    let out = folder.file("out");
    let format = "%{size_download} %{time_connect} %{time_total}";
    let shell = format!("curl -sS -o /dev/null -w '{format}' http://{ORIGIN}/object > {out}");
    let command = ["sh", "-c", &shell].map(str::to_owned);
    let until = Until::Done { limit: Duration::from_secs(120) };
    let report = real_time::run(world, Some(&command), until, |_, _| true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(0)));
    let text = fs::read_to_string(out).unwrap();
    let figures: Vec<f64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
    (report, figures.try_into().unwrap())
}

#[test]
fn curl_fetches_from_nginx_over_a_wire_no_faster_than_the_wire_allows() {
    let Some(_guard) = laboratory("curl_nginx::wireline", &["curl", "nginx"]) else { return };
    let folder = Folder::new("curl-wireline");
    let radio = json!({ "rate": "2Mbit/s", "delay": "15ms", "queue": "100 packets" });
    let mut world = chain("wireline", &radio, nginx(&folder, SIZE));
    let (report, [size, connect, total]) = fetch(&mut world, &folder);
    assert_eq!(size as usize, SIZE);
    // Two delays and the round trip of an empty segment; then the object at the rate of the slower link.
    assert!(connect >= 0.050, "{connect}");
    assert!(total >= 0.100 + SIZE as f64 * 8.0 / 2e6, "{total}");
    assert_eq!((report.malformed, report.ports.overflow, report.ports.unsent), (0, 0, 0));
    // The shortest way: a segment without data over both links.
    let least = report.base_delay.unwrap();
    assert!((25_000..27_000).contains(&least.as_micros()), "{least}");
}
