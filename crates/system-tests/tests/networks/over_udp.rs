//! Protocols over UDP live beside applications that use UDP themselves: a datagram goes to the connection with its addresses and
//! ports, to the application with its port, to the connection that it names, or opens one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use airloom_base::service::{Datagram, Described, FlowFacts, Identity, Path, WriteError};
use airloom_base::{
    App, Body, Cx, Duration, Instant, Outgoing, Packet, PathId, Protocol, SocketEvent, SocketId, Sockets,
    StreamEvent, StreamKind, Transport, TransportEvent,
};
use airloom_drive::virtual_time::{self, Until};
use airloom_world::Builder;
use serde_json::json;

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: String) {
    log.lock().unwrap().push(what);
}

/// A protocol whose datagrams begin with the name of their connection; a name above 9 opens none.
struct Named {
    log: Log,
    flows: Vec<(u8, u32)>,
    served: Vec<(u16, &'static str)>,
}

struct Connection {
    log: Log,
    events: Vec<TransportEvent>,
    answers: bool,
    ports: (u16, u16),
}

fn name(unit: &Packet) -> u8 {
    unit.body().to_bytes().first().copied().unwrap_or(0)
}

impl Transport for Connection {
    fn connect(&mut self, _: &mut Cx) {}
    fn handle_packet(&mut self, _: &mut Cx, path: PathId, ecn: u8, unit: Packet) {
        note(&self.log, format!("{} over path {} with {ecn}", name(&unit), path.0));
        self.answers = path.0 > 0;
    }
    fn poll_transmit(&mut self, _: &mut Cx) -> Option<Outgoing> {
        std::mem::take(&mut self.answers).then(|| {
            let udp = airloom_wire::udp::Udp { source: self.ports.0, destination: self.ports.1, len: 9 };
            let packet = Packet::build(|out| udp.emit(out), Body::Real(vec![9].into()));
            Outgoing { path: PathId(1), ecn: 0, packet, last: true }
        })
    }
    fn poll_event(&mut self) -> Option<TransportEvent> {
        self.events.pop()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: &mut Cx) {}
    fn write(&mut self, _: &mut Cx, _: u32, _: Body) -> Result<usize, WriteError> {
        Err(WriteError::Stopped(7))
    }
    fn read(&mut self, _: &mut Cx, _: u32, _: usize) -> Option<Body> {
        None
    }
    fn finish(&mut self, _: &mut Cx, _: u32) {}
    fn reset(&mut self, _: &mut Cx) {}
    fn path_mtu(&mut self, _: &mut Cx, _: PathId, _: u16) {}
    fn open_stream(&mut self, _: &mut Cx, kind: StreamKind) -> Option<u32> {
        (kind == StreamKind::Uni).then_some(3)
    }
    fn reset_stream(&mut self, _: &mut Cx, stream: u32, code: u64) {
        note(&self.log, format!("stream {stream} is reset with {code}"));
    }
    fn handle_move(&mut self, _: &mut Cx, path: Path, ports: (u16, u16)) -> Option<PathId> {
        note(&self.log, format!("moved to {}:{}", path.remote, ports.1));
        self.ports = ports;
        // Always the same one: what was there is given up for it.
        Some(PathId(1))
    }
    fn facts(&self) -> FlowFacts {
        FlowFacts::default()
    }
    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}

impl Protocol for Named {
    fn name(&self) -> &'static str {
        "named"
    }
    fn ip_protocol(&self) -> u8 {
        17
    }
    fn serve(&mut self, port: u16, protocol: &'static str) {
        self.served.push((port, protocol));
    }
    fn open(&mut self, _: &mut Cx, _: Path, _: (u16, u16), _: Identity) -> Box<dyn Transport> {
        unreachable!("nobody opens")
    }
    fn whose(&mut self, _: &mut Cx, _: &Path, _: (u16, u16), _: u8, unit: &Packet) -> Option<u32> {
        self.flows.iter().find(|(of, _)| *of == name(unit)).map(|(_, flow)| *flow)
    }
    fn accept(
        &mut self,
        _: &mut Cx,
        _: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>> {
        if name(unit) > 9 {
            return None;
        }
        self.flows.push((name(unit), who.flow));
        note(&self.log, format!("{} is accepted, spoken {:?}", name(unit), self.served));
        let events = vec![TransportEvent::Stream(2, StreamEvent::Opened), TransportEvent::Opened];
        Some(Box::new(Connection { log: self.log.clone(), events, answers: false, ports }))
    }
    fn refuse(&mut self, unit: &Packet) -> Option<Packet> {
        note(&self.log, format!("{} is refused", name(unit)));
        None
    }
    fn describe(&self, _: &[u8]) -> Described {
        Described::default()
    }
}

/// Listens for connections on 443, and for datagrams on 9201.
struct Server(Log);

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![443]
    }
    fn datagram_ports(&self) -> Vec<u16> {
        vec![9201]
    }
    fn speaks(&self) -> Option<&'static str> {
        Some("named/1")
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let SocketEvent::Stream(StreamEvent::Opened) = event else { return };
        note(&self.0, format!("stream {} was opened", socket.stream));
        assert_eq!(net.open_stream(cx, socket, StreamKind::Bi), None);
        let own = net.open_stream(cx, socket, StreamKind::Uni).expect("there is one");
        assert_eq!(own, socket.with_stream(3));
        assert_eq!(net.write(cx, own, Body::filler(1, 1)), Err(WriteError::Stopped(7)));
        net.reset_stream(cx, own, 11);
    }
    fn handle_datagram(&mut self, _: &mut Cx, _: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { local_port, remote, .. } = datagram else { return };
        note(&self.0, format!("{local_port} has a datagram from port {}", remote.port()));
    }
}

