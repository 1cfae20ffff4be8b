//! Train, validation and test parts: settings are chosen on the validation part, the test part is
//! evaluated once.

use crate::data::{positions, stratified_rows, whole_classes};
use crate::dataset::Dataset;
use crate::random::Stream;
use crate::supervision::{Judgements, Labels, Relevance, Supervision};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What is new at use, and so must be new in the held-out parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOut {
    /// Whole classes: re-identification, new products.
    Identities,
    /// Rows of known classes: intents, categories.
    Rows,
    /// Queries over known items.
    Queries,
    /// Queries none of whose relevant items training has seen.
    Items,
    /// Nothing is held out: no tuning, no table, no verdict.
    None,
}

impl fmt::Display for HoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HoldOut::Identities => "identities",
            HoldOut::Rows => "rows",
            HoldOut::Queries => "queries",
            HoldOut::Items => "items",
            HoldOut::None => "none",
        })
    }
}

impl FromStr for HoldOut {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "identities" => HoldOut::Identities,
            "rows" => HoldOut::Rows,
            "queries" => HoldOut::Queries,
            "items" => HoldOut::Items,
            "none" => HoldOut::None,
            other => {
                let expected = "identities, rows, queries, items or none";
                return Err(Error::parameter("holdout", expected, format!("{other:?}")));
            }
        })
    }
}

impl HoldOut {
    /// What fits the data set: queries with judgements, as [`HoldOut::for_labels`] says where rows
    /// have a label, rows where they have several, and none with comparisons alone: most of them would cross any split of rows,
    /// and nothing would say what is right for a held-out row.
    pub fn default_for(data: &Dataset<'_>) -> Self {
        match (data.supervision(), data.labels()) {
            (Supervision::Judgements(_), _) => HoldOut::Queries,
            (Supervision::LabelSets(_), _) => HoldOut::Rows,
            (_, Some(labels)) => HoldOut::for_labels(labels),
            (_, None) => HoldOut::None,
        }
    }

    /// Identities where the median class has fewer than five rows, as in re-identification; rows
    /// otherwise.
    pub fn for_labels(labels: &Labels) -> Self {
        if labels.median_class_size() < 5 {
            HoldOut::Identities
        } else {
            HoldOut::Rows
        }
    }
}

/// Share and largest size of a held-out part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Portion {
    /// Share of what there is.
    pub share: f64,
    /// At most this many rows (or queries): beyond some thousand, precision no longer needs them
    /// and training does.
    pub most: usize,
}

impl Portion {
    // Beyond some thousand rows a held-out part gains no precision that matters.

    /// A validation part of this share.
    pub(crate) fn validation(share: f64) -> Self {
        Portion { share, most: 4_000 }
    }

    /// A test part of this share.
    pub(crate) fn test(share: f64) -> Self {
        Portion {
            share,
            most: 20_000,
        }
    }
}

/// Draws of unseen classes before none is found to do.
const MOST_DRAWS: u64 = 1000;

/// Units (rows with labels, queries with judgements) of each part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// To learn from.
    pub train: Vec<u64>,
    /// To choose settings, score and number of steps.
    pub validation: Vec<u64>,
    /// To be read once.
    pub test: Vec<u64>,
}

impl Parts {
    /// One random test part and, out of the rest, one validation part, of these shares. Nothing is
    /// held out for a share of 0, or where `kind` says so.
    pub fn draw(
        data: &Dataset<'_>,
        units: &[u64],
        kind: HoldOut,
        (validation, test): (f64, f64),
        seed: u64,
    ) -> Result<Self> {
        let (rest, test) = match test == 0.0 {
            true => (units.to_vec(), Vec::new()),
            false => hold_out(data, units, kind, Portion::test(test), seed, "test")?,
        };
        Self::within(data, rest, test, kind, validation, seed)
    }

