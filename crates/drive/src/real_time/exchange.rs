//! What an engine and its caller share: records on their way out in batches, requests on their way in, and who wakes whom.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::sys::eventfd::{EfdFlags, EventFd};

use airloom_base::{Change, Condition, Instant, Outbox};
use airloom_world::World;

use super::closing::Closing;
use super::{Error, Report};

/// Records, and octets of captures, of events and of secrets, that wait for the caller.
const ROWS_WAITING: usize = 1 << 20;
const OCTETS_WAITING: usize = 256 << 20;
/// Requests that wait for the engine.
const MOST_ASKED: usize = 1024;

/// What another thread wants of the engine. Whoever asked hears that the run is over when its sender goes.
pub(super) enum Ask {
    /// Change a link, all of it at one moment: which one that was, or what the link cannot do.
    Change {
        link: u32,
        part: Vec<u16>,
        changes: Vec<Change>,
        answer: SyncSender<Result<Instant, &'static str>>,
    },
    /// Call the applications at the edge of the network: something waits for them outside.
    Wake,
    /// Say how the links are.
    Look { answer: SyncSender<(Instant, Vec<Vec<Condition>>)> },
}

/// Why nobody will answer.
pub(super) enum Unheard {
    /// The engine has ended.
    Over,
    /// Too many ask.
    Busy,
}

/// What engine and caller share.
pub(super) struct Shared {
    stop: AtomicBool,
    /// Is there anything to be looked for in `asked`?
    is_asked: AtomicBool,
    /// Requests; none are taken any more once the engine has ended.
    asked: Mutex<Option<VecDeque<Ask>>>,
    /// Wakes the engine.
    wake: EventFd,
    /// Tells the caller that there is something to take, or that it is over.
    told: EventFd,
    exchange: Mutex<Exchange>,
}

/// Records on their way to the caller.
struct Exchange {
    /// Each with its size.
    ready: VecDeque<(Outbox, Size)>,
    /// The last batch that was taken, for its memory.
    spare: Option<Outbox>,
    at: Instant,
    backlog: u64,
    ended: bool,
    /// Records that there was no room for.
    lost: u64,
}

/// Records, and their octets.
#[derive(Clone, Copy)]
struct Size(usize, usize);

impl Size {
    fn of(records: &Outbox) -> Size {
        let events: usize = records.qlog.iter().map(|some| some.lines.len()).sum();
        Size(
            records.packets.len() + records.facts.len() + records.qlog.len(),
            records.octets.len() + records.secrets.len() + events,
        )
    }
}

