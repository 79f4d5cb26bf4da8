//! TCP: two connections that talk over a bad link, with a forger on it.

use airloom_base::{Body, Packet, Protocol};
use airloom_testkit::Offered;
use airloom_transports::tcp::wire::{Flags, Header, Options, ProbeOption, ProbeStep};
use airloom_transports::tcp::{Config, Tcp};
use serde_json::{Value, json};

use crate::link;
use crate::octets::Octets;

const PROFILES: [&str; 7] = ["rfc", "linux", "linux-classic", "bsd-reno", "nt4", "win98", "w-tcp"];

/// What a profile may have in addition. What does not go together is refused, and the profile alone is taken.
const SETTINGS: [(&str, &str); 16] = [
    ("congestion", r#""tahoe""#),
    ("congestion", r#""cubic""#),
    ("congestion", r#""westwood""#),
    ("congestion", r#""vegas""#),
    ("congestion", r#""probing""#),
    ("congestion", r#""bbr""#),
    ("ecn", r#""on""#),
    ("pacing", r#""on""#),
    ("sack", "false"),
    ("timestamps", "false"),
    ("loss_detection", r#""rack""#),
    ("hystart", r#""rfc9406""#),
    ("receive_buffer", r#""3kB""#),
    ("receive_autotuning", "true"),
    ("nagle", r#""off""#),
    ("segmentation_offload", "true"),
];

/// Two octets say the settings of each end, the next how the link is, and the rest what happens.
pub fn tcp(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let ends = [1, 2].map(|secret| {
        let config = settings(&mut octets);
        Box::new(Tcp::new(config, secret)) as Box<dyn Protocol>
    });
    link::play(ends, octets, forge);
}

fn settings(octets: &mut Octets<'_>) -> Config {
    let mut table = json!({ "profile": octets.one_of(&PROFILES) });
    for _ in 0..octets.octet() % 4 {
        let (key, value) = octets.one_of(&SETTINGS);
        table[key] = value.parse().expect("it is JSON");
    }
    let read = |table: &Value| airloom_base::config::read::<Config>(table);
    read(&table).or_else(|_| read(&json!({ "profile": table["profile"] }))).expect("a profile is valid")
}

/// A segment near one that was seen: other numbers, flags, options and data. What is parsed is written and parsed again to the
/// same.
fn forge(octets: &mut Octets<'_>, seen: &Offered) -> Option<Packet> {
    let how = octets.octet();
    let (mut header, _) = Header::parse(&seen.head).ok()?;
    if how & 1 != 0 {
        header.flags = Flags(octets.octet());
    }
    if how & 2 != 0 {
        header.seq = header.seq.wrapping_add_signed(distance(octets));
    }
    if how & 4 != 0 {
        header.ack = header.ack.wrapping_add_signed(distance(octets));
    }
    if how & 8 != 0 {
        header.window = octets.number();
    }
    if how & 16 != 0 {
        options(octets, &mut header);
    }
    let body = if how & 32 != 0 { Body::filler(9, octets.number().into()) } else { Body::EMPTY };
    let mut out = [0; 60];
    let mut written = header.emit(&mut out);
    if how & 64 != 0 {
        // Octets as they come where options stand.
        let most = 4 * usize::from(octets.octet() % 11);
        let raw = octets.take(most);
        let raw = &raw[..raw.len() & !3];
        out[20..20 + raw.len()].copy_from_slice(raw);
        written = 20 + raw.len();
        out[12] = (written as u8 / 4) << 4;
    }
    if let Ok((header, len)) = Header::parse(&out[..written]) {
        assert!(len <= written);
        let mut again = [0; 60];
        let written = header.emit(&mut again);
        assert_eq!(Header::parse(&again[..written]), Ok((header, written)), "it is ours");
    }
    Packet::with_head(&out[..written], body)
}

/// Mostly small, and of either sign.
fn distance(octets: &mut Octets<'_>) -> i32 {
    let far = i32::from(octets.number().cast_signed());
    if octets.is_set() { far << 15 } else { far }
}

fn options(octets: &mut Octets<'_>, header: &mut Header) {
    let which = octets.octet();
    let mut options = if which & 1 != 0 { Options::default() } else { header.options };
    if which & 2 != 0 {
        options.mss = Some(octets.number());
        options.window_scale = Some(octets.octet() % 15);
    }
    if which & 4 != 0 {
        options.sack_permitted = !options.sack_permitted;
    }
    if which & 8 != 0 {
        let (value, echo) = options.timestamps.unwrap_or_default();
        options.timestamps =
            Some((value.wrapping_add_signed(distance(octets)), echo.wrapping_add_signed(distance(octets))));
    }
    if which & 16 != 0 {
        for _ in 0..1 + octets.octet() % 3 {
            let left = header.ack.wrapping_add_signed(distance(octets));
            options.sack.push(left, left.wrapping_add_signed(distance(octets)));
        }
    }
    if which & 32 != 0 {
        let steps = [
            ProbeStep::Permitted,
            ProbeStep::Probe1,
            ProbeStep::Answer1,
            ProbeStep::Probe2,
            ProbeStep::Answer2,
        ];
        options.probe = Some(ProbeOption { step: octets.one_of(&steps), cycle: octets.octet() });
    }
    // What does not fit beside the rest is left out.
    if which & 64 != 0 {
        options.timestamps = None;
    }
    header.options = options;
}
