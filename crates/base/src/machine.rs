//! What every machine looks like.
//!
//! | call | meaning |
//! |---|---|
//! | `handle_*(cx, input)`, `send(cx, ..)` | something arrived, from the wire or from above |
//! | `poll_*` | take one output; called until `None` |
//! | `poll_timeout()` | when to call again if nothing arrives |
//! | `handle_timeout(cx)` | that moment has come |
//!
//! One order: **feed, then drain until `None`, then read `poll_timeout`.**

pub use crate::direction::{Direction, Station};
use crate::packet::Packet;
use crate::record::{Outbox, Summary};
use crate::time::{Duration, Instant};
use crate::units::{QueueLimit, Rate};

/// What every call gets: the time, and the place for records.
pub struct Cx<'a> {
    /// The nominal time of this call. Never decreases.
    pub now: Instant,
    /// Where facts about the run go.
    pub records: &'a mut Outbox,
}

/// What waits in a link and was not sent yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Service data units (packets).
    pub sdus: u32,
    /// Their octets.
    pub octets: u64,
}

/// What a link tells the hosts at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerEvent {
    /// The station can send and receive.
    Up(Station),
    /// It no longer can, and why.
    Down(Station, &'static str),
}

/// Is a link (or a member of a bundle) in service?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// In service.
    Up,
    /// Out of service: packets sent now are lost.
    Down,
}

/// How a link treats what real hosts send over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Grade {
    /// Only time passes on it: the super-packets of a kernel's segmentation offload stay whole.
    Transparent,
    /// Rate, queue or loss count datagrams: super-packets are cut first.
    Packet,
    /// A grid of transmission intervals carries pieces of datagrams. Its deadlines are coarse: milliseconds.
    Radio,
}

impl Grade {
    /// As in scenario files and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What may go wrong on a link, whatever its bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Fault {
    /// Datagrams that are too long vanish.
    Mtu,
    /// Everything vanishes for some time.
    Blackhole,
    /// Datagrams vanish that were named by their numbers.
    DropList,
    /// Datagrams vanish.
    Drop,
    /// Octets are changed.
    Corrupt,
    /// Datagrams arrive twice.
    Duplication,
    /// Datagrams arrive late.
    Reordering,
    /// A translator of addresses forgets.
    Nat,
}

impl Fault {
    /// All of them.
    pub const ALL: &[Fault] = <Self as strum::VariantArray>::VARIANTS;

    /// As in scenario files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A change of a running link, from the timeline or from a live control. `None` as direction means both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Put it in or out of service.
    State(LinkState),
    /// A new rate.
    Rate(Option<Direction>, Rate),
    /// A new one-way delay.
    Delay(Option<Direction>, Duration),
    /// A new loss probability.
    Loss(Option<Direction>, f64),
    /// A new queue limit.
    Queue(Option<Direction>, QueueLimit),
    /// Something that goes wrong does so from now on, or no more.
    Fault(Fault, bool),
}

/// What passed a link, or a part of it, in one direction since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames (or what else the link sends: blocks, packets) that left the sender.
    pub frames: u64,
    /// Those of them that were lost on the way.
    pub errors: u64,
    /// Octets of packets that came out at the far end.
    pub octets: u64,
}

/// How a link, or a part of it, is at the moment: what a live control shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// As in [`Bearer::apply`]: `[3]` is member 3 of a bundle; empty is the link itself.
    pub part: Vec<u16>,
    /// In a word or two: `up`, `down`, `setting up`.
    pub state: &'static str,
    /// Is it in service, or on its way there? Not so where somebody took it out, or it gave up by itself.
    pub is_wanted: bool,
    /// By direction, if it is counted for this part.
    pub passed: Option<[Passed; 2]>,
    /// What may go wrong on it, and whether it does at the moment. The link's own: the world fills it in.
    pub faults: Vec<(Fault, bool)>,
}

/// This bearer cannot change in this way; the text says what it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported(pub &'static str);

impl Unsupported {
    /// Nothing of the kind goes wrong on this link.
    pub const NO_FAULT: Unsupported =
        Unsupported("the link has nothing of the kind among its `faults`, which could be switched");
}

/// A link: all its ends, and the air (or wire) between them.
///
/// A cell is one bearer with one [`Station`] per mobile. An idle bearer returns `None` from `poll_timeout`:
/// it costs nothing.
pub trait Bearer: Send {
    /// A datagram enters at the sending end of `dir`. Nothing is delivered by this call: what arrives at once arrives
    /// by a deadline that is now.
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet);
    /// A datagram leaves at the receiving end.
    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)>;
    /// Was what left last a copy of another datagram, which a link made that delivers some twice? What stands around it counts
    /// originals.
    fn delivered_a_copy(&self) -> bool {
        false
    }
    /// Is there nothing to deliver while the deadline lies ahead? Then nobody has to ask.
    fn delivers_by_deadline(&self) -> bool {
        false
    }
    /// Does [`Bearer::poll_event`] ever give anything?
    fn tells_events(&self) -> bool {
        false
    }
    /// Something happened to the link itself.
    fn poll_event(&mut self) -> Option<BearerEvent> {
        None
    }
    /// When to call `handle_timeout` if nothing is sent before. O(1): it is read after every feed.
    fn poll_timeout(&self) -> Option<Instant>;
    /// That moment has come. `cx.now` is the deadline or later; the model uses its own deadlines. A call before the
    /// deadline changes nothing.
    fn handle_timeout(&mut self, cx: &mut Cx);
    /// What is not sent yet at `now`.
    fn backlog(&self, now: Instant, dir: Direction, station: Station) -> Backlog;
    /// A change of `part` (`[3]` = member 3 of a bundle; empty = the link itself).
    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported>;
    /// Something that goes wrong does so from now on, or no more.
    ///
    /// # Errors
    /// It is nothing that can go wrong here.
    fn switch(&mut self, _now: Instant, _fault: Fault, _on: bool) -> Result<(), Unsupported> {
        Err(Unsupported::NO_FAULT)
    }
    /// What may go wrong on it, and whether it does at the moment.
    fn faults(&self) -> Vec<(Fault, bool)> {
        Vec::new()
    }
    /// Adds how it and its parts are at the moment, itself first. One that adds nothing is shown as what was last made
    /// of it by a change of its state, with what has [`passed`](Bearer::passed).
    fn conditions(&self, out: &mut Vec<Condition>) {
        let _ = out;
    }
    /// What has passed it so far, by direction.
    fn passed(&self) -> [Passed; 2];
    /// How it treats what real hosts send, as it is set at the moment.
    fn grade(&self) -> Grade {
        Grade::Packet
    }
    /// The run ends at `cx.now`: what it was going to record is recorded as far as it has come.
    fn close(&mut self, _cx: &mut Cx) {}
    /// Adds what it counted to the summary of the run; names carry their unit.
    fn summarise(&self, out: &mut Summary);
}