    /// A validation part of this share out of what is left beside a given test part.
    pub fn within(
        data: &Dataset<'_>,
        rest: Vec<u64>,
        test: Vec<u64>,
        kind: HoldOut,
        validation: f64,
        seed: u64,
    ) -> Result<Self> {
        let portion = Portion::validation(validation);
        let (train, validation) = match validation == 0.0 {
            true => (rest, Vec::new()),
            false => hold_out(data, &rest, kind, portion, seed, "validation")?,
        };
        Ok(Parts {
            train,
            validation,
            test,
        })
    }

    /// Take whole classes of the test part, drawn at random, from what is learned from, so that only the test part has
    /// them (zero-shot classes). Orderings of the classes still order two of the others. Returns their names.
    pub fn hide_classes(
        &mut self,
        data: &Dataset<'_>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<String>> {
        let Some(labels) = data.labels() else {
            let expected = "0 where rows have no labels";
            return Err(Error::parameter("unseen classes", expected, count));
        };
        let classes: BTreeSet<u32> = (self.train.iter().chain(&self.validation))
            .map(|unit| labels.of()[*unit as usize])
            .collect();
        let classes: Vec<u32> = classes.into_iter().collect();
        let tested: BTreeSet<u32> = (self.test.iter())
            .map(|unit| labels.of()[*unit as usize])
            .collect();
        let testable: Vec<u32> = (classes.iter().copied())
            .filter(|class| tested.contains(class))
            .collect();
        let is_usable = |hidden: &[u32]| match data.orderings() {
            Some(orderings) => (0..orderings.attributes()).all(|attribute| {
                let seen = classes.iter().filter(|class| !hidden.contains(class));
                let levels = seen.filter_map(|class| orderings.level(attribute, *class));
                levels.collect::<BTreeSet<u32>>().len() > 1
            }),
            None => true,
        };
        let most = testable.len().min(classes.len().max(2) - 2);
        if count > most {
            let expected =
                format!("at most {most}: two must be left, and the test part must have them");
            return Err(Error::parameter("unseen classes", expected, count));
        }
        let mut drawn = (0..MOST_DRAWS).map(|draw| {
            let mut stream = Stream::new(seed, "unseen classes", draw);
            let places = stream.choose(testable.len() as u64, count).into_iter();
            places
                .map(|place| testable[place as usize])
                .collect::<Vec<u32>>()
        });
        let hidden = drawn.find(|hidden| is_usable(hidden)).ok_or_else(|| {
            let expected = "fewer: without them an ordering would order no two classes";
            Error::parameter("unseen classes", expected, count)
        })?;
        for part in [&mut self.train, &mut self.validation] {
            part.retain(|unit| !hidden.contains(&labels.of()[*unit as usize]));
        }
        Ok((hidden.iter())
            .map(|class| labels.name(*class).to_owned())
            .collect())
    }

    /// Training and validation part together, in order: what the metric that the test part judges
    /// has learned from.
    pub fn learned_from(&self) -> Vec<u64> {
        let mut units = [&self.train[..], &self.validation].concat();
        units.sort_unstable();
        units
    }
}

