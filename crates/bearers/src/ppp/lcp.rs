//! What is negotiated for a link (RFC 1661, 6; RFC 1662, 7.1; for a bundle's member RFC 1990, 5).

use smart_default::SmartDefault;

use airloom_base::random::Stream;

use super::automaton::{Negotiation, Verdict};
use super::control::append_option;
use super::frame::Compression;

const MRU: u8 = 1;
const ACCM: u8 = 2;
const MAGIC: u8 = 5;
const PFC: u8 = 7;
const ACFC: u8 = 8;
const MRRU: u8 = 17;
const SHORT_SEQUENCE: u8 = 18;
const DISCRIMINATOR: u8 = 19;

/// The MRU that nobody has to ask for (RFC 1661, 6.1).
pub const DEFAULT_MRU: u16 = 1500;
/// Every receiver of a bundle takes so much (RFC 1990, 5.1.1).
pub const LEAST_MRRU: u16 = 1500;
/// Most octets of an endpoint discriminator, its class included (RFC 1990, 5.1.3).
const LONGEST_DISCRIMINATOR: usize = 21;
/// How often the other end may have our magic number before it is ourselves.
const MOST_ECHOES: u32 = 3;

/// What one end wants to receive; by default what holds for an end that asks for nothing.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct LinkOptions {
    /// Largest information field.
    #[default(DEFAULT_MRU)]
    pub mru: u16,
    /// Control characters to be escaped.
    #[default(!0)]
    pub accm: u32,
    /// What may be left out in front of it.
    pub compression: Compression,
    /// Largest packet of a bundle: none means no bundle.
    pub mrru: Option<u16>,
    /// Fragments with 12 bits of number instead of 24.
    pub short_sequence: bool,
    /// Class and address of the end (RFC 1990, 5.1.3); empty: none.
    pub discriminator: Vec<u8>,
}

/// One end's side of it.
#[derive(getset::Getters)]
pub struct Lcp {
    /// What this end receives, as far as it was granted.
    #[getset(get = "pub")]
    ours: LinkOptions,
    numbers: Stream,
    magic: u32,
    /// Magic numbers are asked for.
    has_magic: bool,
    /// Those of the bundle that this link is to join, as the other end has them.
    bundle: Option<LinkOptions>,
    asked: LinkOptions,
    /// What the other end wants to receive, as far as it was granted.
    #[getset(get = "pub")]
    theirs: LinkOptions,
    /// The number that the other end was last told to take instead of ours.
    suggested: Option<u32>,
    /// How often in turn what came may have been our own.
    echoes: u32,
    trouble: Option<&'static str>,
}

impl Lcp {
    /// An end that wants this, with magic numbers from `numbers`. A link that joins a bundle has to have the options of
    /// those that are in it.
    pub fn new(ours: LinkOptions, mut numbers: Stream, bundle: Option<LinkOptions>) -> Lcp {
        let magic = draw(&mut numbers);
        Lcp {
            ours,
            numbers,
            magic,
            has_magic: true,
            bundle,
            asked: LinkOptions::default(),
            theirs: LinkOptions::default(),
            suggested: None,
            echoes: 0,
            trouble: None,
        }
    }

    fn judge_number(&mut self, data: &[u8]) -> Verdict {
        let Some(number) = octets4(data) else { return Verdict::Reject };
        //= RFC 1661 (6.4): the same number may be our own request come back; 0 is never granted.
        let is_ours = number == self.magic && self.has_magic;
        self.heard(is_ours);
        if number != 0 && !is_ours {
            return Verdict::Ack;
        }
        let suggested = draw(&mut self.numbers);
        self.suggested = Some(suggested);
        Verdict::Nak(suggested.to_be_bytes().to_vec())
    }

    /// A magic number came, which is our own or proves that there is another end.
    fn heard(&mut self, is_ours: bool) {
        self.echoes = if is_ours { self.echoes + 1 } else { 0 };
    }

