//! The client on real sockets, on the loopback interface, against a gateway made of the server's machine.
#![expect(
    clippy::disallowed_types,
    reason = "the gateway of these tests has a socket and a clock of its own"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use airloom_base::Instant;
use airloom_drive::wap::{Client, Error, Listener, Options, Request, Response};
use airloom_transports::wsp::client::Acknowledging;
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::Encoder;
use airloom_transports::wsp::server::{Config, Event, Server};
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::{Method, Pdu};
use airloom_transports::wtp;
use bytes::Bytes;

/// What a gateway heard.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Request(Method, String, Bytes),
    Aborted(Reason),
    Suspended,
    Resumed,
    Disconnected,
}

/// Answers until its session is disconnected; `/silence` has no answer, `/push` is followed by a confirmed push, `/over` ends the session.
struct Gateway {
    address: SocketAddr,
    heard: Receiver<Heard>,
    thread: JoinHandle<()>,
}

fn gateway(offer: impl FnOnce(&mut Config)) -> Gateway {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("it is bound");
    let (tell, heard) = channel();
    let mut config = Config::default();
    offer(&mut config);
    let thread = std::thread::spawn(move || {
        let began = std::time::Instant::now();
        let mut server = Server::new(config, (1, 2));
        let mut buffer = [0; 65_535];
        let mut is_over = false;
        while !is_over {
            let now = Instant::from_nanos(began.elapsed().as_nanos() as u64);
            server.handle_timeout(now);
            while let Some(event) = server.poll_event() {
                let said = match event {
                    Event::Connect { session, .. } => {
                        let mut headers = Vec::new();
                        Encoder::default().header("Encoding-Version", "1.4", &mut headers).expect("a name");
                        server.accept(now, session, headers.into());
                        continue;
                    }
                    Event::Request { session, request, method, uri, data, .. } => {
                        let uri = String::from_utf8_lossy(&uri).into_owned();
                        let size = uri.rsplit('/').next().and_then(|n| n.parse::<usize>().ok());
                        let body =
                            if data.is_empty() { vec![b'x'; size.unwrap_or(0)].into() } else { data.clone() };
                        if uri.ends_with("/over") {
                            server.disconnect(now, session);
                            is_over = true;
                        } else if !uri.ends_with("/silence") {
                            let status = if size.is_some() || !data.is_empty() { 0x20 } else { 0x44 };
                            server.reply(now, request, status, Bytes::from_static(&[0x83, 0x8D, 0x81]), body);
                        }
                        if uri.ends_with("/push") {
                            let content = Bytes::from_static(&[0x83]);
                            server.push(now, session, true, content, Bytes::from_static(b"news"));
                        }
                        Heard::Request(method, uri, data)
                    }
                    Event::RequestAborted(_, reason) => Heard::Aborted(reason),
                    Event::Suspended(_) => Heard::Suspended,
                    Event::Resumed(..) => Heard::Resumed,
                    Event::Disconnected(..) => {
                        is_over = true;
                        Heard::Disconnected
                    }
                    _ => continue,
                };
                // The test may be over.
                let _ = tell.send(said);
            }
            while let Some((to, datagram)) = server.poll_transmit() {
                let _ = socket.send_to(&datagram, to);
            }
            if is_over {
                break;
            }
            socket.set_read_timeout(Some(Duration::from_millis(5))).expect("more than nothing");
            if let Ok((len, from)) = socket.recv_from(&mut buffer) {
                let now = Instant::from_nanos(began.elapsed().as_nanos() as u64);
                server.handle_datagram(now, from, &Bytes::copy_from_slice(&buffer[..len]));
            }
        }
    });
    Gateway { address, heard, thread }
}

fn options(gateway: SocketAddr) -> Options {
    Options {
        gateway,
        local: None,
        connectionless: false,
        headers: vec![("Accept".to_owned(), "*/*".to_owned())],
        client_sdu: 300_000,
        server_sdu: 300_000,
        acknowledging: Acknowledging::User,
        wtp: wtp::Config::default(),
        first: 1,
        time: Duration::from_secs(30),
    }
}

fn get(path: &str) -> Request {
    Request { method: Method::Get, uri: format!("http://o/{path}"), headers: Vec::new(), body: None }
}

fn ask(client: &mut Client, request: &Request) -> Result<Response, Error> {
    client.request(request, Duration::from_secs(30), &mut || true)
}

