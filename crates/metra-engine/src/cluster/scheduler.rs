//! A scheduler in the foreground: Ballista's, with our operators, our settings and our page, on one
//! port.
//!
//! Departs from Ballista's own `start_server` in that the port is bound first (0 asks for a free
//! one), that a page of ours is served beside its protocol, and that a signal ends it.

use super::Identity;
use super::session::{MESSAGE_SIZE, end_signal, runtime, session_config};
use super::status_api::{Server, StatusApi, routes};
use crate::{Error, Result};
use axum::serve::ListenerExt;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How a scheduler is run.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// Where to listen; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The name or address under which executors reach it; needed where `bind` is 0.0.0.0.
    pub advertise: Option<String>,
    /// Seconds without a sign of life after which an executor is given up and its work repeated.
    pub executor_timeout: u64,
    /// Seconds between looks for such executors.
    pub check_interval: u64,
    /// Seconds for which jobs wait for a new executor when none is left.
    pub without_executors: u64,
    /// What it says it is.
    pub identity: Identity,
}

impl SchedulerOptions {
    /// The usual settings at an address. An executor sends a sign of life every ten seconds; six
    /// missed ones are no accident.
    pub fn new(bind: SocketAddr) -> Self {
        SchedulerOptions {
            bind,
            advertise: None,
            executor_timeout: 60,
            check_interval: 5,
            without_executors: 180,
            identity: Identity::here(),
        }
    }
}

/// Run a scheduler until a signal ends it. `ready` is called with its address once it listens.
pub fn run(options: &SchedulerOptions, ready: &dyn Fn(SocketAddr)) -> Result<()> {
    let runtime = runtime("metra-scheduler")?;
    let outcome = runtime.block_on(serve(options, ready));
    // Connections of executors stay open as long as they live.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

async fn serve(options: &SchedulerOptions, ready: &dyn Fn(SocketAddr)) -> Result<()> {
    let host = match (&options.advertise, options.bind.ip()) {
        (Some(host), _) => host.clone(),
        (None, ip) if ip.is_unspecified() => {
            return Err(Error::SchedulerAddress {
                found: options.bind.to_string(),
                problem: "but executors cannot call back to every address at once: give the name \
                          under which they reach this machine (--advertise)"
                    .to_owned(),
            });
        }
        (None, ip) => ip.to_string(),
    };
    let listening = |e: std::io::Error| Error::engine(format!("listening on {}", options.bind), e);
    let listener = TcpListener::bind(options.bind).await.map_err(listening)?;
    let address = listener.local_addr().map_err(listening)?;

    let config = SchedulerConfig {
        override_physical_codec: Some(crate::operators::codec()),
        override_config_producer: Some(Arc::new(session_config)),
        override_session_builder: Some(Arc::new(session_state)),
        external_host: host,
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        executor_timeout_seconds: options.executor_timeout,
        expire_dead_executor_interval_seconds: options.check_interval,
        no_executors_grace_period_seconds: options.without_executors,
        // A stopping executor takes its results along: its work is repeated at once.
        executor_termination_grace_period: 0,
        grpc_server_max_decoding_message_size: MESSAGE_SIZE as u32,
        grpc_server_max_encoding_message_size: MESSAGE_SIZE as u32,
        grpc_client_max_message_size: MESSAGE_SIZE as u32,
        ..SchedulerConfig::default()
    };
    config
        .validate()
        .map_err(|e| Error::engine("the scheduler's settings", e))?;
    let starting = |e| Error::engine("starting the scheduler", e);
    let cluster = BallistaCluster::new_from_config(&config).await;
    let server: Server = create_scheduler(cluster.map_err(starting)?, Arc::new(config))
        .await
        .map_err(starting)?;

    let api = StatusApi {
        server: server.clone(),
        identity: Arc::new(options.identity.clone()),
        executor_timeout: options.executor_timeout,
    };
    let protocol = SchedulerGrpcServer::new(server.clone())
        .max_encoding_message_size(MESSAGE_SIZE)
        .max_decoding_message_size(MESSAGE_SIZE);
    let router = tonic::service::Routes::new(protocol)
        .into_axum_router()
        .merge(routes(api));
    // Many small messages: none waits for the next to fill a packet.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!("a connection stays slow: {error}");
        }
    });
    ready(address);
    tokio::select! {
        ended = axum::serve(
            listener,
            router.into_make_service_with_connect_info::<SocketAddr>(),
        ) => ended.map_err(|e| Error::engine(format!("serving on {address}"), e)),
        () = super::slots::watch(server.clone()) => Ok(()),
        () = end_signal() => {
            match server.running_job_number() {
                0 => tracing::info!("the scheduler stops"),
                jobs => tracing::warn!("the scheduler stops; its {jobs} running jobs are lost"),
            }
            Ok(())
        }
    }
}

/// A session with the stores that we know.
fn session_state(config: SessionConfig) -> datafusion::error::Result<SessionState> {
    let environment = RuntimeEnvBuilder::new()
        .with_object_store_registry(crate::stores::registry())
        .build_arc()?;
    Ok(SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(environment)
        .build())
}
