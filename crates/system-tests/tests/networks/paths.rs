//! What becomes of links reaches the connections and applications at their ends, and nobody else.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use airloom_base::service::{Described, FlowFacts, Identity, Path, WriteError};
use airloom_base::{
    App, Body, Change, Cx, Duration, Instant, LinkState, Outgoing, Packet, PathId, Protocol, SocketEvent,
    SocketId, Sockets, Transport, TransportEvent,
};
use airloom_drive::virtual_time::{self, Until};
use airloom_world::{Builder, End, HostId, LinkId};
use serde_json::{Value, json};

/// Milliseconds, who was told, and what.
type Log = Arc<Mutex<Vec<(u64, String)>>>;

fn note(log: &Log, now: Instant, what: String) {
    log.lock().unwrap().push((now.as_nanos() / 1_000_000, what));
}

/// A connection that sends nothing, is open at once and has all paths that there are.
struct Still {
    log: Log,
    peer: Vec<IpAddr>,
    is_told: bool,
}

impl Transport for Still {
    fn connect(&mut self, _: &mut Cx) {}
    fn handle_packet(&mut self, _: &mut Cx, _: PathId, _: u8, _: Packet) {}
    fn poll_transmit(&mut self, _: &mut Cx) -> Option<Outgoing> {
        None
    }
    fn poll_event(&mut self) -> Option<TransportEvent> {
        (!std::mem::replace(&mut self.is_told, true)).then_some(TransportEvent::Opened)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: &mut Cx) {}
    fn write(&mut self, _: &mut Cx, _: u32, _: Body) -> Result<usize, WriteError> {
        Err(WriteError::Closed)
    }
    fn read(&mut self, _: &mut Cx, _: u32, _: usize) -> Option<Body> {
        None
    }
    fn finish(&mut self, _: &mut Cx, _: u32) {}
    fn reset(&mut self, _: &mut Cx) {}
    fn path_mtu(&mut self, _: &mut Cx, _: PathId, _: u16) {}
    fn peer_addresses(&self) -> Option<&[IpAddr]> {
        Some(&self.peer)
    }
    fn add_path(&mut self, _: &mut Cx, _: Path) -> bool {
        true
    }
    fn handle_path(&mut self, cx: &mut Cx, path: PathId, is_up: bool) {
        note(&self.log, cx.now, format!("path {} {is_up}", path.0));
    }
    fn facts(&self) -> FlowFacts {
        FlowFacts::default()
    }
    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}

struct Stills {
    log: Log,
    peer: Vec<IpAddr>,
}

impl Protocol for Stills {
    fn name(&self) -> &'static str {
        "still"
    }
    fn ip_protocol(&self) -> u8 {
        254
    }
    fn open(&mut self, _: &mut Cx, _: Path, _: (u16, u16), _: Identity) -> Box<dyn Transport> {
        Box::new(Still { log: Arc::clone(&self.log), peer: self.peer.clone(), is_told: false })
    }
    fn accept(
        &mut self,
        _: &mut Cx,
        _: Path,
        _: (u16, u16),
        _: Identity,
        _: &Packet,
    ) -> Option<Box<dyn Transport>> {
        None
    }
    fn refuse(&mut self, _: &Packet) -> Option<Packet> {
        None
    }
    fn describe(&self, _: &[u8]) -> Described {
        Described::default()
    }
}

/// Notes what it is told of paths, with its name.
struct Watcher {
    name: &'static str,
    to: Option<IpAddr>,
    log: Log,
}

impl App for Watcher {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if let Some(to) = self.to {
            net.connect(cx, SocketAddr::new(to, 1));
        }
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_path(&mut self, cx: &mut Cx, _: &mut dyn Sockets, path: Path, is_up: bool) {
        note(&self.log, cx.now, format!("{}: {} to {} {is_up}", self.name, path.local, path.remote));
    }
}

