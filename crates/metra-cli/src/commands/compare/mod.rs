//! `metra compare`: every method under one protocol, from an experiment file or from flags.

mod file;
mod follow;
#[cfg(feature = "images")]
mod sheets;
mod table;

use self::file::{ComparisonPlan, TRIALS};
use self::follow::Follower;
use crate::args::Common;
use crate::command_line;
use crate::evaluation_args::EvaluationArgs;
use crate::inputs::{DataArgs, Input, row_name};
use crate::interrupt::{self};
use crate::print;
use crate::split_args::SplitArgs;
use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Args};
use metra::experiment::compare::{Costs, Line, Log, Record, Results};
use metra::experiment::{ComparedMethod, Experiment};
use metra::internal::AtomicFile;
use metra::model::Space;
use metra::training::Recipe;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The exit code of a comparison that was finished, but in which some method failed.
const SOME_FAILED: u8 = 3;

/// Compare methods: settings chosen on validation parts with equal budgets, all judged alike.
#[derive(Args)]
#[command(
    after_help = "DATA may be an experiment file (.toml) that sets all options: \
    docs/formats/experiment.md. Run the same command again to resume an interrupted comparison. \
    Exit code 3: finished, but some method failed."
)]
pub(crate) struct Compare {
    #[command(flatten)]
    subject: DataArgs,
    #[command(flatten)]
    splitting: SplitArgs,
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// Methods to compare, comma-separated (default: all non-kernel methods that fit the
    /// supervision); with an experiment file, a subset of its methods by name
    #[arg(long, value_delimiter = ',')]
    methods: Vec<String>,
    /// Preprocessing for every method, steps joined by +; the baselines are also run without it
    #[arg(long, value_name = "STEPS", default_value = "none")]
    prepare: Recipe,
    /// The method that all are compared with (default: the better of euclid and cosine on
    /// validation)
    #[arg(long, value_name = "METHOD")]
    base: Option<String>,
    /// Maximum number of settings tried per method and split
    #[arg(long, value_name = "N", default_value_t = TRIALS)]
    trials: usize,
    /// Successive halving with factor N: the best 1/N of the settings continue with N times the
    /// steps
    #[arg(long, value_name = "N")]
    halving: Option<u32>,
    /// Folder for log, results, report, and tables and curves as CSV, LaTeX and SVG (default:
    /// NAME-comparison)
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Where to write the model of the best method, as it was evaluated on the first split
    #[arg(long, value_name = "FILE")]
    best: Option<PathBuf>,
    /// Also write a Markdown report: tables and findings, no individual queries
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Start over: discard the log of an earlier run of this comparison
    #[arg(long)]
    fresh: bool,
    /// Skip the separate measurement of each method's fitting time and memory
    #[arg(long)]
    no_cost: bool,
    #[cfg(feature = "images")]
    #[command(flatten)]
    sheeted: sheets::Sheeted,
    /// Measure what a fit of this method costs and print it; used by the comparison itself
    #[arg(long, hide = true)]
    cost_of: Option<String>,
    /// Ids of the options that were given on the command line.
    #[arg(skip)]
    given: Vec<String>,
}

/// Options that an experiment file leaves open: which of its methods, where results go, how the process runs.
const BESIDE_A_FILE: &[&str] = &[
    "data",
    "methods",
    "output",
    "best",
    "page",
    "fresh",
    "no-cost",
    "cost-of",
    "sheets",
    "sheet-path",
    "sheet-queries",
    "json",
    "threads",
    "memory",
    "cache-dir",
    "force",
];

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    results: &'a Results,
    costs: &'a Costs,
    folder: &'a Path,
}

impl Compare {
    pub(crate) fn run(&self, common: &Common) -> Result<u8> {
        let plan = self.plan()?;
        let extra: Vec<String> = plan
            .splitting
            .columns()
            .iter()
            .map(|c| (*c).into())
            .collect();
        #[cfg(feature = "images")]
        let extra = [
            extra,
            self.sheeted
                .columns()
                .map(str::to_owned)
                .into_iter()
                .collect(),
        ]
        .concat();
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
        let subject = plan.subject.clone();
        subject.with(&extra, common, |input| self.compare(plan, input, common))
    }

