//! Counters and gauges in Prometheus' form.

use crate::canary::CanaryReading;
use crate::drift::Drift;
use crate::models::Catalogue;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Upper ends of the histogram of times, in seconds: a mapped vector takes some 100 µs, a search of many some seconds.
const TIMES: [f64; 14] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfModel {
    model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelFacts {
    model: String,
    digest: String,
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// All metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    times: Family<OfRoute, Histogram, fn() -> Histogram>,
    refusals: Family<OfReason, Counter>,
    rows: Family<OfModel, Counter>,
    models: Family<ModelFacts, Gauge>,
    reloads: Family<Outcome, Counter>,
    upstream: Family<Outcome, Counter>,
    canary_queries: Family<OfModel, Gauge>,
    canary_recall: Family<OfModel, Fraction>,
    canary_agreement: Family<OfModel, Fraction>,
    canary_time: Family<OfModel, Fraction>,
    drift_rows: Family<OfModel, Gauge>,
    drift_mean_shift: Family<OfModel, Fraction>,
    drift_norm_ratio: Family<OfModel, Fraction>,
    drift_share_outside: Family<OfModel, Fraction>,
    running: Gauge,
    waiting: Gauge,
    connections: Gauge,
    memory: Gauge,
    descriptors: Gauge,
}

/// A gauge of numbers that are not whole.
type Fraction = Gauge<f64, AtomicU64>;

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("metra");
        let times = Family::new_with_constructor((|| Histogram::new(TIMES)) as fn() -> Histogram);
        let help = "Time from the head of a request to its answer";
        registry.register_with_unit("request_duration", help, Unit::Seconds, times.clone());
        Metrics {
            times,
            requests: registered(&mut registry, "requests", "Requests that were answered"),
            refusals: registered(
                &mut registry,
                "refusals",
                "Requests that were not served, by the code of their error",
            ),
            rows: registered(
                &mut registry,
                "rows",
                "Vectors that were mapped or searched for",
            ),
            models: registered(&mut registry, "model_info", "Models that are served"),
            reloads: registered(
                &mut registry,
                "reloads",
                "Times that models were loaded again",
            ),
            upstream: registered(
                &mut registry,
                "upstream_requests",
                "Requests to the upstream server of embeddings",
            ),
            canary_queries: registered(
                &mut registry,
                "canary_queries",
                "Judged queries with a relevant item",
            ),
            canary_recall: registered(
                &mut registry,
                "canary_recall",
                "Of the relevant items that the first answers to judged queries could hold, the share that they held",
            ),
            canary_agreement: registered(
                &mut registry,
                "canary_agreement",
                "Of the nearest items by the full metric, the share that was found for judged queries",
            ),
            canary_time: registered(
                &mut registry,
                "canary_timestamp_seconds",
                "When judged queries were last ranked",
            ),
            drift_rows: registered(
                &mut registry,
                "drift_rows",
                "Queries that the gauges of drift are about",
            ),
            drift_mean_shift: registered(
                &mut registry,
                "drift_mean_shift",
                "Distance of the mean of mapped queries from that of the reference, in standard deviations",
            ),
            drift_norm_ratio: registered(
                &mut registry,
                "drift_norm_ratio",
                "Mean length of queries, divided by that of the reference",
            ),
            drift_share_outside: registered(
                &mut registry,
                "drift_share_outside",
                "Share of queries outside the ellipsoid that holds 99 % of the reference",
            ),
            running: registered(
                &mut registry,
                "requests_running",
                "Requests that are worked on",
            ),
            waiting: registered(&mut registry, "requests_waiting", "Requests that wait"),
            connections: registered(&mut registry, "connections", "Open connections"),
            memory: registered(
                &mut registry,
                "resident_memory_bytes",
                "Memory of the process that is not swapped out",
            ),
            descriptors: registered(
                &mut registry,
                "open_descriptors",
                "Open files and connections of the process",
            ),
            registry,
        }
    }

    /// Count an answer.
    pub(crate) fn count_answer(&self, route: &str, status: u16, time: Duration) {
        let route = route.to_owned();
        let answered = Answered {
            route: route.clone(),
            status: status.into(),
        };
        self.requests.get_or_create(&answered).inc();
        let times = self.times.get_or_create(&OfRoute { route });
        times.observe(time.as_secs_f64());
    }

    pub(crate) fn count_refusal(&self, reason: &'static str) {
        let reason = reason.to_owned();
        self.refusals.get_or_create(&OfReason { reason }).inc();
    }

    pub(crate) fn count_rows(&self, model: &str, rows: usize) {
        let model = model.to_owned();
        let counter = self.rows.get_or_create(&OfModel { model });
        counter.inc_by(rows as u64);
    }

    pub(crate) fn count_reload(&self, is_good: bool) {
        self.reloads.get_or_create(&outcome(is_good)).inc();
    }

    pub(crate) fn count_upstream(&self, is_good: bool) {
        self.upstream.get_or_create(&outcome(is_good)).inc();
    }

    /// A connection, until what is returned is dropped.
    pub(crate) fn connected(&self) -> Connected {
        self.connections.inc();
        Connected(self.connections.clone())
    }

    /// Say what came of ranking a model's judged queries.
    pub(crate) fn show_canary(&self, model: &str, reading: CanaryReading) {
        let of = OfModel {
            model: model.to_owned(),
        };
        self.canary_queries
            .get_or_create(&of)
            .set(reading.queries as i64);
        self.canary_recall.get_or_create(&of).set(reading.recall);
        self.canary_agreement
            .get_or_create(&of)
            .set(reading.agreement);
        self.canary_time.get_or_create(&of).set(reading.time);
    }

    fn show_drift(&self, catalogue: &Catalogue) {
        for served in catalogue.all() {
            let Some(reading) = served.drift.as_ref().and_then(Drift::reading) else {
                continue;
            };
            let of = OfModel {
                model: served.id.clone(),
            };
            self.drift_rows.get_or_create(&of).set(reading.rows as i64);
            self.drift_mean_shift
                .get_or_create(&of)
                .set(reading.mean_shift);
            self.drift_norm_ratio
                .get_or_create(&of)
                .set(reading.norm_ratio);
            self.drift_share_outside
                .get_or_create(&of)
                .set(reading.share_outside);
        }
    }

    /// Say which models are served. What was said of earlier ones is no longer true.
    pub(crate) fn show_models(&self, catalogue: &Catalogue, earlier: &Catalogue) {
        for served in earlier.all().filter(|served| !catalogue.holds(served)) {
            let of = OfModel {
                model: served.id.clone(),
            };
            self.rows.remove(&of);
            self.canary_queries.remove(&of);
            self.drift_rows.remove(&of);
            let fractions = [
                &self.canary_recall,
                &self.canary_agreement,
                &self.canary_time,
                &self.drift_mean_shift,
                &self.drift_norm_ratio,
                &self.drift_share_outside,
            ];
            for fraction in fractions {
                fraction.remove(&of);
            }
        }
        self.models.clear();
        for served in catalogue.all() {
            let facts = ModelFacts {
                model: served.id.clone(),
                digest: served.digest.clone(),
                method: served.model.origin.method.clone(),
            };
            self.models.get_or_create(&facts).set(1);
        }
    }

    /// All of them as text, with so many requests that are worked on and that wait.
    pub(crate) fn text(
        &self,
        catalogue: &Catalogue,
        (running, waiting): (usize, usize),
    ) -> Result<String, fmt::Error> {
        self.show_drift(catalogue);
        self.running.set(running as i64);
        self.waiting.set(waiting as i64);
        if let Some((memory, descriptors)) = process() {
            self.memory.set(memory);
            self.descriptors.set(descriptors);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// A metric that the registry knows by a name.
fn registered<
    M: Default + Clone + EncodeMetric + TypedMetric + Send + Sync + fmt::Debug + 'static,
>(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn outcome(is_good: bool) -> Outcome {
    let outcome = if is_good { "success" } else { "failure" };
    Outcome { outcome }
}

/// Counts an open connection.
pub(crate) struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Resident bytes and open descriptors, where the system shows them as Linux does.
fn process() -> Option<(i64, i64)> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: i64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let descriptors = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some((kib * 1024, descriptors as i64))
}
