//! A link of the bundle, and what its two ends know of it.

use airloom_base::random::Stream;
use airloom_base::record::PointKind;
use airloom_base::{Bearer, ConfigError, Direction, Instant, Parts, Station};

use super::config::MlpppConfig;
use crate::cell::Points;
use crate::ppp::automaton::Automaton;
use crate::ppp::lcp::{Lcp, LinkOptions};

/// Is there a line to the other end?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// No.
    None,
    /// Yes.
    There,
    /// No, but both ends will know only then.
    LostUntil(Instant),
}

/// A member. Its ends are told apart by the direction in which they send.
pub struct Member {
    pub number: u16,
    pub link: Box<dyn Bearer>,
    pub carrier: Carrier,
    /// It is in service, or will be: nobody took it out.
    pub is_wanted: bool,
    /// It told that it is out of service, so it will tell when it is back.
    pub will_tell: bool,
    pub lcp: [Option<Automaton<Lcp>>; 2],
    /// Does this end send fragments over it?
    pub has_joined: [bool; 2],
    pub points: [Points; 2],
    pub weight: u32,
    numbers: [Stream; 2],
}

/// Name of the end that sends in this direction.
pub fn end_of(direction: Direction) -> &'static str {
    match direction {
        Direction::Uplink => "mobile",
        Direction::Downlink => "network",
    }
}

impl Member {
    /// A member that was set up before: both ends have negotiated with each other.
    pub fn new(config: &MlpppConfig, number: u16, parts: &mut Parts) -> Result<Member, ConfigError> {
        let place = usize::from(number) % config.members.len().max(1);
        let name = format!("{}.member.{number}", parts.name);
        let link = {
            let environments = parts.environments;
            // The header of PPP Multilink and two protocol fields stand before a packet.
            let mtu = parts.mtu.saturating_add(8);
            let mut own =
                Parts { environments, mtu, ..Parts::new(parts.seed, &name, 1, &mut *parts.records) };
            config.members[place].build(&mut own).map_err(|e| e.below(&place.to_string()).below("members"))?
        };
        let numbers = Direction::BOTH.map(|d| parts.stream(&format!("member.{number}.{}", end_of(d))));
        let points = Direction::BOTH.map(|direction| {
            let kind = PointKind::Ppp { direction, station: Station(0) };
            Points::new(parts, &format!("member.{number}.ppp"), direction, kind)
        });
        let mut member = Member {
            number,
            link,
            carrier: Carrier::There,
            is_wanted: true,
            will_tell: false,
            lcp: [None, None],
            has_joined: [true; 2],
            points,
            weight: config.weight(number),
            numbers,
        };
        member.negotiate(config, [None, None], Instant::ZERO);
        member.agree_at_once();
        Ok(member)
    }

    /// Both ends begin to negotiate; `bundle` is what the other end of each wants to receive in the bundle, if there is one.
    pub fn negotiate(&mut self, config: &MlpppConfig, bundle: [Option<LinkOptions>; 2], now: Instant) {
        for (direction, bundle) in Direction::BOTH.into_iter().zip(bundle) {
            let numbers = &mut self.numbers[direction as usize];
            numbers.bits();
            let lcp = Lcp::new(config.options(end_of(direction)), numbers.clone(), bundle);
            self.lcp[direction as usize] = Some(Automaton::new(lcp, now));
        }
    }

    /// The ends talk to each other as if there were no distance.
    fn agree_at_once(&mut self) {
        let [Some(one), Some(other)] = &mut self.lcp else { return };
        crate::ppp::automaton::agree(one, other, Instant::ZERO);
    }

    /// What the other end of the one that sends in this direction wants to receive, if they agreed on something.
    pub fn agreed(&self, direction: Direction) -> Option<&LinkOptions> {
        let lcp = self.lcp[direction as usize].as_ref().filter(|lcp| lcp.is_opened())?;
        Some(lcp.negotiation.theirs())
    }

    /// Did the end that sends in this direction agree with the other one on a bundle?
    pub fn is_bundled(&self, direction: Direction) -> bool {
        self.agreed(direction).is_some_and(|theirs| theirs.mrru.is_some())
    }

    /// When a timer of it expires, or its link has something to do.
    pub fn next_timeout(&self) -> Instant {
        let known = match self.carrier {
            Carrier::LostUntil(at) => Some(at),
            _ => None,
        };
        let timers = self.lcp.iter().flatten().filter_map(Automaton::poll_timeout);
        let all = timers.chain(known).chain(self.link.poll_timeout());
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }
}