    /// What was asked for, by the file or by flags.
    fn plan(&self) -> Result<ComparisonPlan> {
        let toml = |path: &&PathBuf| path.extension().is_some_and(|e| e == "toml");
        if let Some(path) = self.subject.data.as_ref().filter(toml) {
            self.only_a_file(path)?;
            let mut plan = file::read(path)?;
            plan.keep(&self.methods).context("--methods")?;
            return Ok(plan);
        }
        let data = self
            .subject
            .data
            .as_ref()
            .or(self.subject.qrels.queries.as_ref());
        let name = data.and_then(|path| path.file_stem()).unwrap_or_default();
        Ok(ComparisonPlan {
            name: name.to_string_lossy().into_owned(),
            about: String::new(),
            subject: self.subject.clone(),
            splitting: self.splitting.clone(),
            evaluation: self.evaluation.clone(),
            base: self.base.clone(),
            trials: self.trials,
            halving: self.halving,
            methods: Vec::new(),
            claims: Vec::new(),
            facts: Vec::new(),
        })
    }

    /// An experiment file says everything; a flag beside it would be lost.
    fn only_a_file(&self, path: &Path) -> Result<()> {
        if let Some(flag) = self
            .given
            .iter()
            .find(|flag| !BESIDE_A_FILE.contains(&flag.as_str()))
        {
            bail!(
                "{} is an experiment file and says all of it: write --{flag} there",
                path.display()
            );
        }
        Ok(())
    }

    /// Note which options were given on the command line, by their long names.
    pub(crate) fn note_given(&mut self, matches: &ArgMatches) {
        let from_line =
            |id: &&str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let ids = matches.ids().map(|id| id.as_str());
        self.given = ids
            .filter(from_line)
            .map(|id| id.replace('_', "-"))
            .collect();
    }

