use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::{App, Body, Cx, Duration, Instant, SocketEvent, SocketId, Sockets};
use airloom_content::http::message::{Fields, Method};
use bytes::Bytes;

use super::{FetchId, FetchRequest, Fetched, Fetcher, Settings};
use crate::testing::{Pair, SERVER};

/// Asks so many things at these times.
struct Asker {
    fetcher: Fetcher,
    orders: Vec<(Duration, u64)>,
    begun: u64,
    ended: Vec<Fetched>,
}

impl Asker {
    fn take(&mut self) {
        while let Some((_, told)) = self.fetcher.poll() {
            if matches!(told, Fetched::End | Fetched::Failed(_)) {
                self.ended.push(told);
            }
        }
    }
}

impl App for Asker {
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        self.fetcher.handle_event(cx, net, socket, event);
        self.take();
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.orders.first().map(|(at, _)| Instant::ZERO + *at);
        [next, self.fetcher.poll_timeout()].into_iter().flatten().min()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.fetcher.handle_timeout(cx, net);
        while self.orders.first().is_some_and(|(at, _)| Instant::ZERO + *at <= cx.now) {
            for _ in 0..self.orders.remove(0).1 {
                let url = format!("http://{}/", SocketAddr::new(SERVER, 80)).parse().expect("an address");
                let (method, fields, body) = (Method::Get, Fields::default(), Bytes::new());
                self.begun += 1;
                let request = FetchRequest { method, url, fields, body };
                self.fetcher.start(cx, net, FetchId(self.begun), request);
            }
        }
        self.take();
    }
}

/// Answers every request, but hangs up without a word instead of answering these, counted over all connections.
struct Moody {
    silent: Vec<u64>,
    requests: u64,
}

impl App for Moody {
    fn stream_ports(&self) -> Vec<u16> {
        vec![80]
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if !matches!(event, SocketEvent::Readable(_)) {
            return;
        }
        // A request comes in one piece.
        while net.read(cx, socket, usize::MAX).is_some() {
            self.requests += 1;
            if self.silent.contains(&self.requests) {
                net.finish(cx, socket);
                return;
            }
            let answer = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            net.write(cx, socket, Body::Real(answer)).expect("there is room");
        }
    }
}

#[test]
fn an_idle_connection_is_used_although_another_one_failed_meanwhile() {
    let settings = Settings { connections: 4, keep_alive: true, keep_alive_timeout: Duration::from_secs(60) };
    let asker = Asker {
        fetcher: Fetcher::new(settings, BTreeMap::new()),
        // Two connections; one of them fails, and a third one takes its request; then two are idle.
        orders: [(0, 2), (1, 1), (2, 2)].map(|(s, n)| (Duration::from_secs(s), n)).to_vec(),
        begun: 0,
        ended: Vec::new(),
    };
    let mut pair = Pair::new(asker, Moody { silent: vec![3], requests: 0 });
    pair.run();
    assert_eq!(pair.a.ended, vec![Fetched::End; 5]);
    assert_eq!((pair.a.fetcher.opened(), pair.b.requests), (3, 6));
}
