//! What a server is started with.

use crate::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a server is started with.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Threads for numeric work; `None` for all cores.
    pub threads: Option<usize>,
    /// What is served.
    pub models: ModelSource,
    /// Limits on requests.
    pub limits: RequestLimits,
    /// A file with keys, one a line as `SCOPE KEY`.
    pub keys: Option<PathBuf>,
    /// Keys from the environment, as `SCOPE KEY` separated by commas.
    pub environment_keys: Option<String>,
    /// Serve whoever reaches the address.
    pub no_auth: bool,
    /// Certificate and key, where connections are encrypted.
    pub tls: Option<TlsFiles>,
    /// How often files are looked at for changes.
    pub reload_interval: Duration,
    /// How often judged queries are ranked.
    pub canary_interval: Duration,
    /// Compare lengths of an index's files and not their digests.
    pub trusted: bool,
    /// A server of embeddings in OpenAI's form.
    pub upstream: Option<UpstreamOptions>,
    /// Where feedback is written.
    pub feedback: Option<FeedbackOptions>,
    /// How long requests are still taken after a signal to stop, so that load balancers notice.
    pub drain_delay: Duration,
    /// How long requests that were taken may go on after that.
    pub drain_time: Duration,
}

/// Where models come from.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// One model, named by the command line.
    Single(Box<ModelEntry>),
    /// A file in TOML that lists them, which is read again whenever it changes.
    File(PathBuf),
}

/// A model that is served.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// What requests call it.
    pub name: String,
    /// Its version; requests may name it as `NAME@VERSION`.
    #[serde(default)]
    pub version: Option<String>,
    /// The model file.
    pub file: PathBuf,
    /// A folder that `metra index` wrote with this model.
    #[serde(default)]
    pub index: Option<PathBuf>,
    /// Judged queries that are ranked every so often.
    #[serde(default)]
    pub canary: Option<CanaryEntry>,
    /// Vectors of queries as they are expected.
    #[serde(default)]
    pub reference: Option<VectorFile>,
}

/// A file of vectors.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    /// The file.
    pub file: PathBuf,
    /// Its column of vectors, where it must be named.
    #[serde(default)]
    pub vector: Option<String>,
    /// Its column of cameras or sessions, where the model subtracts the mean of each.
    #[serde(default)]
    pub camera: Option<String>,
}

/// Judged queries: by a file of judgements, or by the labels that queries and items have.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryEntry {
    /// The queries.
    pub queries: VectorFile,
    /// Their column of labels: items of the index with the same label are relevant.
    #[serde(default)]
    pub label: Option<String>,
    /// Their column of ids, by which `qrels` names queries.
    #[serde(default)]
    pub id: Option<String>,
    /// Judgements in TREC's form, which name items as the index does.
    #[serde(default)]
    pub qrels: Option<PathBuf>,
    /// How many answers are looked at.
    #[serde(default = "usual_k")]
    pub k: usize,
}

/// How many answers are looked at where nothing else is said.
pub(crate) fn usual_k() -> usize {
    10
}

/// Limits on requests. Every refusal states the one that it is for.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// Bytes of a body.
    pub body: usize,
    /// Vectors, pairs or texts of a request.
    pub rows: usize,
    /// Items for a query.
    pub k: usize,
    /// Requests that are worked on at once.
    pub concurrency: usize,
    /// Requests that wait for that, at most.
    pub queue: usize,
    /// How long a request waits; one that would wait longer, by what requests have taken of late, is refused without waiting.
    pub queue_time: Duration,
    /// How long a request may take in all.
    pub time: Duration,
    /// How long a client may take for the head of a request, for its body, and to take the next part of an answer. An idle connection
    /// is closed after it, too, by HTTP/2 where it does not answer pings.
    pub client_time: Duration,
    /// Open connections.
    pub connections: usize,
    /// Bytes of all bodies and answers that are held at once.
    pub memory: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        RequestLimits {
            body: 16 << 20,
            rows: 10_000,
            k: 1_000,
            concurrency: 2 * cores,
            queue: 1024 * cores,
            queue_time: Duration::from_millis(500),
            time: Duration::from_secs(30),
            client_time: Duration::from_secs(20),
            connections: 4_096,
            memory: 512 << 20,
        }
    }
}

