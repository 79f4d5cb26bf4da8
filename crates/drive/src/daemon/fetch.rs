//! Requests to real origin servers, by hyper, for machines that ask for them.
//!
//! The check of addresses is made here, once, for all of them: after a name was looked up, and for addresses in URLs.
//! Redirects are not followed: what asks decides that, and asks again, so each is checked like the first.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use airloom_content::http::message::Fields;
use airloom_proxies::wap_gateway::{FetchError, FetchRequest, Fetched};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_service::Service;

use super::origins::Origins;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection that nobody uses stays open.
const IDLE: Duration = Duration::from_secs(30);
/// Such connections to one origin.
const IDLE_EACH: usize = 32;
/// Octets of the head of a response.
const HEAD: usize = 64 * 1024;

/// A client that keeps connections and asks allowed origins only.
#[derive(Clone)]
pub struct Fetcher {
    client: Http,
    /// Keeps none: each request has a connection of its own.
    fresh: Http,
    origins: Arc<Origins>,
}

type Http = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

impl Fetcher {
    /// One that asks `origins`.
    pub fn new(origins: Origins) -> Fetcher {
        let origins = Arc::new(origins);
        let mut http = HttpConnector::new_with_resolver(Resolver(Arc::clone(&origins)));
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        let https = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = |keeps: usize| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(keeps)
                .http1_max_buf_size(HEAD)
                .build(https.clone())
        };
        Fetcher { client: client(IDLE_EACH), fresh: client(0), origins }
    }

    /// Asks, and gives the answer piece by piece to `take`, which may wait; the last one is `End` or `Failed`.
    pub async fn fetch<F: Future<Output = ()>>(&self, ask: FetchRequest, mut take: impl FnMut(Fetched) -> F) {
        let last = match self.answer(ask, &mut take).await {
            Ok(()) => Fetched::End,
            Err(why) => Fetched::Failed(why),
        };
        take(last).await;
    }

    async fn answer<F: Future<Output = ()>>(
        &self,
        ask: FetchRequest,
        take: &mut impl FnMut(Fetched) -> F,
    ) -> Result<(), FetchError> {
        let response = match self.client.request(self.request(&ask)?).await {
            //= RFC 9112 (9.3.1): a connection that was kept may close just when a request is sent; one that changes
            //= nothing is sent again, once: on a new connection, since others that were kept may have closed like it.
            Err(e) if ask.method.is_idempotent() && reason(&e) == FetchError::Broken => {
                self.fresh.request(self.request(&ask)?).await
            }
            other => other,
        };
        let response = response.map_err(|e| reason(&e))?;
        let (head, mut body) = response.into_parts();
        let mut fields = Fields::default();
        for (name, value) in &head.headers {
            fields.push(name.as_str().to_owned(), value.as_bytes().to_vec());
        }
        take(Fetched::Head { status: head.status.as_u16(), fields }).await;
        while let Some(frame) = body.frame().await {
            // Trailers are of no use to anybody here.
            if let Ok(chunk) = frame.map_err(|_| FetchError::Broken)?.into_data() {
                take(Fetched::Chunk(chunk)).await;
            }
        }
        Ok(())
    }

    fn request(&self, ask: &FetchRequest) -> Result<Request<Full<Bytes>>, FetchError> {
        if !matches!(ask.url.scheme(), "http" | "https") {
            return Err(FetchError::Unsupported);
        }
        let host = ask.url.host_str().filter(|host| !host.is_empty()).ok_or(FetchError::Unresolved)?;
        // An address is not looked up, so the resolver does not see it.
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>()
            && !self.origins.allows(host, address)
        {
            return Err(FetchError::Forbidden);
        }
        let method = Method::from_bytes(ask.method.name().as_bytes()).map_err(|_| FetchError::Unsupported)?;
        let mut request = Request::builder().method(method).uri(ask.url.as_str());
        for field in ask.fields.iter() {
            // The gateway has checked them; one that is none is left out rather than smuggled in.
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(&field.name), HeaderValue::from_maybe_shared(field.value.clone()))
            {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(ask.body.clone())).map_err(|_| FetchError::Unresolved)
    }
}

/// What went wrong, from the chain of errors.
fn reason(error: &ClientError) -> FetchError {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    let mut why = if error.is_connect() { FetchError::Unreachable } else { FetchError::Broken };
    while let Some(error) = source {
        let lookup = error.downcast_ref::<LookupFailed>();
        let inside = error.downcast_ref::<io::Error>().and_then(|e| e.get_ref()?.downcast_ref());
        if let Some(failed) = lookup.or(inside) {
            why = if failed.forbidden { FetchError::Forbidden } else { FetchError::Unresolved };
        }
        source = error.source();
    }
    why
}

/// No address to connect to.
#[derive(Clone, Copy, Debug)]
struct LookupFailed {
    /// There was one, but none that may be asked.
    forbidden: bool,
}

impl fmt::Display for LookupFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.forbidden { "its addresses are not allowed" } else { "no such host" })
    }
}

impl Error for LookupFailed {}

