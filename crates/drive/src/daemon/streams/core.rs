//! The application and what it is lent, called in turn.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use airloom_base::{Cx, Instant, Outbox, SocketEvent, SocketId};
use airloom_proxies::lookup::{Found, Lookup};
use tokio::sync::Notify;

use super::super::clock::Clock;
use super::net::Net;
use super::served::{Options, Served};

/// What tasks share. Nobody holds it while waiting.
pub(super) type Shared<A> = Rc<RefCell<Core<A>>>;

/// Work for tasks that an application has left behind.
pub(super) struct Orders {
    pub(super) connect: Vec<(SocketId, SocketAddr)>,
    pub(super) look_up: Vec<Lookup>,
}

/// See the module.
pub(super) struct Core<A> {
    pub(super) app: A,
    pub(super) net: Net,
    pub(super) clock: Clock,
    pub(super) options: Options,
    pub(super) records: Outbox,
    log: Box<dyn FnMut(String)>,
    /// The moment the timing task waits for.
    armed: Option<Instant>,
    is_stopping: bool,
    /// Told when the application has become more impatient.
    pub(super) timer: Rc<Notify>,
    /// Told when nothing is under way any more, or a client has done what it was started for.
    pub(super) empty: Rc<Notify>,
}

impl<A: Served> Core<A> {
    pub(super) fn new(options: &Options, app: A, log: Box<dyn FnMut(String)>) -> Shared<A> {
        Rc::new(RefCell::new(Core {
            app,
            net: Net::new(),
            clock: Clock::start(),
            options: options.clone(),
            records: Outbox::default(),
            log,
            armed: None,
            is_stopping: false,
            timer: Rc::default(),
            empty: Rc::default(),
        }))
    }

    /// Is nothing under way that a daemon would wait for before it stops?
    pub(super) fn is_quiet(&self) -> bool {
        self.net.is_empty() || self.is_stopping && self.app.is_quiet()
    }

    /// When to call the application.
    pub(super) fn arm(&mut self) -> Option<Instant> {
        self.armed = self.app.poll_timeout();
        self.armed
    }

    /// Calls the application, then collects what it has left to do. True if it could have read on.
    fn call(
        &mut self,
        socket: Option<SocketId>,
        call: impl FnOnce(&mut A, &mut Cx, &mut Net),
    ) -> (Orders, bool) {
        self.net.begin(socket);
        let mut cx = Cx { now: self.clock.now(), records: &mut self.records };
        call(&mut self.app, &mut cx, &mut self.net);
        let orders = Orders {
            connect: self.net.asked.drain(..).rev().collect(),
            look_up: std::iter::from_fn(|| self.app.poll_lookup()).collect(),
        };
        while let Some(line) = self.app.poll_log() {
            (self.log)(line);
        }
        if let Some(at) = self.app.poll_timeout()
            && self.armed.is_none_or(|armed| at < armed)
        {
            self.timer.notify_one();
        }
        if self.is_quiet() || (A::ENDS && self.app.is_done()) {
            self.empty.notify_one();
        }
        (orders, self.net.end())
    }

    /// Something happened on a socket.
    pub(super) fn tell(&mut self, socket: SocketId, event: SocketEvent) -> (Orders, bool) {
        if let SocketEvent::Closed(_) = event {
            self.net.remove(socket);
        }
        self.call(Some(socket), |app, cx, net| app.handle_event(cx, net, socket, event))
    }

    pub(super) fn start(&mut self) -> Orders {
        self.call(None, |app, cx, net| app.start(cx, net)).0
    }

    pub(super) fn stop(&mut self) -> Orders {
        self.is_stopping = true;
        self.call(None, |app, cx, net| app.handle_stop(cx, net)).0
    }

    pub(super) fn timeout(&mut self) -> Orders {
        self.call(None, |app, cx, net| {
            if app.poll_timeout().is_some_and(|at| at <= cx.now) {
                app.handle_timeout(cx, net);
            }
        })
        .0
    }

    pub(super) fn found(&mut self, id: u64, found: Found) -> Orders {
        self.call(None, |app, cx, net| app.handle_lookup(cx, net, id, found)).0
    }
}
