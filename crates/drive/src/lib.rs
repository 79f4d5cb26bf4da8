//! The two clocks: virtual time and real time.
