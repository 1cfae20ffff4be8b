//! The upstream server of embeddings: asked for texts' vectors in OpenAI's form, within limits on time and tries.

use crate::admission::Admission;
use crate::metrics::Metrics;
use crate::options::{RequestLimits, UpstreamOptions};
use crate::refusal::Refusal;
use crate::vectors::InputVectors;
use crate::{Error, Result};
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Tries of one request.
const TRIES: u32 = 3;

/// Hundredths of a try that a first try earns for later ones, and the most that can be saved: repeated requests stay a tenth of all,
/// so that a server in trouble is not given more work.
const EARNED: i64 = 10;
const ONE_TRY: i64 = 100;
const SAVED: i64 = 1_000;

/// The pause before the second try; it doubles.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest wait that the server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Bytes of an answer for each text: more than any known embedding has.
const ANSWER_BYTES: usize = 1 << 19;

pub(crate) struct Upstream {
    client: Client,
    url: Url,
    model: Option<String>,
    key: Option<String>,
    batch: usize,
    /// All that a request may take: an answer that names the upstream server must come before that of a request that took too long.
    whole: Duration,
    budget: AtomicI64,
    /// Requests that it works on and that wait for it: they wait there, and not in the turn of others.
    admission: Admission,
}

#[derive(Serialize)]
struct UpstreamRequest<'a> {
    input: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct UpstreamAnswer {
    data: Vec<Embedding>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f64>,
}

/// What the upstream server counted.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Usage {
    /// Tokens of the texts.
    #[serde(default)]
    pub(crate) prompt_tokens: u64,
    /// The same.
    #[serde(default)]
    pub(crate) total_tokens: u64,
}

/// A try that failed, and whether another one may help.
struct FailedTry {
    problem: String,
    again_after: Option<Duration>,
    /// Whether the request was at fault: a text that is too long.
    is_ours: bool,
}

