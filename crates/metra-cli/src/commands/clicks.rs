//! `metra clicks`: from a click log to judgements that can be trained on.

use crate::args::Common;
use crate::interrupt;
use crate::print;
use crate::progress::Reporter;
use anyhow::Result;
use clap::Args;
use metra::supervision::clicks::{ClickOptions, ClickedRelevance, Source};
use metra_files::{Error, read_clicks, write_qrels};
use serde::Serialize;
use std::path::PathBuf;

/// Turn a click log into graded judgements, corrected for the position of what was clicked.
///
/// The probability that a position is examined is estimated from items that were shown at several
/// positions for the same query; relevance is then clicks over examinations. Without such items 1 /
/// position is assumed.
#[derive(Args)]
pub(crate) struct Clicks {
    /// The log: JSON lines, or query, shown and clicked separated by tabs or commas
    log: PathBuf,
    /// Where to write the judgements (TREC: query 0 item grade per line)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Leave out queries with fewer sessions
    #[arg(long, value_name = "N", default_value_t = ClickOptions::default().min_sessions)]
    min_sessions: u64,
    /// Lower bounds of relevance for grades 1, 2, …, comma-separated (default: 0.1,0.25,0.5)
    #[arg(long, value_name = "VALUES", value_delimiter = ',')]
    grades: Vec<f64>,
    /// Prior examinations, at the log's mean relevance, that are added to every pair
    #[arg(long, value_name = "LOOKS", default_value_t = ClickOptions::default().smoothing)]
    smoothing: f64,
    /// Use position^-ETA as the examination probability instead of estimating it from the log
    #[arg(long, value_name = "ETA")]
    eta: Option<f64>,
}

#[derive(Serialize)]
struct Report {
    sessions: u64,
    clicks: u64,
    queries: usize,
    queries_left_out: usize,
    sessions_left_out: u64,
    /// Chance that each position is looked at, the first being 1.
    looks: Vec<f64>,
    looks_from: String,
    mean_relevance: f64,
    /// Pairs of grade 0, 1, …
    grades: Vec<usize>,
    output: PathBuf,
}

impl Clicks {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let mut options = ClickOptions {
            min_sessions: self.min_sessions,
            smoothing: self.smoothing,
            eta: self.eta,
            ..ClickOptions::default()
        };
        if !self.grades.is_empty() {
            options.thresholds.clone_from(&self.grades);
        }
        let mut reporter = Reporter::new();
        reporter.start(&format!("read {}", self.log.display()));
        let counts = read_clicks(&self.log, &mut |line| {
            if interrupt::is_stopped() {
                return Err(Error::Metra {
                    path: self.log.clone(),
                    source: metra::Error::Interrupted,
                });
            }
            reporter.advance(line, None, || "lines".into());
            Ok(())
        })?;
        reporter.finish();
        let found = counts.relevance(&options)?;
        if found.examination.source == Source::Assumed {
            tracing::warn!(
                "no item stood at several positions of one query often enough to see how looks \
                 fall: 1 / position is assumed (or give --eta)"
            );
        }
        let pairs = found.pairs.iter();
        write_qrels(
            &self.output,
            pairs.map(|pair| (pair.query.as_str(), pair.item.as_str(), pair.grade)),
        )?;
        let report = self.report(&found, counts.clicks(), options.thresholds.len());
        if common.json {
            return print::json(&report);
        }
        report.print(&options.thresholds)
    }

    fn report(&self, found: &ClickedRelevance, clicks: u64, most: usize) -> Report {
        let mut grades = vec![0; most + 1];
        for pair in &found.pairs {
            grades[pair.grade as usize] += 1;
        }
        Report {
            sessions: found.sessions,
            clicks,
            queries: found.queries,
            queries_left_out: found.queries_left_out,
            sessions_left_out: found.sessions_left_out,
            looks: found.examination.looks().to_vec(),
            looks_from: match found.examination.source {
                Source::Log => "the log".into(),
                Source::LogAndPower { positions, eta } => {
                    format!("the log for {positions} positions, position^-{eta:.2} for the others")
                }
                Source::Assumed => "assumed: 1 / position".into(),
                Source::Given => "given".into(),
            },
            mean_relevance: found.mean,
            grades,
            output: self.output.clone(),
        }
    }
}

impl Report {
    fn print(&self, thresholds: &[f64]) -> Result<()> {
        let count = |number: usize| print::count(number as u64);
        let left_out = match self.queries_left_out {
            0 => String::new(),
            queries => format!(
                "; left out for too few sessions: {} of the queries, {} of the sessions",
                count(queries),
                print::count(self.sessions_left_out)
            ),
        };
        print::fact(
            "log",
            &format!(
                "{} sessions of {} queries, {} clicks{left_out}",
                print::count(self.sessions),
                count(self.queries),
                print::count(self.clicks)
            ),
        )?;
        let shown: Vec<String> = (self.looks.iter().take(10))
            .map(|look| format!("{look:.2}"))
            .collect();
        let more = if self.looks.len() > 10 { " …" } else { "" };
        let from = &self.looks_from;
        print::fact("looks", &format!("{}{more} (from {from})", shown.join(" ")))?;
        let clicked = format!("{:.3} of what is looked at is clicked", self.mean_relevance);
        print::fact("relevance", &clicked)?;
        for (grade, pairs) in self.grades.iter().enumerate() {
            let from = match grade.checked_sub(1).and_then(|place| thresholds.get(place)) {
                Some(least) => format!("relevance at least {least} in nine cases of ten"),
                None => "shown and not wanted".to_owned(),
            };
            print::fact(
                &format!("grade {grade}"),
                &format!("{} pairs, {from}", count(*pairs)),
            )?;
        }
        print::fact("written", &self.output.display().to_string())
    }
}
