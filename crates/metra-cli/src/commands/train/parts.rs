//! Which units learn, choose and judge: drawn, dealt out in folds, or as a file of splits has them.

use super::Train;
use crate::load::{Loaded, split_names};
use anyhow::{Result, ensure};
use metra::data::SplitSet;
use metra::study::{HoldOut, Material, Parts, Portion, folds, hold_out};
use metra_files::read_splits;

impl Train {
    /// The parts of every split.
    pub(super) fn parts(
        &self,
        material: &Material<'_>,
        table: &Loaded,
        units: &[u64],
        kind: HoldOut,
    ) -> Result<Vec<Parts>> {
        // Beyond some thousand rows a held-out part gains no precision that matters.
        let validation = Portion {
            share: self.validation,
            most: 4_000,
        };
        let test = Portion {
            share: self.test,
            most: 20_000,
        };
        let inner = |train: Vec<u64>, test: Vec<u64>, seed: u64| -> Result<Parts> {
            let (train, validation) =
                hold_out(material, &train, kind, validation, seed, "validation")?;
            Ok(Parts {
                train,
                validation,
                test,
            })
        };
        if let Some(path) = &self.splits {
            let set = read_splits(path)?;
            let mut all = self.file_splits(&set, material, table, units)?;
            if let Some(number) = self.split {
                ensure!(
                    number < all.len(),
                    "--split must be below {}, but is {number}",
                    all.len()
                );
                all = vec![all.swap_remove(number)];
            }
            return all
                .into_iter()
                .map(|(train, test)| inner(train, test, self.seed))
                .collect();
        }
        if let Some(count) = self.folds {
            return folds(material, units, kind, count, self.seed)?
                .into_iter()
                .map(|(rest, test)| inner(rest, test, self.seed))
                .collect();
        }
        if kind == HoldOut::None {
            ensure!(self.draws == 1, "--draws needs something to hold out");
            return Ok(vec![Parts {
                train: units.to_vec(),
                ..Parts::default()
            }]);
        }
        (0..self.draws)
            .map(|draw| {
                let seed = self.seed + draw;
                let (train, test) = hold_out(material, units, kind, test, seed, "test")?;
                inner(train, test, seed)
            })
            .collect()
    }

    fn file_splits(
        &self,
        set: &SplitSet,
        material: &Material<'_>,
        table: &Loaded,
        units: &[u64],
    ) -> Result<Vec<(Vec<u64>, Vec<u64>)>> {
        let names = split_names(set.by, material, table, &self.columns)?;
        let usable = |part: Vec<u64>| -> Vec<u64> {
            part.into_iter()
                .filter(|unit| units.binary_search(unit).is_ok())
                .collect()
        };
        (set.splits.iter())
            .map(|split| {
                let (train, test) = split.positions(&names)?;
                Ok((usable(train), usable(test)))
            })
            .collect()
    }
}