/// Split `units` in two: kept and held out.
pub fn hold_out(
    data: &Dataset<'_>,
    units: &[u64],
    kind: HoldOut,
    portion: Portion,
    seed: u64,
    purpose: &str,
) -> Result<(Vec<u64>, Vec<u64>)> {
    if !(portion.share > 0.0 && portion.share < 1.0) {
        return Err(Error::parameter(
            "a held-out share",
            "between 0 and 1",
            portion.share,
        ));
    }
    let mut stream = Stream::new(seed, purpose, 0);
    let share = portion
        .share
        .min(portion.most as f64 / units.len().max(1) as f64);
    let pick = |places: Vec<u64>| places.into_iter().map(|p| units[p as usize]).collect();
    let labels = data.labels();
    let (kept, held): (Vec<u64>, Vec<u64>) = match (kind, data.supervision(), labels) {
        (HoldOut::None, _, _) => return Ok((units.to_vec(), Vec::new())),
        (HoldOut::Identities | HoldOut::Rows, _, Some(labels)) => {
            let classes: Vec<u32> = units.iter().map(|u| labels.of()[*u as usize]).collect();
            if kind == HoldOut::Identities {
                let (kept, held) = whole_classes(&classes, share, &mut stream);
                (pick(kept), pick(held))
            } else {
                // A smaller part takes fewer classes, not fewer rows of each: a held-out row needs
                // others of its class to be found.
                let (mut kept, part) = if share < portion.share {
                    whole_classes(&classes, share / portion.share, &mut stream)
                } else {
                    (Vec::new(), (0..units.len() as u64).collect())
                };
                let part_classes: Vec<u32> = part.iter().map(|p| classes[*p as usize]).collect();
                let (more, held) = stratified_rows(&part_classes, portion.share, &mut stream);
                kept.extend(more.into_iter().map(|p| part[p as usize]));
                kept.sort_unstable();
                (
                    pick(kept),
                    pick(held.into_iter().map(|p| part[p as usize]).collect()),
                )
            }
        }
        (HoldOut::Queries, Supervision::Judgements(_), _)
        | (HoldOut::Rows, Supervision::LabelSets(_), _) => {
            let (kept, held) = positions(units.len() as u64, share, &mut stream);
            (pick(kept), pick(held))
        }
        (HoldOut::Items, Supervision::Judgements(judgements), _) => {
            let (kept, held) = positions(units.len() as u64, share, &mut stream);
            let (kept, held): (Vec<u64>, Vec<u64>) = (pick(kept), pick(held));
            (without_shared_items(judgements, kept, &held), held)
        }
        (kind, supervision, _) => {
            return Err(unfit(supervision, labels, kind));
        }
    };
    if held.is_empty() || kept.is_empty() {
        return Err(Error::Data(format!(
            "holding out {kind} leaves {} of {} to learn from and {} to judge by: expected some of \
             both (use --holdout none to train without judging)",
            kept.len(),
            units.len(),
            held.len()
        )));
    }
    Ok((kept, held))
}

/// The error of a kind that the supervision does not allow.
pub(super) fn unfit(supervision: &Supervision, labels: Option<&Labels>, kind: HoldOut) -> Error {
    let expected = match (supervision, labels) {
        (Supervision::Judgements(_), _) => "queries, items or none with judgements",
        (Supervision::LabelSets(_), _) => "rows or none with several labels per row",
        (_, Some(_)) => "identities, rows or none with labels",
        (_, None) => "none with pairs, triplets or quadruplets alone",
    };
    Error::parameter("holdout", expected, kind)
}

