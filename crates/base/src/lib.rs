//! The contracts of the house: time, packets, random numbers, records, and what every machine looks like.
//!
//! The network is a state machine that is told the time: nothing here waits, reads a clock or opens a device.
//!
//! Not here: formats (`wire`), any link or protocol (`bearers`, `transports`), and who calls machines when (`world`, `drive`).

pub mod config;
pub mod direction;
pub mod flow;
pub mod forms;
pub mod histogram;
pub mod law;
pub mod lookup;
pub mod machine;
pub mod packet;
pub mod random;
pub mod record;
pub mod service;
pub mod streams;
pub mod summary;
pub mod time;
pub mod timer;
pub mod units;

pub use config::{AppParts, ConfigError, Entry, Environments, MTU, Parts, ProtocolParts};
pub use direction::{Direction, Station};
pub use flow::CloseReason;
pub use histogram::Histogram;
pub use law::Law;
pub use machine::{
    Backlog, Bearer, BearerEvent, Change, Condition, Cx, Fault, Grade, LinkState, Passed, Unsupported,
};
pub use packet::{Body, Filler, Packet};
pub use record::{Outbox, Point, Summary};
pub use service::{
    App, Outgoing, PathId, Protocol, SocketEvent, SocketId, Sockets, Transport, TransportEvent,
};
pub use streams::{StreamEvent, StreamKind};
pub use time::{Duration, Instant};
