//! What a scenario says about the TCP of a real host, in its kernel's words.
//!
//! Most of it are settings of the namespace (`Documentation/networking/ip-sysctl`). What has no such setting, or one
//! that the kernel refuses, is a metric of every route of the host.

use std::fs;
use std::io;

use airloom_world::RealTcp;

use crate::real_time::netlink::Metrics;

/// Smallest buffer, and the one that autotuning begins with, as a kernel has them by default.
const SMALLEST: u64 = 4096;
const FIRST_RECEIVE: u64 = 131_072;

/// Settings below `/proc/sys/net/`; the run fails where one cannot be made.
pub(super) fn settings(tcp: &RealTcp) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if tcp.receive_buffer.is_some() || tcp.initial_receive_window.is_some() {
        // Half of a receive buffer is for bookkeeping, the other half is announced as window (tcp_adv_win_scale 1).
        let begins = tcp.receive_buffer.filter(|_| tcp.receive_buffer_max.is_some());
        let first = tcp.initial_receive_window.or(begins).map_or(FIRST_RECEIVE, |window| 2 * window);
        let largest = tcp.receive_buffer_max.or(tcp.receive_buffer).map_or(first, |window| 2 * window);
        let largest = largest.max(SMALLEST);
        settings.push(("ipv4/tcp_rmem", format!("{SMALLEST} {} {largest}", first.min(largest))));
    }
    if let Some(buffer) = tcp.send_buffer {
        // All of it from the beginning, unless it is to grow: a buffer that grows limits a sender that has just begun, and
        // one in recovery without SACK.
        let (first, largest) = (buffer.max(SMALLEST), tcp.send_buffer_max.unwrap_or(buffer));
        settings.push(("ipv4/tcp_wmem", format!("{SMALLEST} {first} {}", largest.max(first))));
    }
    if let Some(ecn) = tcp.ecn {
        settings.push(("ipv4/tcp_ecn", ecn.to_string()));
    }
    if let Some(on) = tcp.tlp {
        // 3: with the delay that keeps it from firing too early.
        settings.push(("ipv4/tcp_early_retrans", if on { "3" } else { "0" }.to_owned()));
    }
    if let Some(on) = tcp.frto {
        settings.push(("ipv4/tcp_frto", if on { "2" } else { "0" }.to_owned()));
    }
    for (key, switch) in [
        ("ipv4/tcp_sack", tcp.sack),
        ("ipv4/tcp_dsack", tcp.dsack),
        ("ipv4/tcp_timestamps", tcp.timestamps),
        ("ipv4/tcp_window_scaling", tcp.window_scaling),
    ] {
        settings.extend(switch.map(|on| (key, u8::from(on).to_string())));
    }
    settings
}

const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Sets the congestion control of the calling thread's namespace, and says what the metrics of its routes have to be.
///
/// Outside of the machine's own namespace a kernel grants only those that it allows everybody
/// (`tcp_allowed_congestion_control`), by a metric every one it has. A metric also wins over what a program asks for its socket,
/// so it is the second choice.
pub(super) fn metrics(tcp: &RealTcp) -> io::Result<Metrics> {
    let mut metrics = Metrics { congestion: None, initial_window: tcp.initial_window };
    let Some(name) = &tcp.congestion else { return Ok(metrics) };
    // What is called NewReno in the standards is `reno` in a kernel.
    let name = if name == "newreno" { "reno" } else { name };
    let is_set = || fs::read_to_string(CONGESTION).is_ok_and(|now| now.trim() == name);
    if is_set() {
        return Ok(metrics);
    }
    match fs::write(CONGESTION, name) {
        Ok(()) if is_set() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(
                error.kind(),
                format!("this kernel has no congestion control `{name}`"),
            ));
        }
        _ => metrics.congestion = Some(name.to_owned()),
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_scenario_says_is_set() {
        assert_eq!(settings(&RealTcp::default()), []);
        let tcp = RealTcp {
            receive_buffer: Some(1 << 20),
            send_buffer: Some(5000),
            sack: Some(false),
            ecn: Some(2),
            tlp: Some(false),
            frto: Some(true),
            ..RealTcp::default()
        };
        let expected = [
            ("ipv4/tcp_rmem", "4096 131072 2097152"),
            ("ipv4/tcp_wmem", "4096 5000 5000"),
            ("ipv4/tcp_ecn", "2"),
            ("ipv4/tcp_early_retrans", "0"),
            ("ipv4/tcp_frto", "2"),
            ("ipv4/tcp_sack", "0"),
        ];
        assert_eq!(settings(&tcp), expected.map(|(key, value)| (key, value.to_owned())));
    }

    #[test]
    fn the_buffer_at_the_beginning_is_twice_the_first_window_and_never_above_the_largest() {
        let rmem = |first, largest| {
            let tcp =
                RealTcp { initial_receive_window: first, receive_buffer: largest, ..RealTcp::default() };
            settings(&tcp)[0].1.clone()
        };
        let grows = RealTcp {
            receive_buffer: Some(65_536),
            receive_buffer_max: Some(3 << 20),
            send_buffer: Some(16_384),
            send_buffer_max: Some(4 << 20),
            ..RealTcp::default()
        };
        let values: Vec<String> = settings(&grows).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, ["4096 131072 6291456", "4096 16384 4194304"]);
        assert_eq!(rmem(Some(1000), None), "4096 2000 4096");
        assert_eq!(rmem(Some(2 << 20), Some(4 << 20)), "4096 4194304 8388608");
        assert_eq!(rmem(Some(2 << 20), Some(1 << 20)), "4096 2097152 2097152");
    }
}
