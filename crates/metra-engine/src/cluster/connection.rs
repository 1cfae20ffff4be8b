//! One connection to a scheduler, for Ballista's protocol and for its page, with a limit on every
//! wait.

use super::SchedulerAddress;
use super::session::MESSAGE_SIZE;
use crate::{Error, Result};
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::time::{Duration, Instant};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::http;
use tonic::transport::{Channel, Endpoint};

/// One attempt to be answered.
const CALL: Duration = Duration::from_secs(3);
/// All attempts together; a scheduler that is silent for so long is lost. A killed one must be a
/// named error within ten seconds.
const PATIENCE: Duration = Duration::from_secs(7);
/// Handing over a plan may take longer: the scheduler decodes it and looks at files.
const SUBMISSION: Duration = Duration::from_secs(60);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);
/// A page is some kilobytes; more is not ours.
const PAGE_SIZE: usize = 16 << 20;

/// A way to ask a scheduler.
#[derive(Clone)]
pub(crate) struct Connection {
    address: SchedulerAddress,
    channel: Channel,
}

impl Connection {
    /// A connection that is opened by the first call, and again after a loss. Inside a runtime only,
    /// since it has a task of its own.
    pub(crate) fn new(address: &SchedulerAddress) -> Result<Self> {
        let endpoint = Endpoint::new(address.url())
            .map_err(|e| Error::engine(format!("the address {address}"), e))?
            .connect_timeout(CALL)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(CALL)
            .keep_alive_while_idle(true);
        Ok(Connection {
            address: address.clone(),
            channel: endpoint.connect_lazy(),
        })
    }

    pub(crate) fn address(&self) -> &SchedulerAddress {
        &self.address
    }

    /// A call of Ballista's protocol that may be repeated. Transport failures and timeouts are
    /// tried again for [`PATIENCE`]; what the scheduler itself answers is final.
    pub(crate) async fn call<T, F>(
        &self,
        doing: &str,
        call: impl Fn(SchedulerGrpcClient<Channel>) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed()).min(CALL);
            let reason = match tokio::time::timeout(left, call(self.client())).await {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) if !transport(&status) => {
                    return Err(Error::engine(doing, status.message()));
                }
                Ok(Err(status)) => root_cause(&status),
                Err(_) => format!("no answer in {} s", PATIENCE.as_secs()),
            };
            if begin.elapsed() + BETWEEN_ATTEMPTS >= PATIENCE {
                return Err(self.lost(reason));
            }
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
    }

    /// A call that must not be repeated, since it begins a job.
    pub(crate) async fn submit<T, F>(
        &self,
        doing: &str,
        call: impl FnOnce(SchedulerGrpcClient<Channel>) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        match tokio::time::timeout(SUBMISSION, call(self.client())).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) if !transport(&status) => Err(Error::engine(doing, status.message())),
            Ok(Err(status)) => Err(self.lost(root_cause(&status))),
            Err(_) => Err(self.lost(format!("no answer in {} s", SUBMISSION.as_secs()))),
        }
    }

    /// One page of the scheduler, once. `None` where it has no such page.
    pub(crate) async fn page<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let bytes = tokio::time::timeout(CALL, self.get(path)).await;
        let bytes = match bytes {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(reason)) => return Err(self.unreachable(reason)),
            Err(_) => return Err(self.unreachable(format!("no answer in {} s", CALL.as_secs()))),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let page = serde_json::from_slice(&bytes)
            .map_err(|e| Error::engine(format!("reading {path} of {}", self.address), e))?;
        Ok(Some(page))
    }

    pub(crate) fn lost(&self, reason: String) -> Error {
        Error::SchedulerLost {
            address: self.address.to_string(),
            reason,
        }
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::Unreachable {
            address: self.address.to_string(),
            reason,
        }
    }

    fn client(&self) -> SchedulerGrpcClient<Channel> {
        SchedulerGrpcClient::new(self.channel.clone())
            .max_encoding_message_size(MESSAGE_SIZE)
            .max_decoding_message_size(MESSAGE_SIZE)
    }

    /// A plain GET over the same HTTP/2 connection.
    async fn get(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let mut channel = self.channel.clone();
        std::future::poll_fn(|context| GrpcService::<Body>::poll_ready(&mut channel, context))
            .await
            .map_err(|e| root_cause(&e))?;
        let request = http::Request::get(format!("{}{path}", self.address.url()))
            .body(Body::default())
            .map_err(|e| e.to_string())?;
        let response = GrpcService::<Body>::call(&mut channel, request)
            .await
            .map_err(|e| root_cause(&e))?;
        if response.status() == http::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !response.status().is_success() {
            return Err(format!("it answers {}", response.status()));
        }
        let body = axum::body::Body::new(response.into_body());
        let bytes = axum::body::to_bytes(body, PAGE_SIZE).await;
        Ok(Some(bytes.map_err(|e| root_cause(&e))?.to_vec()))
    }
}

/// Whether an answer came from the way and not from the scheduler.
fn transport(status: &tonic::Status) -> bool {
    use std::error::Error;
    use tonic::Code;
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded => true,
        // A connection that breaks in the middle of a call.
        Code::Unknown | Code::Cancelled | Code::Internal => status.source().is_some(),
        _ => false,
    }
}

/// The innermost reason: "transport error" alone helps nobody.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
