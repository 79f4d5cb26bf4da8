//! Harnesses for the tests of all families: machines are driven by their contract, on a clock of the harness's own.

mod cases;
mod damage;
pub mod link;
pub mod pair;
pub mod tshark;

pub use cases::cases;
pub use link::{End, Fate, Link, LinkConfig, LossPattern, Sent, lose, lose_data};
pub use pair::{Host, Pair, Seen, hash_of};