/// Looks names up and keeps the addresses that may be asked.
#[derive(Clone)]
struct Resolver(Arc<Origins>);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = LookupFailed;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupFailed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let origins = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map_err(|_| LookupFailed { forbidden: false })?;
            let mut found: Vec<SocketAddr> = found.collect();
            let none = found.is_empty();
            found.retain(|address| origins.allows(name.as_str(), address.ip()));
            if found.is_empty() { Err(LookupFailed { forbidden: !none }) } else { Ok(found.into_iter()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What a fetch of `url` gives; `answer` is what the server at `{at}` in it says to whoever asks.
    fn fetch(allowed: &[&str], url: &str, answer: &'static [u8]) -> (Vec<Fetched>, String) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let at = server.local_addr().expect("its address").to_string();
            let asked = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
            let seen = std::rc::Rc::clone(&asked);
            // It never ends: it is dropped when the fetch has its answer.
            let serving = async move {
                loop {
                    let (mut stream, _) = server.accept().await.expect("a client");
                    let mut asked = vec![0; 4096];
                    let n = stream.read(&mut asked).await.expect("a request");
                    stream.write_all(answer).await.expect("an answer");
                    seen.borrow_mut().push_str(&String::from_utf8_lossy(&asked[..n]));
                }
            };
            let fetcher = Fetcher::new(Origins::allowing(allowed).expect("origins"));
            let parts = std::cell::RefCell::new(Vec::new());
            let url = url.replace("{at}", &at).replace("{port}", at.rsplit(':').next().unwrap_or_default());
            let mut fields = Fields::default();
            fields.push("X-Test", "1");
            let ask = FetchRequest {
                method: airloom_content::http::message::Method::Get,
                url: url.parse().expect("an address"),
                fields,
                body: Bytes::new(),
            };
            let take = |part| {
                parts.borrow_mut().push(part);
                async {}
            };
            tokio::select! {
                () = fetcher.fetch(ask, take) => {}
                () = serving => {}
            }
            let asked = asked.borrow().clone();
            (parts.into_inner(), asked)
        })
    }

    #[test]
    fn an_answer_comes_piece_by_piece() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello";
        let (parts, asked) = fetch(&["127.0.0.1"], "http://{at}/a?b", answer);
        assert!(asked.starts_with("GET /a?b HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-test: 1\r\n") && asked.contains("host: 127.0.0.1:"), "{asked}");
        let Some(Fetched::Head { status: 200, fields }) = parts.first() else { panic!("{parts:?}") };
        assert_eq!(fields.first("x-a"), Some(&b"b"[..]));
        assert_eq!(parts[1..], [Fetched::Chunk(Bytes::from_static(b"hello")), Fetched::End]);
    }

    #[test]
    fn an_answer_that_stops_in_the_middle_is_broken() {
        let (parts, _) =
            fetch(&["127.0.0.1"], "http://{at}/", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
        assert_eq!(parts.last(), Some(&Fetched::Failed(FetchError::Broken)));
        // Asked twice, since it changes nothing.
        let (parts, asked) = fetch(&["127.0.0.1"], "http://{at}/", b"220 this is no web server\r\n");
        assert_eq!((parts, asked.matches("GET").count()), (vec![Fetched::Failed(FetchError::Broken)], 2));
    }

    #[test]
    fn kept_connections_that_have_all_closed_do_not_matter() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(tokio::task::LocalSet::new().run_until(async {
            let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}/", server.local_addr().expect("its address"));
            // Each connection answers once, is kept, and closes when it is asked again.
            tokio::task::spawn_local(async move {
                loop {
                    let (mut stream, _) = server.accept().await.expect("a client");
                    tokio::task::spawn_local(async move {
                        let mut asked = vec![0; 4096];
                        if stream.read(&mut asked).await.is_ok_and(|n| n > 0) {
                            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                            stream.write_all(answer).await.expect("an answer");
                            // A request, or the end.
                            let _ = stream.read(&mut asked).await;
                        }
                    });
                }
            });
            let fetcher = Fetcher::new(Origins::allowing(["127.0.0.1"]).expect("origins"));
            let fetch = || async {
                let (url, last) = (url.parse().expect("an address"), std::cell::RefCell::new(None));
                let method = airloom_content::http::message::Method::Get;
                let ask = FetchRequest { method, url, fields: Fields::default(), body: Bytes::new() };
                let take = |part| {
                    *last.borrow_mut() = Some(part);
                    async {}
                };
                fetcher.fetch(ask, take).await;
                last.into_inner()
            };
            // Four connections are kept, and each is dead to whoever asks it again.
            let first = tokio::join!(fetch(), fetch(), fetch(), fetch());
            assert_eq!(
                first,
                (Some(Fetched::End), Some(Fetched::End), Some(Fetched::End), Some(Fetched::End))
            );
            for _ in 0..4 {
                assert_eq!(fetch().await, Some(Fetched::End));
            }
        }));
    }

    #[test]
    fn what_is_not_allowed_is_never_asked() {
        for url in [
            "http://{at}/",
            "http://localhost:{port}/",
            "http://2130706433:{port}/",
            "http://[::ffff:127.0.0.1]:{port}/",
        ] {
            let (parts, asked) = fetch(&[], url, b"");
            assert_eq!(
                (parts, asked),
                (vec![Fetched::Failed(FetchError::Forbidden)], String::new()),
                "{url}"
            );
        }
        // One name being allowed says nothing of the others.
        assert_eq!(fetch(&["localhost"], "http://{at}/", b"").0, [Fetched::Failed(FetchError::Forbidden)]);
    }

    #[test]
    fn what_cannot_be_asked_is_told_apart() {
        let failed = |allowed: &[&str], url| fetch(allowed, url, b"").0;
        assert_eq!(failed(&[], "ftp://x/"), [Fetched::Failed(FetchError::Unsupported)]);
        assert_eq!(failed(&["127.0.0.1"], "http://127.0.0.1:1/"), [Fetched::Failed(FetchError::Unreachable)]);
        // A label that no name can have: this machine's resolver need not be asked.
        let nobody = format!("http://{}.invalid/", "x".repeat(64));
        assert_eq!(failed(&["10.0.0.0/8"], &nobody), [Fetched::Failed(FetchError::Unresolved)]);
    }
}
