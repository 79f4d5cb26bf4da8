//! Controllers that are none of ours, written against the trait alone: do they hear all that they need, and do their window and
//! their rate hold?

use std::sync::{Arc, Mutex};

use airloom_base::units::Rate;
use airloom_base::{Body, Duration, Instant};
use airloom_tcp::config::{EcnUse, IdleRestart, Pacing};
use airloom_tcp::congestion::{About, Ack, Controller, Departure, Event, Hears, Prior, Window};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, Fate, LinkConfig, Pair};

const MSS: u64 = 1448;
/// One way of 2 Mbit/s and 50 ms.
const LINE: u64 = 250_000;

/// What a controller has heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heard {
    sent: u64,
    delivered: u64,
    marked: u64,
    lost: u64,
    samples: u64,
    app_limited: u64,
    recoveries: u64,
    timeouts: u64,
    opens: u64,
    /// Acknowledgements, and those that said that the sender paces.
    acks: u64,
    paced: u64,
    /// The longest time with nothing outstanding that was told.
    idle: Option<Duration>,
    /// How often the window was smaller than the controller had left it.
    cut: u64,
}

/// A model of the path as BBR has one: the fastest delivery, the least round-trip time; a quarter faster than that, with two
/// bandwidth-delay products in flight. Or a rate that is given, whatever happens.
#[derive(Default)]
struct Model {
    heard: Arc<Mutex<Heard>>,
    given: Option<u64>,
    fastest: u64,
    least: Option<Duration>,
    left: u64,
}

impl Controller for Model {
    fn about(&self) -> About {
        About::new(Hears::Everything)
    }
    fn on_sent(&mut self, window: &mut Window, departure: &Departure) {
        let mut heard = self.heard.lock().unwrap();
        heard.sent += departure.octets;
        heard.cut += u64::from(window.cwnd() < self.left);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let mut heard = self.heard.lock().unwrap();
        heard.cut += u64::from(window.cwnd() < self.left);
        heard.delivered += ack.delivered;
        heard.marked += ack.marked;
        heard.lost = ack.delivery.lost_segments;
        if let Some(sample) = ack.delivery.sample {
            heard.samples += 1;
            heard.app_limited += u64::from(sample.is_app_limited);
            self.fastest = self.fastest.max(sample.rate());
        }
        self.least = self.least.into_iter().chain(ack.rtt).min();
        if let Some(least) = self.least {
            let rate = self.given.unwrap_or(self.fastest);
            let product = (u128::from(rate) * u128::from(least.as_nanos()) / 1_000_000_000) as u64;
            window.set_cwnd((2 * product).max(4 * window.mss()));
            self.left = window.cwnd();
        }
    }
    fn ssthresh(&mut self, window: &Window, _base: u64) -> u64 {
        window.ssthresh()
    }
    fn ssthresh_on_ecn(&mut self, window: &Window, _base: u64, _abe: bool) -> u64 {
        window.ssthresh()
    }
    fn on_event(&mut self, _window: &mut Window, _now: Instant, event: Event) {
        let mut heard = self.heard.lock().unwrap();
        heard.recoveries += u64::from(event == Event::Recovery);
        heard.timeouts += u64::from(event == Event::Timeout);
        heard.opens += u64::from(event == Event::Open);
    }
    fn undo(&mut self, _window: &mut Window, _prior: Prior) {}
    fn pacing_rate(&self) -> Option<u64> {
        self.given.or((self.fastest > 0).then_some(self.fastest * 5 / 4))
    }
}

/// Counts what was marked, as what scales with it has to, and leaves the rest to the rules of RFC 5681.
struct Counting(Arc<Mutex<Heard>>);

impl Controller for Counting {
    fn about(&self) -> About {
        About::new(Hears::News)
    }
    fn on_sent(&mut self, _window: &mut Window, departure: &Departure) {
        let mut heard = self.0.lock().unwrap();
        heard.idle = heard.idle.max(departure.idle);
    }
    fn observe(&mut self, _window: &mut Window, ack: &Ack) {
        let mut heard = self.0.lock().unwrap();
        heard.acks += 1;
        heard.paced += u64::from(ack.paced);
        heard.delivered += ack.delivered;
        heard.marked += ack.marked;
    }
}

