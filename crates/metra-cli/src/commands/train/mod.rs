//! `metra train`: choose on a validation part, judge once on a test part, save the model.

#[cfg(feature = "cluster")]
mod away;
mod page;
mod report;

use self::page::Kept;
pub(crate) use self::report::describe;
use self::report::{PooledReport, Report, SplitReport, print_pooled, print_split, print_summary};
use crate::args::{Away, Common};
use crate::judging::JudgedBy;
use crate::learning::Learning;
use crate::load::Loaded;
use crate::ordered::{ordered_rows, table};
use crate::progress::Reporter;
use crate::splitting::Splitting;
use crate::subject::{Read, Subject};
use crate::{STOP, print};
use anyhow::{Result, ensure};
use clap::Args;
use metra::evaluate::Measure;
use metra::learn::registry;
use metra::metric::{Embedding, Model, Space};
use metra::study::cost::{Timing, product_seconds};
use metra::study::{Chosen, Fitted, HoldOut, Parts, Study, Training, Verdicts, pool, summarise};
use metra::supervision::Supervision;
use std::path::PathBuf;

/// Learn a metric, choose its settings on a validation part and judge it on a test part.
#[derive(Args)]
pub(crate) struct Train {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    learning: Learning,
    #[command(flatten)]
    splitting: Splitting,
    #[command(flatten)]
    judged_by: JudgedBy,
    /// Train on everything with the chosen settings before saving
    #[arg(long)]
    refit: bool,
    /// State the CPU time of one fit with the chosen settings
    #[arg(long)]
    timing: bool,
    /// Write a report: one HTML file with tables, curves and queries won and lost
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    away: Away,
    /// Rounds of a method that takes steps: shards learn alone and are averaged after each
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        help_heading = "Tables elsewhere"
    )]
    rounds: u64,
    /// Rows of a random sample that all shards learn from beside their own
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        help_heading = "Tables elsewhere"
    )]
    common: usize,
    /// File that keeps the state after every round; a run that was killed goes on from there
    #[arg(long, value_name = "FILE", help_heading = "Tables elsewhere")]
    checkpoint: Option<PathBuf>,
}

/// What one split gave.
struct SplitOutcome {
    report: SplitReport,
    verdicts: Option<Verdicts>,
    chosen: Chosen,
    fitted: Fitted,
    base: Space,
    cpu_seconds: f64,
}

