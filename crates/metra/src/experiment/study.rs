//! One method on one split: settings chosen on the validation part, a fit with them, and one look at the
//! test part.

use super::classifier::Classifier;
use super::new_items::{Criterion, shortfall};
use super::protocol::{EvaluationSettings, Protocol};
use super::scores::Scores;
use super::verdicts::Verdicts;
use crate::dataset::Dataset;
use crate::evaluate::Measure;
use crate::methods::Procrustes;
use crate::model::{Chain, Embedding, HeldOut, Model, Space};
use crate::pipeline::{Fitted, Pipeline, registry};
use crate::supervision::Supervision;
use crate::training::{FitCheckpoint, Observer, Recipe, Run};
use crate::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be learned, and how it is to be chosen.
pub(super) struct Study<'a> {
    /// The data.
    pub(super) data: &'a Dataset<'a>,
    /// Name of the learner.
    pub method: String,
    /// Its parameters; those not named keep their defaults.
    pub settings: BTreeMap<String, String>,
    /// Preprocessing.
    pub recipe: Recipe,
    /// Values to try, for parameters and for `prepare`; all combinations are tried.
    pub grid: Vec<(String, Vec<String>)>,
    /// Whether the defaults are kept unless other values are better by more than a standard error.
    pub(super) prefer_defaults: bool,
    /// Scores to choose among; empty for those that the objective of the method is about.
    pub spaces: Vec<Space>,
    /// The base to beat; `None` for the better of Euclid and cosine on validation.
    pub base: Option<Space>,
    /// How parts are judged.
    pub judging: EvaluationSettings,
    /// The measure to choose by.
    pub criterion: Measure,
    /// Seed of all draws.
    pub seed: u64,
    /// The model whose map fits start from.
    pub(super) start: Option<&'a Model>,
    /// Where fits are kept.
    pub(super) checkpoint: Option<FitCheckpoint>,
}

/// One combination of settings with its value on validation.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Values of the tried parameters.
    pub settings: BTreeMap<String, String>,
    /// Best score after the map.
    pub space: String,
    /// Value of the criterion; `None` where the fit failed.
    pub value: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// All settings of the learner that differ from its defaults.
    pub settings: BTreeMap<String, String>,
    /// The preprocessing.
    pub recipe: Recipe,
    /// The score after the map.
    pub space: Space,
    /// Steps after which validation was best, for learners that work in steps.
    pub last_step: Option<u64>,
    /// Value of the criterion on validation.
    pub value: Option<f64>,
    /// All trials in order.
    pub trials: Vec<Trial>,
    /// Values of the criterion for the queries of the validation part.
    pub(super) values: Vec<f64>,
}

impl Chosen {
    /// Whether it is not behind another by more than a standard error over the validation queries (the
    /// one-standard-error rule of Breiman, Friedman, Olshen & Stone, 1984): with a few dozen of them,
    /// the best of several settings is mostly the luckiest.
    fn is_as_good_as(&self, other: &Chosen) -> bool {
        let allowed = self.value.is_some_and(|value| value >= 0.0);
        allowed && shortfall(&self.values, &other.values) == 0.0
    }
}

impl<'a> Study<'a> {
    /// The spaces to choose among.
    pub(super) fn spaces_of(&self, pipeline: &Pipeline) -> Result<Vec<Space>> {
        if self.spaces.is_empty() {
            return Ok(pipeline.own_spaces().to_vec());
        }
        let allowed = pipeline.spaces();
        match self.spaces.iter().find(|space| !allowed.contains(space)) {
            None => Ok(self.spaces.clone()),
            Some(space) => {
                let expected = format!("one that {} allows", self.method);
                Err(Error::parameter("score", expected, space))
            }
        }
    }

    pub(super) fn pipeline(&self, chosen: &Chosen) -> Result<Pipeline> {
        let pipeline = self.pipeline_with(&chosen.settings, &chosen.recipe)?;
        Ok(pipeline.score(chosen.space))
    }

    /// The pipeline with these settings and this preparation.
    pub(super) fn pipeline_with(
        &self,
        settings: &BTreeMap<String, String>,
        recipe: &Recipe,
    ) -> Result<Pipeline> {
        let pipeline = Pipeline::named(&self.method, settings, recipe)?;
        match self.start {
            Some(model) => pipeline.start_from(model),
            None => Ok(pipeline),
        }
    }

