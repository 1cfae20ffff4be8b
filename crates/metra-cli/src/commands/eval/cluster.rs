//! `metra eval --cluster`: exact measures of queries against a table that is not read into memory.

use super::{Eval, print_seen};
use crate::args::{Common, Place};
use crate::cluster_args::{describe, say};
use crate::print;
use anyhow::{Result, bail, ensure};
use metra::data::BorrowedCorpus;
use metra::evaluate::{Bootstrap, Comparison, Evaluation, EvaluationOptions, Measure, Ties};
use metra::model::{Model, SeenRows, Space};
use metra_engine::Ranker;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

#[derive(Serialize)]
struct Done {
    queries: usize,
    skipped_queries: u64,
    /// How many of the queries the model learned from, where it keeps that.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_rows: Option<SeenRows>,
    items: u64,
    measures: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<print::Row>,
    seconds: f64,
}

impl Eval {
    /// Judge where the items lie.
    pub(crate) fn on_cluster(&self, place: &Place, common: &Common) -> Result<()> {
        let began = Instant::now();
        let (Some(path), Some(data)) = (&self.model, &self.data) else {
            bail!("name a model file (or `euclid` or `cosine`) and a table");
        };
        let Some(label) = &self.columns.label else {
            bail!("--cluster judges by classes: name their column with --label");
        };
        self.columns.refuse_label_sets()?;
        ensure!(
            self.protocol.is_none() && self.splits.is_none() && self.rerank.is_none(),
            "--protocol, --splits and --rerank work on one machine"
        );
        ensure!(
            self.ties == Ties::Expected && !self.comparisons.any() && self.qrels.qrels.is_none(),
            "--cluster judges by classes, with expected values over ties"
        );
        let plain = path.to_str().and_then(|name| name.parse::<Space>().ok());
        let model = match plain {
            Some(_) => None,
            None => Some(Model::load(path)?),
        };
        let ranker = match &model {
            Some(model) => Ranker::Model(model),
            None => Ranker::Plain(plain.unwrap_or(Space::SquaredL2)),
        };
        let engine = self.cluster.engine(place, common)?;
        let address = data.display().to_string();
        let asking = match (&self.query_table, self.gallery_where.is_empty()) {
            (Some(queries), _) => Some((queries.clone(), &self.filters)),
            (None, false) => Some((address.clone(), &self.filters)),
            (None, true) => None,
        };
        let of_items = match (&self.query_table, self.gallery_where.is_empty()) {
            (_, false) => &self.gallery_where[..],
            (Some(_), true) => &[],
            (None, true) => &self.filters[..],
        };
        let cut = self.cluster.cut();
        let items = self.cluster.open(&engine, &address, cut, of_items)?;
        let queries = match &asking {
            Some((address, filters)) => Some(self.cluster.open(&engine, address, cut, filters)?),
            None => None,
        };
        say(common, "items", &describe(&items))?;
        let vectors = self.columns.vector.as_deref();
        let judgement = engine.judgement(items, queries.as_ref(), vectors, label)?;
        let options = EvaluationOptions {
            measures: match self.measures.is_empty() {
                true => Measure::DEFAULT.to_vec(),
                false => self.measures.clone(),
            },
            gain: self.gain,
            ..EvaluationOptions::default()
        };
        let learned = judgement.evaluate(ranker, &options)?;
        let base = match self.base {
            Some(space) => Some(judgement.evaluate(Ranker::Plain(space), &options)?),
            None => None,
        };
        let compared = match &base {
            Some(base) => self.compared_with(base, &learned)?,
            None => Vec::new(),
        };
        let seen_rows = match &model {
            Some(model) => model.seen_rows(&BorrowedCorpus::new(judgement.queries())?)?,
            None => None,
        };
        let done = Done {
            queries: learned.queries.len(),
            skipped_queries: learned.skipped,
            seen_rows,
            items: judgement.items(),
            measures: means(&learned),
            comparison: print::rows(&compared),
            seconds: began.elapsed().as_secs_f64(),
        };
        if common.json {
            return print::json(&done);
        }
        let fact = format!("{} ({} skipped)", done.queries, done.skipped_queries);
        say(common, "queries", &fact)?;
        print_seen(done.seen_rows)?;
        match self.base {
            Some(base) => print::comparison_table("measure", &base.to_string(), &compared)?,
            None => {
                for (measure, value) in &done.measures {
                    say(common, measure, &format!("{value:.4}"))?;
                }
            }
        }
        say(common, "time", &format!("{:.1} s", done.seconds))
    }

    fn compared_with(
        &self,
        base: &Evaluation,
        learned: &Evaluation,
    ) -> Result<Vec<(Measure, Comparison)>> {
        let bootstrap = Bootstrap {
            seed: self.seed,
            ..Bootstrap::default()
        };
        let measures = learned.values.iter().map(|(measure, _)| *measure);
        measures
            .map(|measure| Ok((measure, base.compare(learned, measure, &bootstrap)?)))
            .collect()
    }
}

fn means(evaluation: &Evaluation) -> BTreeMap<String, f64> {
    let measures = evaluation.values.iter();
    let means = measures.map(|(measure, _)| {
        let mean = evaluation.mean(*measure).unwrap_or(f64::NAN);
        (measure.to_string(), mean)
    });
    means.collect()
}
