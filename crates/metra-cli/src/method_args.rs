//! What is to be learned, from the command's arguments: shared by verbs that train one method.

use crate::args::assignment;
use crate::command_line;
use crate::evaluation_args::EvaluationArgs;
use crate::inputs::Input;
use crate::print;
use crate::split_args::SplitArgs;
use anyhow::Result;
use clap::Args;
use metra::experiment::{ComparedMethod, Experiment};
use metra::model::{Embedding, Model, Space};
use metra::pipeline::registry::{self, Entry};
use metra::supervision::Supervision;
use metra::training::{CodeSpec, Recipe};
use std::collections::BTreeMap;
use std::path::Path;

/// A method with its settings.
#[derive(Args, Clone)]
pub(crate) struct MethodArgs {
    /// The method; `metra methods` lists them (default: adapter with qrels and no --rank, else warca; cca where
    /// queries are vectors of another model)
    #[arg(help_heading = "Method", long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Dimension of a mapped vector; short for --set rank=N
    #[arg(help_heading = "Method", long, value_name = "N")]
    pub(crate) rank: Option<usize>,
    /// Set a parameter of the method (repeatable); preset=paper sets what its paper states, where it has one
    #[arg(help_heading = "Method", long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) settings: Vec<(String, String)>,
    /// Values of a parameter (or of `prepare`) to choose among on the validation part (repeatable)
    #[arg(help_heading = "Method", long = "tune", value_name = "NAME=A,B,C", value_parser = assignment)]
    pub(crate) grid: Vec<(String, String)>,
    /// Preprocessing, steps joined by +; see `metra methods`
    #[arg(
        help_heading = "Method",
        long,
        value_name = "STEPS",
        default_value = "none"
    )]
    pub(crate) prepare: Recipe,
    /// How items are stored: f16, int8, bits, pq:BYTES and others, see `metra methods`; short for --set code=CODE
    #[arg(
        help_heading = "Method",
        long,
        value_name = "CODE",
        hide_short_help = true
    )]
    pub(crate) code: Option<CodeSpec>,
    /// Scores to choose among on the validation part, comma-separated: euclid, cosine, dot
    /// (default: those that the method's objective is about)
    #[arg(
        help_heading = "Method",
        long,
        value_name = "SCORES",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub(crate) score: Vec<Space>,
    /// The baseline to beat: euclid or cosine (default: the better one on the validation part)
    #[arg(
        help_heading = "Method",
        long,
        value_name = "SCORE",
        hide_short_help = true
    )]
    pub(crate) base: Option<Space>,
}

