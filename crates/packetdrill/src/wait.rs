//! Virtual time and the threads that wait in it.
//!
//! packetdrill plays a script in one thread and makes blocking calls in another. Time may pass only when nothing can happen
//! without it: when everyone who waits has looked at what is there now, and whoever has just got an answer has read the clock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use airloom_base::Duration;

use crate::stack::{Errno, Outcome, Stack};

/// So long at most, in real time, one who has got an answer is waited for: not all of them look at the clock.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);

/// The stack, and those who wait for something to happen to it.
pub(crate) struct Shared {
    world: Mutex<World>,
    changed: Condvar,
}

struct World {
    stack: Stack,
    /// Counts changes of the stack.
    turn: u64,
    /// Calls that wait, and those of them that have not looked since the last change.
    waiting: usize,
    behind: usize,
    /// Calls that wait end then at the latest, in microseconds.
    alarms: Vec<u64>,
    /// A call that had waited has its answer, and has not looked at the clock.
    answered: Option<ThreadId>,
}

impl World {
    fn change(&mut self) {
        self.turn += 1;
        self.behind = self.waiting;
    }
}

impl Shared {
    pub fn new(stack: Stack) -> Self {
        let world = World { stack, turn: 0, waiting: 0, behind: 0, alarms: Vec::new(), answered: None };
        Shared { world: Mutex::new(world), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that does not wait.
    pub fn now<T>(&self, call: impl FnOnce(&mut Stack) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut world = self.lock();
        let result = call(&mut world.stack);
        world.change();
        self.changed.notify_all();
        result
    }

    /// A call that is tried again whenever something has happened, and for the last time at `alarm`.
    pub fn wait<T>(
        &self,
        alarm: Option<u64>,
        mut call: impl FnMut(&mut Stack) -> Outcome<T>,
    ) -> Result<T, Errno> {
        let mut world = self.lock();
        let mut waited = false;
        world.alarms.extend(alarm);
        let result = loop {
            match call(&mut world.stack) {
                Ok(None) => {}
                Ok(Some(value)) => break Ok(value),
                Err(error) => break Err(error),
            }
            waited = true;
            let seen = world.turn;
            world.waiting += 1;
            self.changed.notify_all();
            while world.turn == seen {
                world = self.changed.wait(world).unwrap_or_else(PoisonError::into_inner);
            }
            world.waiting -= 1;
            world.behind -= 1;
        };
        if let Some(at) = world.alarms.iter().position(|at| Some(*at) == alarm) {
            world.alarms.swap_remove(at);
        }
        if waited {
            world.answered = Some(std::thread::current().id());
        }
        world.change();
        self.changed.notify_all();
        result
    }

    /// Waits, in real time, until nothing more happens at this moment of virtual time.
    fn settle<'a>(&'a self, mut world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        let me = std::thread::current().id();
        while world.behind > 0 || world.answered.is_some_and(|id| id != me) {
            let (next, late) =
                self.changed.wait_timeout(world, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            world = next;
            if late.timed_out() && world.behind == 0 {
                world.answered = None;
            }
        }
        world
    }

    /// Time passes until `end`, or until `done` finds what it looks for; `end` is microseconds from the beginning.
    pub fn pass<T>(&self, end: Option<u64>, mut done: impl FnMut(&mut Stack) -> Option<T>) -> Option<T> {
        let mut world = self.lock();
        loop {
            world = self.settle(world);
            if let Some(found) = done(&mut world.stack) {
                return Some(found);
            }
            let now = world.stack.micros();
            if end.is_some_and(|end| now >= end) {
                return None;
            }
            // Up to the next thing that can happen. Timers are not moved to whole microseconds.
            let alarm = world.alarms.iter().copied().filter(|at| *at > now).min();
            let stop = [end, alarm].into_iter().flatten().min();
            if !world.stack.advance_to_next(stop.map(|at| Duration::from_nanos(at * 1000))) {
                return None;
            }
            world.change();
            self.changed.notify_all();
        }
    }

    /// The clock. Each look takes a microsecond: who looks at it until something happens sees that happen.
    pub fn clock(&self) -> u64 {
        let mut world = self.lock();
        let micros = world.stack.micros();
        if world.answered == Some(std::thread::current().id()) {
            world.answered = None;
            self.changed.notify_all();
            return micros;
        }
        drop(world);
        self.pass(Some(micros + 1), |_| None::<()>);
        micros
    }
}
