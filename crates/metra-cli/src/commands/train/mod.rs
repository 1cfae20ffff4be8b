//! `metra train`: choose on a validation part, judge once on a test part, save the model.

#[cfg(feature = "cluster")]
mod cluster;
mod report;

use self::report::{
    PooledReport, Report, SplitReport, print_pooled, print_split, print_split_line, print_summary,
};
use crate::args::{ClusterArgs, Common};
use crate::attribute_order::{ordered_rows, table};
use crate::evaluation_args::EvaluationArgs;
#[cfg(not(feature = "cluster"))]
use crate::feature_off::OnCluster;
use crate::inputs::{DataArgs, Input, row_name};
use crate::method_args::{MethodArgs, start_from};
use crate::print;
use crate::progress::Reporter;
use crate::split_args::SplitArgs;
use anyhow::{Result, ensure};
use clap::Args;
use metra::experiment::compare::{Cost, Costs};
use metra::experiment::cost::{Timing, product_seconds};
use metra::experiment::{Experiment, HoldOut, Parts, SplitResult, Verdicts, pool, summarise};
use metra::internal::AtomicFile;
use metra::model::{Embedding, Model};
use metra::supervision::Supervision;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Learn a metric, choose its settings on a validation part and judge it on a test part.
#[derive(Args)]
#[command(
    after_help = "Example: metra train items.parquet --vector embedding --label category -o m.safetensors"
)]
pub(crate) struct Train {
    #[command(flatten)]
    subject: DataArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// Start from the map of this model instead of anew, for new rows or classes; method, settings, preparation and score
    /// are those of the model unless they are given, and --set steps=N takes fewer steps
    #[arg(
        long,
        value_name = "MODEL",
        help_heading = "Method",
        hide_short_help = true
    )]
    from: Option<PathBuf>,
    #[command(flatten)]
    splitting: SplitArgs,
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// After the evaluation, train once more on all rows, the test part included, and save that model; needed to save a model
    /// with --folds
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    refit: bool,
    /// Keep no digests of the training rows in the model: `metra eval` and `gate` then cannot tell
    /// whether it learned from the rows that they evaluate
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    no_row_digests: bool,
    /// State the CPU time of one fit with the chosen settings
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    timing: bool,
    /// Write an HTML report: tables, curves, and the queries that improved or worsened
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Rounds of local SGD (iterative methods): shards train separately and are averaged after each
    /// round
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        help_heading = "Cluster",
        hide_short_help = true
    )]
    rounds: u64,
    /// Number of randomly sampled rows that every shard trains on in addition to its own
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        help_heading = "Cluster",
        hide_short_help = true
    )]
    common: usize,
    /// Checkpoint file: the same command, run again after it was ended, goes on from there to the same
    /// model. On a cluster it is written after every round
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    checkpoint: Option<PathBuf>,
    /// Seconds between two states of a fit in the checkpoint, at least
    #[arg(
        long,
        value_name = "SECONDS",
        hide_short_help = true,
        requires = "checkpoint",
        default_value_t = 10.0
    )]
    checkpoint_every: f64,
}