fn link(b: &mut Builder, name: &str, config: &Value, near: &[(HostId, &str)], far: (HostId, &str)) -> LinkId {
    let end = |(host, address): (HostId, &str)| End { host, addresses: vec![address.parse().unwrap()] };
    let build = airloom_bearers::find(name).unwrap().build;
    let bearer = build(config, &mut b.parts(name, near.len())).unwrap();
    b.link_with(name, bearer, near.iter().copied().map(end).collect(), end(far)).unwrap()
}

/// mobile and other on a radio cell to gateway, mobile on a wire to it as well; what is told when these changes are made.
fn told(changes: &[(u64, &str, &[u16], LinkState)]) -> Vec<(u64, String)> {
    let (log, mut b) = (Log::default(), Builder::new(1));
    let [mobile, other, gateway] = ["mobile", "other", "gateway"].map(|name| b.host(name));
    let mobiles = [(mobile, "10.0.0.2"), (other, "10.0.0.3")];
    let radio = link(&mut b, "umts-dch", &json!({}), &mobiles, (gateway, "10.0.0.1"));
    let wire = link(&mut b, "wireline", &json!({}), &[(mobile, "10.0.1.2")], (gateway, "10.0.1.1"));
    let peer: Vec<IpAddr> = ["10.0.0.1", "10.0.1.1"].map(|address| address.parse().unwrap()).to_vec();
    for (host, name, to) in
        [(mobile, "mobile", Some(peer[0])), (other, "other", None), (gateway, "gateway", None)]
    {
        b.protocol(host, Box::new(Stills { log: Arc::clone(&log), peer: peer.clone() }));
        b.app_with(host, Box::new(Watcher { name, to, log: Arc::clone(&log) }));
    }
    for (at, which, part, state) in changes {
        let link = if *which == "radio" { radio } else { wire };
        b.at(Duration::from_millis(*at), link, part, Change::State(*state));
    }
    let mut world = b.build().unwrap();
    virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs(10)), |_, _| true);
    std::mem::take(&mut *log.lock().unwrap())
}

fn expected(rows: &[(u64, &str)]) -> Vec<(u64, String)> {
    rows.iter().map(|(at, what)| (*at, (*what).to_owned())).collect()
}

const UP: LinkState = LinkState::Up;
const DOWN: LinkState = LinkState::Down;

#[test]
fn a_connection_hears_of_the_path_that_goes_and_comes_and_both_hosts_of_their_link() {
    let wire = [(1000, "wire", &[][..], DOWN), (1500, "wire", &[], DOWN), (2000, "wire", &[], UP)];
    assert_eq!(
        told(&wire),
        expected(&[
            (1000, "path 1 false"),
            (1000, "mobile: 10.0.1.2 to 10.0.1.1 false"),
            (1000, "gateway: 10.0.1.1 to 10.0.1.2 false"),
            (2000, "path 1 true"),
            (2000, "mobile: 10.0.1.2 to 10.0.1.1 true"),
            (2000, "gateway: 10.0.1.1 to 10.0.1.2 true"),
        ])
    );
}

#[test]
fn of_a_cell_only_the_mobile_that_is_meant_hears() {
    let both = expected(&[
        (1000, "path 0 false"),
        (1000, "mobile: 10.0.0.2 to 10.0.0.1 false"),
        (1000, "gateway: 10.0.0.1 to 10.0.0.2 false"),
        (1000, "other: 10.0.0.3 to 10.0.0.1 false"),
        (1000, "gateway: 10.0.0.1 to 10.0.0.3 false"),
    ]);
    assert_eq!(told(&[(1000, "radio", &[], DOWN)]), both);
    assert_eq!(told(&[(1000, "radio", &[0], DOWN)]), both[..3]);
    assert_eq!(told(&[(1000, "radio", &[1], DOWN)]), both[3..]);
}

#[test]
fn a_link_that_is_out_of_service_from_the_beginning_is_known_before_anybody_starts() {
    let told = told(&[(0, "wire", &[], DOWN)]);
    assert_eq!(
        told,
        expected(&[
            (0, "mobile: 10.0.1.2 to 10.0.1.1 false"),
            (0, "gateway: 10.0.1.1 to 10.0.1.2 false"),
            (0, "path 1 false"),
        ])
    );
}
