//! One link on a bench: packets in at its ends, and what comes out of it when.

use airloom_base::{
    Bearer, BearerEvent, Body, Change, Cx, Direction, Instant, Outbox, Packet, Station, Summary, Unsupported,
};

/// A link with its clock and its records.
pub struct Bench<B: ?Sized = dyn Bearer> {
    /// The link.
    pub bearer: Box<B>,
    /// What it has recorded.
    pub records: Outbox,
    /// The time of the last call.
    pub now: Instant,
    /// What came out.
    pub out: Vec<(Instant, Direction, Station, Packet)>,
    /// What became of the link.
    pub events: Vec<(Instant, BearerEvent)>,
    sent: u64,
}

/// The first octets of the packet with this number: something like a header of IP, with the number in it.
fn head(id: u64) -> [u8; 20] {
    let mut head = [0; 20];
    head[0] = 0x45;
    head[12..].copy_from_slice(&id.to_be_bytes());
    head
}

/// The packet that [`Bench::send`] sends with this number.
pub fn numbered(id: u64, octets: u32) -> Packet {
    let len = octets.min(20) as usize;
    let write = |out: &mut [u8]| {
        out[..len].copy_from_slice(&head(id)[..len]);
        len
    };
    Packet::build(write, Body::filler(id as u32, octets - len as u32))
}

impl<B: Bearer + ?Sized> Bench<B> {
    /// Around a link that writes to these records.
    pub fn new(bearer: Box<B>, records: Outbox) -> Bench<B> {
        Bench { bearer, records, now: Instant::ZERO, out: vec![], events: vec![], sent: 0 }
    }

    /// The same, with its octets recorded too.
    pub fn recorded(mut self) -> Bench<B> {
        self.records.ask(|_| (true, true));
        self
    }

    /// Sends a packet of so many octets from the first station's end, or to it; its number.
    pub fn send(&mut self, direction: Direction, octets: u32) -> u64 {
        self.send_to(direction, 0, octets)
    }

    /// The same of another station.
    pub fn send_to(&mut self, direction: Direction, station: u16, octets: u32) -> u64 {
        self.pass(direction, station, numbered(self.sent + 1, octets))
    }

    /// Sends so many of them.
    pub fn send_many(&mut self, direction: Direction, count: u64, octets: u32) {
        for _ in 0..count {
            self.send(direction, octets);
        }
    }

    /// Sends this packet; the number that it gets.
    pub fn pass(&mut self, direction: Direction, station: u16, mut packet: Packet) -> u64 {
        self.sent += 1;
        packet.set_id(self.sent);
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        self.bearer.send(cx, direction, Station(station), packet);
        self.drain();
        self.sent
    }

    /// Changes a part of the link now.
    ///
    /// # Errors
    ///
    /// What the link says where it refuses.
    pub fn try_apply(&mut self, part: &[u16], change: Change) -> Result<(), Unsupported> {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        let result = self.bearer.apply(cx, part, &change);
        self.drain();
        result
    }

    /// The same of a change that is possible.
    ///
    /// # Panics
    ///
    /// Where the link refuses.
    pub fn apply(&mut self, part: &[u16], change: Change) {
        self.try_apply(part, change).unwrap_or_else(|e| panic!("{}", e.0));
    }

    /// Calls the link at this moment.
    pub fn handle(&mut self, at: Instant) {
        self.now = at;
        self.bearer.handle_timeout(&mut Cx { now: at, records: &mut self.records });
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((direction, station, packet)) = self.bearer.poll_delivery() {
            self.out.push((self.now, direction, station, packet));
        }
        while let Some(event) = self.bearer.poll_event() {
            self.events.push((self.now, event));
        }
    }

    /// Goes on until nothing is left to do, or `end`; how often the link was called.
    ///
    /// # Panics
    ///
    /// Where time goes back, or where a thousand calls do not move it.
    pub fn run_until(&mut self, end: Instant) -> u64 {
        let (mut calls, mut same) = (0, 0);
        while let Some(at) = self.bearer.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "deadline {at} lies before {}", self.now);
            same = if at == self.now { same + 1 } else { 0 };
            assert!(same < 1000, "the deadline stays at {at}: {:?}", self.records.packets.last());
            self.handle(at);
            calls += 1;
        }
        if end != Instant::FAR_FUTURE {
            self.now = self.now.max(end);
        }
        calls
    }

    /// Goes on until nothing is left to do.
    pub fn finish(&mut self) {
        self.run_until(Instant::FAR_FUTURE);
    }

    /// The same; what has come out since it was last asked: microseconds, and the packet's number.
    pub fn drive(&mut self) -> Vec<(u64, u64)> {
        self.finish();
        self.out.drain(..).map(|(at, _, _, packet)| (at.as_nanos() / 1000, packet.id())).collect()
    }

    /// When what came out in this direction did, and its numbers.
    pub fn arrivals(&self, direction: Direction) -> Vec<(Instant, u64)> {
        let of = self.out.iter().filter(|(_, d, ..)| *d == direction);
        of.map(|(at, _, _, packet)| (*at, packet.id())).collect()
    }

    /// The numbers alone.
    pub fn ids(&self, direction: Direction) -> Vec<u64> {
        self.arrivals(direction).into_iter().map(|(_, id)| id).collect()
    }

    /// The link's summary.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.bearer.summarise(&mut summary);
        summary
    }

    /// A number of it.
    ///
    /// # Panics
    ///
    /// Where the summary has none of this name.
    pub fn value(&self, name: &str) -> f64 {
        *self.summary().values.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Whether what came out is what [`Self::send`] sent.
    ///
    /// # Panics
    ///
    /// Where it is not.
    pub fn assert_intact(&self) {
        for (.., packet) in &self.out {
            let (mut sent, mut found) = (Vec::new(), Vec::new());
            numbered(packet.id(), packet.wire_len() as u32).append_to(&mut sent);
            packet.append_to(&mut found);
            assert!(found == sent, "packet {} is not what was sent", packet.id());
        }
    }
}
