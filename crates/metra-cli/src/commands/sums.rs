//! `metra sums`: sums over labelled rows, to which rows are added and from which they are taken away, and models of them.

use crate::args::{Common, assignment};
use crate::inputs::{Columns, in_file, load};
use crate::interrupt::STOP;
use crate::print;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::model::Space;
use metra::pipeline::{ClassSums, registry};
use metra::training::Recipe;
use metra::{Dataset, Pipeline};
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keep sums over labelled rows, add rows or take them away, and train closed forms from what is left.
///
/// A model from the sums is the one that the remaining rows would give, so that deleted rows are forgotten exactly and new
/// ones need no pass over the old. For lda, pca, whitening, cca, procrustes, and slr with target=fixed. FILE
/// holds no rows, but digests of them: a row that was never added cannot be taken away.
#[derive(Args)]
#[command(
    after_help = "Example: metra sums people.sums --add may.parquet --remove deleted.parquet --label person \\
    --method lda -o people.safetensors"
)]
pub(crate) struct Sums {
    /// The file of sums, made where there is none
    #[arg(value_name = "FILE")]
    sums: PathBuf,
    /// Labelled vectors to add (.parquet, .npy, .csv, .jsonl, …; repeatable)
    #[arg(long, value_name = "DATA")]
    add: Vec<PathBuf>,
    /// Vectors to take away, with the labels by which they were added (repeatable)
    #[arg(long, value_name = "DATA")]
    remove: Vec<PathBuf>,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER", help_heading = "Data")]
    filters: Vec<Filter>,
    /// Preprocessing of a new file of sums: l2, sqrt, log:A, chi2:N, joined by +
    #[arg(long, value_name = "STEPS")]
    prepare: Option<Recipe>,
    /// The method of the model
    #[arg(
        long,
        value_name = "NAME",
        requires = "output",
        help_heading = "Method"
    )]
    method: Option<String>,
    /// Dimension of a mapped vector; short for --set rank=N
    #[arg(long, value_name = "N", requires = "method", help_heading = "Method")]
    rank: Option<usize>,
    /// Set a parameter of the method (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment, requires = "method", help_heading = "Method")]
    settings: Vec<(String, String)>,
    /// How mapped vectors are compared (default: the method's first choice)
    #[arg(
        long,
        value_name = "SCORE",
        requires = "method",
        help_heading = "Method"
    )]
    score: Option<Space>,
    /// Seed of the model's record
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Model file to write
    #[arg(short, long, value_name = "FILE", requires = "method")]
    output: Option<PathBuf>,
}

/// The name of a file that need not be there yet, in the folder as the system knows it.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

#[derive(Serialize)]
struct Kept<'a> {
    rows: u64,
    classes: usize,
    dimension: usize,
    added: u64,
    removed: u64,
    model: Option<&'a PathBuf>,
}

impl Sums {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let is_same = |output: &PathBuf| place(output) == place(&self.sums);
        ensure!(
            !self.output.as_ref().is_some_and(is_same),
            "{}: expected another file for the model than for the sums",
            self.sums.display()
        );
        let mut sums = match self
            .sums
            .try_exists()
            .with_context(|| self.sums.display().to_string())?
        {
            true => Some(ClassSums::load(&self.sums)?),
            false => None,
        };
        if let (Some(sums), Some(prepare)) = (&sums, &self.prepare) {
            let found = sums.recipe()?;
            ensure!(
                found == *prepare,
                "--prepare is for a new file: {} was made with {found}",
                self.sums.display()
            );
        }
        let (mut added, mut removed) = (0, 0);
        let mut counted_twice = Vec::new();
        for path in &self.add {
            let mut known = 0;
            added += self.with(path, sums.is_some(), common, |data| {
                match &mut sums {
                    Some(sums) => known = sums.add(data)?,
                    none => {
                        let recipe = self.prepare.clone().unwrap_or_default();
                        *none = Some(ClassSums::new(data, &recipe)?);
                    }
                }
                Ok(())
            })?;
            if known > 0 {
                counted_twice.push((path, known));
            }
        }
        let Some(mut sums) = sums else {
            bail!(
                "{}: there is no file of sums yet: name rows with --add",
                self.sums.display()
            );
        };
        for path in &self.remove {
            removed += self.with(path, true, common, |data| sums.remove(data))?;
        }
        let model = match &self.method {
            Some(name) => Some(self.pipeline(name, &sums)?.fit_sums(&sums, self.seed)?),
            None => None,
        };
        // The model first: where it cannot be written, the sums stay what they were, and the same command can be given again.
        if let (Some(model), Some(path)) = (model, &self.output) {
            model.save(path)?;
        }
        if added + removed > 0 {
            sums.save(&self.sums)?;
        }
        for (path, known) in counted_twice {
            let rows = print::plural(known, "row");
            tracing::warn!(
                "{}: {rows} with the same values and label were in the sums before, and count once more now; was the file added \
                 before?",
                path.display()
            );
        }
        let kept = Kept {
            rows: sums.rows(),
            classes: sums.classes(),
            dimension: sums.dim(),
            added,
            removed,
            model: self.output.as_ref(),
        };
        if common.json {
            return print::json(&kept);
        }
        let text = format!(
            "{} of {} classes, {} dimensions ({} added, {} taken away)",
            print::plural(kept.rows, "row"),
            print::count(kept.classes as u64),
            kept.dimension,
            print::count(added),
            print::count(removed)
        );
        print::fact("sums", &text)?;
        match &self.output {
            Some(path) => print::fact("model", &path.display().to_string()),
            None => Ok(()),
        }
    }

    /// Work on the rows of a file; how many there are. What the first rows are judged to be, all later ones are taken for: a
    /// few rows may be alike where many are not.
    fn with(
        &self,
        path: &Path,
        is_judged: bool,
        common: &Common,
        work: impl FnOnce(&Dataset<'_>) -> metra::Result<()>,
    ) -> Result<u64> {
        let rule = match is_judged {
            true => NarrowingRule::None,
            false => NarrowingRule::Judge,
        };
        let loaded = load(path, &self.columns, &[], &self.filters, rule, common)?;
        let labels = loaded.one_label()?;
        let labels =
            labels.context("sums are kept by class: name the column of labels with --label")?;
        let data = Dataset::builder(loaded.table.corpus.as_ref())
            .labels(labels.clone())
            .narrowing(loaded.table.narrowing.clone())
            .stop(&STOP)
            .build()?;
        work(&data).map_err(|error| in_file(error, &loaded))?;
        Ok(data.items().len())
    }

    fn pipeline(&self, name: &str, sums: &ClassSums) -> Result<Pipeline> {
        let entry = registry::find(name)?;
        let mut settings: BTreeMap<String, String> = self.settings.iter().cloned().collect();
        if let Some(rank) = self.rank {
            settings.insert("rank".into(), rank.to_string());
        }
        let recipe = sums.recipe()?;
        entry.settle(&mut settings, &[], recipe.most_dim(sums.dim()))?;
        let pipeline = Pipeline::named(entry.name, &settings, &recipe)?;
        Ok(match self.score {
            Some(score) => {
                let known = pipeline.spaces();
                ensure!(
                    known.contains(&score),
                    "{} cannot be compared by {score}",
                    entry.name
                );
                pipeline.score(score)
            }
            None => pipeline,
        })
    }
}
