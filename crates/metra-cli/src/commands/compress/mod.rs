//! `metra compress`: how many bytes an item needs, by maps with codes of many sizes.

mod report;

use crate::args::Common;
use crate::command_line;
use crate::evaluation_args::EvaluationArgs;
use crate::inputs::{DataArgs, Input, load};
use crate::interrupt::STOP;
use crate::print;
use crate::progress::Reporter;
use crate::split_args::SplitArgs;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::experiment::{
    CompressSettings, CompressionResult, Experiment, HoldOut, NEIGHBOURS, NewItems,
    neighbour_dataset,
};
use metra::internal::AtomicFile;
use metra::model::Space;
use metra::pipeline::registry;
use metra::training::Recipe;
use metra_files::NarrowingRule;
use metra_report::CompressionReport;
use std::fs;
use std::path::{Path, PathBuf};

/// Find how small stored items can be: codes of many sizes, chosen on a validation part and
/// evaluated once on a test part against the vectors in f32.
///
/// For every budget of bytes per item, the untransformed vectors, their principal directions and learned
/// maps are tried with the codes that fit: int8, bits (trained for, or rotated by ITQ), product
/// quantisation with and without a rotation. The best on the validation part is evaluated on the test part,
/// searched alone and with the first answers rescored by int8 vectors on disk.
///
/// Without labels or qrels, the nearest neighbours of the untransformed vectors count as right, and the
/// share of them that is found is measured.
#[derive(Args)]
pub(crate) struct Compress {
    #[command(flatten)]
    subject: DataArgs,
    /// Budgets of bytes per item, comma-separated
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = CompressSettings::default().bytes)]
    bytes: Vec<usize>,
    /// Methods that learn, comma-separated, or `none` (default: lda and supcon with labels, adapter and
    /// supcon with qrels)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
    /// Preprocessing before learned maps, steps joined by +; see `metra methods`
    #[arg(long, value_name = "STEPS", default_value = "none")]
    prepare: Recipe,
    /// The baseline: euclid or cosine (default: the better one on the validation part; without labels or
    /// qrels cosine)
    #[arg(long, value_name = "SCORE")]
    base: Option<Space>,
    /// Rescore the first N answers by int8 vectors on disk; 0 to leave that out
    #[arg(long, value_name = "N", default_value_t = CompressSettings::default().rescore)]
    rescore: usize,
    /// Largest acceptable loss, for the recommendation
    #[arg(long, value_name = "LOSS", default_value_t = CompressSettings::default().tolerance)]
    tolerance: f64,
    /// Folder for the models of all budgets: BYTES.safetensors, and for rescoring BYTES-first.safetensors and
    /// BYTES-rescoring.safetensors
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Write the table and a chart as one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    splitting: SplitArgs,
    #[command(flatten)]
    evaluation: EvaluationArgs,
}