impl Shared {
    /// Nothing to take yet; the first batch is made of `spare`.
    pub(super) fn new(spare: Option<Outbox>) -> io::Result<Shared> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = || EventFd::from_value_and_flags(0, flags).map_err(io::Error::from);
        let exchange =
            Exchange { ready: VecDeque::new(), spare, at: Instant::ZERO, backlog: 0, ended: false, lost: 0 };
        Ok(Shared {
            stop: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
            asked: Mutex::new(Some(VecDeque::new())),
            wake: event()?,
            told: event()?,
            exchange: Mutex::new(exchange),
        })
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the engine to end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.wake.write(1);
    }

    fn asked_for(&self) -> MutexGuard<'_, Option<VecDeque<Ask>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the engine for something.
    pub(super) fn ask(&self, ask: Ask) -> Result<(), Unheard> {
        let mut asked = self.asked_for();
        let waiting = asked.as_mut().ok_or(Unheard::Over)?;
        if waiting.len() >= MOST_ASKED {
            return Err(Unheard::Busy);
        }
        waiting.push_back(ask);
        drop(asked);
        // In this order: an engine that is woken between the two would find nothing, and look for it again and again in front of
        // the very thread that is to say so. A wake-up that comes behind its flag is heeded ([`Shared::heed`]).
        self.is_asked.store(true, Ordering::Release);
        let _ = self.wake.write(1);
        Ok(())
    }

    /// Somebody has written to `wake`: it is read with the requests, should there be any left.
    pub(super) fn heed(&self) {
        self.is_asked.store(true, Ordering::Release);
    }

    /// What was asked for since the last time.
    pub(super) fn take_asked(&self) -> VecDeque<Ask> {
        // Most rounds of the engine find nothing.
        if !self.is_asked.load(Ordering::Acquire) || !self.is_asked.swap(false, Ordering::AcqRel) {
            return VecDeque::new();
        }
        // Before the requests are taken: whoever comes after that wakes the engine again.
        let _ = self.wake.read();
        self.asked_for().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Readable when the engine is asked for something, or to end.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Is the engine asked to end?
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Offers the caller the records made since the last time; the engine has come to `at`.
    pub(super) fn offer(&self, at: Instant, backlog: u64, records: &mut Outbox) {
        let mut exchange = self.exchange();
        exchange.at = at;
        exchange.backlog = backlog;
        let waiting: usize = exchange.ready.iter().map(|(_, size)| size.0).sum();
        let octets: usize = exchange.ready.iter().map(|(_, size)| size.1).sum();
        let size = Size::of(records);
        // The caller is slower than the network.
        if waiting > ROWS_WAITING || octets > OCTETS_WAITING {
            exchange.lost += (size.0 + records.secrets.lines().count()) as u64;
            records.clear();
        }
        if records.is_empty() {
            return;
        }
        let mut batch = exchange.spare.take().unwrap_or_else(|| records.counterpart());
        batch.clear();
        batch.swap_records(records);
        exchange.ready.push_back((batch, size));
        drop(exchange);
        let _ = self.told.write(1);
    }

    /// Records that there was no room for.
    pub(super) fn lost(&self) -> u64 {
        self.exchange().lost
    }

    /// Says that the engine has ended.
    fn end(&self) {
        // With the requests go their senders: nobody waits for an answer that does not come.
        drop(self.asked_for().take());
        self.exchange().ended = true;
        let _ = self.told.write(1);
    }
}

/// Says that the engine has ended, however it ended.
pub(super) struct TellAtTheEnd(pub(super) Arc<Shared>);

impl Drop for TellAtTheEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// An engine at work. Dropped, it stops.
pub(super) struct Handle {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Ended>>,
}

/// What an engine leaves.
pub(super) type Ended = (World, io::Result<Report>, Closing);

impl Handle {
    /// The engine that runs in `thread`.
    pub(super) fn new(shared: Arc<Shared>, thread: JoinHandle<Ended>) -> Handle {
        Handle { shared, thread: Some(thread) }
    }