impl Train {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        if let Some(place) = self.cluster.place()? {
            return self.on_cluster(place, common);
        }
        let folds = self.splitting.folds.is_some();
        ensure!(
            !self.refit || self.splitting.unseen_classes == 0,
            "--refit learns from all rows, and --unseen-classes hides some: say one of them"
        );
        ensure!(
            self.output.is_none() || self.splitting.is_single() || (folds && self.refit),
            "-o saves one model: with --folds say --refit for a model of all rows, with several splits \
             name one with --split, or leave -o out"
        );
        self.method.check()?;
        let start = self.from.as_deref().map(Model::load).transpose()?;
        ensure!(
            start.is_none() || self.splitting.unseen_classes == 0,
            "--unseen-classes hides classes, which the model of --from may know: say one of them"
        );
        let extra = self.splitting.columns();
        let work = |input: &Input<'_>| self.train(input, start.as_ref(), common);
        (self.subject).read_as(start.as_ref(), &extra, common, work)
    }

    fn train(&self, input: &Input<'_>, start: Option<&Model>, common: &Common) -> Result<()> {
        let names = |unit: u64| row_name(input.files.unit_table(), input.columns, unit);
        let method = match start {
            Some(model) => self.method.like(model)?,
            None => self.method.clone(),
        };
        let (evaluation, splitting) = (&self.evaluation, &self.splitting);
        let mut experiment = method.experiment(input, start, evaluation, splitting)?;
        experiment.names = &names;
        if let Some(path) = &self.checkpoint {
            let checkpoint = experiment.checkpoint_at(path, self.checkpoint_every, self.refit)?;
            if checkpoint.fits() > 0 {
                let fits = print::plural(checkpoint.fits() as u64, "fit");
                tracing::info!("{}: going on after {fits}", path.display());
            }
            experiment.checkpoint = Some(checkpoint);
        }
        let (kind, folds) = (experiment.holdout, experiment.folds);
        let mut report = Report {
            data: experiment.data.text.clone(),
            method: experiment.methods[0].method.clone(),
            holdout: kind.to_string(),
            protocol: experiment.judging.protocol.to_string(),
            from: self.from.clone(),
            splits: Vec::new(),
            summary: Vec::new(),
            pooled: None,
            model: self.output.clone(),
        };
        if !common.json {
            print::fact("data", &report.data)?;
            print::fact("method", &report.method)?;
            if let Some(path) = &self.from {
                print::fact("from", &path.display().to_string())?;
            }
        }
        let (name, count) = (
            if folds { "fold" } else { "split" },
            experiment.splits.len(),
        );
        let mut results = Vec::new();
        for split in 0..count {
            let (result, line) = self.split(&experiment, split, common)?;
            if !common.json {
                let (verdicts, criterion) = (result.verdicts.as_ref(), experiment.criterion);
                // Splits of a file are counted from 0, as --split does.
                let place = match (self.splitting.splits.is_some(), split + 1) {
                    (true, _) => format!("split {split}"),
                    (false, number) => format!("{name} {number} of {count}"),
                };
                match count {
                    1 => print_split(&line, verdicts, kind, criterion)?,
                    _ => print_split_line(&place, &line, verdicts, criterion)?,
                }
            }
            report.splits.push(line);
            results.push(result);
        }
        let verdicts: Vec<&Verdicts> = results.iter().filter_map(|r| r.verdicts.as_ref()).collect();
        if verdicts.len() > 1 {
            report.summary = summarise(&verdicts);
        }
        let pooled = match folds {
            true => Some(pool(&verdicts, self.splitting.seed)?),
            false => None,
        };
        let criterion = experiment.criterion;
        report.pooled = pooled
            .as_ref()
            .map(|pooled| PooledReport::new(pooled, criterion));
        if let (Some(path), Some(result)) = (&self.output, results.last()) {
            let model = match &pooled {
                Some(pooled) => self.fit_all(&experiment, pooled, input, common)?,
                None => self.refit(&experiment, result, common)?,
            };
            self.save(path, model, common)?;
        } else if !common.json {
            print::fact("model", "not saved: name a file with -o")?;
        }
        if let Some(path) = &self.report {
            write_report(path, &experiment, &results)?;
        }
        if let Some(checkpoint) = &experiment.checkpoint {
            checkpoint.remove()?;
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
            Some(pooled) => {
                let base = results.first().map(|split| split.base);
                let base = base.map(|base| experiment.dataset.baseline_name(base));
                print_pooled(&pooled, &base.unwrap_or_default(), experiment.criterion)
            }
            None => Ok(()),
        }
    }

    fn split(
        &self,
        experiment: &Experiment<'_>,
        split: usize,
        common: &Common,
    ) -> Result<(SplitResult, SplitReport)> {
        let mut reporter = Reporter::new();
        let parts = &experiment.splits[split].0;
        if experiment.holdout != HoldOut::None && !common.json {
            tracing::info!(
                "held out by {}: {} to train, {} to validate, {} to test",
                experiment.holdout,
                print::count(parts.train.len() as u64),
                print::count(parts.validation.len() as u64),
                print::count(parts.test.len() as u64)
            );
        }
        let result = experiment.train(split, &mut reporter)?;
        let timing = self.timing.then(|| Timing {
            fit_cpu_seconds: result.cpu_seconds,
            product_seconds: product_seconds(),
        });
        reporter.finish();
        let data = experiment.dataset;
        let comparisons = match data.supervision() {
            Supervision::Comparisons(all) => Some(all.select(&parts.learned_from())?.len()),
            _ => None,
        };
        let model = &result.model;
        let ordered = match model.outputs.is_empty() || parts.test.is_empty() {
            true => Vec::new(),
            false => ordered_rows(data.ordered(&model.chain, &model.outputs, &parts.test)?),
        };
        let report = SplitReport::new(parts, &result, comparisons, ordered, experiment.criterion);
        let report = SplitReport {
            steps_per_second: reporter.speed,
            timing,
            identities: identities(experiment, parts),
            base: experiment.dataset.baseline_name(result.base),
            ..report
        };
        Ok((result, report))
    }

    /// The model of a split, or with --refit one of all its rows.
    fn refit(
        &self,
        experiment: &Experiment<'_>,
        result: &SplitResult,
        common: &Common,
    ) -> Result<Model> {
        let last = experiment.splits.len() - 1;
        if !self.refit || experiment.splits[last].0.test.is_empty() {
            return Ok(result.model.clone());
        }
        note_refit(common);
        Ok(experiment.refit(last, result, &mut Reporter::new())?)
    }

    /// A model of all rows, with settings chosen on a validation part of them, and with what all folds
    /// together said of models made in this way.
    fn fit_all(
        &self,
        experiment: &Experiment<'_>,
        pooled: &Verdicts,
        input: &Input<'_>,
        common: &Common,
    ) -> Result<Model> {
        note_refit(common);
        let splitting = SplitArgs {
            folds: None,
            test: 0.0,
            ..self.splitting.clone()
        };
        let mut whole = Experiment {
            splits: splitting.parts(input, experiment.holdout)?,
            folds: false,
            ..experiment.clone()
        };
        if let Some(model) = experiment.start {
            start_from(&mut whole, model)?;
        }
        let mut model = whole.train(0, &mut Reporter::new())?.model;
        model.origin.held_out = Some(experiment.held_out(pooled));
        model.origin.refit = true;
        Ok(model)
    }

    fn save(&self, path: &Path, mut model: Model, common: &Common) -> Result<()> {
        if self.no_row_digests {
            model.training = None;
        }
        model.save(path)?;
        if common.json {
            return Ok(());
        }
        let what = format!(
            "{} ({}, compared by {})",
            path.display(),
            print::dimensions(&model.chain),
            model.chain.space()
        );
        print::fact("model", &what)
    }
}

