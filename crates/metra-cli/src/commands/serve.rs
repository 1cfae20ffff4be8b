//! `metra serve`: models and indexes over HTTP.

use crate::args::{Common, size};
use crate::print;
use crate::progress::LogFormat;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use metra_server::{
    CanaryEntry, FeedbackOptions, ModelEntry, ModelSource, RequestLimits, ServerOptions, TlsFiles,
    UpstreamOptions, VectorFile,
};
use std::env::VarError;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve models over HTTP: map vectors, search an index, compare pairs, embed texts.
///
/// Requests and answers are described at /openapi.json. The server stops at SIGTERM or Ctrl-C after the requests that it
/// has, and loads its files again when they change or at SIGHUP.
#[derive(Args)]
pub(crate) struct Serve {
    /// The model file; requests may leave its name out
    #[arg(required_unless_present = "models", conflicts_with = "models")]
    model: Option<PathBuf>,
    /// A folder that `metra index` wrote with this model, to be searched
    #[arg(long, value_name = "FOLDER", requires = "model")]
    index: Option<PathBuf>,
    /// TOML file that lists several models: [[model]] with name and file, and optionally version, index, canary and reference
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one. Addresses that other machines reach need keys
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    bind: SocketAddr,
    /// Check only the lengths of an index's files; without it their digests are checked, which reads all of them. For
    /// folders that nobody else writes to
    #[arg(long)]
    trusted: bool,
    /// Seconds between looks for changed files
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    reload_interval: f64,
    /// Form of the log on standard error (default: text on a terminal, json otherwise)
    #[arg(long, value_name = "FORM")]
    log_format: Option<LogForm>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    upstream: UpstreamArgs,
    #[command(flatten)]
    feedback: FeedbackArgs,
    #[command(flatten)]
    quality: QualityArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogForm {
    /// A line for people
    Text,
    /// One JSON object per line
    Json,
}

const ACCESS: &str = "Access";
const LIMITS: &str = "Limits";
const UPSTREAM: &str = "Embeddings of texts";
const FEEDBACK: &str = "Feedback";
const QUALITY: &str = "Watching quality";

#[derive(Args)]
struct Access {
    /// File of keys, one `read KEY` or `admin KEY` per line, with keys of at least 16 characters; only its owner may read it.
    /// METRA_KEYS may hold the entries instead, separated by commas
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    keys: Option<PathBuf>,
    /// Serve everybody who reaches the address, without keys; only where something in front of the server asks for them
    #[arg(long, help_heading = ACCESS)]
    no_auth: bool,
    /// Certificate for encrypted connections, with those that vouch for it (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = ACCESS)]
    tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = ACCESS)]
    tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = ACCESS)]
    tls_client_ca: Option<PathBuf>,
}

#[derive(Args)]
struct LimitArgs {
    /// Largest body of a request in bytes (K, M and G stand for 1024, 1024² and 1024³)
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size, help_heading = LIMITS)]
    max_body: u64,
    /// Most vectors, pairs or texts in a request
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().rows, help_heading = LIMITS)]
    max_rows: usize,
    /// Most items that a request may ask for per query
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().k, help_heading = LIMITS)]
    max_k: usize,
    /// Most requests that are worked on at once (default: twice the number of cores)
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    concurrency: Option<usize>,
    /// Most requests that may wait for their turn; all others are refused with 503 (default: 1024 times the number of cores)
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    queue: Option<usize>,
    /// Most seconds that a request may wait for its turn; one that would wait longer, judged by recent requests, is refused at
    /// once
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds, help_heading = LIMITS)]
    queue_time: f64,
    /// Most seconds that a request may take in all
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds, help_heading = LIMITS)]
    timeout: f64,
    /// Most seconds that a client may take to send the head of a request, to send its body or to accept the next part of an
    /// answer, and that a connection may stay idle
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = seconds, help_heading = LIMITS)]
    client_timeout: f64,
    /// Most open connections; further ones are closed at once
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().connections, help_heading = LIMITS)]
    max_connections: usize,
    /// Most bytes of all bodies and answers that are held at once
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size, help_heading = LIMITS)]
    max_memory: u64,
    /// Seconds after SIGTERM in which requests are still taken, so that load balancers notice
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds, help_heading = LIMITS)]
    drain_delay: f64,
    /// Most seconds that requests may take to finish after --drain-delay
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds, help_heading = LIMITS)]
    drain_time: f64,
}