/// Files for encrypted connections, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate and those that vouch for it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities whose clients alone are served.
    pub client_authorities: Option<PathBuf>,
}

/// A server of embeddings in OpenAI's form.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    /// Its address up to `/embeddings`, such as `https://…/v1`.
    pub url: String,
    /// The model that it is asked for.
    pub model: Option<String>,
    /// Its key.
    pub key: Option<String>,
    /// How long one try may take.
    pub time: Duration,
    /// Texts that it is sent at once.
    pub batch: usize,
    /// Requests that wait for its answers at once.
    pub concurrency: usize,
}

/// Where feedback is written.
#[derive(Debug, Clone)]
pub struct FeedbackOptions {
    /// The log, in the form that `metra clicks` reads.
    pub file: PathBuf,
    /// The share of requests that is written.
    pub share: f64,
    /// Bytes after which the log is renamed and begun anew; the one before is replaced.
    pub bytes: u64,
}

impl ServerOptions {
    /// The options of a server of these models, all others as they are by default.
    pub fn new(models: ModelSource) -> Self {
        ServerOptions {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            threads: None,
            models,
            limits: RequestLimits::default(),
            keys: None,
            environment_keys: None,
            no_auth: false,
            tls: None,
            reload_interval: Duration::from_secs(2),
            canary_interval: Duration::from_secs(60),
            trusted: false,
            upstream: None,
            feedback: None,
            drain_delay: Duration::from_secs(2),
            drain_time: Duration::from_secs(30),
        }
    }

    /// Whether only programs of this machine are served, of which pages in its browsers are none.
    pub(crate) fn serves_local_alone(&self) -> bool {
        self.address.ip().is_loopback() && !self.no_auth
    }

    /// An error where options do not go together.
    pub(crate) fn check(&self) -> Result<()> {
        let has_keys = self.keys.is_some() || self.environment_keys.is_some();
        if !self.address.ip().is_loopback() && !has_keys && !self.no_auth {
            let problem = "other machines can reach this address: expected keys (--keys FILE or METRA_KEYS), or \
                           --no-auth where something in front of it asks for them";
            return Err(Error::setting(self.address.to_string(), problem));
        }
        if has_keys && self.no_auth {
            let problem = "expected either keys or --no-auth, but found both";
            return Err(Error::setting("--no-auth", problem));
        }
        if self.threads == Some(0) {
            return Err(Error::setting(
                "--threads",
                "expected at least 1, but found 0",
            ));
        }
        let limits = &self.limits;
        let positive = [
            ("--max-body", limits.body),
            ("--max-rows", limits.rows),
            ("--max-k", limits.k),
            ("--concurrency", limits.concurrency),
            ("--max-connections", limits.connections),
        ];
        if let Some((option, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(Error::setting(option, "expected at least 1, but found 0"));
        }
        let most = [
            ("--concurrency", limits.concurrency),
            ("--queue", limits.queue),
            ("--max-connections", limits.connections),
        ];
        if let Some((option, value)) = most.into_iter().find(|(_, value)| *value > 1 << 20) {
            let problem = format!("expected at most {}, but found {value}", 1 << 20);
            return Err(Error::setting(option, problem));
        }
        if limits.memory < limits.body {
            let problem = format!(
                "expected at least as much as one body (--max-body {}), but found {}",
                limits.body, limits.memory
            );
            return Err(Error::setting("--max-memory", problem));
        }
        if let Some(feedback) = &self.feedback
            && !(feedback.share > 0.0 && feedback.share <= 1.0)
        {
            let problem = format!("expected above 0 and up to 1, but found {}", feedback.share);
            return Err(Error::setting("--feedback-share", problem));
        }
        Ok(())
    }
}
