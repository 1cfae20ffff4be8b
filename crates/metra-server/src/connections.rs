//! The connections of a server: accepted up to a limit, with a limit on everything that a client can be slow with, and ended gently.

use crate::options::RequestLimits;
use crate::service;
use crate::tls::TlsSlot;
use axum::Router;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// Bytes of a request's head.
const HEAD: usize = 64 << 10;

/// After this the next answer of a connection asks its client to close it; clients open another one by themselves.
const OLDEST: Duration = Duration::from_secs(600);

/// How long connections that wait to be accepted are looked for before a server stops.
const LAST_LOOK: Duration = Duration::from_millis(5);

/// How long a connection without a request is left open when a server stops, for a request that is on its way.
const LAST_REQUEST: Duration = Duration::from_millis(500);

/// Requests of one connection at once, by HTTP/2.
const STREAMS: u32 = 64;

/// When the connection of a request was accepted.
#[derive(Clone, Copy)]
pub(crate) struct Accepted(Instant);

impl Accepted {
    /// Whether the connection should not be used for another request.
    pub(crate) fn is_old(self) -> bool {
        self.0.elapsed() > OLDEST
    }
}

/// How far a server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It serves.
    Running,
    /// It takes no connections, and ends those that it has after the request they are in.
    Closing,
    /// It ends all connections.
    Ending,
}

/// Accept connections until the phase changes; returns when all of them have ended.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    service: Arc<service::Service>,
    mut phase: watch::Receiver<Phase>,
) {
    let slots = Arc::new(Semaphore::new(service.limits().connections));
    let mut last_look = None;
    while last_look.is_none_or(|end| Instant::now() < end) {
        let closing = async {
            match last_look {
                // Those that the system has accepted already are served: they are there at once.
                Some(end) => tokio::time::sleep_until(end).await,
                None => drop(phase.wait_for(|phase| *phase > Phase::Running).await),
            }
        };
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = closing => {
                last_look.get_or_insert_with(|| Instant::now() + LAST_LOOK);
                continue;
            }
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // No descriptors are left, or the client has gone: neither is a reason to stop.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            service.metrics.count_refusal("connections");
            continue;
        };
        let (router, phase) = (router.clone(), phase.clone());
        let (limits, connected) = (service.limits().clone(), service.metrics.connected());
        let acceptor = service.tls.as_ref().map(TlsSlot::acceptor);
        tokio::spawn(async move {
            serve(stream, acceptor, router, &limits, phase).await;
            drop((slot, connected));
        });
    }
    drop(listener);
    // All slots are free again when all connections have ended.
    let all = u32::try_from(service.limits().connections).unwrap_or(u32::MAX);
    let _ = slots.acquire_many(all).await;
}

async fn serve(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    limits: &RequestLimits,
    phase: watch::Receiver<Phase>,
) {
    // Answers are small and written whole.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    // Somebody who takes nothing of an answer for so long has gone.
    stream.set_write_timeout(Some(limits.client_time));
    let Some(acceptor) = acceptor else {
        return http1(Box::pin(stream), router, limits, phase).await;
    };
    let greeting = tokio::time::timeout(limits.client_time, acceptor.accept(Box::pin(stream)));
    let mut ending = phase.clone();
    let greeted = tokio::select! {
        greeted = greeting => greeted,
        _ = ending.wait_for(|phase| *phase == Phase::Ending) => return,
    };
    let Ok(Ok(mut stream)) = greeted else {
        return;
    };
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => {
            // Before the first frame HTTP/2 has no limit of its own; later a client answers pings.
            let (inner, _) = stream.get_mut();
            inner
                .as_mut()
                .set_read_timeout_pinned(Some(3 * limits.client_time));
            http2(stream, router, limits, phase).await;
        }
        _ => http1(stream, router, limits, phase).await,
    }
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    limits: &RequestLimits,
    phase: watch::Receiver<Phase>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.client_time)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), requests_of(router));
    // An answer closes it sooner.
    let oldest = OLDEST + limits.time + limits.client_time;
    until_closed(connection, (oldest, LAST_REQUEST), limits, phase).await;
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    limits: &RequestLimits,
    phase: watch::Receiver<Phase>,
) {
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.client_time))
        .keep_alive_timeout(limits.client_time)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD as u32)
        .serve_connection(TokioIo::new(stream), requests_of(router));
    // It tells its client which requests were taken.
    until_closed(connection, (OLDEST, Duration::ZERO), limits, phase).await;
}

/// What answers the requests of a connection that was accepted now.
fn requests_of(
    router: Router,
) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    let (router, accepted) = (TowerToHyperService::new(router), Accepted(Instant::now()));
    service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(accepted);
        router.call(request)
    })
}

/// Serve a connection until it is so old, or so long after the server is told to stop; then it ends after the request that it is in.
/// Whatever a client does wrong ends its connection and nothing else.
async fn until_closed(
    connection: impl GracefulConnection,
    (oldest, last): (Duration, Duration),
    limits: &RequestLimits,
    mut phase: watch::Receiver<Phase>,
) {
    let mut connection = pin!(connection);
    let mut end = pin!(tokio::time::sleep(oldest));
    let (mut known, mut is_ending) = (Phase::Running, false);
    loop {
        tokio::select! {
            // First: a request that has come is taken before anything else is looked at.
            biased;
            _ = connection.as_mut() => return,
            () = end.as_mut() => {
                if is_ending {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                is_ending = true;
                // A client that takes its answer byte by byte must not hold it for ever.
                end.as_mut().reset(Instant::now() + limits.time + limits.client_time);
            }
            changed = phase.wait_for(|phase| *phase > known) => match changed.map(|phase| *phase) {
                Ok(Phase::Closing) => {
                    known = Phase::Closing;
                    if !is_ending {
                        let sooner = end.deadline().min(Instant::now() + last);
                        end.as_mut().reset(sooner);
                    }
                }
                _ => return,
            },
        }
    }
}