/// Identities in each part, where whole identities are held out.
fn identities(experiment: &Experiment<'_>, parts: &Parts) -> Option<[usize; 3]> {
    let labels = experiment.dataset.labels()?;
    let count = |units: &Vec<u64>| {
        let classes: BTreeSet<u32> = units.iter().map(|row| labels.of()[*row as usize]).collect();
        classes.len()
    };
    let held_out = experiment.holdout == HoldOut::Identities;
    held_out.then(|| [&parts.train, &parts.validation, &parts.test].map(count))
}

fn note_refit(common: &Common) {
    if !common.json {
        tracing::info!("fit on everything");
    }
}

/// Write the HTML report of all splits.
fn write_report(path: &Path, experiment: &Experiment<'_>, splits: &[SplitResult]) -> Result<()> {
    let results = experiment.results_of(splits)?;
    let cost = Cost {
        fit_cpu_seconds: splits.first().map_or(0.0, |split| split.cpu_seconds),
        fit_peak_bytes: None,
        cpu_seconds: splits.iter().map(|split| split.cpu_seconds).sum(),
    };
    let learned = results.lines.last().map(|line| line.name.clone());
    let costs = Costs {
        lines: learned.into_iter().map(|name| (name, cost)).collect(),
        ..Costs::default()
    };
    let page = metra_report::html(&results, Some(&costs))?;
    Ok(AtomicFile::write_all(path, page.as_bytes())?)
}