    /// Choose settings, score and number of steps on the validation part.
    pub(super) fn choose(
        &self,
        train: &[u64],
        validation: &[u64],
        observer: &mut dyn Observer,
    ) -> Result<Chosen> {
        let combinations = combinations(&self.grid);
        if validation.is_empty() {
            let [only] = &combinations[..] else {
                return Err(Error::parameter(
                    "tune",
                    "a single value where no validation part is held out",
                    format!("{} combinations", combinations.len()),
                ));
            };
            let (settings, recipe) = self.with(only)?;
            let pipeline = self.pipeline_with(&settings, &recipe)?;
            return Ok(Chosen {
                space: self.spaces_of(&pipeline)?[0],
                settings,
                recipe,
                last_step: None,
                value: None,
                trials: Vec::new(),
                values: Vec::new(),
            });
        }
        // A value that no fit could take is told before the first one.
        for tried in &combinations {
            let (settings, recipe) = self.with(tried)?;
            self.pipeline_with(&settings, &recipe)?;
        }
        let criterion = self.validation_criterion((train, validation))?;
        let (mut best, mut default): (Option<Chosen>, Option<Chosen>) = (None, None);
        let mut trials = Vec::new();
        let mut first_error = None;
        for (number, tried) in combinations.iter().enumerate() {
            let mut text: Vec<String> = tried.iter().map(|(n, v)| format!("{n}={v}")).collect();
            if text.is_empty() {
                text.push("fit".into());
            }
            observer.begin(&format!(
                "{}/{} {}",
                number + 1,
                combinations.len(),
                text.join(" ")
            ));
            let outcome = self.trial(tried, (train, validation), &criterion, None, observer);
            let mut trial = Trial {
                settings: tried.iter().cloned().collect(),
                space: String::new(),
                value: None,
                failure: None,
            };
            match outcome {
                Ok(chosen) => {
                    trial.space = chosen.space.to_string();
                    trial.value = chosen.value;
                    if self.is_default(tried)? {
                        default = Some(chosen.clone());
                    }
                    if best.as_ref().is_none_or(|b| chosen.value > b.value) {
                        best = Some(chosen);
                    }
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    observer.note(&format!("{}: failed: {error}", text.join(" ")));
                    trial.failure = Some(error.to_string());
                    first_error.get_or_insert(error);
                }
            }
            if let Some(value) = trial.value {
                let score = &trial.space;
                let found = match value < 0.0 {
                    true => "worse than the baseline on known or new items".to_owned(),
                    false => format!("{} {value:.4}", self.criterion),
                };
                observer.note(&format!("{}: {found} ({score})", text.join(" ")));
            }
            trials.push(trial);
            if best.is_some() && observer.is_enough() {
                break;
            }
        }
        match (best, first_error) {
            (Some(mut chosen), _) => {
                if let Some(default) = default.filter(|default| default.is_as_good_as(&chosen)) {
                    chosen = default;
                }
                chosen.trials = trials;
                Ok(chosen)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::Data("there was nothing to try".into())),
        }
    }

    /// Whether these are the defaults, and defaults are preferred.
    fn is_default(&self, tried: &[(String, String)]) -> Result<bool> {
        let parameters = (registry::find(&self.method)?.parameters)();
        let is_default = |(name, value): &(String, String)| {
            let known = parameters.iter().find(|known| known.name == name);
            known.is_some_and(|known| known.default == *value)
        };
        Ok(self.prefer_defaults && tried.iter().all(is_default))
    }

    /// Settings and preparation with these values in place.
    pub(super) fn with(
        &self,
        tried: &[(String, String)],
    ) -> Result<(BTreeMap<String, String>, Recipe)> {
        let mut settings = self.settings.clone();
        let mut recipe = self.recipe.clone();
        for (name, value) in tried {
            if name == "prepare" {
                recipe = value.parse()?;
            } else {
                settings.insert(name.clone(), value.clone());
            }
        }
        Ok((settings, recipe))
    }

