//! `metra check`: what a file holds, what might go wrong with it, and how much there is to gain.

mod judgements;

use crate::args::Common;
use crate::comparisons::{Agreement, Judge};
use crate::inputs::{Columns, ComparisonArgs, QrelsArgs, comparisons, load};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use metra::experiment::DataSummary;
use metra::model::Chain;
use metra::supervision::Supervision;
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::path::PathBuf;

/// Look at a file of vectors: shape, norms, duplicates, classes, headroom of the base. With
/// --queries, --items and --qrels: what fits together and what is missing.
#[derive(Args)]
pub(crate) struct Check {
    /// The vectors (.parquet, .npy, .csv, .jsonl, …); or give --queries, --items and --qrels
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    qrels: QrelsArgs,
    #[command(flatten)]
    comparisons: ComparisonArgs,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Seed of the rows that the headroom is estimated from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Report {
    rows: u64,
    dim: usize,
    element_type: String,
    notes: Vec<String>,
    /// What is known of the labels, where rows have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<String>,
    #[serde(flatten)]
    summary: DataSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agreement: Vec<Agreed>,
}

#[derive(Serialize)]
struct Agreed {
    score: String,
    #[serde(flatten)]
    found: Agreement,
}

impl Check {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let Some(data) = &self.data else {
            return judgements::check(&self.qrels, &self.columns, self.seed, common);
        };
        ensure!(
            self.qrels.qrels.is_none(),
            "--qrels is checked with --queries and --items"
        );
        let loaded = load(
            data,
            &self.columns,
            &[],
            &self.filters,
            NarrowingRule::Judge,
            common,
        )?;
        let corpus = loaded.table.corpus.as_ref();
        let mut report = Report {
            rows: corpus.len(),
            dim: corpus.dim(),
            element_type: loaded.table.element_type.to_string(),
            notes: loaded.table.notes.clone(),
            labels: (loaded.label_sets.as_ref())
                .map(|sets| Supervision::LabelSets(sets.clone()).describe()),
            summary: DataSummary::new(corpus, loaded.labels.as_ref(), self.seed)?,
            agreement: Vec::new(),
        };
        if self.comparisons.any() {
            let comparisons = comparisons(&self.comparisons, &loaded, &self.columns)?;
            let judge = Judge {
                corpus,
                comparisons: &comparisons,
                seed: self.seed,
            };
            for space in report.summary.scores() {
                let found = judge.judge(&Chain::identity(corpus.dim(), *space), None, None)?;
                let score = space.to_string();
                report
                    .agreement
                    .extend(found.into_iter().map(|found| Agreed {
                        score: score.clone(),
                        found,
                    }));
            }
        }
        if common.json {
            return print::json(&report);
        }
        show(&report)
    }
}

fn show(report: &Report) -> Result<()> {
    let shape = format!(
        "{} × {} {}",
        print::count(report.rows),
        report.dim,
        report.element_type
    );
    print::fact("vectors", &shape)?;
    if let Some(labels) = &report.labels {
        print::fact("labels", labels)?;
    }
    let summary = &report.summary;
    let norms = &summary.norms;
    print::fact(
        "norms",
        &format!(
            "{:.4} to {:.4}, mean {:.4}",
            norms.smallest, norms.largest, norms.mean
        ),
    )?;
    if summary.zero_vectors > 0 {
        let count = print::count(summary.zero_vectors);
        print::fact(
            "zero",
            &format!("{count} vectors of length 0: cosine cannot be used"),
        )?;
    }
    if summary.duplicates > 0 {
        let another = match summary.duplicates_of_another_class {
            0 => String::new(),
            n => format!(", {} of them under another label", print::count(n)),
        };
        let count = print::count(summary.duplicates);
        print::fact(
            "duplicates",
            &format!("{count} rows equal an earlier one{another}"),
        )?;
    }
    if let Some(classes) = &summary.classes {
        let singles = match classes.of_one_row {
            0 => String::new(),
            n => format!(
                "; {} of one row, which have nothing to find",
                print::count(n as u64)
            ),
        };
        print::fact(
            "classes",
            &format!(
                "{} of {} to {} rows, median {}{singles}",
                print::count(classes.count as u64),
                classes.smallest,
                classes.largest,
                classes.median
            ),
        )?;
        print::fact(
            "hold out",
            &format!("{} (what train does by default)", classes.holdout),
        )?;
    }
    for base in &summary.headroom {
        let text = format!(
            "map {:.4}, p@1 {:.4} as they are ({} queries): at most {:+.4} and {:+.4} to gain",
            base.map,
            base.p1,
            print::count(base.queries as u64),
            1.0 - base.map,
            1.0 - base.p1
        );
        print::fact(&base.score, &text)?;
    }
    for Agreed { score, found } in &report.agreement {
        print::fact(score, &format!("{}: {}", found.kind, found.words()))?;
    }
    for (preparation, reason) in summary.hints() {
        print::fact(
            "hint",
            &format!("{reason}: try --tune prepare=none,{preparation}"),
        )?;
    }
    Ok(())
}