/// A pair whose client is controlled by a [`Model`], with what that hears.
fn pair(config: &Config, given: Option<u64>) -> (Pair, Arc<Mutex<Heard>>) {
    pair_with(config, move |heard| Box::new(Model { heard, given, ..Model::default() }))
}

/// A pair whose client is controlled by what `make` makes, with what that hears.
fn pair_with(
    config: &Config,
    make: impl Fn(Arc<Mutex<Heard>>) -> Box<dyn Controller> + Send + Sync + 'static,
) -> (Pair, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let ear = heard.clone();
    let client = Tcp::new(config.clone(), 1).controlled_by(move |_, _| make(ear.clone()));
    let rate = Rate::from_bits_per_second(8 * LINE);
    let link = LinkConfig { rate: [rate, rate], delay: Duration::from_millis(50), queue: 200, overhead: 20 };
    (Pair::new(Box::new(client), Box::new(Tcp::new(config.clone(), 2)), link), heard)
}

/// Octets per second while `octets` are sent.
fn goodput(pair: &mut Pair, octets: u64) -> f64 {
    let from = pair.now;
    let goal = pair.server().received + octets;
    pair.write(End::Client, Body::filler(1, octets as u32));
    while pair.server().received < goal {
        let next = pair.next_step().expect("something is to be done");
        pair.drive_until(next);
    }
    let time = pair.now.since(from);
    // The last acknowledgements arrive.
    pair.drive_until(pair.now + Duration::from_secs(2));
    octets as f64 / time.as_secs_f64()
}

fn one_in_a_hundred(pair: &mut Pair) {
    pair.set_fate(Box::new(|sent| {
        let hit = sent.from == End::Client && sent.body > 0 && sent.data_index % 100 == 50;
        if hit { Fate::Lose } else { Fate::Deliver }
    }));
}

#[test]
fn a_model_of_the_path_hears_of_each_segment_sent_delivered_and_lost_and_fills_the_link() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let (mut pair, heard) = pair(&profile.settings(), None);
        pair.open(End::Client);
        one_in_a_hundred(&mut pair);
        let rate = goodput(&mut pair, 2000 * MSS);
        assert!(rate > 0.9 * LINE as f64, "{profile:?}: {rate:.0}");
        let heard = *heard.lock().unwrap();
        assert_eq!(heard.sent, 2000 * MSS, "{profile:?}");
        // By the segment: the last one counts as a full one.
        assert!(heard.delivered.abs_diff(heard.sent) < MSS, "{profile:?}: {heard:?}");
        assert_eq!(heard.lost, pair.link.losses, "{profile:?}");
        assert!(heard.recoveries > 0 && heard.timeouts == 0, "{profile:?}: {heard:?}");
        assert_eq!(heard.opens, heard.recoveries, "{profile:?}: {heard:?}");
        assert!(heard.marked == 0 && heard.samples > 500, "{profile:?}: {heard:?}");
    }
}

#[test]
fn samples_of_an_application_that_sends_less_are_told_apart() {
    let (mut pair, heard) = pair(&Profile::Linux.settings(), None);
    pair.open(End::Client);
    goodput(&mut pair, 400 * MSS);
    let busy = *heard.lock().unwrap();
    // A few segments each time, far less than the path takes.
    (0..20).for_each(|_| _ = goodput(&mut pair, 4 * MSS));
    let idle = *heard.lock().unwrap();
    let (samples, limited) = (idle.samples - busy.samples, idle.app_limited - busy.app_limited);
    assert!(busy.app_limited * 10 < busy.samples, "{busy:?}");
    assert!(limited * 10 > samples * 9, "{limited} of {samples}");
}

#[test]
fn a_rate_that_is_given_holds_with_losses_and_with_marks() {
    let config = Config { ecn: EcnUse::On, ..Profile::Linux.settings() };
    for (losses, marks) in [(false, false), (true, false), (false, true)] {
        let (mut pair, heard) = pair(&config, Some(LINE / 2));
        if marks {
            pair.link.mark_from = 0;
        }
        pair.open(End::Client);
        if losses {
            one_in_a_hundred(&mut pair);
        }
        let share = goodput(&mut pair, 2000 * MSS) / (LINE / 2) as f64;
        assert!((0.97..1.01).contains(&share), "losses {losses}, marks {marks}: {share:.3}");
        let heard = *heard.lock().unwrap();
        // By RFC 3168 each acknowledgement reports until CWR arrives, and all of it counts.
        assert_eq!(heard.marked > heard.delivered / 2, marks, "{heard:?}");
        assert_eq!(heard.marked == 0, !marks, "{heard:?}");
        assert_eq!((heard.lost > 0, pair.link.losses > 0), (losses, losses), "{heard:?}");
    }
}

