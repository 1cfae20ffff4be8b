//! The report of `metra train --report`: that of a comparison of two, the base and what was learned.

use super::Train;
use super::report::describe;
use crate::command_line::command_line;
use crate::load::row_name;
use crate::subject::Read;
use anyhow::{Context, Result, ensure};
use metra::data::fingerprint;
use metra::learn::Recipe;
use metra::metric::Space;
use metra::study::compare::{Cost, Costs, DataFacts, Experiment, Method, Trained};
use metra::study::{Chosen, HoldOut, Parts, Study, Verdicts};
use std::collections::BTreeMap;
use std::path::Path;

/// What a split leaves for the report.
pub(super) struct Kept {
    pub(super) chosen: Chosen,
    pub(super) facts: BTreeMap<String, f64>,
    pub(super) base: Space,
    pub(super) cpu_seconds: f64,
}

impl Train {
    /// Write the report of all splits.
    pub(super) fn write_page(
        &self,
        path: &Path,
        read: &Read<'_>,
        study: &Study<'_>,
        (kind, splits): (HoldOut, &[(Parts, u64)]),
        kept: &[Kept],
        verdicts: &[Verdicts],
    ) -> Result<()> {
        ensure!(
            verdicts.len() == splits.len(),
            "--report shows how a metric was judged: something must be held out"
        );
        let first = kept.first().map_or(Space::SquaredL2, |kept| kept.base);
        let same = kept.iter().all(|kept| kept.base == first);
        let base = if same {
            first.to_string()
        } else {
            "base".to_owned()
        };
        let method = |name: &str, method: &str| Method {
            name: name.to_owned(),
            method: method.to_owned(),
            settings: BTreeMap::new(),
            recipe: Recipe::default(),
            grid: Vec::new(),
            spaces: Vec::new(),
            published: BTreeMap::new(),
        };
        // A learner called as its base is called would make two lines of one name.
        let learned = match self.learning.method == base {
            true => format!("{} learned", self.learning.method),
            false => self.learning.method.clone(),
        };
        let tuned = |name: &String| study.grid.iter().any(|(tuned, _)| tuned == name);
        let fixed = study.settings.iter().filter(|(name, _)| !tuned(name));
        let names = |unit: u64| row_name(read.unit_table, read.columns, unit);
        let experiment = Experiment {
            name: format!(
                "{} on {}",
                self.learning.method,
                file_name(&read.items.table.path)
            ),
            about: String::new(),
            command: command_line(),
            data: DataFacts {
                text: describe(&read.material, read.items),
                fingerprint: fingerprint(read.items.table.corpus.as_ref())?,
                supervision: read.material.supervision.fingerprint(),
            },
            material: &read.material,
            splits: splits.to_vec(),
            folds: self.splitting.folds.is_some(),
            holdout: kind,
            judging: study.judging.clone(),
            criterion: study.criterion,
            seed: self.splitting.seed,
            methods: vec![
                method(
                    &base,
                    if first == Space::Cosine {
                        "cosine"
                    } else {
                        "euclid"
                    },
                ),
                Method {
                    settings: fixed.map(|(n, v)| (n.clone(), v.clone())).collect(),
                    recipe: study.recipe.clone(),
                    grid: study.grid.clone(),
                    ..method(&learned, &self.learning.method)
                },
            ],
            base: Some(base),
            budget: kept
                .iter()
                .map(|k| k.chosen.trials.len())
                .max()
                .unwrap_or(1)
                .max(1),
            halving: None,
            claims: Vec::new(),
            facts: Vec::new(),
            names: &names,
        };
        let trained: Vec<Trained<'_>> = (kept.iter().zip(verdicts))
            .map(|(kept, verdicts)| Trained {
                chosen: &kept.chosen,
                facts: &kept.facts,
                base: kept.base,
                verdicts,
            })
            .collect();
        let results = experiment.of_training(&trained)?;
        let cost = Cost {
            fit_cpu_seconds: kept.first().map_or(0.0, |kept| kept.cpu_seconds),
            fit_peak_bytes: None,
            cpu_seconds: kept.iter().map(|kept| kept.cpu_seconds).sum(),
        };
        let costs = Costs {
            lines: BTreeMap::from([(learned, cost)]),
            ..Costs::default()
        };
        let page = metra_report::html(&results, Some(&costs))?;
        std::fs::write(path, page).with_context(|| path.display().to_string())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
