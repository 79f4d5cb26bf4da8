//! Our TCP against smoltcp, an independent one, in virtual time: both roles, both directions, with losses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airloom_base::random::Stream;
use airloom_base::service::{Identity, Path};
use airloom_base::units::Octets;
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_wire::edge;
use airloom_wire::ip::{self, Ip, protocol};
use smoltcp::iface::{self, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

const DELAY: Duration = Duration::from_millis(10);
const MTU: usize = 1500;

/// What smoltcp sends and is to receive.
#[derive(Default)]
struct Wire {
    received: std::collections::VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Incoming(Vec<u8>);
struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl phy::RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut octets = vec![0; len];
        let result = f(&mut octets);
        self.0.push(octets);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _now: smoltcp::time::Instant) -> Option<(Incoming, Leaving<'_>)> {
        self.received.pop_front().map(|octets| (Incoming(octets), Leaving(&mut self.sent)))
    }

    fn transmit(&mut self, _now: smoltcp::time::Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// Which side is smoltcp, who sends, how much, and what is lost.
#[derive(Clone, Copy, Debug)]
struct Case {
    smoltcp_opens: bool,
    smoltcp_sends: bool,
    size: u32,
    lose: f64,
    profile: Profile,
}

/// Two stacks and a link of 10 ms between them.
struct Table {
    case: Case,
    now: Instant,
    random: Stream,
    outbox: Outbox,
    tcp: Tcp,
    conn: Option<Box<dyn Transport>>,
    opened: bool,
    closed: Option<CloseReason>,
    unsent: Body,
    received: Vec<u8>,
    device: Wire,
    iface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    written: usize,
    read: Vec<u8>,
    /// Datagrams on their way, by time and order: to us?
    flying: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    order: u64,
    octets: bytes::Bytes,
}

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn moment(at: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros((at.as_nanos() / 1000) as i64)
}

impl Table {
    fn new(case: Case) -> Table {
        let mut config = Config { time_wait: Duration::from_secs(10), ..case.profile.settings() };
        // It does not probe a closed window (0.12), so that a lost update would be the end: none closes here.
        config.receive_buffer = Octets(config.receive_buffer.0.max(64_000));
        config.initial_receive_window = Octets(config.initial_receive_window.0.max(64_000));
        let mut device = Wire::default();
        let config_of_iface = iface::Config::new(HardwareAddress::Ip);
        let mut iface = Interface::new(config_of_iface, &mut device, smoltcp::time::Instant::ZERO);
        iface.update_ip_addrs(|list| list.push(IpCidr::new(IpAddress::v4(10, 0, 0, 1), 24)).expect("room"));
        let buffer = || tcp::SocketBuffer::new(vec![0; 200_000]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        // No timestamps: with them its full segments (0.12) are larger than the MTU by the option, and never leave.
        if !case.smoltcp_opens {
            socket.listen(80).expect("a socket that is closed");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        let whole = Body::filler(3, case.size);
        Table {
            case,
            now: Instant::ZERO,
            random: Stream::new(5, "table"),
            outbox: Outbox::default(),
            tcp: Tcp::new(config, 1),
            conn: None,
            opened: false,
            closed: None,
            unsent: if case.smoltcp_sends { Body::EMPTY } else { whole.clone() },
            received: Vec::new(),
            device,
            iface,
            sockets,
            socket,
            written: 0,
            read: Vec::new(),
            flying: BTreeMap::new(),
            order: 0,
            octets: whole.to_bytes(),
        }
    }

    fn path() -> Path {
        Path { local: OURS, remote: THEIRS, mtu: MTU as u16 }
    }

    fn fly(&mut self, to_us: bool, octets: Vec<u8>) {
        if !self.random.chance(self.case.lose) {
            self.order += 1;
            self.flying.insert((self.now + DELAY, self.order), (to_us, octets));
        }
    }

    fn open(&mut self) {
        if self.case.smoltcp_opens {
            let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
            let to = (IpAddress::v4(10, 0, 0, 2), 80);
            socket.connect(self.iface.context(), to, 40_000).expect("a socket that is closed");
        } else {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            let ports = (40_000, 80);
            let mut conn = self.tcp.open(&mut cx, Self::path(), ports, Identity::default());
            conn.connect(&mut cx);
            self.conn = Some(conn);
        }
        self.settle();
    }

    /// Both stacks do what they can do now.
    fn settle(&mut self) {
        self.ours();
        self.theirs();
        self.ours();
    }

    fn ours(&mut self) {
        while let Some(conn) = &mut self.conn {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            let Some(event) = conn.poll_event() else {
                let Some(out) = conn.poll_transmit(&mut cx) else { return };
                let mut packet = out.packet;
                let len = packet.wire_len();
                ip::emit(packet.prepend(20), OURS, THEIRS, protocol::TCP, 0, len);
                let mut octets = Vec::new();
                edge::egress(&packet, &mut octets);
                self.fly(false, octets);
                continue;
            };
            match event {
                TransportEvent::Opened | TransportEvent::Writable(_) => {
                    self.opened = true;
                    let taken = conn.write(&mut cx, 0, self.unsent.clone()).unwrap_or(0);
                    let _ = self.unsent.split_to(taken);
                    if self.unsent.is_empty() && !self.case.smoltcp_sends {
                        conn.finish(&mut cx, 0);
                    }
                }
                TransportEvent::Readable(..) => {
                    while let Some(body) = conn.read(&mut cx, 0, 1 << 20) {
                        self.received.extend_from_slice(&body.to_bytes());
                    }
                }
                TransportEvent::Finished(_) => conn.finish(&mut cx, 0),
                TransportEvent::Closed(reason) => self.closed = Some(reason),
                TransportEvent::Lingering => self.conn = self.conn.take().map(|c| c.into_lingering()),
                TransportEvent::Gone => self.conn = None,
                TransportEvent::Asked | TransportEvent::Stream(..) => {}
            }
        }
    }

    fn theirs(&mut self) {
        loop {
            self.iface.poll(moment(self.now), &mut self.device, &mut self.sockets);
            let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
            let mut busy = false;
            if socket.can_recv() {
                let _ = socket.recv(|octets| {
                    self.read.extend_from_slice(octets);
                    busy |= !octets.is_empty();
                    (octets.len(), ())
                });
            }
            if self.case.smoltcp_sends && socket.may_send() {
                if self.written < self.octets.len() {
                    let taken = socket.send_slice(&self.octets[self.written..]).expect("it may send");
                    self.written += taken;
                    busy |= taken > 0;
                } else {
                    socket.close();
                    busy = true;
                }
            } else if socket.state() == tcp::State::CloseWait {
                socket.close();
                busy = true;
            }
            for octets in std::mem::take(&mut self.device.sent) {
                self.fly(true, octets);
            }
            if !busy {
                return;
            }
        }
    }

    fn deliver(&mut self, to_us: bool, octets: Vec<u8>) {
        if !to_us {
            self.device.received.push_back(octets);
            return;
        }
        let mut packet: Packet = edge::ingress(edge::Received::whole(octets)).expect("checksums are right");
        let header = Ip::parse(packet.head()).expect("an IP header");
        packet.strip(header.header_len);
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        if self.conn.is_none() {
            self.conn = self.tcp.accept(&mut cx, Self::path(), (80, 40_000), Identity::default(), &packet);
        }
        if let Some(conn) = &mut self.conn {
            conn.handle_packet(&mut cx, PathId(0), 0, packet);
        }
    }

    fn run(&mut self) {
        self.open();
        for _ in 0..2_000_000 {
            let wire = self.flying.keys().next().map(|(at, _)| *at);
            let ours = self.conn.as_ref().and_then(|c| c.poll_timeout());
            let theirs = self.iface.poll_at(moment(self.now), &self.sockets);
            let theirs = theirs.map(|at| Instant::from_nanos(at.total_micros().max(0) as u64 * 1000));
            let Some(next) = [wire, ours, theirs].into_iter().flatten().min() else { return };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to_us, octets) = entry.remove();
                self.deliver(to_us, octets);
            }
            if let Some(conn) =
                self.conn.as_mut().filter(|c| c.poll_timeout().is_some_and(|at| at <= self.now))
            {
                conn.handle_timeout(&mut Cx { now: self.now, records: &mut self.outbox });
            }
            self.settle();
        }
        let state = self.sockets.get::<tcp::Socket>(self.socket).state();
        panic!(
            "{:?}: it never ends; {} at {:?}, {} read, {} received, {} written, wake {:?} {:?}",
            self.case,
            state,
            self.now,
            self.read.len(),
            self.received.len(),
            self.written,
            self.conn.as_ref().map(|c| c.poll_timeout()),
            self.iface.poll_at(moment(self.now), &self.sockets),
        );
    }
}

fn play(case: Case) {
    let mut table = Table::new(case);
    table.run();
    let (sent, received) = (&table.octets, if case.smoltcp_sends { &table.received } else { &table.read });
    assert_eq!(received.len(), sent.len(), "{case:?}: {:?} at {:?}", table.closed, table.now);
    assert!(received == sent, "{case:?}: other octets");
    assert!(table.opened && table.conn.is_none(), "{case:?}: not closed");
    assert_eq!(table.closed, Some(CloseReason::Finished), "{case:?}");
    let state = table.sockets.get::<tcp::Socket>(table.socket).state();
    assert_eq!(state, tcp::State::Closed, "{case:?}");
}

/// Every role, direction and profile.
fn everything(size: u32, lose: f64) {
    for &profile in Profile::ALL {
        for (smoltcp_opens, smoltcp_sends) in [(false, false), (false, true), (true, false), (true, true)] {
            play(Case { smoltcp_opens, smoltcp_sends, size, lose, profile });
        }
    }
}

#[test]
fn both_stacks_transfer_and_close_in_every_role_direction_and_profile() {
    everything(500_000, 0.0);
}

#[test]
fn and_when_packets_are_lost() {
    everything(200_000, 0.03);
}

#[test]
fn twenty_megabytes_arrive_whole() {
    for smoltcp_sends in [false, true] {
        let size = 20_000_000;
        play(Case { smoltcp_opens: true, smoltcp_sends, size, lose: 0.0005, profile: Profile::Linux });
    }
}