#[derive(Args)]
struct UpstreamArgs {
    /// Server of embeddings in OpenAI's form, such as https://host/v1, which /v1/embeddings asks; its key is in
    /// METRA_UPSTREAM_KEY
    #[arg(long, value_name = "URL", help_heading = UPSTREAM)]
    upstream: Option<String>,
    /// Model name in requests to --upstream (default: none is sent)
    #[arg(long, value_name = "NAME", requires = "upstream", help_heading = UPSTREAM)]
    upstream_model: Option<String>,
    /// Most seconds that one try of a request to --upstream may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds, help_heading = UPSTREAM)]
    upstream_timeout: f64,
    /// Most texts in one request to --upstream
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = UPSTREAM)]
    upstream_batch: usize,
    /// Requests that may use --upstream at once; four times as many may wait, and all others are refused with 503
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = UPSTREAM)]
    upstream_concurrency: usize,
}

#[derive(Args)]
struct FeedbackArgs {
    /// Log of /v1/feedback, which `metra clicks` reads; one that is there is continued, another file is refused
    #[arg(long, value_name = "FILE", help_heading = FEEDBACK)]
    feedback: Option<PathBuf>,
    /// Share of the sessions of feedback that are written, drawn at random
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = FEEDBACK)]
    feedback_share: f64,
    /// Bytes after which the log is renamed to FILE.1, which it replaces, and begun anew
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = size, help_heading = FEEDBACK)]
    feedback_size: u64,
}

/// For a model that the command line names; a list of models has the same as `canary` and `reference`.
#[derive(Args)]
struct QualityArgs {
    /// Judged queries, which are ranked every --canary-interval seconds; /metrics shows what they find. Needs --canary-label,
    /// or --canary-qrels with --canary-id
    #[arg(long, value_name = "FILE", requires = "index", help_heading = QUALITY)]
    canary: Option<PathBuf>,
    /// Column of labels in --canary: items of the index with the same label are relevant
    #[arg(long, value_name = "COLUMN", requires = "canary", conflicts_with = "canary_qrels", help_heading = QUALITY)]
    canary_label: Option<String>,
    /// Judgements of items by their ids in the index (TREC's form)
    #[arg(long, value_name = "FILE", requires = "canary_id", help_heading = QUALITY)]
    canary_qrels: Option<PathBuf>,
    /// Column of ids in --canary, by which --canary-qrels names the queries
    #[arg(long, value_name = "COLUMN", requires = "canary_qrels", help_heading = QUALITY)]
    canary_id: Option<String>,
    /// Answers to each query of --canary that are looked at
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = QUALITY)]
    canary_k: usize,
    /// Seconds between two rankings of --canary
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds, help_heading = QUALITY)]
    canary_interval: f64,
    /// At least 100 queries as they are expected, such as those of the training data; /metrics shows how recent queries
    /// differ
    #[arg(long, value_name = "FILE", requires = "model", help_heading = QUALITY)]
    reference: Option<PathBuf>,
    /// Column of vectors in --canary and --reference (default: `vector`, or the only list column)
    #[arg(long, value_name = "COLUMN", help_heading = QUALITY)]
    vector: Option<String>,
    /// Column of cameras or sessions in --canary and --reference, for a model that subtracts the mean of each
    #[arg(long, value_name = "COLUMN", help_heading = QUALITY)]
    camera: Option<String>,
}

impl QualityArgs {
    fn file(&self, file: &Path) -> VectorFile {
        VectorFile {
            file: file.to_owned(),
            vector: self.vector.clone(),
            camera: self.camera.clone(),
        }
    }

    fn canary(&self) -> Option<CanaryEntry> {
        let file = self.canary.as_ref()?;
        Some(CanaryEntry {
            queries: self.file(file),
            label: self.canary_label.clone(),
            id: self.canary_id.clone(),
            qrels: self.canary_qrels.clone(),
            k: self.canary_k,
        })
    }
}

