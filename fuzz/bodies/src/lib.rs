//! What the fuzz targets do with arbitrary octets: nothing may panic, and nothing may go on for ever.

mod alt_svc;
mod apps;
mod capture;
mod edges;
mod egprs;
mod files;
mod ftp;
mod hq;
mod http1;
mod http2;
mod http3;
mod link;
mod octets;
mod ppp;
mod qlog;
mod quic;
mod quic_handshake;
mod quic_moves;
mod quic_places;
mod rlc;
mod scenario;
mod sctp;
mod tcp;
mod wap;
mod wap_gateway;
mod wire;
mod world;
mod wtp;
mod wwp;

/// A target: octets in, no answer but not to panic.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("alt_svc", alt_svc::alt_svc),
    ("analysis", capture::analysis),
    ("bulk", apps::bulk),
    ("capture", capture::capture),
    ("control", files::control),
    ("egprs", egprs::egprs),
    ("ftp", ftp::ftp),
    ("hq", hq::hq),
    ("http1", http1::http1),
    ("http2", http2::http2),
    ("http3", http3::http3),
    ("http_cache", apps::http_cache),
    ("http_client", apps::http_client),
    ("http_server", apps::http_server),
    ("names", edges::names),
    ("nat", edges::nat),
    ("page_set", files::page_set),
    ("ppp", ppp::ppp),
    ("qlog", qlog::qlog),
    ("quic", quic::quic),
    ("quic_handshake", quic_handshake::quic_handshake),
    ("quic_moves", quic_moves::quic_moves),
    ("rlc", rlc::rlc),
    ("scenario", scenario::scenario),
    ("sctp", sctp::sctp),
    ("sctp_link", sctp::sctp_link),
    ("tcp", tcp::tcp),
    ("trace", files::trace),
    ("wap", wap::wap),
    ("wap_gateway", wap_gateway::wap_gateway),
    ("wire", wire::wire),
    ("world", world::world),
    ("world_hsdpa", world::world_hsdpa),
    ("world_umts", world::world_umts),
    ("wsp", wtp::wsp),
    ("wtp", wtp::wtp),
    ("wwp", wwp::wwp),
    ("wwp_link", wwp::wwp_link),
];

/// The target of that name; one that is not there is a mistake of ours.
pub fn target(name: &str) -> Target {
    TARGETS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("there is no target {name}")).1
}
