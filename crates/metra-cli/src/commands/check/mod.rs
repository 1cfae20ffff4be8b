//! `metra check`: what a file holds, what might go wrong with it, and how much there is to gain.

mod judgements;

use crate::args::Common;
use crate::comparisons::{Agreement, Judge};
use crate::inputs::{Columns, ComparisonArgs, QrelsArgs, comparisons, load};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use metra::data::{Corpus, Subset};
use metra::evaluate::{EvaluationOptions, LeaveOneOut, Measure, evaluate};
use metra::experiment::HoldOut;
use metra::model::{Chain, Space};
use metra::supervision::Labels;
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;

/// Columns of measured quantities differ by more than this in spread, those of embeddings by less.
const WIDE: f64 = 100.0;
/// Rows from which the headroom is estimated.
const HEADROOM_ROWS: usize = 4_000;

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
    norms: Norms,
    zero_vectors: u64,
    negative_values: bool,
    /// Largest standard deviation of a column beside the smallest.
    spread_ratio: f64,
    duplicates: u64,
    duplicates_of_another_class: u64,
    classes: Option<Classes>,
    headroom: Vec<Headroom>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agreement: Vec<Agreed>,
}

#[derive(Serialize)]
struct Agreed {
    score: String,
    #[serde(flatten)]
    found: Agreement,
}

#[derive(Serialize)]
struct Norms {
    smallest: f64,
    mean: f64,
    largest: f64,
}

#[derive(Serialize)]
struct Classes {
    count: usize,
    smallest: usize,
    median: usize,
    largest: usize,
    of_one_row: usize,
    holdout: String,
}

#[derive(Serialize)]
struct Headroom {
    score: String,
    queries: usize,
    map: f64,
    p1: f64,
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
            norms: Norms {
                smallest: f64::INFINITY,
                mean: 0.0,
                largest: 0.0,
            },
            zero_vectors: 0,
            negative_values: false,
            spread_ratio: 1.0,
            duplicates: 0,
            duplicates_of_another_class: 0,
            classes: loaded.labels.as_ref().map(classes),
            headroom: Vec::new(),
            agreement: Vec::new(),
        };
        look(corpus, loaded.labels.as_ref(), &mut report)?;
        if let Some(labels) = &loaded.labels {
            report.headroom = headroom(corpus, labels, report.zero_vectors > 0, self.seed)?;
        }
        if self.comparisons.any() {
            let comparisons = comparisons(&self.comparisons, &loaded, &self.columns)?;
            let judge = Judge {
                corpus,
                comparisons: &comparisons,
                seed: self.seed,
            };
            for space in spaces(report.zero_vectors > 0) {
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

fn look(corpus: &dyn Corpus, labels: Option<&Labels>, report: &mut Report) -> Result<()> {
    // Rows are told apart by a 128-bit hash: 16 bytes a row, whatever the dimension.
    let mut first_seen: HashMap<u128, u64> = HashMap::new();
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        for (index, row) in rows.iter().enumerate() {
            let number = first + index as u64;
            let norm = row
                .iter()
                .map(|v| f64::from(*v).powi(2))
                .sum::<f64>()
                .sqrt();
            report.norms.smallest = report.norms.smallest.min(norm);
            report.norms.largest = report.norms.largest.max(norm);
            report.norms.mean += norm / corpus.len() as f64;
            report.zero_vectors += u64::from(norm == 0.0);
            report.negative_values |= row.iter().any(|v| *v < 0.0);
            match first_seen.entry(hash(row)) {
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(number);
                }
                std::collections::hash_map::Entry::Occupied(slot) => {
                    report.duplicates += 1;
                    if let Some(labels) = labels {
                        let (a, b) = (*slot.get() as usize, number as usize);
                        report.duplicates_of_another_class +=
                            u64::from(labels.of()[a] != labels.of()[b]);
                    }
                }
            }
        }
        Ok(())
    })?;
    let spread = metra::internal::spread(corpus)?;
    let deviations = (spread.deviation.into_iter()).filter(|deviation| *deviation > 0.0);
    let ends = (f64::INFINITY, 0.0_f64);
    let (low, high) = deviations.fold(ends, |(low, high), d| (low.min(d), high.max(d)));
    if high > 0.0 {
        report.spread_ratio = high / low;
    }
    Ok(())
}

