//! Tests of whole networks, a module each topic: `cargo test -p airloom-system-tests --test networks TOPIC`.
//!
//! One program: what a network is made of is large, and as many programs as there are topics would each be linked with it.

mod applications;
mod browser;
mod egprs;
mod every_bearer;
mod every_transport;
mod http3_race;
mod http_over_sctp;
mod http_versions;
mod migration;
mod mlppp;
mod multihoming;
mod network;
mod over_udp;
mod paths;
mod piafs;
mod quic;
mod real_ends;
mod split_tcp;
mod wap;
mod wap_browser;
mod wwp;