/// Panics are mistakes that cost one answer; they are lines of the log as everything else. Decoders of other people's formats have some, which
/// are caught and answered.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload().downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.payload().downcast_ref::<&str>().copied());
        tracing::warn!(place, "a panic: {}", message.unwrap_or("without a message"));
    }));
}

/// A secret of the environment. One that is there but cannot be used must not count as none.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) if value.trim().is_empty() => bail!("{name}: expected a key, but it is empty"),
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(error) => bail!("{name}: {error}"),
    }
}

/// Seconds, above 0 and up to a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value > 0.0 && value <= 86_400.0 => Ok(value),
        _ => Err("expected seconds above 0, up to 86400".into()),
    }
}

impl Serve {
    /// How the log is written.
    pub(crate) fn log_format(&self) -> LogFormat {
        match self.log_format {
            Some(LogForm::Json) => LogFormat::Json,
            Some(LogForm::Text) => LogFormat::Service,
            None if std::io::stderr().is_terminal() => LogFormat::Service,
            None => LogFormat::Json,
        }
    }

    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        log_panics();
        let ready = |address: SocketAddr| {
            let scheme = match self.access.tls_cert {
                Some(_) => "https",
                None => "http",
            };
            let address = format!("{scheme}://{address}");
            let printed = match common.json {
                true => print::line(&serde_json::json!({ "listening": address }).to_string()),
                false => print::line(&format!("metra listens on {address}")),
            };
            if let Err(error) = printed {
                tracing::warn!("listening on {address}, but nobody reads it: {error}");
            }
        };
        Ok(metra_server::run(self.options(common)?, &ready)?)
    }

    fn options(&self, common: &Common) -> Result<ServerOptions> {
        let models = match (&self.model, &self.models) {
            (Some(file), _) => {
                let name = file.file_stem().and_then(|name| name.to_str());
                ModelSource::Single(Box::new(ModelEntry {
                    name: name
                        .context("the model's file has no name in UTF-8")?
                        .to_owned(),
                    version: None,
                    file: file.clone(),
                    index: self.index.clone(),
                    canary: self.quality.canary(),
                    reference: (self.quality.reference.as_ref())
                        .map(|file| self.quality.file(file)),
                }))
            }
            (None, Some(list)) => ModelSource::File(list.clone()),
            (None, None) => bail!("expected a model, or --models with a list of them"),
        };
        let duration = Duration::from_secs_f64;
        let (given, usual) = (&self.limits, RequestLimits::default());
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let upstream_key = variable("METRA_UPSTREAM_KEY")?;
        Ok(ServerOptions {
            address: self.bind,
            threads: common.threads,
            limits: RequestLimits {
                body: bytes(given.max_body),
                rows: given.max_rows,
                k: given.max_k,
                concurrency: given.concurrency.unwrap_or(usual.concurrency),
                queue: given.queue.unwrap_or(usual.queue),
                queue_time: duration(given.queue_time),
                time: duration(given.timeout),
                client_time: duration(given.client_timeout),
                connections: given.max_connections,
                memory: bytes(given.max_memory),
            },
            keys: self.access.keys.clone(),
            environment_keys: variable("METRA_KEYS")?,
            no_auth: self.access.no_auth,
            tls: (self
                .access
                .tls_cert
                .clone()
                .zip(self.access.tls_key.clone()))
            .map(|(certificate, key)| TlsFiles {
                certificate,
                key,
                client_authorities: self.access.tls_client_ca.clone(),
            }),
            reload_interval: duration(self.reload_interval),
            canary_interval: duration(self.quality.canary_interval),
            trusted: self.trusted,
            upstream: self.upstream.upstream.clone().map(|url| UpstreamOptions {
                url,
                model: self.upstream.upstream_model.clone(),
                key: upstream_key.clone(),
                time: duration(self.upstream.upstream_timeout),
                batch: self.upstream.upstream_batch,
                concurrency: self.upstream.upstream_concurrency,
            }),
            feedback: self.feedback.feedback.clone().map(|file| FeedbackOptions {
                file,
                share: self.feedback.feedback_share,
                bytes: self.feedback.feedback_size,
            }),
            drain_delay: duration(given.drain_delay),
            drain_time: duration(given.drain_time),
            ..ServerOptions::new(models)
        })
    }
}
