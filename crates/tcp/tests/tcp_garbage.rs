//! 64 kB of garbage where options stand: no panic, nothing read that was not written, and the transfer goes on.

use airloom_base::random::Stream;
use airloom_base::{Body, CloseReason, Duration, Instant, Packet};
use airloom_tcp::wire::Flags;
use airloom_tcp::{Profile, Tcp};
use airloom_testkit::{End, LinkConfig, Pair, cases, hash_of};
use proptest::prelude::*;

/// Octets of options in each episode.
const GARBAGE: usize = 65_536;

/// Up to forty octets: noise, or options that exist with lengths and values of their own.
fn options(random: &mut Stream) -> Vec<u8> {
    let mut octets = Vec::new();
    let whole = 4 * (1 + random.below(10)) as usize;
    let noise = random.chance(0.5);
    while octets.len() < whole {
        if noise {
            octets.push(random.bits() as u8);
            continue;
        }
        let kind = [0, 1, 2, 3, 4, 5, 8, 19, 28, 29, 30, 34, 69, 253, 254][random.below(15) as usize];
        octets.push(kind);
        if kind > 1 {
            let honest = match kind {
                2 => 4,
                3 => 3,
                4 => 2,
                5 => 10,
                8 => 10,
                _ => 6,
            };
            let len = if random.chance(0.6) { honest } else { random.below(256) as usize };
            octets.push(len as u8);
            octets.extend((2..len.min(40)).map(|_| random.bits() as u8));
        }
    }
    octets.truncate(whole);
    octets
}

/// A copy of `head`, a header of ours that was seen, with other options.
fn with_options(head: &[u8], options: &[u8], random: &mut Stream) -> Packet {
    let mut octets = head[..20].to_vec();
    octets[12] = ((20 + options.len()) as u8 / 4) << 4;
    if random.chance(0.1) {
        // Other flags, among them SYN, where options mean most; no FIN, which would end a stream early as it should.
        octets[13] = random.bits() as u8 & !Flags::FIN.0;
    }
    octets.extend_from_slice(options);
    Packet::build(
        |out| {
            out[..octets.len()].copy_from_slice(&octets);
            octets.len()
        },
        Body::EMPTY,
    )
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn sixty_four_kilobytes_of_options_are_survived(
        profile in prop::sample::select(Profile::ALL),
        seed in any::<u64>(),
    ) {
        let mut random = Stream::new(seed, "garbage");
        let config = profile.settings();
        let tcp = |secret| Box::new(Tcp::new(config.clone(), secret));
        let mut pair = Pair::new(tcp(1), tcp(2), LinkConfig::default());
        pair.watch = true;
        pair.open(End::Client);
        pair.write(End::Client, Body::filler(1, 200_000));
        pair.write(End::Server, Body::filler(2, 200_000));
        let mut left = GARBAGE;
        let mut at = Instant::ZERO;
        while left > 0 {
            at += Duration::from_micros(random.below(3000));
            pair.drive_until(at);
            let seen = pair.seen[random.below(pair.seen.len() as u64) as usize].clone();
            let options = options(&mut random);
            left = left.saturating_sub(options.len());
            // To whom it had been sent, and to who sent it.
            let to = if random.chance(0.8) { seen.from.other() } else { seen.from };
            let packet = with_options(&seen.head, &options, &mut random);
            pair.inject(to, packet);
        }
        pair.finish(End::Client);
        pair.finish(End::Server);
        pair.drive();
        // What a guess reset is closed; all others have everything.
        prop_assert_eq!(pair.next_step(), None);
        for (end, source) in [(End::Client, 2), (End::Server, 1)] {
            if pair.host(end).closed() == Some(CloseReason::Finished) {
                prop_assert_eq!(pair.host(end).received, 200_000);
                prop_assert_eq!(pair.host(end).hash(), hash_of(&[Body::filler(source, 200_000)]));
            }
        }
    }
}
