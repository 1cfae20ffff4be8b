//! Which units learn, choose and judge: drawn, dealt out in folds, told by a column, or as a file
//! of splits has them.

use crate::inputs::Input;
use crate::inputs::split_names;
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::data::{SplitKind, SplitSet};
use metra::experiment::{HoldOut, Parts, folds};
use metra_files::{Filter, read_splits};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Held-out parts.
#[derive(Args, Clone)]
pub(crate) struct SplitArgs {
    /// What to hold out: identities (whole classes), rows, queries, items (queries with unseen
    /// relevant items) or none (default: from the data)
    #[arg(help_heading = "Held-out parts", long, value_name = "KIND")]
    pub(crate) holdout: Option<HoldOut>,
    /// Share of the rows, classes or queries for the validation part, of those that the test part leaves; at most about
    /// 4,000 rows or queries; 0 for none
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "SHARE",
        default_value_t = 0.2,
        hide_short_help = true
    )]
    pub(crate) validation: f64,
    /// Share of the rows, classes or queries for the test part; at most about 20,000 rows or queries; 0 for none
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "SHARE",
        default_value_t = 0.2,
        hide_short_help = true
    )]
    pub(crate) test: f64,
    /// File of train/test splits; the validation part is taken from each training part
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "FILE",
        conflicts_with = "draws",
        hide_short_help = true
    )]
    pub(crate) splits: Option<PathBuf>,
    /// Use only this split of the file, counted from 0
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "N",
        requires = "splits",
        hide_short_help = true
    )]
    pub(crate) split: Option<usize>,
    /// Use only the first N splits of the file
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "N",
        requires = "splits",
        conflicts_with = "split",
        hide_short_help = true
    )]
    pub(crate) first: Option<usize>,
    /// Add rows that a split of the file names in neither part to its test part, such as persons whom only one camera
    /// saw (distractors)
    #[arg(
        help_heading = "Held-out parts",
        long,
        requires = "splits",
        hide_short_help = true
    )]
    pub(crate) distractors: bool,
    /// Test on the rows or queries with this value, learn from the others (column=value)
    #[arg(help_heading = "Held-out parts", long, value_name = "FILTER", hide_short_help = true, conflicts_with_all = ["splits", "draws", "folds", "test"])]
    pub(crate) test_where: Option<Filter>,
    /// Hide N classes, drawn for every split, from training; only the test part has them (zero-shot classes)
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "N",
        default_value_t = 0,
        hide_short_help = true
    )]
    pub(crate) unseen_classes: usize,
    /// Number of random splits, with seeds SEED, SEED+1, …
    #[arg(
        help_heading = "Held-out parts",
        long,
        value_name = "N",
        default_value_t = 1,
        hide_short_help = true
    )]
    pub(crate) draws: u64,
    /// Cross-validation: every row, class or query is tested in one of N folds
    #[arg(help_heading = "Held-out parts", long, value_name = "N", conflicts_with_all = ["draws", "splits", "test"])]
    pub(crate) folds: Option<usize>,
    /// Seed of all random draws
    #[arg(
        help_heading = "Held-out parts",
        long,
        default_value_t = 1,
        hide_short_help = true
    )]
    pub(crate) seed: u64,
}

impl Default for SplitArgs {
    fn default() -> Self {
        SplitArgs {
            holdout: None,
            validation: 0.2,
            test: 0.2,
            splits: None,
            split: None,
            first: None,
            distractors: false,
            test_where: None,
            unseen_classes: 0,
            draws: 1,
            folds: None,
            seed: 1,
        }
    }
}

impl SplitArgs {
    /// Columns that splitting needs.
    pub(crate) fn columns(&self) -> Vec<&str> {
        self.test_where.iter().map(|f| f.column.as_str()).collect()
    }

    /// What is held out.
    pub(crate) fn kind(&self, input: &Input<'_>) -> HoldOut {
        let default = || HoldOut::default_for(&input.data);
        self.holdout.unwrap_or_else(default)
    }

    /// Whether there is one split only.
    pub(crate) fn is_single(&self) -> bool {
        self.draws == 1 && self.folds.is_none() && (self.splits.is_none() || self.split.is_some())
    }