impl Compress {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(
            self.splitting.is_single(),
            "codes are judged on one test part: name one of several splits with --split"
        );
        for name in self.names().unwrap_or_default() {
            registry::find(name)?;
        }
        ensure!(
            matches!(self.base, None | Some(Space::SquaredL2 | Space::Cosine)),
            "--base must be euclid or cosine"
        );
        if let Some(folder) = self.output.as_ref().filter(|path| path.is_file()) {
            bail!("{}: expected a folder, but it is a file", folder.display());
        }
        if self.is_unsupervised() {
            return self.by_neighbours(common);
        }
        let extra = self.splitting.columns();
        (self.subject).with(&extra, common, |input| self.by_supervision(input, common))
    }

    fn is_unsupervised(&self) -> bool {
        let subject = &self.subject;
        subject.columns.label.is_none()
            && subject.qrels.qrels.is_none()
            && !subject.comparisons.any()
    }

    /// The methods that were named.
    fn names(&self) -> Option<Vec<&str>> {
        let names = self.methods.iter().map(String::as_str);
        match &self.methods[..] {
            [] => None,
            [only] if only == "none" => Some(Vec::new()),
            _ => Some(names.collect()),
        }
    }

    fn by_supervision(&self, input: &Input<'_>, common: &Common) -> Result<()> {
        let holdout = self.splitting.kind(input);
        ensure!(
            holdout != HoldOut::None,
            "codes are judged on a test part: nothing is held out"
        );
        let splits = self.splitting.parts(input, holdout)?;
        let settings = self.evaluation.settings(input, self.splitting.seed)?;
        let data = &input.data;
        let names = self.names();
        let methods =
            CompressSettings::methods(names.as_deref(), data.supervision(), &self.prepare)?;
        let seed = self.splitting.seed;
        let mut experiment = Experiment::new(data, (splits, holdout), settings, methods, seed)?;
        experiment.base = self.base.map(|base| base.to_string());
        let words = input.describe();
        self.compress(experiment, &words, common)
    }

    /// The nearest neighbours of the untransformed vectors say what is right.
    fn by_neighbours(&self, common: &Common) -> Result<()> {
        let Some(path) = &self.subject.data else {
            bail!("name a file of vectors, or --queries, --items and --qrels");
        };
        ensure!(
            self.methods.is_empty() || self.names() == Some(Vec::new()),
            "--methods learn from labels or qrels: name the column of labels with --label, or give --queries, \
             --items and --qrels"
        );
        let evaluation = &self.evaluation;
        let needs = [
            ("--prepare", self.prepare != Recipe::default()),
            ("--holdout", self.splitting.holdout.is_some()),
            ("--splits", self.splitting.splits.is_some()),
            ("--test-where", self.splitting.test_where.is_some()),
            ("--protocol", evaluation.protocol.is_some()),
            ("--classifier", evaluation.classifier.is_some()),
            ("--criterion", evaluation.criterion.is_some()),
            ("--rerank", evaluation.rerank.is_some()),
            ("--new-items", evaluation.new_items != NewItems::default()),
        ];
        if let Some((name, _)) = needs.iter().find(|(_, is_given)| *is_given) {
            bail!("{name} needs labels or qrels: without, neighbours are to be found");
        }
        let (columns, filters) = (&self.subject.columns, &self.subject.filters);
        let loaded = load(path, columns, &[], filters, NarrowingRule::Judge, common)?;
        let corpus = loaded.table.corpus.as_ref();
        let (base, seed) = (self.base.unwrap_or(Space::Cosine), self.splitting.seed);
        let keep = (common.storage(), &STOP);
        let data = neighbour_dataset(corpus, base, seed, keep)?;
        let measures = self.evaluation.measures.clone();
        let shares = (self.splitting.validation, self.splitting.test);
        let experiment = Experiment::of_neighbours(&data, base, measures, shares, seed)?;
        let words = format!(
            "{} × {} {}, no supervision: the {NEIGHBOURS} nearest of {} rows by {base} are to be found",
            print::count(corpus.len()),
            corpus.dim(),
            loaded.table.element_type,
            print::count(data.items().len()),
        );
        self.compress(experiment, &words, common)
    }

    fn compress(&self, mut experiment: Experiment<'_>, words: &str, common: &Common) -> Result<()> {
        experiment.command = command_line::text();
        let settings = CompressSettings {
            bytes: self.bytes.clone(),
            rescore: self.rescore,
            tolerance: self.tolerance,
        };
        let mut reporter = Reporter::new();
        let found = experiment.compress(0, &settings, &mut reporter)?;
        reporter.finish();
        let report = CompressionReport::new(&found, &experiment, words, self.rescore);
        if let Some(folder) = &self.output {
            self.save(folder, &found)?;
        }
        if let Some(path) = &self.report {
            AtomicFile::write_all(path, report.html()?.as_bytes())?;
        }
        match common.json {
            true => print::json(&report),
            false => report::print(&report),
        }
    }

    /// The model of every budget; of rescored ones that which finds first answers and that which rescores them.
    fn save(&self, folder: &Path, found: &CompressionResult) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for point in &found.points {
            let named = |name: &str| folder.join(format!("{}{name}.safetensors", point.budget));
            if let Some(place) = point.alone {
                found.found[place].model.save(named(""))?;
            }
            if let Some(place) = point.rescored {
                let both = &found.found[place];
                both.model.save(named("-first"))?;
                if let Some(rescoring) = &both.rescoring {
                    rescoring.save(named("-rescoring"))?;
                }
            }
        }
        Ok(())
    }
}