#[test]
fn a_session_carries_requests_of_all_sizes() {
    let gateway = gateway(|_| {});
    let mut client = Client::open(options(gateway.address), &mut || true).expect("a session");
    assert_eq!(client.server_headers(), [("Encoding-Version".to_owned(), "1.4".to_owned())]);
    for size in [0, 1, 1_400, 100_000] {
        let reply = ask(&mut client, &get(&size.to_string())).expect("a reply");
        assert_eq!((reply.status, reply.body.len()), (200, size));
        assert_eq!(reply.content_type, "text/plain");
        assert_eq!(reply.headers, [("Content-Length".to_owned(), "1".to_owned())]);
    }
    let body = Bytes::from(vec![b'y'; 50_000]);
    let post =
        Request { method: Method::Post, body: Some(("text/plain".to_owned(), body.clone())), ..get("echo") };
    assert_eq!(ask(&mut client, &post).expect("a reply").body, body);
    assert_eq!(ask(&mut client, &get("none")).expect("a reply").status, 404);
    client.close().expect("it is said");
    gateway.thread.join().expect("it ended with the session");
    let heard: Vec<_> = gateway.heard.iter().collect();
    assert_eq!(heard[4], Heard::Request(Method::Post, "http://o/echo".into(), body));
    assert_eq!((heard.len(), heard.last()), (7, Some(&Heard::Disconnected)));
}

#[test]
fn what_takes_too_long_is_aborted_and_the_session_goes_on() {
    let gateway = gateway(|_| {});
    let mut client = Client::open(options(gateway.address), &mut || true).expect("a session");
    let short = Duration::from_millis(150);
    assert!(
        matches!(client.request(&get("silence"), short, &mut || true), Err(Error::TimedOut(time)) if time == short)
    );
    let mut looks = 3;
    let mut impatient = || {
        looks -= 1;
        looks > 0
    };
    let long = Duration::from_secs(60);
    assert!(matches!(client.request(&get("silence"), long, &mut impatient), Err(Error::Interrupted)));
    assert_eq!(ask(&mut client, &get("7")).expect("a reply").body.len(), 7);
    client.close().expect("it is said");
    gateway.thread.join().expect("it ended with the session");
    let aborted = gateway.heard.iter().filter(|h| *h == Heard::Aborted(Reason::PeerRequest)).count();
    assert_eq!(aborted, 2);
}

#[test]
fn a_session_that_the_gateway_has_ended_is_disconnected_at_each_request() {
    let gateway = gateway(|_| {});
    let mut client = Client::open(options(gateway.address), &mut || true).expect("a session");
    for path in ["over", "1"] {
        let error = ask(&mut client, &get(path)).err();
        assert!(matches!(error, Some(Error::Disconnected(Reason::Disconnect))), "{error:?}");
    }
    gateway.thread.join().expect("it ended with the session");
}

#[test]
fn a_session_rests_and_goes_on_from_another_port() {
    let gateway = gateway(|_| {});
    let mut client = Client::open(options(gateway.address), &mut || true).expect("a session");
    for elsewhere in [false, true] {
        client.suspend().expect("agreed on");
        assert!(matches!(ask(&mut client, &get("1")), Err(Error::TooLarge | Error::Disconnected(_))));
        client.resume(elsewhere, &mut || true).expect("it goes on");
        assert_eq!(ask(&mut client, &get("9")).expect("a reply").body.len(), 9);
    }
    client.close().expect("it is said");
    gateway.thread.join().expect("it ended with the session");
    let heard: Vec<_> = gateway.heard.iter().filter(|h| !matches!(h, Heard::Request(..))).collect();
    let both = [Heard::Suspended, Heard::Resumed, Heard::Suspended, Heard::Resumed, Heard::Disconnected];
    assert_eq!(heard, both);

    let strict = super_gateway_without_options();
    let mut client = Client::open(options(strict.address), &mut || true).expect("a session");
    assert!(matches!(client.suspend(), Err(Error::NotAgreed(_))));
    client.close().expect("it is said");
    strict.thread.join().expect("it ended with the session");
}

fn super_gateway_without_options() -> Gateway {
    gateway(|config| config.offer.options = 0)
}