impl MethodArgs {
    /// The settings given.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = self.settings.iter().cloned().collect();
        if let Some(rank) = self.rank {
            settings.insert("rank".into(), rank.to_string());
        }
        if let Some(code) = self.code {
            settings.insert(registry::CODE.into(), code.to_string());
        }
        settings
    }

    /// The method that was named, or the default for relevance judgements or other supervision: one
    /// that has the parameters which were given, if either has.
    pub(crate) fn entry(&self, judged: bool) -> Result<&'static Entry> {
        if let Some(name) = &self.method {
            return Ok(registry::find(name)?);
        }
        let default = registry::default_for(judged);
        let given = self.settings();
        let tuned = self.grid.iter().map(|(name, _)| name);
        let names = given.keys().chain(tuned).filter(|name| *name != "prepare");
        let names: Vec<&String> = names.collect();
        let has = |entry: &Entry, name: &str| match name {
            "preset" => !entry.paper.is_empty(),
            registry::CODE => true,
            _ => entry.has(name),
        };
        let fits = |entry: &Entry| names.iter().all(|name| has(entry, name));
        let other = registry::default_for(false);
        Ok(if fits(other) && !fits(default) {
            other
        } else {
            default
        })
    }

    /// An error if a method was named that does not exist, before anything is read.
    pub(crate) fn check(&self) -> Result<()> {
        self.method.as_deref().map(registry::find).transpose()?;
        Ok(())
    }

    /// What was not given as an earlier model has it: the rank and the preparation, and where the method is the same all its
    /// settings and the score.
    pub(crate) fn like(&self, model: &Model) -> Result<Self> {
        let origin = &model.origin;
        let mut like = self.clone();
        let method = like.method.get_or_insert_with(|| origin.method.clone());
        let is_same = *method == origin.method;
        let entry = registry::find(method)?;
        let given = self.settings();
        let mut known = match is_same && !given.contains_key("preset") {
            true => origin.parameters.clone(),
            false => BTreeMap::new(),
        };
        if entry.has("rank") {
            known.insert("rank".into(), model.output_dim().to_string());
        }
        let is_tuned = |name: &String| self.grid.iter().any(|(tuned, _)| tuned == name);
        let known = known.into_iter();
        (like.settings)
            .extend(known.filter(|(name, _)| !given.contains_key(name) && !is_tuned(name)));
        if like.prepare == Recipe::default() {
            like.prepare = origin.prepare.parse()?;
        }
        if like.score.is_empty() && is_same {
            like.score = vec![model.chain.space()];
        }
        Ok(like)
    }

    /// The experiment with this one method on what was read, whose fits may start from a model.
    pub(crate) fn experiment<'m>(
        &self,
        input: &'m Input<'m>,
        start: Option<&'m Model>,
        evaluation: &EvaluationArgs,
        splitting: &SplitArgs,
    ) -> Result<Experiment<'m>> {
        let data = &input.data;
        let entry = match &self.method {
            None if data.has_two_spaces() => registry::find("cca")?,
            _ => self.entry(matches!(data.supervision(), Supervision::Judgements(_)))?,
        };
        let holdout = splitting.kind(input);
        let splits = splitting.parts(input, holdout)?;
        let grid = self.grid.iter().map(|(name, values)| {
            let values = values.split(',').map(str::to_owned).collect();
            (name.clone(), values)
        });
        let mut grid: Vec<(String, Vec<String>)> = grid.collect();
        let validated = splits.iter().all(|(parts, _)| !parts.validation.is_empty());
        let prefer_defaults = entry.tries_grid && grid.is_empty() && validated;
        if prefer_defaults {
            grid = entry.open_grid(&self.settings());
        }
        let method = ComparedMethod {
            name: entry.name.to_owned(),
            method: entry.name.to_owned(),
            settings: self.settings(),
            recipe: self.prepare.clone(),
            grid,
            spaces: self.score.clone(),
            published: BTreeMap::new(),
        };
        let settings = evaluation.settings(input, splitting.seed)?;
        let seed = splitting.seed;
        let mut experiment =
            Experiment::new(data, (splits, holdout), settings, vec![method], seed)?;
        entry.build(&experiment.methods[0].settings)?;
        experiment.name = format!(
            "{} on {}",
            entry.name,
            file_name(&input.files.items.table.path)
        );
        experiment.command = command_line::text();
        experiment.prefer_defaults = prefer_defaults;
        experiment.data.text = input.describe();
        experiment.folds = splitting.folds.is_some();
        experiment.base = self.base.map(|base| base.to_string());
        if let Some(model) = start {
            start_from(&mut experiment, model)?;
        }
        experiment.choose_base()?;
        Ok(experiment)
    }
}

/// Start fits from a model, and say what that means for the parts.
pub(crate) fn start_from<'m>(experiment: &mut Experiment<'m>, model: &'m Model) -> Result<()> {
    if model.training.is_none() {
        tracing::warn!(
            "the model to start from keeps no digests of the rows that it learned from: whether it knows held-out rows \
             cannot be told"
        );
    }
    let moved = experiment.start_from(model)?;
    if moved > 0 {
        let units = print::plural(moved as u64, "held-out row");
        let left = (experiment.splits.iter()).map(|(parts, _)| parts.validation.len());
        let left = match left.sum::<usize>() {
            0 => "nothing is left to choose steps or settings by".to_owned(),
            left => format!("{} are left", print::count(left as u64)),
        };
        tracing::warn!(
            "{units} for validation that the model to start from may have learned from: learned from again; {left}"
        );
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