    /// The parts of every split with the seed of its fits.
    pub(crate) fn parts(&self, input: &Input<'_>, kind: HoldOut) -> Result<Vec<(Parts, u64)>> {
        let mut all = self.whole_parts(input, kind)?;
        if self.unseen_classes > 0 {
            ensure!(
                kind == HoldOut::Rows,
                "--unseen-classes needs rows of all classes to test on: say --holdout rows"
            );
            let first = self.split.unwrap_or(0);
            for (number, (parts, _)) in (first..).zip(all.iter_mut()) {
                let seed = self.seed + number as u64;
                let hidden = parts.hide_classes(&input.data, self.unseen_classes, seed)?;
                tracing::info!("split {number}: unseen classes {}", hidden.join(", "));
            }
        }
        Ok(all)
    }

    /// The same with all classes.
    fn whole_parts(&self, input: &Input<'_>, kind: HoldOut) -> Result<Vec<(Parts, u64)>> {
        let (data, units) = (&input.data, input.data.units());
        let inner = |rest: Vec<u64>, test: Vec<u64>, seed: u64| -> Result<(Parts, u64)> {
            let parts = Parts::within(data, rest, test, kind, self.validation, seed)?;
            Ok((parts, seed))
        };
        if let Some(path) = &self.splits {
            let mut all = file_splits(&read_splits(path)?, input, self.distractors)?;
            if let Some(number) = self.split {
                ensure!(
                    number < all.len(),
                    "--split must be below {}, but is {number}",
                    all.len()
                );
                all = vec![all.swap_remove(number)];
            }
            if let Some(first) = self.first {
                ensure!(
                    (1..=all.len()).contains(&first),
                    "--first must be between 1 and {} (the splits there are), but is {first}",
                    all.len()
                );
                all.truncate(first);
            }
            return (all.into_iter())
                .map(|(train, test)| inner(train, test, self.seed))
                .collect();
        }
        if let Some(filter) = &self.test_where {
            let (train, test) = split_by_value(filter, input)?;
            return Ok(vec![inner(train, test, self.seed)?]);
        }
        if let Some(count) = self.folds {
            return folds(data, &units, kind, count, self.seed)?
                .into_iter()
                .map(|(rest, test)| inner(rest, test, self.seed))
                .collect();
        }
        if kind == HoldOut::None {
            ensure!(self.draws == 1, "--draws needs something to hold out");
            let parts = Parts {
                train: units,
                ..Parts::default()
            };
            return Ok(vec![(parts, self.seed)]);
        }
        (0..self.draws)
            .map(|draw| {
                let seed = self.seed + draw;
                let shares = (self.validation, self.test);
                let parts = Parts::draw(data, &units, kind, shares, seed)?;
                Ok((parts, seed))
            })
            .collect()
    }
}

/// Units of both parts; with `distractors` those in neither are tested as well.
fn file_splits(
    set: &SplitSet,
    input: &Input<'_>,
    distractors: bool,
) -> Result<Vec<(Vec<u64>, Vec<u64>)>> {
    ensure!(
        !distractors || set.by != SplitKind::Query,
        "--distractors needs splits of rows or labels: a query that is in neither part has nothing to be searched for"
    );
    let names = split_names(set.by, &input.data, input.files.unit_table(), input.columns)?;
    let units = input.data.units();
    let usable = |part: Vec<u64>| -> Vec<u64> {
        part.into_iter()
            .filter(|unit| units.binary_search(unit).is_ok())
            .collect()
    };
    (set.splits.iter())
        .map(|split| {
            let (train, test) = split.positions(&names)?;
            let (train, mut test) = (usable(train), usable(test));
            if distractors {
                let learned: BTreeSet<u64> = train.iter().copied().collect();
                test = units.clone();
                test.retain(|unit| !learned.contains(unit));
            }
            Ok((train, test))
        })
        .collect()
}

/// Units without and with the value.
fn split_by_value(filter: &Filter, input: &Input<'_>) -> Result<(Vec<u64>, Vec<u64>)> {
    let column = input.files.unit_table().table.column(&filter.column)?;
    let is_test =
        |unit: &u64| (column.get(*unit as usize).as_ref() == filter.value) == filter.equal;
    let (test, train): (Vec<u64>, Vec<u64>) = input.data.units().into_iter().partition(is_test);
    if test.is_empty() || train.is_empty() {
        bail!(
            "--test-where {filter} leaves {} to learn from and {} to judge by: expected some of both",
            train.len(),
            test.len()
        );
    }
    Ok((train, test))
}
