//! The HTTP side of a daemon itself, where numbers for Prometheus are to be had and pushes are submitted.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::listening::{NO_ROOM, listener};
use super::{browser_guard, prometheus};

/// How long the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time; others wait.
const CONNECTIONS: usize = 64;

/// A request for the daemon, and where its answer goes.
pub struct Call {
    /// Method.
    pub method: Method,
    /// Path without a query.
    pub path: String,
    /// What the body is, if the client says so.
    pub content_type: Option<String>,
    /// The body, whole.
    pub body: Bytes,
    /// Takes the answer.
    pub answer: oneshot::Sender<Response<Full<Bytes>>>,
}

/// An answer of text.
pub fn text(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(media_type));
    response
}

/// Answers a call for the numbers of a daemon.
pub fn show(call: Call, numbers: impl FnOnce() -> String) {
    let response = match (&call.method, call.path.as_str()) {
        (&Method::GET | &Method::HEAD, "/metrics") => text(StatusCode::OK, prometheus::TYPE, numbers()),
        _ => text(StatusCode::NOT_FOUND, "text/plain", "there is /metrics here\n"),
    };
    // Whoever asked may be gone.
    let _ = call.answer.send(response);
}

/// Serves `at` until the receiver of `calls` is gone; bodies of requests have at most `most` octets, and are not for web pages:
/// see `browser_guard`, and there `names`. Returns where it listens. Has to be called inside a `LocalSet`.
///
/// # Errors
/// As the kernel says: the address is taken, or is not ours.
pub fn serve(
    at: SocketAddr,
    most: usize,
    names: &[String],
    calls: mpsc::Sender<Call>,
) -> io::Result<SocketAddr> {
    let listener = listener(at, CONNECTIONS as u32)?;
    let local = listener.local_addr()?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let names: Arc<[String]> = names.into();
    tokio::task::spawn_local(async move {
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(NO_ROOM).await;
                continue;
            };
            let (calls, names) = (calls.clone(), Arc::clone(&names));
            tokio::task::spawn_local(async move {
                let service =
                    service_fn(move |request| answer(request, most, Arc::clone(&names), calls.clone()));
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                // A client that breaks the rules, or leaves, is told or gone; there is nobody else to tell.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
                drop(place);
            });
        }
    });
    Ok(local)
}

async fn answer(
    request: Request<Incoming>,
    most: usize,
    names: Arc<[String]>,
    calls: mpsc::Sender<Call>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if let Some(why) = browser_guard::refusal(request.headers(), &names) {
        return Ok(text(StatusCode::FORBIDDEN, "text/plain", why));
    }
    let gone = || Ok(text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "it is about to stop\n"));
    let (sender, receiver) = oneshot::channel();
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(PATIENCE, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(why)) if why.is::<LengthLimitError>() => {
            return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, "text/plain", "the body is too large\n"));
        }
        Ok(Err(_)) => return Ok(text(StatusCode::BAD_REQUEST, "text/plain", "the body is broken\n")),
        Err(_) => return Ok(text(StatusCode::REQUEST_TIMEOUT, "text/plain", "the body takes too long\n")),
    };
    let content_type = head.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let path = head.uri.path().to_owned();
    let call = Call { method: head.method, path, content_type, body, answer: sender };
    if calls.send(call).await.is_err() {
        return gone();
    }
    match receiver.await {
        Ok(response) => Ok(response),
        Err(_) => gone(),
    }
}