    /// Readable when there are records to take, or when the engine has ended.
    pub(super) fn told(&self) -> BorrowedFd<'_> {
        self.shared.told.as_fd()
    }

    /// Takes the next records into `records`, which is empty, if there are any. Says up to when the engine had come, and
    /// what waited in the links then, and whether it has ended and all was taken.
    pub(super) fn take(&self, records: &mut Outbox) -> (Instant, u64, bool) {
        let mut exchange = self.shared.exchange();
        match exchange.ready.pop_front() {
            Some((mut batch, _)) => {
                batch.swap_records(records);
                exchange.spare = Some(batch);
            }
            // Only when all is taken there is nothing to be told.
            None if !exchange.ended => drop(self.shared.told.read()),
            None => {}
        }
        (exchange.at, exchange.backlog, exchange.ended && exchange.ready.is_empty() && records.is_empty())
    }

    /// Asks the engine to end; its outcome is then [`Outcome::Stopped`].
    pub(super) fn stop(&self) {
        self.shared.stop();
    }

    /// What engine and caller share, for others who have to do with the engine.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Waits for the end, but not until the ports are closed. The world comes back, unless the engine panicked.
    pub(super) fn join(mut self, world: &mut World) -> Result<(Report, Closing), Error> {
        let thread = self.thread.take().expect("taken once, here");
        let ended = thread.join().map_err(|_| Error::Device("the engine panicked".to_owned()))?;
        let (back, report, closing) = ended;
        *world = back;
        Ok((report.map_err(|e| Error::Device(e.to_string()))?, closing))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use airloom_base::record::{
        CongestionRecord, Event, PacketFacts, PointKind, QlogEnd, QlogRecord, Record,
    };
    use airloom_base::{Direction, Duration};
    use nix::poll::{PollTimeout, poll};

    use super::super::clock::readable;
    use super::*;

    #[test]
    fn records_that_nobody_takes_are_kept_up_to_a_bound_and_counted_beyond_it() {
        const BATCH: usize = 1 << 18;
        let shared = Shared::new(None).expect("two descriptors");
        let mut records = Outbox::default();
        let point = records.add_point("a".to_owned(), PointKind::Ip);
        records.ask(|_| (true, true));
        let facts = || PacketFacts::bare("udp", Event::Transmit, Direction::Uplink);
        let mut offered = 0;
        for number in 0..8 {
            (0..BATCH).for_each(|_| records.packet(Instant::ZERO, point, facts, |octets| octets.push(0)));
            offered += records.packets.len();
            shared.offer(Instant::from_nanos(number), 0, &mut records);
            assert!(
                records.packets.is_empty() && records.octets.is_empty(),
                "the engine goes on without them"
            );
        }
        let kept =
            |shared: &Shared| -> usize { shared.exchange().ready.iter().map(|(_, size)| size.0).sum() };
        assert!((ROWS_WAITING..=ROWS_WAITING + BATCH).contains(&kept(&shared)));
        assert_eq!(kept(&shared) + shared.lost() as usize, offered);
        // Where somebody takes them there is no end to it.
        for _ in 0..100 {
            shared.exchange().ready.clear();
            (0..BATCH).for_each(|_| records.packet(Instant::ZERO, point, facts, |_| ()));
            shared.offer(Instant::ZERO, 0, &mut records);
        }
        assert_eq!(kept(&shared), BATCH);
        assert_eq!(offered - shared.lost() as usize, ROWS_WAITING + BATCH);
    }

    #[test]
    fn what_is_no_packet_is_bounded_too() {
        let sample = CongestionRecord {
            at: Instant::ZERO,
            host: 0,
            flow: 1,
            cwnd: 0,
            ssthresh: 0,
            in_flight: 0,
            srtt: None,
            rto: Duration::ZERO,
            state: "",
        };
        let fact = || Record::Congestion(sample.clone());
        let end = QlogEnd { group: String::new(), is_client: true, host: String::new(), flow: 1 };
        let end = || Arc::new(end.clone());
        let zeros = || vec![0; OCTETS_WAITING + 1];
        let waiting = |shared: &Shared| shared.exchange().ready.len();
        let kinds: [&dyn Fn(&mut Outbox); 3] = [
            &|records| records.facts.extend((0..=ROWS_WAITING).map(|_| fact())),
            &|records| records.qlog.push(QlogRecord { of: end(), lines: zeros() }),
            &|records| records.secrets = String::from_utf8(zeros()).expect("ASCII"),
        ];
        for many in kinds {
            let shared = Shared::new(None).expect("two descriptors");
            let mut records = Outbox::default();
            many(&mut records);
            shared.offer(Instant::ZERO, 0, &mut records);
            assert_eq!((waiting(&shared), shared.lost()), (1, 0));
            records.facts.push(fact());
            records.qlog.push(QlogRecord { of: end(), lines: vec![1] });
            records.secrets.push_str("a secret\n");
            shared.offer(Instant::ZERO, 0, &mut records);
            assert_eq!((waiting(&shared), shared.lost()), (1, 3));
            assert!(records.is_empty());
        }
    }

    #[test]
    fn whoever_is_woken_finds_what_was_asked_for_and_no_wake_up_is_left_behind() {
        const TIMES: usize = 50_000;
        let shared = Shared::new(None).expect("two descriptors");
        let (taken, was_taken) = sync_channel(1);
        let is_woken = || poll(&mut [readable(shared.wake())], PollTimeout::ZERO) == Ok(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    while !is_woken() {
                        std::hint::spin_loop();
                    }
                    taken.send(shared.take_asked().len()).expect("somebody waits for it");
                }
            });
            for _ in 0..TIMES {
                let (answer, _) = sync_channel(1);
                assert!(shared.ask(Ask::Look { answer }).is_ok());
                assert_eq!(was_taken.recv(), Ok(1));
            }
        });
        // One whose request was taken before.
        let _ = shared.wake.write(1);
        assert!(is_woken() && shared.take_asked().is_empty());
        shared.heed();
        assert!(shared.take_asked().is_empty() && !is_woken());
    }
}