    /// Fit with these values on the first part and judge by the criterion on the second; a learner
    /// in steps takes at most `last_step` of them.
    pub(super) fn trial(
        &self,
        tried: &[(String, String)],
        (train, validation): (&[u64], &[u64]),
        criterion: &Criterion,
        last_step: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Chosen> {
        let (settings, recipe) = self.with(tried)?;
        let pipeline = self.pipeline_with(&settings, &recipe)?;
        let parts = (train, validation);
        let fitted = self.fit_validated(&pipeline, parts, criterion, last_step, observer)?;
        let best = self.best_chain(&pipeline, &fitted, parts, criterion)?;
        Ok(Chosen {
            settings,
            recipe,
            space: best.chain.space(),
            last_step: fitted.last_step(),
            value: Some(best.value),
            trials: Vec::new(),
            values: best.values,
        })
    }

    /// Fit on the first part, without a code, and look at the second on the way.
    pub(super) fn fit_validated(
        &self,
        pipeline: &Pipeline,
        (train, validation): (&[u64], &[u64]),
        criterion: &Criterion,
        last_step: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Fitted> {
        let spaces = self.spaces_of(pipeline)?;
        let validate = |chain: &Chain| {
            // Codes are for one space each.
            let spaces = match chain.code() {
                None => &spaces[..],
                Some(_) => &[chain.space()],
            };
            let parts = (train, validation);
            Ok(self.best_space(chain, spaces, parts, criterion)?.value)
        };
        let mut run = Run {
            seed: self.seed,
            observer: Some(observer),
            last_step,
            checkpoint: self.checkpoint.clone(),
            // What is validated on decides where a fit ends.
            fit: *blake3::hash(bytemuck::cast_slice(validation)).as_bytes(),
            ..Run::default()
        };
        let part = self.data.select(train)?;
        pipeline.fit_uncoded(&part, &mut run, Some(&validate))
    }

    /// The chain of a fit to the first part in the space that does best on the second, coded as the pipeline
    /// says.
    pub(super) fn best_chain(
        &self,
        pipeline: &Pipeline,
        fitted: &Fitted,
        (train, validation): (&[u64], &[u64]),
        criterion: &Criterion,
    ) -> Result<Validated> {
        let (spaces, parts) = (self.spaces_of(pipeline)?, (train, validation));
        if !pipeline.is_coded() {
            return self.best_space(&fitted.chain, &spaces, parts, criterion);
        }
        let part = self.data.select(train)?;
        let coded = spaces.iter().map(|space| {
            let chain = pipeline.coded(fitted.chain.in_space(*space)?, &part, self.seed)?;
            self.best_space(&chain, &[*space], parts, criterion)
        });
        best_of(coded)
    }

    /// The best of some spaces for a chain on a validation part. A zero vector rules cosine out, not the method.
    fn best_space(
        &self,
        chain: &Chain,
        spaces: &[Space],
        (train, validation): (&[u64], &[u64]),
        criterion: &Criterion,
    ) -> Result<Validated> {
        let judging = self.judging_by_criterion();
        let scores = (self.data).evaluate_part(chain, spaces, validation, train, &judging)?;
        best_of(spaces.iter().zip(scores).map(|(space, scores)| {
            let scores = scores?;
            Ok(Validated {
                chain: chain.in_space(*space)?,
                value: criterion.value(&scores),
                values: scores.values(self.criterion).to_vec(),
            })
        }))
    }

    /// The evaluation by the criterion alone.
    pub(super) fn judging_by_criterion(&self) -> EvaluationSettings {
        EvaluationSettings {
            measures: vec![self.criterion],
            ..self.judging.clone()
        }
    }

    /// What settings are compared by on the validation part.
    pub(super) fn validation_criterion(
        &self,
        (train, validation): (&[u64], &[u64]),
    ) -> Result<Criterion> {
        let judged = matches!(self.data.supervision(), Supervision::Judgements(_));
        let seen = self.seen_queries(validation, train)?;
        let Some(seen) = seen.filter(|_| judged) else {
            return Ok(Criterion::mean(self.criterion));
        };
        let base = self.choose_base(train, validation)?;
        let judging = self.judging_by_criterion();
        let baseline = only(self.judge_base(&[base], validation, train, &judging)?)?;
        let rule = self.judging.new_items;
        Ok(Criterion::by_kinds(self.criterion, rule, seen, baseline))
    }

    /// See [`Dataset::seen_queries`]; the model that fits start from has seen its own items too. Where it does not say which,
    /// no query is about items that nobody saw.
    fn seen_queries(&self, units: &[u64], trained: &[u64]) -> Result<Option<BTreeSet<u64>>> {
        let seen = self.data.seen_queries(units, trained);
        let (Some(model), Supervision::Judgements(judgements), Some(mut seen)) =
            (self.start, self.data.supervision(), seen.clone())
        else {
            return Ok(seen);
        };
        let known = model.seen_items(self.data.items())?;
        let is_known = |unit: &u64| match &known {
            Some(known) => (judgements.of(*unit).iter()).any(|(item, _)| known[*item as usize]),
            None => true,
        };
        seen.extend(units.iter().copied().filter(is_known));
        Ok(Some(seen))
    }

    /// Fit with what was chosen on some units.
    pub(super) fn fit(
        &self,
        units: &[u64],
        chosen: &Chosen,
        observer: &mut dyn Observer,
    ) -> Result<Fitted> {
        let mut run = Run {
            seed: self.seed,
            observer: Some(observer),
            last_step: chosen.last_step,
            checkpoint: self.checkpoint.clone(),
            ..Run::default()
        };
        let part = self.data.select(units)?;
        self.pipeline(chosen)?.fit_chain(&part, &mut run)
    }

    /// The model of a fit to some units, with what the test part said.
    pub(super) fn model(
        &self,
        chosen: &Chosen,
        fitted: Fitted,
        units: &[u64],
        held_out: Option<HeldOut>,
    ) -> Result<Model> {
        (self.pipeline(chosen)?).model(self.data, fitted, self.seed, units, held_out)
    }

    /// What a method is compared with: the vectors as they are, or where queries and items are vectors of two models, queries
    /// rotated into the space of the items.
    fn baseline(&self, trained: &[u64]) -> Result<Chain> {
        if !self.data.has_two_spaces() {
            return Ok(Chain::identity(self.data.dim(), Space::SquaredL2));
        }
        let part = self.data.select(trained)?;
        let fitted = Pipeline::new(Procrustes::default());
        Ok(fitted.fit_chain(&part, &mut Run::new(self.seed))?.chain)
    }

    /// Judge the baseline. Where a Gaussian a class cannot be had of them, as with more
    /// dimensions than rows or with unseen classes, their five nearest neighbours vote instead.
    pub(super) fn judge_base(
        &self,
        spaces: &[Space],
        units: &[u64],
        trained: &[u64],
        judging: &EvaluationSettings,
    ) -> Result<Vec<Result<Scores>>> {
        let chain = self.baseline(trained)?;
        if !matches!(
            judging.protocol,
            Protocol::Classify(Classifier::ZeroShot { .. })
        ) {
            let scores = (self.data).evaluate_part(&chain, spaces, units, trained, judging)?;
            if !matches!(scores.first(), Some(Err(Error::Covariance { .. }))) {
                return Ok(scores);
            }
        }
        let voting = EvaluationSettings {
            protocol: Protocol::Classify(Classifier::Neighbours { k: 5 }),
            ..judging.clone()
        };
        (self.data).evaluate_part(&chain, spaces, units, trained, &voting)
    }

    /// The base: what was asked for, or the better of Euclid and cosine on the validation part.
    pub(super) fn choose_base(&self, train: &[u64], validation: &[u64]) -> Result<Space> {
        if let Some(base) = self.base {
            return Ok(base);
        }
        let two_spaces = self.data.has_two_spaces();
        if validation.is_empty() {
            return Ok(match two_spaces {
                true => Space::Cosine,
                false => Space::SquaredL2,
            });
        }
        let judging = self.judging_by_criterion();
        if two_spaces {
            // A rotation is about directions, which a vector of zeros does not have.
            let scores = self.judge_base(&[Space::Cosine], validation, train, &judging)?;
            return Ok(match scores.first() {
                Some(Ok(_)) => Space::Cosine,
                _ => Space::SquaredL2,
            });
        }
        let spaces = [Space::SquaredL2, Space::Cosine];
        let scores = self.judge_base(&spaces, validation, train, &judging)?;
        let mut scores = scores.into_iter();
        let (euclid, cosine) = (scores.next(), scores.next());
        let euclid = euclid.transpose()?.map_or(0.0, |s| s.mean(self.criterion));
        Ok(match cosine {
            Some(Ok(cosine)) if cosine.mean(self.criterion) > euclid => Space::Cosine,
            _ => Space::SquaredL2,
        })
    }

    /// Judge a metric on the test part.
    pub(super) fn scores(&self, fitted: &Chain, test: &[u64], trained: &[u64]) -> Result<Scores> {
        let space = fitted.space();
        let scores = (self.data).evaluate_part(fitted, &[space], test, trained, &self.judging)?;
        let scores = only(scores)?;
        if scores.queries().is_empty() {
            return Err(Error::Data(format!(
                "none of the {} test queries has anything relevant among what is searched",
                scores.skipped()
            )));
        }
        Ok(scores)
    }

    /// Judge base and learned on the test part.
    pub(super) fn judge_test(
        &self,
        fitted: &Chain,
        base: Space,
        test: &[u64],
        trained: &[u64],
    ) -> Result<Verdicts> {
        let base = only(self.judge_base(&[base], test, trained, &self.judging)?)?;
        let learned = self.scores(fitted, test, trained)?;
        let seen = self.seen_queries(test, trained)?;
        Verdicts::new(base, learned, (seen, self.data.seen_kind()), self.seed)
    }
}

/// A chain with what it is worth on a validation part.
pub(super) struct Validated {
    pub(super) chain: Chain,
    /// By the criterion.
    pub(super) value: f64,
    /// Values of the measure for the queries.
    pub(super) values: Vec<f64>,
}

/// The best of several, or the last failure where all failed.
fn best_of(all: impl Iterator<Item = Result<Validated>>) -> Result<Validated> {
    let mut best: Option<Validated> = None;
    let mut failure = Error::Data("there is no score to compare by".into());
    for found in all {
        match found {
            Ok(found) if best.as_ref().is_none_or(|best| found.value > best.value) => {
                best = Some(found);
            }
            Ok(_) => {}
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => failure = error,
        }
    }
    best.ok_or(failure)
}

pub(super) fn only(scores: Vec<Result<Scores>>) -> Result<Scores> {
    (scores.into_iter().next()).unwrap_or_else(|| Err(Error::Data("no scores".into())))
}

/// All combinations of a grid, in order; one empty combination for an empty grid.
pub(super) fn combinations(grid: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in grid {
        all = (all.iter())
            .flat_map(|so_far| {
                values.iter().map(move |value| {
                    let mut next: Vec<(String, String)> = so_far.clone();
                    next.push((name.clone(), value.clone()));
                    next
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_stay_unless_others_are_surely_better() {
        let chosen = |values: &[f64]| Chosen {
            settings: BTreeMap::new(),
            recipe: Recipe::default(),
            space: Space::Cosine,
            last_step: None,
            value: Some(values.iter().sum::<f64>() / values.len() as f64),
            trials: Vec::new(),
            values: values.to_vec(),
        };
        let default = chosen(&[0.5, 0.5, 0.5, 0.5]);
        // Differences of mean .05: with error .029 they are more than an error, with .096 they are not.
        assert!(!default.is_as_good_as(&chosen(&[0.6, 0.5, 0.6, 0.5])));
        assert!(default.is_as_good_as(&chosen(&[0.8, 0.3, 0.6, 0.5])));
        // Settings by which a kind of queries falls behind are not kept.
        let refused = Chosen {
            value: Some(-0.1),
            ..default
        };
        assert!(!refused.is_as_good_as(&chosen(&[0.8, 0.3, 0.6, 0.5])));
    }

    #[test]
    fn combinations_of_a_grid() {
        let grid = [
            ("a".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ("b".to_owned(), vec!["x".to_owned()]),
        ];
        let all = combinations(&grid);
        assert_eq!(all.len(), 2);
        assert_eq!(
            all[1],
            vec![("a".into(), "2".into()), ("b".into(), "x".into())]
        );
        assert_eq!(combinations(&[]).len(), 1);
    }
}
