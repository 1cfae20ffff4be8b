//! The connections of a server: accepted up to a limit, with a limit on everything that a client can be slow with, and ended gently.

use crate::options::RequestLimits;
use crate::service::Service;
use crate::tls::TlsSlot;
use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// Bytes of a request's head.
const HEAD: usize = 64 << 10;

/// After this a connection is closed behind the request that it is in; clients open another one by themselves.
const OLDEST: Duration = Duration::from_secs(600);

/// How long connections that wait to be accepted are looked for before a server stops.
const LAST_LOOK: Duration = Duration::from_millis(5);

/// Requests of one connection at once, by HTTP/2.
const STREAMS: u32 = 64;

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
    service: Arc<Service>,
    mut phase: watch::Receiver<Phase>,
) {
    let slots = Arc::new(Semaphore::new(service.limits().connections));
    loop {
        let is_closing = *phase.borrow() > Phase::Running;
        let closing = async {
            match is_closing {
                // Those that the system has accepted already are served: they are there at once.
                true => tokio::time::sleep(LAST_LOOK).await,
                false => drop(phase.wait_for(|phase| *phase > Phase::Running).await),
            }
        };
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = closing => match is_closing {
                true => break,
                false => continue,
            },
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
        _ = ending.wait_for(|phase| *phase > Phase::Running) => return,
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
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    until_closed(connection, limits, phase).await;
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
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    until_closed(connection, limits, phase).await;
}

/// Serve a connection. Whatever a client does wrong ends its connection and nothing else.
async fn until_closed(
    connection: impl GracefulConnection,
    limits: &RequestLimits,
    mut phase: watch::Receiver<Phase>,
) {
    let mut connection = pin!(connection);
    let mut age = pin!(tokio::time::sleep(OLDEST));
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = age.as_mut() => {
                // A client that takes its answer byte by byte must not hold it for ever.
                connection.as_mut().graceful_shutdown();
                let rest = limits.time + limits.client_time;
                let _ = tokio::time::timeout(rest, connection.as_mut()).await;
                return;
            }
            changed = phase.changed() => match (changed, *phase.borrow()) {
                (Ok(()), Phase::Closing) => connection.as_mut().graceful_shutdown(),
                _ => return,
            },
        }
    }
}
