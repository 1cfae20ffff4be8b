//! Training that starts from the map of an earlier model, with held-out parts that this model does not know.

use super::definition::Experiment;
use super::holdout::{HoldOut, Parts};
use crate::dataset::Dataset;
use crate::model::Model;
use crate::supervision::{Relevance, Supervision};
use crate::{Error, Result};
use std::collections::BTreeSet;

/// Validation units with something to find below which nothing is chosen by them.
const LEAST: usize = 50;

impl<'a> Experiment<'a> {
    /// Start every fit from the map of an earlier model.
    ///
    /// A test part of which this model has learned more than chance explains is an error. Of such a validation part those
    /// units are kept that the model surely has not learned from, and the others are learned from again: on them it
    /// would look better than it is, and few steps would be taken. Where too few are left, none is.
    ///
    /// # Returns
    ///
    /// How many units of validation parts are learned from instead.
    pub fn start_from(&mut self, model: &'a Model) -> Result<usize> {
        if self.holdout == HoldOut::Items {
            let expected = "rows, identities or queries, where training starts from a model";
            return Err(Error::parameter("holdout", expected, self.holdout));
        }
        self.choose_base()?;
        let mut moved = 0;
        for (split, (parts, _)) in self.splits.iter_mut().enumerate() {
            let seen = model.seen_rows(&*self.dataset.unit_rows(&parts.test)?)?;
            if let Some(seen) = seen.filter(|seen| seen.is_leak()) {
                return Err(Error::Data(format!(
                    "the model to start from has learned from {} of the {} rows in the test part of split {split} that can \
                     be recognised: expected a test part that it does not know, such as that of the splits by which it was \
                     trained, or none",
                    seen.seen, seen.recognisable
                )));
            }
            moved += keep_new(self.dataset, self.holdout, parts, model)?;
        }
        self.start = Some(model);
        Ok(moved)
    }
}

/// Keep the validation units that a model surely has not learned from, and with identities held out those of identities of
/// which it knows no row; how many are learned from instead.
fn keep_new(
    data: &Dataset<'_>,
    holdout: HoldOut,
    parts: &mut Parts,
    model: &Model,
) -> Result<usize> {
    let rows = data.unit_rows(&parts.validation)?;
    if !(model.seen_rows(&*rows)?).is_some_and(|seen| seen.is_leak()) {
        return Ok(0);
    }
    let known = model.knows_rows(&*rows)?.into_iter();
    let units = parts.validation.iter().copied().zip(known);
    let class = |unit: u64| data.labels().map(|labels| labels.of()[unit as usize]);
    let old: Vec<u64> = (units.filter(|(_, known)| *known != Some(false)))
        .map(|(unit, _)| unit)
        .collect();
    let old_classes: BTreeSet<u32> = old.iter().filter_map(|unit| class(*unit)).collect();
    let old: BTreeSet<u64> = old.into_iter().collect();
    let is_old = |unit: &u64| match (holdout, class(*unit)) {
        (HoldOut::Identities, Some(class)) => old_classes.contains(&class),
        _ => old.contains(unit),
    };
    let (old, new): (Vec<u64>, Vec<u64>) = parts.validation.iter().copied().partition(is_old);
    let (old, new) = match with_something_to_find(data, &new) < LEAST {
        true => (std::mem::take(&mut parts.validation), Vec::new()),
        false => (old, new),
    };
    let moved = old.len();
    parts.validation = new;
    parts.train.extend(old);
    parts.train.sort_unstable();
    Ok(moved)
}

