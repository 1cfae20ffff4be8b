//! `metra calibrate`: the dissimilarity at which same ends, for a rate of false matches.

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::need_labels;
use crate::inputs::{in_file, load, model_groups};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use metra::evaluate::{Bootstrap, RocPoint, verification};
use metra::internal::fingerprint;
use metra::model::{Embedding, MatchDecision, Model, SeenRows, Side, embed_corpus};
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::path::PathBuf;

/// Rates shown beside the one asked for, as far as there are pairs to measure them.
const SHOWN: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5];
/// False matches below which a rate is more chance than measure.
const ENOUGH: f64 = 10.0;

/// Choose the match threshold for a false match rate, and store it in a copy of the model.
///
/// Measures all pairs of rows: those of one label should match, those of two should not. Give rows
/// that the model was not trained on, of identities it has not seen where it will meet new ones:
/// training has driven its own identities apart, so that on them the threshold comes out too loose.
#[derive(Args)]
pub(crate) struct Calibrate {
    /// The model file
    model: PathBuf,
    /// Vectors with identities, not those trained on (.parquet, .npy, .csv, .jsonl, …)
    data: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Share of the pairs of two identities that may match
    #[arg(long, value_name = "RATE", default_value_t = 1e-3)]
    fmr: f64,
    /// Seed of the interval's resampling
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write the calibrated model
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Calibrated {
    rows: u64,
    identities: usize,
    same: u64,
    different: u64,
    trained_on: bool,
    /// How many of the rows the model learned from, where it keeps that.
    seen_rows: Option<SeenRows>,
    curve: Vec<Point>,
    decision: MatchDecision,
}

#[derive(Serialize)]
struct Point {
    asked: f64,
    threshold: f64,
    false_match_rate: f64,
    true_match_rate: f64,
    low: f64,
    high: f64,
}

impl Point {
    fn new(found: &RocPoint) -> Self {
        Point {
            asked: found.asked,
            threshold: f64::from(found.threshold),
            false_match_rate: found.false_match_rate,
            true_match_rate: found.true_match_rate,
            low: found.low,
            high: found.high,
        }
    }
}

impl Calibrate {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(
            self.fmr > 0.0 && self.fmr < 1.0,
            "--fmr must be between 0 and 1, but is {}",
            self.fmr
        );
        let model = Model::load(&self.model)?;
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let loaded = load(&self.data, &self.columns, &[], &self.filters, rule, common)?;
        let labels = need_labels(&loaded)?;
        let corpus = loaded.table.corpus.as_ref();
        let data = fingerprint(corpus)?;
        let seen_rows = model.seen_rows(corpus)?;
        let leak = seen_rows.filter(SeenRows::is_leak);
        if let Some(seen) = &leak {
            tracing::warn!(
                "{}: {} by the model, which has driven their identities apart: on new ones expect more \
                 false and fewer true matches than is said here",
                self.data.display(),
                print::seen_rows(seen)
            );
        }
        let groups = model_groups(&model, &loaded)?;
        let embed = |side| {
            let storage = common.storage();
            embed_corpus(&model.chain, side, corpus, groups.as_ref(), &storage)
                .map_err(|e| in_file(e, &loaded))
        };
        let items = embed(Side::Item)?;
        let two_sides = model.chain.has_two_sides();
        let queries = two_sides.then(|| embed(Side::Query)).transpose()?;
        // Labels say how many pairs there are, and so which rates can be shown at all.
        let different = labels.len() as f64 * (labels.len() as f64 - 1.0) / 2.0;
        let mut rates: Vec<f64> = (SHOWN.into_iter())
            .filter(|rate| *rate != self.fmr && rate * different >= ENOUGH)
            .collect();
        rates.push(self.fmr);
        rates.sort_by(|a, b| b.total_cmp(a));
        let bootstrap = Bootstrap {
            seed: self.seed,
            ..Bootstrap::default()
        };
        let found = verification(
            model.chain.space(),
            queries.as_ref().map(|q| q.corpus()),
            items.corpus(),
            labels,
            &rates,
            &bootstrap,
        )?;
        let point = rates.iter().position(|rate| *rate == self.fmr).unwrap_or(0);
        let point = &found.points[point];
        if (self.fmr * found.different as f64) < ENOUGH {
            tracing::warn!(
                "{} pairs of two identities are too few to measure a rate of {:e}: {} of them match",
                print::count(found.different),
                self.fmr,
                point.false_matches
            );
        }
        let decision = MatchDecision {
            threshold: f64::from(point.threshold),
            asked: point.asked,
            false_match_rate: point.false_match_rate,
            true_match_rate: point.true_match_rate,
            low: point.low,
            high: point.high,
            same: found.same,
            different: found.different,
            data,
        };
        let model = model.with_decision(decision.clone())?;
        if let Some(path) = &self.output {
            model.save(path)?;
        }
        let shown = Calibrated {
            rows: corpus.len(),
            identities: found.identities,
            same: found.same,
            different: found.different,
            trained_on: leak.is_some(),
            seen_rows,
            curve: found.points.iter().map(Point::new).collect(),
            decision,
        };
        if common.json {
            return print::json(&shown);
        }
        self.print(&shown)
    }

    fn print(&self, shown: &Calibrated) -> Result<()> {
        let (rows, identities) = (print::count(shown.rows), shown.identities);
        print::fact(
            "pairs",
            &format!("of {rows} rows, {identities} identities have more than one"),
        )?;
        print::line("false matches   threshold      true matches   95 % interval")?;
        for point in &shown.curve {
            print::line(&format!(
                "{:<16.3e}{:<15.7}{:<15.4}[{:.4}, {:.4}]",
                point.asked, point.threshold, point.true_match_rate, point.low, point.high
            ))?;
        }
        for text in print::decision(&shown.decision) {
            print::fact("decision", &text)?;
        }
        match &self.output {
            Some(path) => print::fact("model", &path.display().to_string()),
            None => print::fact("model", "not written: name a file with -o"),
        }
    }
}