/// Two independent FNV-1a hashes over the bits of the values.
fn hash(row: &[f32]) -> u128 {
    let mut halves = [0xcbf2_9ce4_8422_2325_u64, 0x6c62_272e_07bb_0142];
    for value in row {
        // −0 and 0 are one value.
        let bits = u64::from((value + 0.0).to_bits());
        halves[0] = (halves[0] ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
        halves[1] = (halves[1] ^ bits.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    u128::from(halves[0]) << 64 | u128::from(halves[1])
}

fn classes(labels: &Labels) -> Classes {
    let sizes = || (0..labels.classes()).map(|class| labels.members(class as u32).len());
    Classes {
        count: labels.classes(),
        smallest: sizes().min().unwrap_or(0),
        median: labels.median_class_size(),
        largest: sizes().max().unwrap_or(0),
        of_one_row: labels.singletons(),
        holdout: HoldOut::for_labels(labels).to_string(),
    }
}

/// The scores that vectors as they are can be compared by.
fn spaces(zero_vectors: bool) -> &'static [Space] {
    if zero_vectors {
        &[Space::SquaredL2]
    } else {
        &[Space::SquaredL2, Space::Cosine]
    }
}

/// How well the vectors rank as they are, on a sample of whole classes.
fn headroom(
    corpus: &dyn Corpus,
    labels: &Labels,
    zero_vectors: bool,
    seed: u64,
) -> Result<Vec<Headroom>> {
    let mut order: Vec<u32> = (0..labels.classes() as u32).collect();
    metra::internal::Stream::new(seed, "headroom", 0).shuffle(&mut order);
    let mut rows: Vec<u64> = Vec::new();
    for class in order {
        let members = labels.members(class);
        if !rows.is_empty() && rows.len() + members.len() > HEADROOM_ROWS {
            continue;
        }
        rows.extend(members.iter().take(HEADROOM_ROWS).map(|m| u64::from(*m)));
    }
    rows.sort_unstable();
    let part = labels.select(&rows)?;
    let sample = Subset::new(corpus, rows)?;
    let options = EvaluationOptions {
        measures: vec![Measure::AveragePrecision, Measure::PrecisionAt(1)],
        ..EvaluationOptions::default()
    };
    let mut found = Vec::new();
    for space in spaces(zero_vectors) {
        let result = evaluate(*space, &sample, &sample, &LeaveOneOut(&part), &options)?;
        if let (Some(map), Some(p1)) = (
            result.mean(Measure::AveragePrecision),
            result.mean(Measure::PrecisionAt(1)),
        ) {
            let queries = result.queries.len();
            found.push(Headroom {
                score: space.to_string(),
                queries,
                map,
                p1,
            });
        }
    }
    Ok(found)
}

fn show(report: &Report) -> Result<()> {
    let shape = format!(
        "{} × {} {}",
        print::count(report.rows),
        report.dim,
        report.element_type
    );
    print::fact("vectors", &shape)?;
    let norms = &report.norms;
    print::fact(
        "norms",
        &format!(
            "{:.4} to {:.4}, mean {:.4}",
            norms.smallest, norms.largest, norms.mean
        ),
    )?;
    if report.zero_vectors > 0 {
        let count = print::count(report.zero_vectors);
        print::fact(
            "zero",
            &format!("{count} vectors of length 0: cosine cannot be used"),
        )?;
    }
    if report.duplicates > 0 {
        let another = match report.duplicates_of_another_class {
            0 => String::new(),
            n => format!(", {} of them under another label", print::count(n)),
        };
        let count = print::count(report.duplicates);
        print::fact(
            "duplicates",
            &format!("{count} rows equal an earlier one{another}"),
        )?;
    }
    if let Some(classes) = &report.classes {
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
    for base in &report.headroom {
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
    if report.spread_ratio > WIDE {
        print::fact(
            "hint",
            &format!(
                "columns differ {:.0}-fold in spread, so that the widest decide: try --tune \
                 prepare=none,scale",
                report.spread_ratio
            ),
        )?;
    }
    if !report.negative_values {
        print::fact(
            "hint",
            "no value is negative: try --tune prepare=none,sqrt if these are histograms",
        )?;
    }
    Ok(())
}