/// How many units have another one of their class, or with one of their labels, among them; all, where there are
/// judgements.
fn with_something_to_find(data: &Dataset<'_>, units: &[u64]) -> usize {
    if let Supervision::LabelSets(sets) = data.supervision() {
        // Labels of units that there are.
        return sets.select(units).map_or(0, |part| {
            let rows = 0..units.len() as u64;
            rows.filter(|row| part.relevant_count(*row) > 0).count()
        });
    }
    let Some(labels) = data.labels() else {
        return units.len();
    };
    let mut counts = vec![0_usize; labels.classes()];
    for unit in units {
        counts[labels.of()[*unit as usize] as usize] += 1;
    }
    counts.into_iter().filter(|count| *count > 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::dataset::Dataset;
    use crate::evaluate::Measure;
    use crate::experiment::{ComparedMethod, EvaluationSettings, Protocol};
    use crate::pipeline::Pipeline;
    use crate::supervision::Labels;
    use crate::training::Recipe;
    use std::collections::BTreeMap;
    use std::ops::Range;

    struct Silent;
    impl crate::training::Observer for Silent {
        fn progress(&mut self, _: &crate::training::Progress) {}
    }

    #[test]
    fn held_out_parts_keep_what_the_earlier_model_does_not_know() {
        let recipe = Nuisance {
            classes: 5,
            signal: 3,
            noise: 3,
            seed: 2,
        };
        let set = recipe.rows(200);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let data = Dataset::builder(&set.corpus)
            .labels(labels)
            .build()
            .unwrap();
        let settings = BTreeMap::from([("rank", "3"), ("steps", "20")]);
        let settings: BTreeMap<String, String> = (settings.into_iter())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let first = Pipeline::named("warca", &settings, &Recipe::default()).unwrap();
        let first = first.fit(&data.select(&(0..100).collect::<Vec<u64>>()).unwrap());
        let first = first.unwrap();
        let experiment = |validation: Range<u64>, test: Range<u64>, holdout| {
            let is_held = |row: &u64| validation.contains(row) || test.contains(row);
            let parts = Parts {
                train: (0..200).filter(|row| !is_held(row)).collect(),
                validation: validation.clone().collect(),
                test: test.clone().collect(),
            };
            let judging = EvaluationSettings::new(
                &data,
                Protocol::default_for(data.supervision()),
                vec![Measure::AveragePrecision],
                None,
                1,
            );
            let method = ComparedMethod {
                name: "warca".into(),
                method: "warca".into(),
                settings: settings.clone(),
                recipe: Recipe::default(),
                grid: Vec::new(),
                spaces: Vec::new(),
                published: BTreeMap::new(),
            };
            let splits = (vec![(parts, 1)], holdout);
            Experiment::new(&data, splits, judging.unwrap(), vec![method], 1).unwrap()
        };
        let mut mixed = experiment(80..160, 160..200, HoldOut::Rows);
        assert_eq!(mixed.start_from(&first).unwrap(), 20);
        let parts = &mixed.splits[0].0;
        assert_eq!(parts.validation, (100..160).collect::<Vec<u64>>());
        assert_eq!(parts.train, (0..100).collect::<Vec<u64>>());
        assert!(mixed.base.is_some());
        // Trained, it stands for all rows that both have learned from.
        let trained = mixed.train(0, &mut Silent).unwrap().model;
        assert!(trained.origin.started_from.is_some());
        let seen = trained.seen_rows(&set.corpus).unwrap().unwrap();
        assert_eq!(seen.seen, 160);

        // Too few are left to choose by; a part without known rows stays whole.
        let mut few = experiment(80..120, 160..200, HoldOut::Rows);
        assert_eq!(few.start_from(&first).unwrap(), 40);
        assert_eq!(
            (
                few.splits[0].0.validation.len(),
                few.splits[0].0.train.len()
            ),
            (0, 160)
        );
        let mut new = experiment(100..120, 160..200, HoldOut::Rows);
        assert_eq!(new.start_from(&first).unwrap(), 0);
        assert_eq!(new.splits[0].0.validation.len(), 20);
        // Of identities all rows stay together; all five of them are known here.
        let mut whole = experiment(80..160, 160..200, HoldOut::Identities);
        assert_eq!(whole.start_from(&first).unwrap(), 80);

        let error = experiment(100..120, 90..150, HoldOut::Rows).start_from(&first);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("learned from 10 of the 60 rows"), "{error}");
        let error = experiment(100..120, 160..200, HoldOut::Items).start_from(&first);
        assert!(error.unwrap_err().to_string().contains("holdout"));
        // Where nothing is known of its rows, parts stay.
        let silent = Model {
            training: None,
            ..first
        };
        let mut unknown = experiment(80..120, 90..150, HoldOut::Rows);
        assert_eq!(unknown.start_from(&silent).unwrap(), 0);
        assert_eq!(unknown.splits[0].0.validation.len(), 40);
    }
}
