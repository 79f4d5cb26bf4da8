//! What a laboratory is from inside: hosts in the middle, several of them on one cell, names, settings, rights.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use airloom_drive::real_time::Report;
use airloom_drive::virtual_time::Outcome;
use airloom_world::scenario::Scenario;

use support::{Folder, laboratory};

fn emulate(text: &str, shell: &str) -> Report {
    let scenario = Scenario::parse("laboratory.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let command = ["sh", "-c", shell].map(str::to_owned);
    let (_, report) = support::emulate(&scenario, Some(&command), None);
    assert_eq!(report.outcome, Outcome::Complete);
    report
}

/// Everything is real: two mobiles on a cell, a gateway that passes on, two servers behind it.
const ALL_REAL: &str = r#"
title = "everything is real"
[hosts]
mobile = { real = true, count = 2 }
gateway = { real = true }
origin = { real = true }
mirror = { real = true }
[links]
radio = { bearer = "umts-dch", between = ["mobile", "gateway"] }
internet = { bearer = "wireline", delay = "5ms", between = ["gateway", "origin"] }
other = { bearer = "wireline", delay = "7ms", between = ["gateway", "mirror"] }
[run]
limit = "60s"
"#;

#[test]
fn real_hosts_reach_each_other_by_name_over_a_real_gateway_in_both_families() {
    let Some(_guard) = laboratory("laboratory::gateway", &["ping"]) else { return };
    let shell = "for host in gateway origin mirror mobile-1 10.77.1.1; do ping -n -c 1 -W 9 $host || exit 1; done > /dev/null
        for host in gateway origin mirror mobile-1; do ping -6 -n -c 1 -W 9 $host || exit 2; done > /dev/null";
    let report = emulate(ALL_REAL, shell);
    assert_eq!(report.exit_code, Some(0));
    assert_eq!((report.malformed, report.ports.overflow, report.ports.unsent), (0, 0, 0));
    // What goes to a server passes four ports on its way there: its sender's, two of the gateway, its own.
    assert!(report.ports.received > report.lateness.count() / 2);
}

#[test]
fn programs_have_names_of_their_own_and_see_only_each_other() {
    let Some(_guard) = laboratory("laboratory::names", &[]) else { return };
    let folder = Folder::new("names");
    let before = [fs::read("/etc/hosts").ok(), fs::read("/etc/resolv.conf").ok()];
    let (hosts, resolv, processes) = (folder.file("hosts"), folder.file("resolv"), folder.file("processes"));
    let shell = format!(
        "cat /etc/hosts > {hosts}; cat /etc/resolv.conf > {resolv}; set -- /proc/[0-9]*; echo $# > {processes}; pwd > {}",
        folder.file("pwd")
    );
    assert_eq!(emulate(ALL_REAL, &shell).exit_code, Some(0));
    let hosts = fs::read_to_string(hosts).unwrap();
    assert!(hosts.contains("10.77.1.1 origin\n") && hosts.contains("mobile-1 mobile[1]\n"), "{hosts}");
    assert_eq!(fs::read_to_string(resolv).unwrap(), "");
    // The keeper and the shell.
    assert_eq!(fs::read_to_string(processes).unwrap().trim(), "2");
    assert_eq!([fs::read("/etc/hosts").ok(), fs::read("/etc/resolv.conf").ok()], before);
    let here = std::env::current_dir().unwrap();
    assert_eq!(fs::read_to_string(folder.file("pwd")).unwrap().trim(), here.to_str().unwrap());
}

#[test]
fn the_kernels_tcp_has_the_buffers_and_congestion_control_of_the_scenario() {
    let Some(_guard) = laboratory("laboratory::tcp", &["ip"]) else { return };
    let folder = Folder::new("tcp");
    let chain = |transport: &str| {
        format!(
            r#"
            path = ["mobile", "wire", "origin"]
            [hosts]
            mobile = {{ real = true{transport} }}
            origin = {{ app = "http-server" }}
            [links]
            wire = {{ bearer = "wireline" }}
            "#
        )
    };
    // Where a kernel grants a namespace few of its algorithms, all routes have the one that is meant (congctl).
    let read = |name: &str| {
        let shell = format!(
            "cd /proc/sys/net/ipv4 && cat tcp_rmem tcp_wmem > {name} && \
             (ip route show table all | grep -o 'congctl [a-z]*' | sort -u | cut -d ' ' -f 2 | grep . || \
             cat tcp_congestion_control) >> {name}"
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        (shell, move |name: &str| words(&fs::read_to_string(name).unwrap()))
    };
    let (plain, told) = (folder.file("plain"), folder.file("told"));
    let (shell, words) = read(&plain);
    emulate(&chain(""), &shell);
    // Plain TCP's, whatever the machine's default is.
    assert_eq!(words(&plain)[6..], ["cubic"]);
    let (shell, words) = read(&told);
    let settings =
        r#", transport = { tcp = { congestion = "reno", receive_buffer = "2MB", send_buffer = "100kB" } }"#;
    emulate(&chain(settings), &shell);
    // The send buffer is there at once, as that of a simulated host: a kernel's own would grow step by step.
    assert_eq!(words(&told), ["4096", "131072", "4000000", "4096", "100000", "100000", "reno"]);
}

#[test]
fn a_laboratory_fits_into_a_laboratory() {
    let Some(_guard) = laboratory("laboratory::nested", &["unshare", "ip"]) else { return };
    // As another laboratory does it: new namespaces of every kind from inside.
    let shell = "unshare --user --map-root-user --net --mount --pid --fork ip link add here type veth peer name there";
    assert_eq!(emulate(ALL_REAL, shell).exit_code, Some(0));
}