    fn judge_mrru(&mut self, data: &[u8]) -> Verdict {
        let Some(mrru) = octets2(data) else { return Verdict::Reject };
        if self.ours.mrru.is_none() {
            return Verdict::Reject;
        }
        //= RFC 1990 (5.1.1): all links of a bundle say the same.
        let wanted = self.bundle.as_ref().and_then(|bundle| bundle.mrru).unwrap_or(mrru.max(64));
        if mrru != wanted {
            return Verdict::Nak(wanted.to_be_bytes().to_vec());
        }
        self.asked.mrru = Some(mrru);
        Verdict::Ack
    }

    fn judge_short_sequence(&mut self, data: &[u8]) -> Verdict {
        //= RFC 1990 (5.1.2): all links of a bundle have the same header.
        let is_wanted = self.bundle.as_ref().is_none_or(|bundle| bundle.short_sequence);
        if !data.is_empty() || !is_wanted || self.ours.mrru.is_none() {
            return Verdict::Reject;
        }
        self.asked.short_sequence = true;
        Verdict::Ack
    }

    fn judge_discriminator(&mut self, data: &[u8]) -> Verdict {
        if data.is_empty() || data.len() > LONGEST_DISCRIMINATOR {
            return Verdict::Reject;
        }
        //= RFC 1990 (5.1.3): another discriminator is another system's.
        if self.bundle.as_ref().is_some_and(|bundle| bundle.discriminator != data) {
            self.trouble = Some("the link leads to another system than the bundle");
        }
        self.asked.discriminator = data.to_vec();
        Verdict::Ack
    }
}

/// A number other than 0, which stands for none.
fn draw(numbers: &mut Stream) -> u32 {
    (numbers.bits() as u32).max(1)
}

fn octets2(data: &[u8]) -> Option<u16> {
    data.try_into().ok().map(u16::from_be_bytes)
}

fn octets4(data: &[u8]) -> Option<u32> {
    data.try_into().ok().map(u32::from_be_bytes)
}

impl Negotiation for Lcp {
    fn request(&self, out: &mut Vec<u8>) {
        let (ours, default) = (&self.ours, LinkOptions::default());
        if ours.mru != default.mru {
            append_option(out, MRU, &ours.mru.to_be_bytes());
        }
        if ours.accm != default.accm {
            append_option(out, ACCM, &ours.accm.to_be_bytes());
        }
        if self.has_magic {
            append_option(out, MAGIC, &self.magic.to_be_bytes());
        }
        if ours.compression.protocol {
            append_option(out, PFC, &[]);
        }
        if ours.compression.address_control {
            append_option(out, ACFC, &[]);
        }
        if let Some(mrru) = ours.mrru {
            append_option(out, MRRU, &mrru.to_be_bytes());
        }
        if ours.short_sequence {
            append_option(out, SHORT_SEQUENCE, &[]);
        }
        if !ours.discriminator.is_empty() {
            append_option(out, DISCRIMINATOR, &ours.discriminator);
        }
    }

    fn begin(&mut self) {
        (self.asked, self.trouble) = (LinkOptions::default(), None);
    }

    fn judge(&mut self, kind: u8, data: &[u8]) -> Verdict {
        match kind {
            MRU => octets2(data).map_or(Verdict::Reject, |mru| {
                self.asked.mru = mru;
                Verdict::Ack
            }),
            ACCM => octets4(data).map_or(Verdict::Reject, |accm| {
                self.asked.accm = accm;
                Verdict::Ack
            }),
            MAGIC => self.judge_number(data),
            PFC if data.is_empty() => {
                self.asked.compression.protocol = true;
                Verdict::Ack
            }
            ACFC if data.is_empty() => {
                self.asked.compression.address_control = true;
                Verdict::Ack
            }
            MRRU => self.judge_mrru(data),
            SHORT_SEQUENCE => self.judge_short_sequence(data),
            DISCRIMINATOR => self.judge_discriminator(data),
            _ => Verdict::Reject,
        }
    }

