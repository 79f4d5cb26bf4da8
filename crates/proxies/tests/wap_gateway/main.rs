//! The gateway between a client of sessions and origins that are scripted.

mod basics;
mod hostile;
mod lossy;
mod origins;
mod pair;
mod push;
mod strangers;