/// Sends these datagrams, each from its port to its port with this name, and notes what comes back.
struct Sender {
    log: Log,
    to: std::net::IpAddr,
    sends: Vec<(u16, u16, u8)>,
}

impl App for Sender {
    fn datagram_ports(&self) -> Vec<u16> {
        self.sends.iter().map(|(from, ..)| *from).collect()
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        for (local_port, to, name) in self.sends.clone() {
            let (remote, body) = (SocketAddr::new(self.to, to), Body::Real(vec![name].into()));
            net.send_datagram(cx, Datagram::Udp { local_port, remote, body });
        }
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, _: &mut Cx, _: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { local_port, .. } = datagram else { return };
        note(&self.log, format!("an answer to port {local_port}"));
    }
}

fn told(sends: &[(u16, u16, u8)]) -> Vec<String> {
    let (log, mut b) = (Log::default(), Builder::new(1));
    let [client, server] = ["client", "server"].map(|name| b.host(name));
    // Slow enough that each datagram is there before the next one.
    b.link("wire", "wireline", &json!({ "rate": "1kbit/s" }), &[client], server).unwrap();
    b.protocol(server, Box::new(Named { log: log.clone(), flows: Vec::new(), served: Vec::new() }));
    b.app_with(server, Box::new(Server(log.clone())));
    let to = b.address_of(client, "server").unwrap();
    b.app_with(client, Box::new(Sender { log: log.clone(), to, sends: sends.to_vec() }));
    let mut world = b.build().unwrap();
    virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs(20)), |_, _| true);
    log.lock().unwrap().clone()
}

const ACCEPTED: [&str; 4] = [
    "1 is accepted, spoken [(443, \"named/1\")]",
    "1 over path 0 with 0",
    "stream 2 was opened",
    "stream 3 is reset with 11",
];

#[test]
fn an_application_has_its_port_beside_a_protocol_over_udp() {
    let told = told(&[(5000, 443, 1), (5000, 9201, 1), (5001, 9201, 1), (5000, 443, 1)]);
    let rest =
        ["9201 has a datagram from port 5000", "9201 has a datagram from port 5001", "1 over path 0 with 0"];
    assert_eq!(told, [&ACCEPTED[..], &rest].concat());
}

#[test]
fn a_connection_is_found_by_what_its_datagram_says_and_by_its_addresses_from_then_on() {
    let told = told(&[(5000, 443, 1), (5001, 443, 1), (5001, 443, 1), (5002, 443, 1), (5001, 443, 1)]);
    let moved = |port: u16| {
        let came = ["1 over path 1 with 0".to_owned(), format!("an answer to port {port}")];
        [vec![format!("moved to 10.0.0.2:{port}")], came.to_vec()].concat()
    };
    let mut rest = moved(5001);
    rest.extend_from_slice(&moved(5001)[1..]);
    rest.extend(moved(5002));
    // The path was given up for another one: it is a move again.
    rest.extend(moved(5001));
    // Answers take a while: what was told first comes first.
    let of = |told: &[String], answers: bool| -> Vec<String> {
        told.iter().filter(|line| line.starts_with("an answer") == answers).cloned().collect()
    };
    let expected = [ACCEPTED.map(str::to_owned).to_vec(), rest].concat();
    assert_eq!(of(&told, false), of(&expected, false));
    assert_eq!(of(&told, true), of(&expected, true));
}

#[test]
fn what_nobody_knows_is_refused_and_at_a_port_where_nobody_listens_not_even_that() {
    assert_eq!(told(&[(5000, 443, 99), (5000, 444, 1)]), ["99 is refused"]);
}
