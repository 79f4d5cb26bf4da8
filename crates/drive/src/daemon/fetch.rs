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

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
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

/// What is asked of an origin.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Method.
    pub method: String,
    /// Absolute `http` or `https` address.
    pub url: String,
    /// Headers, without those that belong to the connection.
    pub headers: Vec<(String, String)>,
    /// Body, empty if there is none.
    pub body: Bytes,
}

/// A piece of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Status and headers.
    Head(u16, Vec<(String, String)>),
    /// Octets of the body.
    Chunk(Bytes),
    /// All of it was there.
    End,
    /// Nothing more comes.
    Failed(Why),
}

/// Why there is no (whole) answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The address (or where it leads) is none that may be asked.
    Forbidden,
    /// It is no address of a server.
    BadUrl,
    /// There is no such host.
    Unresolved,
    /// Nobody answers there.
    Unreachable,
    /// What answers does not speak HTTP, or stopped in the middle.
    Broken,
}

/// A client that keeps connections and asks allowed origins only.
#[derive(Clone)]
pub struct Fetcher {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    origins: Arc<Origins>,
}

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
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_EACH)
            .http1_max_buf_size(HEAD)
            .build(https);
        Fetcher { client, origins }
    }

    /// Asks, and gives the answer piece by piece to `take`, which may wait; the last one is `End` or `Failed`.
    pub async fn fetch<F: Future<Output = ()>>(&self, ask: Ask, mut take: impl FnMut(Part) -> F) {
        let last = match self.answer(ask, &mut take).await {
            Ok(()) => Part::End,
            Err(why) => Part::Failed(why),
        };
        take(last).await;
    }

    async fn answer<F: Future<Output = ()>>(
        &self,
        ask: Ask,
        take: &mut impl FnMut(Part) -> F,
    ) -> Result<(), Why> {
        let request = self.request(ask)?;
        let response = self.client.request(request).await.map_err(|e| reason(&e))?;
        let (head, mut body) = response.into_parts();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        take(Part::Head(head.status.as_u16(), headers)).await;
        while let Some(frame) = body.frame().await {
            // Trailers are of no use to anybody here.
            if let Ok(chunk) = frame.map_err(|_| Why::Broken)?.into_data() {
                take(Part::Chunk(chunk)).await;
            }
        }
        Ok(())
    }

    fn request(&self, ask: Ask) -> Result<Request<Full<Bytes>>, Why> {
        let uri: Uri = ask.url.parse().map_err(|_| Why::BadUrl)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(Why::BadUrl);
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(Why::BadUrl)?;
        // An address is not looked up, so the resolver does not see it.
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>()
            && !self.origins.allows(host, address)
        {
            return Err(Why::Forbidden);
        }
        let method = Method::from_bytes(ask.method.as_bytes()).map_err(|_| Why::BadUrl)?;
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in ask.headers {
            // Whoever asks has checked them; one that is none is left out rather than smuggled in.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(ask.body)).map_err(|_| Why::BadUrl)
    }
}

/// What went wrong, from the chain of errors.
fn reason(error: &ClientError) -> Why {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    let mut why = if error.is_connect() { Why::Unreachable } else { Why::Broken };
    while let Some(error) = source {
        let lookup = error.downcast_ref::<LookupFailed>();
        let inside = error.downcast_ref::<io::Error>().and_then(|e| e.get_ref()?.downcast_ref());
        if let Some(failed) = lookup.or(inside) {
            why = if failed.forbidden { Why::Forbidden } else { Why::Unresolved };
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
    fn fetch(allowed: &[&str], url: &str, answer: &'static [u8]) -> (Vec<Part>, String) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let at = server.local_addr().expect("its address").to_string();
            let serving = tokio::spawn(async move {
                let (mut stream, _) = server.accept().await.expect("a client");
                let mut asked = vec![0; 4096];
                let n = stream.read(&mut asked).await.expect("a request");
                stream.write_all(answer).await.expect("an answer");
                String::from_utf8_lossy(&asked[..n]).into_owned()
            });
            let fetcher = Fetcher::new(Origins::allowing(allowed).expect("origins"));
            let parts = std::cell::RefCell::new(Vec::new());
            let ask = Ask {
                method: "GET".into(),
                url: url.replace("{at}", &at).replace("{port}", at.rsplit(':').next().unwrap_or_default()),
                headers: vec![("x-test".into(), "1".into())],
                body: Bytes::new(),
            };
            fetcher
                .fetch(ask, |part| {
                    parts.borrow_mut().push(part);
                    async {}
                })
                .await;
            let asked = if serving.is_finished() { serving.await.expect("a request") } else { String::new() };
            (parts.into_inner(), asked)
        })
    }

    #[test]
    fn an_answer_comes_piece_by_piece() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello";
        let (parts, asked) = fetch(&["127.0.0.1"], "http://{at}/a?b", answer);
        assert!(asked.starts_with("GET /a?b HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-test: 1\r\n") && asked.contains("host: 127.0.0.1:"), "{asked}");
        let Some(Part::Head(200, headers)) = parts.first() else { panic!("{parts:?}") };
        assert!(headers.contains(&("x-a".into(), "b".into())));
        assert_eq!(parts[1..], [Part::Chunk(Bytes::from_static(b"hello")), Part::End]);
    }

    #[test]
    fn an_answer_that_stops_in_the_middle_is_broken() {
        let (parts, _) =
            fetch(&["127.0.0.1"], "http://{at}/", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
        assert_eq!(parts.last(), Some(&Part::Failed(Why::Broken)));
        let (parts, _) = fetch(&["127.0.0.1"], "http://{at}/", b"220 this is no web server\r\n");
        assert_eq!(parts, [Part::Failed(Why::Broken)]);
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
            assert_eq!((parts, asked), (vec![Part::Failed(Why::Forbidden)], String::new()), "{url}");
        }
        // One name being allowed says nothing of the others.
        assert_eq!(fetch(&["localhost"], "http://{at}/", b"").0, [Part::Failed(Why::Forbidden)]);
    }

    #[test]
    fn no_server_is_told_apart_from_a_wrong_address() {
        for url in ["ftp://x/", "http:///", "nonsense", "http://a b/", "/path"] {
            assert_eq!(fetch(&[], url, b"").0, [Part::Failed(Why::BadUrl)], "{url}");
        }
        assert_eq!(fetch(&["127.0.0.1"], "http://127.0.0.1:1/", b"").0, [Part::Failed(Why::Unreachable)]);
        assert_eq!(
            fetch(&["10.0.0.0/8"], "http://no-such-host.invalid/", b"").0,
            [Part::Failed(Why::Unresolved)]
        );
    }
}
