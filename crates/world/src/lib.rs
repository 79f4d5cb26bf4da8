//! A scenario file becomes hosts and links; the network as one machine.

pub mod scenario;