    fn missing(&mut self, out: &mut Vec<u8>) {
        let Some(bundle) = &self.bundle else { return };
        if let (None, Some(mrru)) = (self.asked.mrru, bundle.mrru) {
            append_option(out, MRRU, &mrru.to_be_bytes());
        }
        if bundle.short_sequence && !self.asked.short_sequence {
            append_option(out, SHORT_SEQUENCE, &[]);
        }
    }

    fn grant(&mut self) {
        self.theirs = self.asked.clone();
    }

    fn nak(&mut self, kind: u8, data: &[u8]) {
        match (kind, octets2(data), octets4(data)) {
            // More than was offered is not taken.
            (MRU, Some(mru), _) => self.ours.mru = mru.min(self.ours.mru),
            (ACCM, _, Some(accm)) => self.ours.accm |= accm,
            //= RFC 1661 (6.4): another number than the one suggested last comes from another end.
            (MAGIC, _, number) => {
                self.heard(number.is_some() && number == self.suggested);
                self.magic = draw(&mut self.numbers);
            }
            (MRRU, Some(mrru), _) if self.ours.mrru.is_some() => self.ours.mrru = Some(mrru.max(LEAST_MRRU)),
            (SHORT_SEQUENCE, ..) if data.is_empty() => self.ours.short_sequence = true,
            _ => {}
        }
    }

    fn reject(&mut self, kind: u8) {
        let default = LinkOptions::default();
        match kind {
            MRU => self.ours.mru = default.mru,
            ACCM => self.ours.accm = default.accm,
            MAGIC => self.has_magic = false,
            PFC => self.ours.compression.protocol = false,
            ACFC => self.ours.compression.address_control = false,
            MRRU => self.ours.mrru = None,
            SHORT_SEQUENCE => self.ours.short_sequence = false,
            DISCRIMINATOR => self.ours.discriminator.clear(),
            _ => {}
        }
    }

