//! Harnesses for the tests of all families: machines are driven by their contract, on a clock of the harness's own.
//!
//! In it: one link ([`Bench`]), one application ([`AppBench`]), two ends and a link with losses ([`Pair`]), damaged packets, random cases,
//! folders for files, and what tshark says of a capture ([`tshark`]).
//!
//! Not here: whole networks (`system-tests`), and scripts of one protocol, which stand with it.

mod app_bench;
mod bench;
mod cases;
mod damage;
mod folder;
pub mod link;
pub mod pair;
mod skip;
pub mod tshark;

pub use app_bench::{AppBench, Memory, Wire};
pub use bench::{Bench, numbered};
pub use cases::cases;
pub use folder::Folder;
pub use link::{End, Fate, Link, LinkConfig, LossPattern, Sent, lose, lose_data};
pub use pair::{Host, Offered, Pair, hash_of};
pub use skip::skip;
