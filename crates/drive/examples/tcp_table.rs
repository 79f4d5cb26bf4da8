//! The same links under every congestion controller and every profile of TCP, and which setting explains how much.
//!
//! ```text
//! tcp_table [seeds]        writes a page in Markdown to standard output
//! ```
//!
//! `tools/tcp-table` writes it to `docs/reference/tcp-comparison.md`.

use airloom_base::Duration;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::Builder;
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Octets of each transfer.
const SIZE: &str = "1MB";
const CONTROLLERS: [&str; 8] = ["tahoe", "reno", "newreno", "cubic", "westwood", "vegas", "probing", "bbr"];

/// A link, and how many seeds tell something about it.
struct Link {
    title: &'static str,
    bearer: &'static str,
    table: Value,
    seeds: u64,
}

fn links(seeds: u64) -> Vec<Link> {
    let wire = |rate: &str, delay: &str, loss: f64| {
        let loss = json!({ "downlink": loss, "uplink": 0.0 });
        json!({ "rate": rate, "delay": delay, "queue": "30 packets", "loss": loss })
    };
    let radio = json!({ "loss": { "per": "pdu", "downlink": 0.05, "uplink": 0.0 } });
    let (fast, slow) = (("2Mbit/s", "50ms"), ("384kbit/s", "150ms"));
    let link = |title, bearer, table, seeds| Link { title, bearer, table, seeds };
    vec![
        link("2 Mbit/s, 100 ms", "wireline", wire(fast.0, fast.1, 0.0), 1),
        link("the same, 1 % loss", "wireline", wire(fast.0, fast.1, 0.01), seeds),
        link("384 kbit/s, 300 ms", "wireline", wire(slow.0, slow.1, 0.0), 1),
        link("the same, 1 % loss", "wireline", wire(slow.0, slow.1, 0.01), seeds),
        link("umts-dch, 5 % of PDUs lost", "umts-dch", radio, seeds),
    ]
}

/// Seconds that the transfer takes.
fn seconds(link: &Link, tcp: &Value, seed: u64) -> Result<f64> {
    let mut b = Builder::new(seed);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("link", link.bearer, &link.table, &[client], server)?;
    for host in [client, server] {
        b.transport(host, "tcp", tcp)?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(client, "bulk", &json!({ "size": SIZE }), Some("server"))?;
    let mut world = b.build()?;
    match virtual_time::run(&mut world, Until::Done { limit: Duration::from_secs(4000) }, |_, _| true) {
        Outcome::Complete => {}
        other => return Err(format!("did not complete: {other:?}").into()),
    }
    let summary = world.summary();
    let found = summary.values.iter().find(|(name, _)| name.ends_with("completion_s"));
    found.map(|(_, value)| *value).ok_or_else(|| "no completion time".into())
}

/// Times of all seeds, sorted.
fn times(link: &Link, tcp: &Value) -> Result<Vec<f64>> {
    let mut all = (1..=link.seeds).map(|seed| seconds(link, tcp, seed)).collect::<Result<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all)
}

fn median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

/// The ranks between which the median of what was sampled lies with at least 95 %, whatever the distribution; none for
/// fewer than six values.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    let mut probability = 0.5_f64.powi(i32::try_from(n).ok()?);
    let (mut below, mut rank) = (0.0, 0);
    // The largest rank so that fewer than 2.5 % of samples lie that far to one side.
    while below + probability <= 0.025 {
        below += probability;
        rank += 1;
        probability *= (n + 1 - rank) as f64 / rank as f64;
    }
    (rank > 0).then(|| (sorted[rank - 1], sorted[n - rank]))
}

fn cell(sorted: &[f64]) -> String {
    match interval(sorted) {
        Some((low, high)) => format!("{:.2} ({low:.2}-{high:.2})", median(sorted)),
        None => format!("{:.2}", median(sorted)),
    }
}

/// `table` with `key`, which may be `table.key`, set.
fn with(table: &Value, key: &str, value: &Value) -> Value {
    let mut table = table.clone();
    match key.split_once('.') {
        Some((outer, inner)) => table[outer][inner] = value.clone(),
        None => table[key] = value.clone(),
    }
    table
}

/// Is this refused without `loss_detection = "rack"`?
fn needs_rack(key: &str) -> bool {
    matches!(key, "tlp" | "undo_by_timestamps" | "segmentation_offload")
}

/// A profile with another controller, as one would write it.
fn controlled(profile: &str, controller: &str) -> Value {
    let mut tcp = json!({ "profile": profile, "congestion": controller });
    if profile == "linux" && controller != "cubic" {
        // There HyStart belongs to CUBIC.
        tcp["hystart"] = json!("off");
    }
    if profile == "rfc" && controller == "bbr" {
        tcp["loss_detection"] = json!("rack");
    }
    tcp
}