#[test]
fn pushes_of_a_session_and_pushes_without_one_are_read() {
    let gateway = gateway(|_| {});
    let mut client = Client::open(options(gateway.address), &mut || true).expect("a session");
    assert_eq!(client.push(Duration::from_millis(1), &mut || true).expect("nothing is no failure"), None);
    ask(&mut client, &get("push")).expect("a reply");
    let push = client.push(Duration::from_secs(30), &mut || true).expect("heard").expect("a push");
    assert_eq!((push.content_type.as_str(), push.body.as_ref()), ("text/plain", b"news".as_slice()));
    client.close().expect("it is said");
    gateway.thread.join().expect("it ended with the session");

    let mut listener = Listener::open("127.0.0.1:0".parse().unwrap()).expect("a port");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (headers, data) = (Bytes::from_static(&[0x83, 0xAF, 0x81]), Bytes::from_static(b"hello"));
    let push = connectionless::emit(9, &Pdu::Push { confirmed: false, headers, data });
    for datagram in [&[][..], &[1, 2, 3], &push] {
        sender.send_to(datagram, listener.address().unwrap()).expect("sent");
    }
    let push = listener.next(Duration::from_secs(30), &mut || true).expect("heard").expect("a push");
    assert_eq!(push.from, sender.local_addr().unwrap());
    assert_eq!(push.headers, [("X-Wap-Application-Id".to_owned(), "push.sia".to_owned())]);
    assert_eq!(push.body.as_ref(), b"hello");
    assert_eq!(listener.next(Duration::from_millis(1), &mut || true).expect("nothing is no failure"), None);
}

#[test]
fn without_a_session_a_datagram_is_a_request() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        let (len, from) = socket.recv_from(&mut buffer).expect("a request");
        let request = connectionless::parse(&Bytes::copy_from_slice(&buffer[..len])).expect("one of ours");
        let (headers, data) = (Bytes::from_static(&[0x83]), Bytes::from_static(b"here"));
        let reply = connectionless::emit(request.0, &Pdu::Reply { status: 0x20, headers, data });
        socket.send_to(&reply, from).expect("sent");
        request.1
    });
    let mut client = Client::open(Options { connectionless: true, ..options(address) }, &mut || true)
        .expect("nothing to open");
    let request = Request { headers: vec![("Accept-Language".into(), "en".into())], ..get("x") };
    assert_eq!(ask(&mut client, &request).expect("a reply").body.as_ref(), b"here");
    let Pdu::Get { headers, uri, .. } = thread.join().expect("it was asked") else { panic!("no Get") };
    assert_eq!((headers.as_ref(), uri.as_ref()), (&[0x80, 0x80, 0x83, 0x99][..], &b"http://o/x"[..]));
}

#[test]
fn without_a_session_another_gateway_can_be_asked() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().unwrap();
    // A port that is never given out to one who does not ask for it.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut client = Client::open(Options { connectionless: true, ..options(closed) }, &mut || true)
        .expect("nothing to open");
    assert!(matches!(ask(&mut client, &get("x")), Err(Error::NobodyThere(to)) if to == closed));
    client.turn_to(address).expect("a socket");
    assert_eq!(client.gateway(), address);
    let short = Duration::from_millis(50);
    assert!(matches!(client.request(&get("x"), short, &mut || true), Err(Error::TimedOut(_))));
    let mut buffer = [0; 2000];
    let (len, _) = socket.recv_from(&mut buffer).expect("a request");
    assert!(connectionless::parse(&Bytes::copy_from_slice(&buffer[..len])).is_ok());
}

#[test]
fn what_cannot_work_is_said_in_a_line() {
    // A port that is never given out to one who does not ask for it.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let error = Client::open(options(closed), &mut || true).err().expect("nobody is there");
    assert!(matches!(error, Error::NobodyThere(address) if address == closed), "{error}");
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let hurried = Options { time: Duration::from_millis(50), ..options(deaf.local_addr().unwrap()) };
    let error = Client::open(hurried, &mut || true).err().expect("nobody answers");
    assert_eq!(error.to_string(), "the gateway did not answer within 0.05 s");
    let wrong = Options { headers: vec![("no name".into(), String::new())], ..options(closed) };
    assert!(matches!(Client::open(wrong, &mut || true), Err(Error::Header(_))));
    let taken = Listener::open(deaf.local_addr().unwrap()).err().expect("it is taken");
    assert!(taken.to_string().starts_with("cannot listen on 127.0.0.1:"), "{taken}");
}
