//! Applications that are clients: they run until they have done what they were started for.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_base::Summary;
use airloom_base::record::Record;
use tokio::task::LocalSet;

use super::super::origins::Origins;
use super::super::stop::Stop;
use super::core::Core;
use super::{Clients, Options, Served, over, tasks};

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(130);

/// What a client has left.
#[derive(Debug)]
pub struct Ended {
    /// Has it done everything? Else its time was up, or somebody stopped it.
    pub is_done: bool,
    /// What it wrote down, in order of time since its start.
    pub records: Vec<Record>,
    /// Its results.
    pub summary: Summary,
}

/// Runs a client until it has done what it was started for, `patience` is over, or SIGINT or SIGTERM comes. Nobody else says
/// where its connections may lead: its user does.
///
/// # Errors
/// The kernel's, where it has no room for another loop.
pub fn until_done<A: Served + 'static>(app: A, nagle: bool, patience: Duration) -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(run(app, nagle, patience)))
}

async fn run<A: Served + 'static>(app: A, nagle: bool, patience: Duration) -> io::Result<Ended> {
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        metrics: None,
        names: Vec::new(),
        clients: Clients::default(),
        origins: Origins::default(),
        is_transparent: false,
        nagle,
        connect: CONNECT,
        grace: Duration::ZERO,
    };
    let mut stop = Stop::listen()?;
    let core = Core::new(&options, app, Box::new(|_| {}));
    core.borrow_mut().records.ask_facts(true, false);
    core.borrow_mut().records.ask_objects(true);
    let end = tokio::time::Instant::now().checked_add(patience);
    let news = std::rc::Rc::clone(&core.borrow().empty);
    tasks::start(&core);
    let timing = tokio::task::spawn_local(tasks::time(std::rc::Rc::clone(&core)));
    while !core.borrow().app.is_done() {
        tokio::select! {
            biased;
            () = stop.asked() => break,
            () = over(end) => break,
            () = news.notified() => {}
        }
    }
    timing.abort();
    let mut core = core.borrow_mut();
    let mut summary = Summary::default();
    core.app.summarise(&mut summary);
    let records = std::mem::take(&mut core.records.facts);
    let is_done = core.app.is_done();
    core.net.close_all();
    Ok(Ended { is_done, records, summary })
}