fn rows(links: &[Link], rows: &[(String, Value)]) -> Result<()> {
    println!("| | {} |", links.iter().map(|l| l.title).collect::<Vec<_>>().join(" | "));
    println!("|---{}|", "|---".repeat(links.len()));
    for (name, tcp) in rows {
        let cells = links.iter().map(|l| Ok(cell(&times(l, tcp)?))).collect::<Result<Vec<_>>>()?;
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    Ok(())
}

/// Each setting alone: `rfc` with the value that `linux` has, and `linux` with the value of `rfc`.
fn toggles(links: &[Link], profiles: &Map<String, Value>, whole: &dyn Fn(&str) -> Value) -> Result<()> {
    let medians =
        |tcp: &Value| -> Result<Vec<f64>> { links.iter().map(|l| Ok(median(&times(l, tcp)?))).collect() };
    let change = |from: &[f64], to: &[f64]| -> Vec<f64> {
        from.iter().zip(to).map(|(a, b)| (b / a - 1.0) * 100.0).collect()
    };
    let (rfc, linux) = (json!({ "profile": "rfc" }), json!({ "profile": "linux" }));
    let rack = json!({ "profile": "rfc", "loss_detection": "rack" });
    let (from_rfc, from_linux, from_rack) = (medians(&rfc)?, medians(&linux)?, medians(&rack)?);
    println!("| setting | {} |", links.iter().map(|l| l.title).collect::<Vec<_>>().join(" | "));
    println!("|---{}|", "|---".repeat(links.len()));
    let show = |name: &str, cells: Vec<String>| println!("| {name} | {} |", cells.join(" | "));
    show(
        "all of them: `rfc` to `linux`",
        change(&from_rfc, &from_linux).iter().map(|c| format!("{c:+.1}")).collect(),
    );
    let (mut without, rfc_whole) = (Vec::new(), whole("rfc"));
    for (key, value) in profiles["linux"].as_object().into_iter().flatten() {
        let own = match key.split_once('.') {
            Some((outer, inner)) => &rfc_whole[outer][inner],
            None => &rfc_whole[key.as_str()],
        };
        // What needs RACK is counted beside that.
        let (base, from) = if needs_rack(key) { (&rack, &from_rack) } else { (&rfc, &from_rfc) };
        let with_it = change(from, &medians(&with(base, key, value))?);
        let without_it = change(&from_linux, &medians(&with(&linux, key, own))?);
        if with_it.iter().chain(&without_it).all(|c| c.abs() < 0.05) {
            without.push(format!("`{key}`"));
            continue;
        }
        let cells = with_it.iter().zip(&without_it).map(|(a, b)| format!("{a:+.1} / {b:+.1}")).collect();
        show(&format!("`{key}`: {own} to {value}"), cells);
    }
    println!("\nNo effect on these links by themselves, either way: {}.", without.join(", "));
    Ok(())
}

fn main() -> Result<()> {
    let seeds = std::env::args().nth(1).map_or(Ok(20), |n| n.parse())?;
    let links = links(seeds);
    let entry = airloom_transports::find("tcp").ok_or("no TCP")?;
    let schema = (entry.schema)().to_value();
    let profiles = schema["x-profiles"].as_object().ok_or("no profiles")?;
    println!("# TCP on the same link\n");
    println!(
        "<!-- Generated: `tools/tcp-table`. Takes minutes, so nothing calls it: run it where a controller, a profile or a \
         default of TCP has changed. -->\n"
    );
    println!(
        "Seconds to fetch {SIZE} over one connection, request included: median over {seeds} seeds, and where the median of\n\
         all seeds lies with 95 %. A link without losses gives every seed the same time. Both hosts have the same TCP;\n\
         wires drop from 30 packets on, and losses are on the way to the client.\n"
    );
    println!("## Controllers\n\nWith the profile `linux`, HyStart for `cubic` only, as there:\n");
    let by = |profile: &str| -> Vec<(String, Value)> {
        CONTROLLERS.iter().map(|c| (format!("`{c}`"), controlled(profile, c))).collect()
    };
    rows(&links, &by("linux"))?;
    println!("With the profile `rfc` (`bbr` with `loss_detection = \"rack\"`, which it needs):\n");
    rows(&links, &by("rfc"))?;
    println!("## Profiles\n");
    let all: Vec<(String, Value)> =
        profiles.keys().map(|p| (format!("`{p}`"), json!({ "profile": p }))).collect();
    rows(&links, &all)?;
    println!("## Which setting explains how much\n");
    println!(
        "From `rfc` towards `linux`, one setting at a time. The first number: the median changes by so many per cent when\n\
         `rfc` gets the value of `linux`. The second: when `linux` gets the value of `rfc`. Settings work together, so\n\
         they do not add up. `tlp` and `undo_by_timestamps` need `loss_detection = \"rack\"`: for them `rfc` has it too.\n"
    );
    let whole = |profile: &str| (entry.understood)(&json!({ "profile": profile })).unwrap_or_default();
    toggles(&links, profiles, &whole)
}