impl Train {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        #[cfg(not(feature = "cluster"))]
        self.away.refuse()?;
        #[cfg(feature = "cluster")]
        if let Some(place) = &self.away.cluster {
            return self.away(place, common);
        }
        ensure!(
            self.output.is_none() || self.splitting.is_single(),
            "-o saves one model: with several splits name one with --split, or leave -o out"
        );
        registry::find(&self.learning.method)?;
        let extra = self.splitting.columns();
        (self.subject).with(&extra, common, |read| self.study(read, common))
    }

    fn study(&self, read: &Read<'_>, common: &Common) -> Result<()> {
        let (material, items) = (&read.material, read.items);
        let mut study = (self.learning).study(read, &self.judged_by, self.splitting.seed)?;
        let kind = self.splitting.kind(read);
        let splits = self.splitting.parts(read, kind)?;
        let folds = self.splitting.folds.is_some();
        let mut report = Report {
            data: describe(material, items),
            method: self.learning.method.clone(),
            holdout: kind.to_string(),
            protocol: study.judging.protocol.to_string(),
            splits: Vec::new(),
            summary: Vec::new(),
            pooled: None,
            model: self.output.clone(),
        };
        if !common.json {
            print::fact("data", &report.data)?;
        }
        let name = if folds { "fold" } else { "split" };
        let mut verdicts = Vec::new();
        let mut kept = Vec::new();
        let mut last = None;
        for (number, (parts, seed)) in splits.iter().enumerate() {
            study.seed = *seed;
            study.judging.seed = *seed;
            let mut outcome = self.one_split(&study, parts, kind, common)?;
            if !common.json {
                if splits.len() > 1 {
                    print::line(&format!("\n{name} {} of {}", number + 1, splits.len()))?;
                }
                print_split(&outcome, kind, study.criterion, folds)?;
            }
            report.splits.push(outcome.report);
            verdicts.extend(outcome.verdicts.take());
            kept.push(Kept {
                chosen: outcome.chosen.clone(),
                facts: outcome.fitted.facts.clone(),
                base: outcome.base,
                cpu_seconds: outcome.cpu_seconds,
            });
            last = Some((outcome.chosen, outcome.fitted, parts));
        }
        if verdicts.len() > 1 {
            report.summary = summarise(&verdicts);
        }
        let pooled = match folds {
            true => Some(pool(&verdicts, self.splitting.seed)?),
            false => None,
        };
        report.pooled = pooled.as_ref().map(PooledReport::new);
        if let (Some(path), Some((chosen, fitted, parts))) = (&self.output, last) {
            let judged = verdicts.first().map(|v| (v, kind));
            let model = self.model(&study, (&chosen, fitted), parts, judged, items, common)?;
            model.save(path)?;
            if !common.json {
                let what = format!(
                    "{} ({} → {} numbers, compared by {})",
                    path.display(),
                    Embedding::input_dim(&model.chain),
                    model.chain.output_dim(),
                    model.chain.space()
                );
                print::fact("model", &what)?;
            }
        }
        if let Some(path) = &self.report {
            self.write_page(path, read, &study, (kind, &splits), &kept, &verdicts)?;
        }
        if common.json {
            return print::json(&report);
        }
        if let Some(path) = &self.report {
            print::fact("report", &path.display().to_string())?;
        }
        print_summary(&report.summary, name)?;
        let ordered: Vec<_> = (report.splits.iter())
            .map(|split| &split.ordered[..])
            .collect();
        table(&ordered)?;
        match pooled {
            Some(pooled) => print_pooled(&pooled, &report.splits, study.criterion),
            None => Ok(()),
        }
    }

    fn one_split(
        &self,
        study: &Study<'_>,
        parts: &Parts,
        kind: HoldOut,
        common: &Common,
    ) -> Result<SplitOutcome> {
        let mut reporter = Reporter::new();
        if kind != HoldOut::None && !common.json {
            tracing::info!(
                "held out by {kind}: {} to train, {} to validate, {} to test",
                print::count(parts.train.len() as u64),
                print::count(parts.validation.len() as u64),
                print::count(parts.test.len() as u64)
            );
        }
        let training = study.train(parts, &mut reporter, Some(&STOP))?;
        let timing = self.timing.then(|| Timing {
            fit_cpu_seconds: training.cpu_seconds,
            product_seconds: product_seconds(),
        });
        let Training {
            chosen,
            fitted,
            base,
            verdicts,
            cpu_seconds,
        } = training;
        reporter.finish();
        let rows = |pick: fn(&Verdicts) -> &Vec<(Measure, metra::evaluate::Comparison)>| {
            verdicts
                .as_ref()
                .map_or_else(Vec::new, |v| print::rows(pick(v)))
        };
        let comparisons = match &study.material.supervision {
            Supervision::Comparisons(said) => Some(said.select(&parts.learned_from())?.len()),
            _ => None,
        };
        let ordered = match fitted.outputs.is_empty() || parts.test.is_empty() {
            true => Vec::new(),
            false => {
                let material = study.material;
                ordered_rows(material.ordered(&fitted.chain, &fitted.outputs, &parts.test)?)
            }
        };
        let report = SplitReport {
            comparisons,
            train: parts.train.len(),
            validation: parts.validation.len(),
            test: parts.test.len(),
            settings: chosen.settings.clone(),
            prepare: chosen.recipe.to_string(),
            score: chosen.space.to_string(),
            steps: chosen.last_step,
            validation_value: chosen.value,
            trials: chosen.trials.clone(),
            base: base.to_string(),
            measures: rows(|v| &v.rows),
            seen_items: rows(|v| &v.seen),
            unseen_items: rows(|v| &v.unseen),
            ordered,
            skipped_queries: verdicts.as_ref().map_or(0, |v| v.base.skipped()),
            steps_per_second: reporter.speed,
            timing,
        };
        Ok(SplitOutcome {
            report,
            verdicts,
            chosen,
            fitted,
            base,
            cpu_seconds,
        })
    }

    fn model(
        &self,
        study: &Study<'_>,
        (chosen, fitted): (&Chosen, Fitted),
        parts: &Parts,
        judged: Option<(&Verdicts, HoldOut)>,
        items: &Loaded,
        common: &Common,
    ) -> Result<Model> {
        let fitted = if self.refit && !parts.test.is_empty() {
            let mut reporter = Reporter::new();
            if !common.json {
                tracing::info!("fit on everything with the chosen settings");
            }
            study.refit(parts, chosen, &mut reporter, Some(&STOP))?
        } else {
            fitted
        };
        let narrowing = items.table.narrowing.clone();
        Ok(study.model(chosen, fitted, judged, narrowing)?)
    }
}
