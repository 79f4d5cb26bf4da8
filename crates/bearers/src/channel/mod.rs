//! What the medium does to packets and blocks: error processes, shared by all links.
//!
//! ```text
//!   config.rs        the `loss` key of a link: text -> LossConfig
//!   process.rs       one direction's process: probability of loss at a step
//!   bernoulli        every step alike                       (a constant: no file of its own)
//!   gilbert_elliott  two states with memory: bursts
//!   on_off           fixed phases in time
//!   list             exactly these packets                  (wires only)
//!   environment/     field strength, fading and people, common to several links (radio)
//! ```
//!
//! A process says how likely a loss is at a step; a [`Fate`](airloom_base::random::Fate) says whether it happens.
//! On a *wire* the step is the number of the packet (after the queue, per direction) and [`PacketLoss`] counts.
//! On *radio* the step is the position on the time grid (TTI or frame number) and [`BlockLoss`] is asked for a
//! place in it: the fate of a block is the same whether or not somebody else sent before, so protocols that are
//! compared at one seed meet the same radio. State processes are functions of the step too and are walked forward
//! lazily, stay by stay, so an idle stretch costs nothing.
//!
//! What is left out: traces of block error rates; they come with the bearers that need them.

mod config;
pub mod environment;
mod gilbert_elliott;
mod on_off;
mod process;

pub use config::{LossConfig, Model, Of, Per, Phase, ProcessConfig};
pub use environment::{Environment, Placed, Radio};
pub use gilbert_elliott::GilbertElliott;
pub use on_off::OnOff;
pub use process::{BlockLoss, PacketLoss};
