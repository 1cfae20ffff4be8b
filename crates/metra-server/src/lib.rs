//! Models and indexes over HTTP: `metra serve`.
//!
//! | file | question |
//! | --- | --- |
//! | `options`, `signals` | What is a server started with, and how is it told to stop? |
//! | `list`, `models`, `index`, `marks`, `reload` | What is served, and how is it exchanged while requests come in? |
//! | `connections`, `tls`, `keys` | Who may connect, and how slow may they be? |
//! | `admission`, `work` | Which requests are worked on, and where? |
//! | `api`, `vectors`, `rows`, `refusal` | What do requests and answers look like? |
//! | `upstream`, `feedback` | Where do embeddings of texts come from, and where does feedback go? |
//! | `metrics` | What can be seen of it from outside? |
//! | `canary`, `quality`, `drift` | Does the model still help, and are requests what it expects? |
//!
//! No path, address or setting of a request reaches a file or another server: all of them are fixed when the server starts.

mod admission;
mod api;
mod canary;
mod connections;
mod drift;
mod error;
mod feedback;
mod index;
mod keys;
mod list;
mod marks;
mod metrics;
mod models;
mod options;
mod quality;
mod refusal;
mod reload;
mod rows;
mod service;
mod signals;
mod tls;
mod upstream;
mod vectors;
mod work;

pub use error::{Error, Result};
pub use options::{
    CanaryEntry, FeedbackOptions, ModelEntry, ModelSource, RequestLimits, ServerOptions, TlsFiles,
    UpstreamOptions, VectorFile,
};

use connections::Phase;
use service::Service;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

/// Serve until a signal asks to stop (SIGTERM, Ctrl-C). `ready` is called with the address when requests are taken.
pub fn run(options: ServerOptions, ready: &dyn Fn(SocketAddr)) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    // From here on SIGHUP means to reload; before, it would end a server that is still loading.
    let hangups = {
        let _entered = runtime.enter();
        signals::Hangups::new().map_err(Error::Runtime)?
    };
    let marks = marks::marks(&options);
    let service = Arc::new(Service::start(options)?);
    let outcome = runtime.block_on(serve(service, marks, hangups, ready));
    // Work that nobody waits for any more may still end.
    runtime.shutdown_background();
    outcome
}

async fn serve(
    service: Arc<Service>,
    marks: Vec<marks::Mark>,
    hangups: signals::Hangups,
    ready: &dyn Fn(SocketAddr),
) -> Result<()> {
    let address = service.options.address;
    let failed = |source| Error::Listen { address, source };
    let listener = listen(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let stop = signals::Stop::new().map_err(Error::Runtime)?;
    let (phases, phase) = watch::channel(Phase::Running);
    let router = api::router(Arc::clone(&service));
    let accepting = connections::accept(listener, router, Arc::clone(&service), phase);
    let mut accepting = tokio::spawn(accepting);
    tokio::spawn(reload::watch(Arc::clone(&service), marks));
    tokio::spawn(reload_at(Arc::clone(&service), hangups));
    tokio::spawn(quality::watch(Arc::clone(&service)));
    ready(bound);
    tokio::select! {
        () = stop.wait() => {}
        // Accepting ends when it is told to, or by a mistake.
        ended = &mut accepting => return Err(Error::Runtime(match ended {
            Ok(()) => std::io::Error::other("no connections are accepted any more"),
            Err(error) => error.into(),
        })),
    }
    tracing::info!(
        "stopping: no new connections after {:?}",
        service.options.drain_delay
    );
    service.drain();
    tokio::time::sleep(service.options.drain_delay).await;
    let _ = phases.send(Phase::Closing);
    let drained = tokio::time::timeout(service.options.drain_time, &mut accepting).await;
    if drained.is_err() {
        tracing::warn!(
            "requests took longer than {:?} and are given up",
            service.options.drain_time
        );
        let _ = phases.send(Phase::Ending);
        let _ = tokio::time::timeout(LAST_MOMENT, accepting).await;
    }
    Ok(())
}

/// How long the server waits for connections that it has ended.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Connections that the system holds until they are accepted: a burst of clients must not be turned away.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that was stopped a moment ago has connections that are still ending. Elsewhere this would share the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Reload at every SIGHUP.
async fn reload_at(service: Arc<Service>, mut hangups: signals::Hangups) {
    while hangups.next().await {
        let service = Arc::clone(&service);
        let loading = tokio::task::spawn_blocking(move || reload::reload(&service));
        if let Err(error) = loading.await {
            tracing::error!("a reload failed: {error}");
        }
    }
}