    fn trouble(&self) -> Option<&'static str> {
        self.trouble.or((self.echoes > MOST_ECHOES).then_some("the link is looped back"))
    }

    fn magic(&self) -> Option<u32> {
        Some(if self.has_magic { self.magic } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Duration, Instant};
    use proptest::prelude::*;

    use super::super::automaton::{Automaton, State};
    use super::super::control::code;
    use super::*;

    fn wants() -> LinkOptions {
        LinkOptions {
            accm: 0,
            mrru: Some(1500),
            discriminator: b"\x01mobile".to_vec(),
            ..LinkOptions::default()
        }
    }

    fn lcp(ours: LinkOptions, seed: u64) -> Lcp {
        Lcp::new(ours, Stream::new(seed, "end"), None)
    }

    fn end(ours: LinkOptions, seed: u64) -> Automaton<Lcp> {
        Automaton::new(lcp(ours, seed), Instant::ZERO)
    }

    fn with_number(seed: u64, magic: u32) -> Automaton<Lcp> {
        Automaton::new(Lcp { magic, ..lcp(wants(), seed) }, Instant::ZERO)
    }

    /// Both ends talk; the packets of one whose number is in `lost` are lost. Ends with nothing to say wait for timers.
    fn drive<A: Negotiation, B: Negotiation>(
        one: &mut Automaton<A>,
        other: &mut Automaton<B>,
        lost: &[usize],
    ) -> Duration {
        let (mut now, mut sent) = (Instant::ZERO, 0);
        for _ in 0..200 {
            let mut is_quiet = true;
            while let Some(octets) = one.poll_transmit() {
                if !lost.contains(&sent) {
                    other.handle(now, &octets);
                }
                (sent, is_quiet) = (sent + 1, false);
            }
            while let Some(octets) = other.poll_transmit() {
                one.handle(now, &octets);
                is_quiet = false;
            }
            if is_quiet {
                let Some(at) = [one.poll_timeout(), other.poll_timeout()].into_iter().flatten().min() else {
                    break;
                };
                now = at;
                one.handle_timeout(now);
                other.handle_timeout(now);
            }
        }
        now.since(Instant::ZERO)
    }

    #[test]
    fn two_ends_agree_at_once() {
        let theirs = LinkOptions {
            compression: Compression { address_control: true, protocol: true },
            short_sequence: true,
            mru: 1000,
            ..wants()
        };
        let (mut one, mut other) = (end(wants(), 1), end(theirs.clone(), 2));
        assert_eq!(drive(&mut one, &mut other, &[]), Duration::ZERO);
        assert!(one.is_opened() && other.is_opened());
        assert_eq!((one.negotiation.theirs(), other.negotiation.theirs()), (&theirs, &wants()));
    }

    #[test]
    fn what_is_lost_is_sent_again_by_the_restart_timer() {
        for lost in 0..3 {
            let (mut one, mut other) = (end(wants(), 1), end(wants(), 2));
            let took = drive(&mut one, &mut other, &[lost]);
            assert!(one.is_opened() && other.is_opened(), "{lost}");
            assert!(took <= Duration::from_secs(6), "{lost}: {took}");
        }
    }

    #[test]
    fn without_any_answer_it_gives_up_after_ten_requests() {
        let (mut one, mut other) = (end(wants(), 1), end(wants(), 2));
        let lost: Vec<usize> = (0..100).collect();
        while other.poll_transmit().is_some() {}
        drive(&mut one, &mut other, &lost);
        assert_eq!((one.state(), one.given_up()), (State::Stopped, Some("no answer")));
    }

    #[test]
    fn a_link_that_leads_back_is_recognised() {
        let mut one = end(wants(), 7);
        for _ in 0..100 {
            let Some(octets) = one.poll_transmit() else { break };
            one.handle(Instant::ZERO, &octets);
        }
        assert_eq!(one.given_up(), Some("the link is looped back"));
    }

    #[test]
    fn the_same_magic_number_by_chance_is_changed() {
        let (mut one, mut other) = (with_number(1, 7), with_number(2, 7));
        drive(&mut one, &mut other, &[]);
        assert!(one.is_opened() && other.is_opened());
        assert_ne!(one.negotiation.magic(), other.negotiation.magic());
    }

    #[test]
    fn the_same_magic_number_by_chance_is_no_loop_however_often_packets_are_lost() {
        let (mut one, mut other) = (with_number(1, 7), with_number(2, 7));
        let refused = LinkOptions { mrru: None, short_sequence: true, ..wants() };
        (one.negotiation.ours, other.negotiation.ours) = (refused.clone(), refused);
        drive(&mut one, &mut other, &[0, 1, 9]);
        assert!(one.is_opened() && other.is_opened(), "{:?} {:?}", one.given_up(), other.given_up());
    }

    #[test]
    fn an_end_that_finds_trouble_grants_nothing_and_says_that_it_closes() {
        let bundled = Lcp::new(wants(), Stream::new(1, "end"), Some(wants()));
        let stranger = LinkOptions { discriminator: b"\x01stranger".to_vec(), ..wants() };
        let (mut one, mut other) = (Automaton::new(bundled, Instant::ZERO), end(stranger, 2));
        let request = other.poll_transmit().unwrap();
        while one.poll_transmit().is_some() {}
        one.handle(Instant::ZERO, &request);
        let said: Vec<u8> = std::iter::from_fn(|| one.poll_transmit()).map(|octets| octets[0]).collect();
        assert_eq!((said, one.state()), (vec![code::TERMINATE_REQUEST], State::Stopping));
        drive(&mut one, &mut other, &[]);
        assert!(!other.is_opened());
        assert!(one.given_up().is_some_and(|why| why.contains("another system")));
    }

    #[test]
    fn a_link_that_joins_has_the_options_of_the_bundle() {
        let bundle = LinkOptions { mrru: Some(1600), short_sequence: true, ..wants() };
        let joins = Lcp::new(wants(), Stream::new(1, "end"), Some(bundle));
        let (mut one, mut other) = (Automaton::new(joins, Instant::ZERO), end(wants(), 2));
        drive(&mut one, &mut other, &[]);
        assert!(one.is_opened());
        assert_eq!(
            (one.negotiation.theirs().mrru, one.negotiation.theirs().short_sequence),
            (Some(1600), true)
        );
        let stranger = LinkOptions { discriminator: b"\x01stranger".to_vec(), ..wants() };
        let joins = Lcp::new(wants(), Stream::new(1, "end"), Some(wants()));
        let (mut one, mut other) = (Automaton::new(joins, Instant::ZERO), end(stranger, 2));
        drive(&mut one, &mut other, &[]);
        assert!(one.given_up().is_some_and(|why| why.contains("another system")));
    }

    #[test]
    fn an_end_without_multilink_refuses_its_options_only() {
        let (mut one, mut other) = (end(LinkOptions { mrru: None, ..wants() }, 1), end(wants(), 2));
        drive(&mut one, &mut other, &[]);
        assert!(one.is_opened() && other.is_opened());
        assert_eq!((other.negotiation.ours().mrru, one.negotiation.theirs().mrru), (None, None));
    }

    #[test]
    fn an_end_that_closes_is_answered_and_its_next_request_begins_anew() {
        let (mut one, mut other) = (end(wants(), 1), end(wants(), 2));
        drive(&mut one, &mut other, &[]);
        one.handle(Instant::ZERO, &[5, 9, 0, 4]);
        assert_eq!((one.state(), one.poll_transmit()), (State::Stopping, Some(vec![6, 9, 0, 4])));
        one.handle_timeout(Instant::ZERO + Duration::from_secs(3));
        assert_eq!(one.state(), State::Stopped);
        let mut again = end(wants(), 3);
        drive(&mut one, &mut again, &[]);
        assert!(one.is_opened() && again.is_opened());
    }

    #[test]
    fn an_echo_is_answered_with_our_magic_number() {
        let (mut one, mut other) = (with_number(1, 0x0102_0304), end(wants(), 2));
        drive(&mut one, &mut other, &[]);
        one.handle(Instant::ZERO, &[9, 5, 0, 10, 0, 0, 0, 2, 0xAA, 0xBB]);
        assert_eq!(one.poll_transmit(), Some(vec![10, 5, 0, 10, 1, 2, 3, 4, 0xAA, 0xBB]));
    }

    proptest! {
        /// Whatever comes, it answers a bounded number of packets, and comes to an end when nothing comes any more.
        #[test]
        fn no_packets_panic_or_keep_it_busy(
            packets in prop::collection::vec((0u8..13, 0u8..4, prop::collection::vec(any::<u8>(), 0..12)), 0..40),
        ) {
            let mut one = end(wants(), 1);
            let mut now = Instant::ZERO;
            for (code, id, data) in packets {
                one.handle(now, &super::super::control::ControlPacket { code, id, data: &data }.emit());
                one.handle(now, &data);
                prop_assert!(std::iter::from_fn(|| one.poll_transmit()).count() <= 6);
                now += Duration::from_millis(700);
                one.handle_timeout(now);
            }
            for _ in 0..40 {
                let Some(at) = one.poll_timeout() else { break };
                one.handle_timeout(at);
            }
            prop_assert_eq!(one.poll_timeout(), None);
        }

        /// Ends that want different things, and lose packets, agree or give up.
        #[test]
        fn two_ends_agree_or_give_up(
            numbers in (1u32..3, 1u32..3),
            mrrus in (prop::option::of(1u16..3000), prop::option::of(1u16..3000)),
            shorts in any::<(bool, bool)>(),
            lost in prop::collection::vec(0usize..30, 0..10),
        ) {
            let options = |mrru, short_sequence| LinkOptions { mrru, short_sequence, ..wants() };
            let wants = |ours, seed, magic| Automaton::new(Lcp { magic, ..lcp(ours, seed) }, Instant::ZERO);
            let mut one = wants(options(mrrus.0, shorts.0), 1, numbers.0);
            let mut other = wants(options(mrrus.1, shorts.1), 2, numbers.1);
            drive(&mut one, &mut other, &lost);
            prop_assert_eq!(one.is_opened(), other.is_opened());
            prop_assert!(one.is_opened() || one.given_up().is_some());
        }
    }
}
