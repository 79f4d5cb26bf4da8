//! EGPRS: RLC/MAC blocks of TS 44.060.

pub mod coding_scheme;
pub mod wire;