#[test]
fn marks_are_counted_whichever_way_losses_are_found() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let config = Config { ecn: EcnUse::On, ..profile.settings() };
        let (mut pair, heard) = pair_with(&config, |heard| Box::new(Counting(heard)));
        pair.link.mark_from = 20;
        pair.open(End::Client);
        goodput(&mut pair, 2000 * MSS);
        let heard = *heard.lock().unwrap();
        assert!(heard.delivered.abs_diff(2000 * MSS) < MSS, "{profile:?}: {heard:?}");
        let marks = pair.link.ce_marks;
        assert!(marks > 0 && heard.marked >= marks * MSS, "{profile:?}: {marks} {heard:?}");
        // From a mark to CWR is a round trip.
        assert!(heard.marked < heard.delivered / 2, "{profile:?}: {marks} {heard:?}");
    }
}

#[test]
fn an_idle_time_is_told_whole_although_the_window_begins_anew() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let (mut pair, heard) = pair_with(&profile.settings(), |heard| Box::new(Counting(heard)));
        pair.open(End::Client);
        goodput(&mut pair, 200 * MSS);
        let minute = Duration::from_secs(60);
        pair.drive_until(pair.now + minute);
        goodput(&mut pair, 200 * MSS);
        let idle = heard.lock().unwrap().idle;
        assert!(idle.is_some_and(|idle| idle > minute), "{profile:?}: {idle:?}");
    }
}

#[test]
fn acknowledgements_say_whether_the_sender_paces() {
    for profile in [Profile::Linux, Profile::Rfc] {
        for pacing in [Pacing::Off, Pacing::On] {
            let config = Config { pacing, ..profile.settings() };
            let (mut pair, heard) = pair_with(&config, |heard| Box::new(Counting(heard)));
            pair.open(End::Client);
            one_in_a_hundred(&mut pair);
            goodput(&mut pair, 400 * MSS);
            let heard = *heard.lock().unwrap();
            let expected = if pacing == Pacing::On { heard.acks } else { 0 };
            assert_eq!(heard.paced, expected, "{profile:?} {pacing:?}: {heard:?}");
        }
    }
}

#[test]
fn nobody_else_reduces_the_window_of_who_hears_everything() {
    for profile in [Profile::Linux, Profile::Rfc] {
        for idle_restart in [IdleRestart::InitialWindow, IdleRestart::Halve] {
            let config = Config { idle_restart, ..profile.settings() };
            let (mut pair, heard) = pair(&config, Some(LINE / 2));
            pair.open(End::Client);
            goodput(&mut pair, 400 * MSS);
            // Nothing is sent for long, then less than the window takes.
            pair.drive_until(pair.now + Duration::from_secs(60));
            for _ in 0..40 {
                pair.write(End::Client, Body::filler(1, 3 * MSS as u32));
                pair.drive_until(pair.now + Duration::from_millis(50));
            }
            let heard = *heard.lock().unwrap();
            assert_eq!(heard.cut, 0, "{profile:?} {idle_restart:?}: {heard:?}");
        }
    }
}

/// Wants less than a segment.
struct Narrow;

impl Controller for Narrow {
    fn about(&self) -> About {
        About::new(Hears::Growth)
    }
    fn on_ack(&mut self, window: &mut Window, _ack: &Ack) {
        window.set_cwnd(window.mss() / 2);
    }
}

#[test]
fn a_window_below_a_segment_lets_one_out() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let (mut pair, _) = pair_with(&profile.settings(), |_| Box::new(Narrow));
        pair.open(End::Client);
        assert!(goodput(&mut pair, 30 * MSS) > 0.0, "{profile:?}");
        pair.with_transport(End::Client, |t, _| assert_eq!(t.facts().rto_count, 0, "{profile:?}"));
    }
}