/// Drop the queries that share a relevant item with one held out.
pub(super) fn without_shared_items(
    judgements: &Judgements,
    kept: Vec<u64>,
    held: &[u64],
) -> Vec<u64> {
    let mut taken = vec![false; judgements.items() as usize];
    for query in held {
        for (item, _) in judgements.of(*query) {
            taken[*item as usize] = true;
        }
    }
    kept.into_iter()
        .filter(|query| {
            judgements
                .of(*query)
                .iter()
                .all(|(item, _)| !taken[*item as usize])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::RowBuf;
    use crate::supervision::{ClassOrdering, Judgement, Orderings};
    use std::collections::BTreeMap;

    fn split(
        kind: HoldOut,
        classes: u64,
        rows: usize,
        portion: Portion,
    ) -> (Vec<u64>, Vec<u64>, Labels) {
        let set = Nuisance {
            classes,
            signal: 1,
            noise: 1,
            seed: 1,
        }
        .rows(rows);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let data = Dataset::builder(&set.corpus).labels(labels.clone());
        let data = data.build().unwrap();
        let units: Vec<u64> = (0..rows as u64).collect();
        let (kept, held) = hold_out(&data, &units, kind, portion, 1, "test").unwrap();
        (kept, held, labels)
    }

    #[test]
    fn hidden_classes_are_in_the_test_part_alone() {
        let rows = MemoryCorpus::new(RowBuf::zeros(30, 1)).unwrap();
        let names: Vec<&str> = (0..30)
            .map(|row| ["a", "b", "c", "d", "e"][row % 5])
            .collect();
        let labels = Labels::from_names(&names).unwrap();
        // Only e has more than the others: it can never be hidden.
        let ordering = ClassOrdering::parse("size", "a~b~c~d<e").unwrap();
        let orderings = Orderings::new(labels.clone(), vec![ordering]).unwrap();
        let plain = Supervision::labels(labels);
        let ordered = Supervision::Orderings(orderings);
        for supervision in [&plain, &ordered] {
            let data = Dataset::new(&rows, supervision).unwrap();
            let mut seen = BTreeSet::new();
            for seed in 0..20 {
                let whole = Parts {
                    train: (0..20).collect(),
                    validation: (20..25).collect(),
                    test: (25..30).collect(),
                };
                let mut parts = whole.clone();
                let hidden = parts.hide_classes(&data, 2, seed).unwrap();
                assert_eq!((hidden.len(), parts.test == whole.test), (2, true));
                assert_eq!((parts.train.len(), parts.validation.len()), (12, 3));
                let is_hidden = |unit: &u64| hidden.iter().any(|n| n == names[*unit as usize]);
                assert!(!parts.learned_from().iter().any(is_hidden));
                seen.extend(hidden);
                assert!(whole.clone().hide_classes(&data, 4, seed).is_err());
            }
            let ordered = matches!(supervision, Supervision::Orderings(_));
            assert_eq!(seen.contains("e"), !ordered);
            assert_eq!(seen.len(), if ordered { 4 } else { 5 });
        }
    }

    #[test]
    fn a_capped_part_of_rows_keeps_mates_together() {
        // 1,000 classes of 20 rows; 20 % would be 4,000 rows, at most 400 are taken: 4 rows each
        // of about 100 classes.
        let (kept, held, labels) = split(
            HoldOut::Rows,
            1000,
            20_000,
            Portion {
                share: 0.2,
                most: 400,
            },
        );
        assert_eq!(kept.len() + held.len(), 20_000);
        assert!((350..450).contains(&held.len()), "{}", held.len());
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        for row in &held {
            *sizes.entry(labels.of()[*row as usize]).or_default() += 1;
        }
        assert!(sizes.values().all(|s| *s == 4), "{sizes:?}");
    }

    #[test]
    fn held_out_identities_are_new() {
        let portion = Portion {
            share: 0.2,
            most: 100_000,
        };
        let (kept, held, labels) = split(HoldOut::Identities, 50, 200, portion);
        let class = |row: &u64| labels.of()[*row as usize];
        assert_eq!(held.len(), 40);
        assert!(
            held.iter()
                .all(|h| kept.iter().all(|k| class(k) != class(h)))
        );
    }

    #[test]
    fn held_out_items_are_unseen() {
        let set = Nuisance {
            classes: 5,
            signal: 1,
            noise: 1,
            seed: 1,
        }
        .rows(40);
        let lines: Vec<Judgement> = (0..40)
            .map(|query| Judgement {
                query,
                item: query / 2,
                grade: 1.0,
            })
            .collect();
        let data = Dataset::builder(&set.corpus)
            .queries(&set.corpus)
            .qrels(lines);
        let data = data.build().unwrap();
        let units: Vec<u64> = (0..40).collect();
        let portion = Portion {
            share: 0.25,
            most: 1000,
        };
        let (kept, held) = hold_out(&data, &units, HoldOut::Items, portion, 1, "test").unwrap();
        assert_eq!(held.len(), 10);
        assert!(held.iter().all(|h| kept.iter().all(|k| k / 2 != h / 2)));
        assert!(hold_out(&data, &units, HoldOut::Rows, portion, 1, "test").is_err());
    }
}