    fn compare(&self, plan: ComparisonPlan, input: &Input<'_>, common: &Common) -> Result<u8> {
        let names = |unit: u64| row_name(input.files.unit_table(), input.columns, unit);
        let folder = match &self.output {
            Some(folder) => folder.clone(),
            None => PathBuf::from(format!("{}-comparison", plan.name)),
        };
        let experiment = self.experiment(plan, input, &names)?;
        let path = folder.join("log.jsonl");
        if let Some(method) = &self.cost_of {
            let record = experiment.measure_cost(&Log::read(&path)?, method)?;
            print::line(&serde_json::to_string(&record)?)?;
            return Ok(0);
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let mut log = match self.fresh {
            true => Log::open_empty(&path)?,
            false => Log::open(&path)?,
        };
        if !common.json {
            print::fact("data", &experiment.data.text)?;
            print::fact("log", &path.display().to_string())?;
        }
        let threads = common.threads.unwrap_or_else(rayon::current_num_threads);
        let mut follower = Follower::new(experiment.criterion, threads);
        let ran = experiment.run(&mut log, threads, &mut |event| follower.event(&event));
        follower.finish();
        let results = match ran {
            Err(metra::Error::Interrupted) => {
                tracing::warn!("{}", follower.interrupted());
                // Before the first method is finished there is nothing to show.
                if let (Ok(results), false) = (experiment.results_so_far(&log), common.json) {
                    table::print(&results, &experiment.costs(&log, threads)?)?;
                    print::fact("so far", &so_far(&results, &experiment))?;
                }
                return Err(metra::Error::Interrupted.into());
            }
            ran => ran?,
        };
        if !self.no_cost {
            self.measure_costs(&experiment, &mut log)?;
        }
        let costs = experiment.costs(&log, threads)?;
        write(&folder.join("results.json"), &results.to_json()?)?;
        write(&folder.join("costs.json"), &costs.to_json()?)?;
        let report = folder.join("report.html");
        #[cfg(feature = "images")]
        let page = {
            let sheets = (self.sheeted).draw(&experiment, &log, &results, input, &folder)?;
            metra_report::html_with_sheets(&results, Some(&costs), &sheets)?
        };
        #[cfg(not(feature = "images"))]
        let page = metra_report::html(&results, Some(&costs))?;
        write(&report, &page)?;
        let exports = metra_report::exports(&results)?;
        for (name, text) in &exports {
            write(&folder.join(name), text)?;
        }
        let saved = match &self.best {
            Some(path) => save_best(path, &experiment, &log, &results)?,
            None => String::new(),
        };
        if let Some(page) = &self.page {
            write(page, &metra_report::markdown(&results, Some(&costs)))?;
        }
        if common.json {
            print::json(&Answer {
                results: &results,
                costs: &costs,
                folder: &folder,
            })?;
        } else {
            table::print(&results, &costs)?;
            let path = folder.join("results.json");
            print::fact("results", &path.display().to_string())?;
            print::fact("report", &report.display().to_string())?;
            let names: Vec<&str> = exports.iter().map(|(name, _)| *name).collect();
            print::fact("tables", &format!("{} beside it", names.join(", ")))?;
            print::fact("verdict", &metra_report::verdict(&results))?;
            if self.best.is_some() {
                print::fact("model", &saved)?;
            }
        }
        let failed = results.lines.iter().any(Line::failed);
        Ok(if failed { SOME_FAILED } else { 0 })
    }

    fn experiment<'m>(
        &self,
        plan: ComparisonPlan,
        input: &'m Input<'m>,
        names: &'m (dyn Fn(u64) -> String + Sync),
    ) -> Result<Experiment<'m>> {
        let splitting = &plan.splitting;
        let holdout = splitting.kind(input);
        let settings = plan.evaluation.settings(input, splitting.seed)?;
        let data = &input.data;
        let methods = if plan.methods.is_empty() {
            ComparedMethod::contenders(&self.methods, data, &self.prepare)?
        } else {
            plan.methods
        };
        let splits = splitting.parts(input, holdout)?;
        let seed = splitting.seed;
        let mut experiment = Experiment::new(data, (splits, holdout), settings, methods, seed)?;
        experiment.data.text = input.describe();
        Ok(Experiment {
            name: plan.name,
            about: plan.about,
            command: command_line::text(),
            folds: splitting.folds.is_some(),
            base: plan.base,
            budget: plan.trials,
            halving: plan.halving,
            claims: plan.claims,
            facts: plan.facts,
            names,
            ..experiment
        })
    }

    /// Measure every method whose cost is not known in a process of its own, where nothing that
    /// earlier fits left behind counts.
    fn measure_costs(&self, experiment: &Experiment<'_>, log: &mut Log) -> Result<()> {
        let missing = experiment.without_cost(log)?;
        for (number, name) in missing.iter().enumerate() {
            interrupt::check()?;
            tracing::info!(
                "cost of a fit alone {}/{}: {name}",
                number + 1,
                missing.len()
            );
            let output = command_line::again()
                .args(["--cost-of", name])
                .stderr(Stdio::null())
                .output()?;
            let record = String::from_utf8_lossy(&output.stdout);
            match serde_json::from_str::<Option<Record>>(&record) {
                Ok(Some(record)) => log.write(record)?,
                _ => tracing::warn!("the cost of {name} could not be measured"),
            }
        }
        Ok(())
    }
}

/// Write the model of the best method; in words, what was written.
fn save_best(
    path: &Path,
    experiment: &Experiment<'_>,
    log: &Log,
    results: &Results,
) -> Result<String> {
    let line = |name: &str| results.lines.iter().find(|line| line.name == name);
    let base = line(&results.base).and_then(|line| line.splits.first()?.score.parse().ok());
    let base = base.unwrap_or(Space::SquaredL2);
    let bases = experiment.dataset.baselines();
    let is_learned = |line: &Line| !bases.contains(&line.method.as_str());
    if !line(&results.best).is_some_and(is_learned) {
        return Ok(format!(
            "not written: nothing is better than {}",
            results.best
        ));
    }
    match experiment.model_of(log, &results.best, base, 0)? {
        None => Ok(format!("not written: {} failed", results.best)),
        Some(model) => {
            model.save(path)?;
            Ok(format!("{} ({})", path.display(), results.best))
        }
    }
}

/// What a table of an interrupted comparison is about.
fn so_far(results: &Results, experiment: &Experiment<'_>) -> String {
    let (done, all) = (results.protocol.splits.len(), experiment.splits.len());
    let splits = match all {
        1 => String::new(),
        _ => format!("{done} of {all} splits; "),
    };
    format!("{splits}run the same command again to go on")
}

fn write(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(AtomicFile::write_all(path, bytes)?)
}
