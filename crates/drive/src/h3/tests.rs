//! A server and a client of ours on loopback, both on one thread.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_content::http::message::{Fields, Method, RequestHead, Version};
use airloom_content::http::v3::{self, Event, Priority};
use airloom_testkit::Folder;
use noq_proto::{Dir, VarInt};
use tokio::sync::{Notify, oneshot};

use super::client::{socket, transport};
use super::clock::now;
use super::endpoint::{Opens, Quic};
use super::link::Link;
use super::qlog::INITIAL_RTT;
use super::server::{self, Options};
use super::tls::{self, Terms, Trust};
use crate::daemon::listening;
use crate::daemon::streams::Clients;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with files of these sizes.
pub(super) fn folder_with(name: &str, files: &[(&str, usize)]) -> Folder {
    let folder = Folder::new(&format!("h3-{name}"));
    for (file, size) in files {
        std::fs::write(folder.0.join(file), vec![b'x'; *size]).unwrap();
    }
    folder
}

/// What has come of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    status: u16,
    octets: u64,
    is_whole: bool,
}

/// A connection to the server.
struct Client {
    quic: Quic<Link>,
    answers: BTreeMap<u64, Answer>,
    /// The fields of all answers, in the order in which they came.
    fields: Vec<Fields>,
    /// Answers that are whole, in the order in which they became so, with the octets of all answers until then.
    whole: Vec<(u64, u64)>,
    /// Why the connection is over.
    lost: Option<String>,
}

impl Client {
    fn new(to: SocketAddr) -> Client {
        let tls = tls::client(Terms::HTTP3, &Trust::Anybody, true).unwrap();
        let mut quic = Quic::new(socket(to).unwrap(), None, 1, None, Link::made(v3::Connection::client));
        quic.connect(Opens::new(tls, transport(PATIENCE, INITIAL_RTT)), to, "localhost").unwrap();
        Client { quic, answers: BTreeMap::new(), fields: Vec::new(), whole: Vec::new(), lost: None }
    }

    /// The connection.
    fn link(&mut self) -> &mut Link {
        &mut self.quic.links.values_mut().next().expect("a connection that is over is not used any more").talk
    }

    /// Does what there is to do until `is_done`, or until the connection is over.
    async fn until(&mut self, is_done: impl Fn(&mut Client) -> bool) {
        while self.lost.is_none() && !is_done(self) {
            let Client { quic, answers, fields, whole, lost } = self;
            quic.turn(|_, link| {
                let mut moved = false;
                while let Some(event) = link.poll_event(now()) {
                    moved = true;
                    match event {
                        Event::Response(stream, head) => {
                            answers.entry(stream).or_default().status = head.status;
                            fields.push(head.fields);
                        }
                        Event::Data(stream, body) => {
                            answers.entry(stream).or_default().octets += body.len() as u64;
                        }
                        Event::End(stream, _) => {
                            answers.entry(stream).or_default().is_whole = true;
                            whole.push((stream, answers.values().map(|answer| answer.octets).sum()));
                        }
                        _ => {}
                    }
                }
                *lost = link.lost.clone();
                moved
            });
            if self.lost.is_none() && !is_done(self) {
                tokio::time::timeout(PATIENCE, self.quic.wait()).await.expect("nothing happens").unwrap();
                self.quic.take(|_| true);
            }
        }
    }

    /// Asks for this, once the connection is there.
    async fn ask(&mut self, target: &str) -> u64 {
        self.until(|client| client.link().http.has_begun()).await;
        let Link { quic, http, .. } = self.link();
        let stream = quic.streams().open(Dir::Bi).expect("it takes a hundred").into();
        let fields = Fields::from_iter([("host", "localhost")]);
        let target = target.to_owned().into();
        let head = RequestHead { method: Method::Get, target, version: Version::Http3, fields };
        assert!(http.request(stream, &head, Priority::default(), true));
        stream
    }
}