impl Upstream {
    pub(crate) fn new(options: &UpstreamOptions, limits: &RequestLimits) -> Result<Self> {
        let wrong = |problem: String| Error::setting("--upstream", problem);
        let address = format!("{}/embeddings", options.url.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|e| wrong(e.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong("expected an address with http:// or https://".into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let problem = "expected no key in the address: METRA_UPSTREAM_KEY holds it";
            return Err(wrong(problem.into()));
        }
        if options.batch == 0 {
            let problem = "expected at least 1, but found 0";
            return Err(Error::setting("--upstream-batch", problem));
        }
        if !(1..=1 << 20).contains(&options.concurrency) {
            let found = options.concurrency;
            let problem = format!("expected 1 to {}, but found {found}", 1 << 20);
            return Err(Error::setting("--upstream-concurrency", problem));
        }
        // Texts and the key go to this address alone: not where an answer leads, and not to a proxy that the environment names.
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(options.time)
            .timeout(options.time)
            .build();
        Ok(Upstream {
            client: client.map_err(|e| wrong(e.to_string()))?,
            url,
            model: options.model.clone(),
            key: options.key.clone(),
            batch: options.batch,
            whole: limits.time.mul_f64(0.9),
            budget: AtomicI64::new(SAVED),
            admission: Admission::new(&RequestLimits {
                concurrency: options.concurrency,
                queue: 4 * options.concurrency,
                ..limits.clone()
            }),
        })
    }

    /// The vectors of texts.
    pub(crate) async fn embed(
        &self,
        texts: &[String],
        dim: usize,
        metrics: &Metrics,
    ) -> Result<(InputVectors, Usage), Refusal> {
        let _turn = self.admission.permit().await?;
        let mut values = Vec::new();
        let mut usage = Usage::default();
        let deadline = Instant::now() + self.whole;
        for part in texts.chunks(self.batch) {
            let answer = self.batch(part, deadline, metrics).await?;
            let counted = answer.usage.unwrap_or_default();
            usage.prompt_tokens += counted.prompt_tokens;
            usage.total_tokens += counted.total_tokens;
            values.extend(ordered(answer, part.len(), dim)?);
        }
        Ok((InputVectors::new(values, dim), usage))
    }

    async fn batch(
        &self,
        texts: &[String],
        deadline: Instant,
        metrics: &Metrics,
    ) -> Result<UpstreamAnswer, Refusal> {
        self.change_budget(|saved| Some((saved + EARNED).min(SAVED)));
        let mut tried = 0;
        loop {
            let outcome = tokio::time::timeout_at(deadline, self.once(texts)).await;
            let outcome = outcome.unwrap_or_else(|_| {
                Err(FailedTry {
                    problem: "it did not answer in time".into(),
                    again_after: None,
                    is_ours: false,
                })
            });
            metrics.count_upstream(outcome.is_ok());
            let failed = match outcome {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            tried += 1;
            tracing::warn!("upstream: try {tried} of {TRIES}: {}", failed.problem);
            let spend = |saved| (saved >= ONE_TRY).then(|| saved - ONE_TRY);
            let may_go_on = |_: &Duration| tried < TRIES && self.change_budget(spend);
            let Some(pause) = failed.again_after.filter(may_go_on) else {
                let problem = failed.problem;
                let message = format!("the upstream server of embeddings failed: {problem}");
                return Err(match failed.is_ours {
                    true => Refusal::bad(message),
                    false => Refusal::upstream(message),
                });
            };
            let pause = pause.max(PAUSE * 2_u32.pow(tried - 1));
            tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
        }
    }

    /// Whether the budget could be changed so.
    fn change_budget(&self, change: impl Fn(i64) -> Option<i64>) -> bool {
        let order = Ordering::Relaxed;
        self.budget.fetch_update(order, order, change).is_ok()
    }

    async fn once(&self, texts: &[String]) -> Result<UpstreamAnswer, FailedTry> {
        let lasting = |problem: String| FailedTry {
            problem,
            again_after: None,
            is_ours: false,
        };
        let passing = |problem: String| FailedTry {
            problem,
            again_after: Some(Duration::ZERO),
            is_ours: false,
        };
        let mut request = self.client.post(self.url.clone()).json(&UpstreamRequest {
            input: texts,
            model: self.model.as_deref(),
            encoding_format: "float",
        });
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        // Errors of the client name the address, which is the operator's and not the client's business.
        let mut response = request
            .send()
            .await
            .map_err(|e| passing(kind_of(&e).into()))?;
        let status = response.status();
        if !status.is_success() {
            let asked = response.headers().get(RETRY_AFTER);
            let asked = asked.and_then(|text| text.to_str().ok()?.parse().ok());
            let pause = Duration::from_secs(asked.unwrap_or(0));
            let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            return Err(FailedTry {
                problem: format!("it answered {status}"),
                again_after: (may_pass && pause <= LONGEST_PAUSE).then_some(pause),
                is_ours: [400, 413, 422].contains(&status.as_u16()),
            });
        }
        let most = ANSWER_BYTES * texts.len().max(1);
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > most => {
                    return Err(lasting(format!("its answer has more than {most} bytes")));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(passing(kind_of(&error).into())),
            }
        }
        // Numbers as text take long to read, and others wait on this thread.
        let read = tokio::task::spawn_blocking(move || serde_json::from_slice(&bytes).ok()).await;
        let wrong = || lasting("its answer is not a list of embeddings in OpenAI's form".into());
        read.ok().flatten().ok_or_else(wrong)
    }
}

/// What went wrong, without addresses.
fn kind_of(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection broke off"
    }
}

/// The vectors of an answer in the order of the texts.
fn ordered(answer: UpstreamAnswer, texts: usize, dim: usize) -> Result<Vec<f64>, Refusal> {
    let wrong = |problem: String| {
        Refusal::upstream(format!("the upstream server of embeddings gave {problem}"))
    };
    let found = answer.data.len();
    let mut places: Vec<Option<Vec<f64>>> = vec![None; texts];
    for Embedding { index, embedding } in answer.data {
        if embedding.len() != dim {
            let found = embedding.len();
            return Err(wrong(format!(
                "vectors of {found} dimensions, but the model takes {dim}"
            )));
        }
        match places.get_mut(index) {
            Some(place) if place.is_none() => *place = Some(embedding),
            _ => return Err(wrong(format!("an unexpected vector number {index}"))),
        }
    }
    let all: Option<Vec<Vec<f64>>> = places.into_iter().collect();
    let all = all.ok_or_else(|| wrong(format!("{found} vectors for {texts} texts")))?;
    Ok(all.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> UpstreamAnswer {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn answers_are_put_in_order_and_checked() {
        let both =
            r#"{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}]}"#;
        assert_eq!(ordered(answer(both), 2, 2).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        for (text, texts, problem) in [
            (both, 3, "2 vectors for 3 texts"),
            (both, 1, "unexpected vector number 1"),
            (
                r#"{"data": [{"index": 0, "embedding": [1]}]}"#,
                1,
                "1 dimensions",
            ),
            (
                r#"{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]}"#,
                2,
                "unexpected vector number 0",
            ),
        ] {
            let error = ordered(answer(text), texts, 2).unwrap_err();
            assert!(error.message.contains(problem), "{}", error.message);
        }
    }

    #[test]
    fn addresses_are_checked_at_the_start() {
        let options = |url: &str| UpstreamOptions {
            url: url.into(),
            model: None,
            key: None,
            time: Duration::from_secs(1),
            batch: 8,
            concurrency: 4,
        };
        let new = |url: &str| Upstream::new(&options(url), &RequestLimits::default());
        assert!(new("http://127.0.0.1:9/v1/").is_ok());
        for wrong in ["ftp://host/v1", "host", "https://me:secret@host/v1"] {
            assert!(new(wrong).is_err(), "{wrong}");
        }
    }
}
