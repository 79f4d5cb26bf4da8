//! Applications in whole networks.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::{Builder, Work};
use serde_json::{Value, json};

fn unreachable(app: &str, config: &Value) -> Summary {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("wire", "wireline", &json!({}), &[client], server).unwrap();
    b.app(client, app, config, Some("server")).unwrap();
    let mut world = b.build().unwrap();
    let limit = Until::Done { limit: Duration::from_secs(60) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn an_application_that_cannot_reach_its_server_fails_and_is_done() {
    let nowhere = "192.0.2.9";
    let bulk = unreachable("bulk", &json!({ "server": nowhere, "repeat": 3, "parallel": 2 }));
    assert_eq!((bulk.values["transfers"], bulk.values["transfers_failed"]), (0.0, 3.0));
    let http = unreachable("http-client", &json!({ "server": nowhere, "objects": ["/1", "/2", "/3"] }));
    assert_eq!((http.values["objects"], http.values["failed"]), (0.0, 3.0));
    let ftp = unreachable("ftp", &json!({ "server": nowhere, "repeat": 2 }));
    assert_eq!((ftp.values["transfers"], ftp.values["transfers_failed"]), (0.0, 2.0));
    let ping = unreachable("ping", &json!({ "server": nowhere, "count": 2, "timeout": "1s" }));
    assert_eq!((ping.values["received"], ping.values["client.lost"]), (0.0, 2.0));
}

#[test]
fn results_are_called_the_same_whether_an_application_gets_through_or_not() {
    let names = |second: &str| {
        let mut b = Builder::new(1);
        let (client, server) = (b.host("client"), b.host("server"));
        b.link("wire", "wireline", &json!({}), &[client], server).unwrap();
        for to in ["server", second] {
            b.app(client, "ping", &json!({ "server": to, "count": 2, "timeout": "1s" }), Some("server"))
                .unwrap();
        }
        let mut world = b.build().unwrap();
        let limit = Until::Done { limit: Duration::from_secs(60) };
        assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
        let names = world.summary().values.into_iter().map(|(name, _)| name);
        names.filter(|name| name.contains("rtt_mean_s")).collect::<Vec<_>>()
    };
    let (first, second) = ("client.app[0].rtt_mean_s", "client.app[1].rtt_mean_s");
    assert_eq!(names("server"), [&first[7..], &second[7..], first, second]);
    assert_eq!(names("192.0.2.9"), [&first[7..], first]);
}

/// Two hosts with TCP and a wire that loses.
fn transfer(server: &str, server_config: &Value, client: &str, client_config: &Value, loss: f64) -> Summary {
    over("tcp", server, server_config, client, client_config, loss)
}

/// Two hosts with this transport and a wire that loses.
fn over(
    transport: &str,
    server: &str,
    server_config: &Value,
    client: &str,
    client_config: &Value,
    loss: f64,
) -> Summary {
    let mut b = Builder::new(7);
    let (near, far) = (b.host("client"), b.host("server"));
    let wire = json!({ "rate": "2Mbit/s", "delay": "20ms", "queue": "50 packets", "loss": loss });
    b.link("wire", "wireline", &wire, &[near], far).unwrap();
    for host in [near, far] {
        b.transport(host, transport, &json!({})).unwrap();
    }
    b.app(far, server, server_config, None).unwrap();
    b.app(near, client, client_config, Some("server")).unwrap();
    let mut world = b.build().unwrap();
    let limit = Until::Done { limit: Duration::from_secs(3600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn every_way_of_using_http_brings_every_object_through_losses() {
    let objects: Vec<Value> = (0..12)
        .map(|n| json!({ "path": format!("/{}", 3000 * n), "size": format!("{}B", 3000 * n) }))
        .collect();
    for client in [
        json!({ "http": "1.0" }),
        json!({ "http": "1.0", "connections": 6 }),
        json!({ "http": "1.0-keep-alive", "connections": 1 }),
        json!({ "http": "1.1", "keep_alive": false }),
        json!({ "http": "1.1", "connections": 1 }),
        json!({ "http": "1.1", "connections": 6 }),
        json!({ "http": "1.1", "connections": 1, "pipeline": 12 }),
    ] {
        for server in [
            json!({}),
            json!({ "coding": "chunked" }),
            json!({ "coding": "close" }),
            json!({ "max_requests": 3 }),
        ] {
            let mut config = client.clone();
            config["pages"] = json!([objects, objects]);
            let summary = transfer("http-server", &server, "http-client", &config, 0.03);
            let values = &summary.values;
            assert_eq!((values["objects"], values["failed"]), (24.0, 0.0), "{client} {server}");
            assert_eq!(values["bytes"], 2.0 * 3000.0 * 66.0, "{client} {server}");
        }
    }
}

#[test]
fn every_way_of_bulk_transfer_completes_through_losses() {
    for (transport, mode) in [("tcp", "get"), ("tcp", "put"), ("quic", "get"), ("quic", "put")] {
        for (parallel, keep) in [(1, false), (1, true), (4, false), (4, true)] {
            let config =
                json!({ "mode": mode, "size": "50kB", "repeat": 8, "parallel": parallel, "keep": keep });
            let values = over(transport, "bulk-server", &json!({}), "bulk", &config, 0.03).values;
            let what = format!("{transport} {config}");
            assert_eq!((values["transfers"], values["transfers_failed"]), (8.0, 0.0), "{what}");
            assert_eq!((values["transfers_served"], values["transfers_broken"]), (8.0, 0.0), "{what}");
        }
    }
}

#[test]
fn every_way_of_file_transfer_completes_through_losses() {
    for (transport, mode) in [("tcp", "get"), ("tcp", "put"), ("quic", "get"), ("quic", "put")] {
        for active in [false, true] {
            let config = json!({ "mode": mode, "active": active, "size": "50kB", "repeat": 4 });
            let values = over(transport, "ftp-server", &json!({}), "ftp", &config, 0.03).values;
            let what = format!("{transport} {config}");
            assert_eq!((values["transfers"], values["transfers_failed"]), (4.0, 0.0), "{what}");
            assert_eq!(values["files_sent"] + values["files_stored"], 4.0, "{what}");
            assert_eq!((values["files_broken"], values["commands_refused"]), (0.0, 0.0), "{what}");
        }
    }
}

#[test]
fn a_slow_host_sets_the_pace_of_what_it_sends_and_not_of_what_it_gets() {
    let time = |mode: &str, work: Work| {
        let mut b = Builder::new(1);
        let (near, far) = (b.host("client"), b.host("server"));
        b.work(near, work);
        b.link("wire", "wireline", &json!({ "rate": "10Mbit/s", "delay": "1ms" }), &[near], far).unwrap();
        for host in [near, far] {
            b.transport(host, "tcp", &json!({})).unwrap();
        }
        b.app(far, "ftp-server", &json!({}), None).unwrap();
        let config = json!({ "mode": mode, "size": "1448000B" });
        b.app(near, "ftp", &config, Some("server")).unwrap();
        let mut world = b.build().unwrap();
        let limit = Until::Done { limit: Duration::from_secs(600) };
        assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
        let summary = world.summary();
        assert_eq!(summary.values["transfers"], 1.0, "{mode}");
        (summary.values["transfer_mean_s"], summary.values["worked_s"])
    };
    let slow = Work { send: Duration::from_millis(20), ..Work::default() };
    let (put, worked) = time("put", slow);
    // A thousand segments and what little was sent again.
    assert!((20.0..21.0).contains(&worked), "{worked}");
    assert!((worked - 0.5..worked + 0.5).contains(&put), "{put}");
    assert!(time("get", slow).0 < 2.0);
    assert!(time("put", Work::default()).0 < 2.0);
}

#[test]
fn a_response_that_takes_minutes_on_a_slow_link_is_not_cut_off() {
    let mut b = Builder::new(1);
    let (near, far) = (b.host("client"), b.host("server"));
    let wire = json!({ "rate": "64kbit/s", "delay": "300ms", "queue": "20 packets" });
    b.link("wire", "wireline", &wire, &[near], far).unwrap();
    for host in [near, far] {
        // The send buffer takes all of the response at once: the server has written it when the transfer begins.
        b.transport(host, "tcp", &json!({})).unwrap();
    }
    b.app(far, "http-server", &json!({ "idle_timeout": "5s" }), None).unwrap();
    let get = json!({ "http": "1.1", "objects": [{ "path": "/1MB", "size": "1MB" }] });
    b.app(near, "http-client", &get, Some("server")).unwrap();
    let mut world = b.build().unwrap();
    let limit = Until::Done { limit: Duration::from_secs(3600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    let summary = world.summary();
    assert_eq!((summary.values["objects"], summary.values["failed"]), (1.0, 0.0));
    assert!(summary.values["simulated_s"] > 120.0);
}

#[test]
fn datagrams_of_a_connection_are_timed_and_those_that_are_lost_stay_lost() {
    let ping = |count: u32, size: &str| json!({ "over": "datagrams", "count": count, "interval": "50ms", "size": size });
    let times = |transport: &str, config: &Value, loss: f64| {
        over(transport, "ping-server", &json!({}), "ping", config, loss).values
    };
    let clean = times("quic", &ping(20, "100B"), 0.0);
    assert_eq!((clean["sent"], clean["received"], clean["client.lost"]), (20.0, 20.0, 0.0));
    // 20 ms each way, and 100 octets with some 50 of headers at 2 Mbit/s twice.
    assert!((0.0412..0.0425).contains(&clean["rtt_min_s"]), "{}", clean["rtt_min_s"]);
    let lossy = times("quic", &ping(400, "100B"), 0.05);
    assert_eq!(lossy["received"] + lossy["client.lost"], 400.0);
    // One in ten loses its request or its answer: 39 of 400, 6 on average away from it.
    assert!((15.0..63.0).contains(&lossy["client.lost"]), "{}", lossy["client.lost"]);
    assert!(lossy["rtt_max_s"] < 0.06, "none was sent again: {}", lossy["rtt_max_s"]);
    for (transport, size) in [("tcp", "100B"), ("quic", "1470B")] {
        let none = times(transport, &ping(3, size), 0.0);
        assert_eq!((none["sent"], none["client.lost"]), (3.0, 3.0), "{transport} takes none of {size}");
    }
    let nobody = unreachable("ping", &json!({ "server": "192.0.2.9", "count": 2, "over": "datagrams" }));
    assert_eq!((nobody.values["received"], nobody.values["client.lost"]), (0.0, 2.0));
}
