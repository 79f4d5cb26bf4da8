//! A mobile and an origin on a wire, one of them real.

use std::fs;
use std::net::Ipv4Addr;

use airloom_base::{Body, Duration, random};
use airloom_drive::real_time::{self, Report};
use airloom_drive::virtual_time::{Outcome, Until};
use airloom_world::{Builder, End, HostId, World};
use serde_json::{Value, json};

use crate::support::{self, Folder};

/// The server's address.
pub const ORIGIN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Every test is over by then.
pub const LIMIT: Until = Until::Done { limit: Duration::from_secs(60) };

/// `mobile` and `origin` on a wire of 5 ms.
pub fn wire() -> (Builder, HostId, HostId) {
    let mut b = Builder::new(1);
    let (mobile, origin) = (b.host("mobile"), b.host("origin"));
    let wire = airloom_bearers::find("wireline").unwrap();
    let config = json!({ "rate": "100Mbit/s", "delay": "5ms" });
    let wire = (wire.build)(&config, &mut b.parts("cable", 1)).unwrap();
    let end = |host, n| End { host, addresses: vec![Ipv4Addr::new(10, 77, 0, n).into()] };
    b.link_with("cable", wire, vec![end(mobile, 2)], end(origin, 1)).unwrap();
    (b, mobile, origin)
}

/// Runs `shell` on a real mobile; the origin is the simulated server.
pub fn serve(config: &Value, shell: &str) -> (Report, World) {
    let (mut b, mobile, origin) = wire();
    b.real(mobile, None);
    b.transport(origin, "tcp", &json!({ "profile": "linux" })).unwrap();
    b.app(origin, "http-server", config, None).unwrap();
    let mut world = b.build().unwrap();
    let command = ["sh", "-c", shell].map(str::to_owned);
    let report =
        real_time::run(&mut world, Some(&command), LIMIT, |_, _| true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((report.outcome, report.malformed), (Outcome::Complete, 0));
    (report, world)
}

/// The octets of the object at `path`.
pub fn object(path: &str, len: u32) -> Vec<u8> {
    Body::filler(random::derive(0, path) as u32, len).to_bytes().to_vec()
}

/// An nginx that listens on `listen`, with a page of 20 kB and an image of so many octets; it needs nothing outside `folder`.
pub fn nginx(folder: &Folder, listen: &str, image: usize) -> Vec<String> {
    fs::create_dir_all(folder.file("www")).unwrap();
    fs::write(folder.file("www/page.html"), vec![b'x'; 20_000]).unwrap();
    fs::write(folder.file("www/image.png"), vec![b'y'; image]).unwrap();
    support::serving(folder, "", listen)
}