/// Serves `folder` while `client` does what it does, which may end the server by the second of what it is given.
fn serving(folder: &Folder, client: impl AsyncFnOnce(Client, &Notify)) {
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        folder: folder.0.clone(),
        certificate: None,
        fields: Vec::new(),
        clients: Clients::default(),
        connections: 8,
        grace: PATIENCE,
    };
    let stop = Notify::new();
    let (tell, told) = oneshot::channel();
    let ended = listening::run(async {
        let ready = |at: SocketAddr| tell.send(at).unwrap();
        let server = server::run(&options, async || stop.notified().await, ready, |_| ());
        let (ended, ()) = tokio::join!(server, async {
            client(Client::new(told.await.unwrap()), &stop).await;
            stop.notify_one();
        });
        ended
    });
    ended.unwrap();
}

#[test]
fn a_server_that_is_told_to_stop_ends_when_all_has_arrived_and_says_so() {
    let folder = folder_with("stop", &[("file", 2_000_000)]);
    serving(&folder, async |mut client, stop| {
        let stream = client.ask("/file").await;
        client.until(|client| client.answers.contains_key(&stream)).await;
        // By now the server has given all of it to QUIC.
        stop.notify_one();
        client.until(|_| false).await;
        assert_eq!(client.answers[&stream], Answer { status: 200, octets: 2_000_000, is_whole: true });
        let why = client.lost.unwrap();
        assert!(why.contains("closed by peer"), "{why}");
    });
}

#[test]
fn every_answer_has_the_date_and_the_server_once() {
    let folder = folder_with("fields", &[("file", 10)]);
    serving(&folder, async |mut client, _| {
        client.ask("/file").await;
        client.ask("/none").await;
        client.until(|client| client.whole.len() == 2).await;
        assert_eq!(client.fields.len(), 2);
        for fields in &client.fields {
            let count = |name: &str| fields.all(name).count();
            assert_eq!([count("date"), count("server")], [1, 1], "{fields:?}");
            assert!(fields.first("date").is_some_and(|date| date.ends_with(b" GMT")), "{fields:?}");
        }
    });
}

/// Set in the process of a test that has few descriptors.
const FEW: &str = "AIRLOOM_TEST_FEW_DESCRIPTORS";

#[test]
fn a_file_that_is_there_is_not_said_to_be_missing_when_descriptors_run_out() {
    if std::env::var_os(FEW).is_none() {
        let name = "h3::tests::a_file_that_is_there_is_not_said_to_be_missing_when_descriptors_run_out";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -n 50; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
        let done = shell.args(["--exact", name]).env(FEW, "1").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    let folder = folder_with("few", &[("file", 300_000)]);
    serving(&folder, async |mut client, _| {
        let mut asked = Vec::new();
        for _ in 0..99 {
            asked.push(client.ask("/file").await);
        }
        let missing = client.ask("/none").await;
        client.until(|client| client.whole.len() > asked.len()).await;
        assert_eq!(client.lost, None);
        assert_eq!(client.answers[&missing].status, 404);
        let statuses =
            |wanted: u16| asked.iter().filter(|stream| client.answers[stream].status == wanted).count();
        assert!(statuses(503) > 0, "{:?}", client.answers);
        assert_eq!(statuses(200) + statuses(503), asked.len(), "{:?}", client.answers);
    });
}

#[test]
fn answers_that_are_equal_come_one_after_another_and_one_that_may_wait_comes_last() {
    let folder = folder_with("order", &[("one", 1_500_000), ("two", 1_500_000)]);
    for waits in [false, true] {
        serving(&folder, async |mut client, _| {
            let (one, two) = (client.ask("/one").await, client.ask("/two").await);
            if waits {
                // By the first octets of an answer the server has given all of both to QUIC.
                client.until(|client| client.answers.values().any(|answer| answer.octets > 0)).await;
                // PRIORITY_UPDATE (RFC 9218, 7.2), on the control stream.
                let update = [&[0x80, 0x0f, 0x07, 0x00, 4, one as u8][..], b"u=7"].concat();
                let mut control = client.link().quic.send_stream(VarInt::from_u32(2).into());
                assert_eq!(control.write(&update), Ok(update.len()));
            }
            client.until(|client| client.whole.len() == 2).await;
            let [(first, by_then), (_, all)] = client.whole[..] else { panic!("{:?}", client.lost) };
            assert_eq!((first, all), (if waits { two } else { one }, 3_000_000));
            // In turn it would be nearly all of the other one, too.
            assert!(by_then < 2_250_000, "{by_then}");
        });
    }
}
