//! Radio link control (TS 25.322).

pub mod am;
