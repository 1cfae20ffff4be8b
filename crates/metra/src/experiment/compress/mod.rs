//! How many bytes does an item need? Maps with codes of many sizes are tried on the validation part, and for every
//! budget of bytes the best one is evaluated once on the test part, against the vectors as they are in f32.
//!
//! A code may be searched alone, or its first answers are rescored by int8 vectors that lie on disk: those of the
//! learned map before its code, or for maps that learn nothing the vectors as they are.

mod candidates;
mod neighbours;
mod result;
#[cfg(test)]
mod tests;

pub use neighbours::{NEIGHBOURS, neighbour_dataset};
pub use result::{CodeTrial, Compressed, CompressionPoint, CompressionResult, ValidationValue};

use super::definition::{ComparedMethod, Experiment};
use super::evaluation::TwoChains;
use super::holdout::Parts;
use super::new_items::{Criterion, NewItems};
use super::protocol::{EvaluationSettings, Protocol};
use super::scores::Scores;
use super::study::{Chosen, Study, only};
use super::verdicts::Verdicts;
use crate::model::{Chain, Embedding, Model, Space};
use crate::pipeline::{Fitted, Pipeline, registry};
use crate::supervision::Supervision;
use crate::training::{CodeSpec, Observer, Recipe, Run};
use crate::{Error, Result};
use candidates::{Candidate, baseline, candidates};
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressSettings {
    /// Bytes of an item, at most.
    pub bytes: Vec<usize>,
    /// First answers that are rescored from disk; 0 for none.
    pub rescore: usize,
    /// Largest acceptable loss of the criterion, for the recommendation.
    pub tolerance: f64,
}

impl Default for CompressSettings {
    fn default() -> Self {
        CompressSettings {
            bytes: vec![8, 16, 32, 64, 128, 256],
            rescore: 100,
            tolerance: 0.01,
        }
    }
}

impl Experiment<'_> {
    /// Find the best map and code for every budget on a split. The experiment's methods are those that learn;
    /// maps that learn nothing are tried beside them.
    pub fn compress(
        &self,
        split: usize,
        settings: &CompressSettings,
        observer: &mut dyn Observer,
    ) -> Result<CompressionResult> {
        let Some((parts, _)) = self.splits.get(split) else {
            let expected = format!("below {}", self.splits.len());
            return Err(Error::parameter("split", expected, split));
        };
        settings.check(parts, &self.judging)?;
        self.dataset.one_space("finding the smallest index")?;
        if let Some(base) = (self.base.as_ref()).filter(|base| !self.is_base(base)) {
            return Err(Error::parameter(
                "base",
                self.dataset.baselines().join(" or "),
                base,
            ));
        }
        let mut budgets = settings.bytes.clone();
        budgets.sort_unstable();
        budgets.dedup();
        let (base, criterion) = self.compression_base(split)?;
        let learned = self.tuned_methods(split, observer)?;
        let all = candidates(self.dataset.dim(), base, &learned, &budgets)?;
        let mut search = CodeSearch {
            experiment: self,
            split,
            base,
            criterion,
            rescore: settings.rescore,
            fits: BTreeMap::new(),
        };
        let (mut trials, mut chosen) = (Vec::new(), Vec::new());
        let mut first_error = None;
        for (number, candidate) in all.iter().enumerate() {
            observer.begin(&format!(
                "{}/{} {}",
                number + 1,
                all.len(),
                candidate.text()
            ));
            let (trial, found) = search.try_on_validation(candidate, observer)?;
            trials.push(trial);
            chosen.push(match found {
                Ok(found) => Some(found),
                Err(error) => {
                    first_error.get_or_insert(error);
                    None
                }
            });
        }
        if let (true, Some(error)) = (chosen.iter().all(Option::is_none), first_error) {
            return Err(error);
        }
        search.fits.clear();
        let tried: Vec<(&Candidate, Option<Chosen>)> = all.iter().zip(chosen).collect();
        search.points(&budgets, trials, &tried, settings.tolerance, observer)
    }

    /// The baseline, and what trials are compared by.
    fn compression_base(&self, split: usize) -> Result<(Space, Criterion)> {
        let Parts {
            train, validation, ..
        } = &self.splits[split].0;
        let study = self.study_of(&baseline(Space::SquaredL2), split);
        let base = study.choose_base(train, validation)?;
        let study = Study {
            base: Some(base),
            ..study
        };
        Ok((base, study.validation_criterion((train, validation))?))
    }

    /// The methods with settings chosen from their grids on the validation part, without a code.
    fn tuned_methods(
        &self,
        split: usize,
        observer: &mut dyn Observer,
    ) -> Result<Vec<ComparedMethod>> {
        let parts = &self.splits[split].0;
        let tuned = self.methods.iter().map(|method| {
            let mut method = method.clone();
            if !method.grid.is_empty() {
                let study = self.study_of(&method, split);
                let chosen = study.choose(&parts.train, &parts.validation, observer)?;
                method.settings = chosen.settings;
                method.recipe = chosen.recipe;
                method.grid.clear();
            }
            Ok(method)
        });
        tuned.collect()
    }
}

impl CompressSettings {
    /// Methods whose maps are tried, with the values of their settings that are worth trying: those named, or two that
    /// suit the supervision.
    pub fn methods(
        names: Option<&[&str]>,
        supervision: &Supervision,
        recipe: &Recipe,
    ) -> Result<Vec<ComparedMethod>> {
        let usual: &[&str] = match supervision {
            Supervision::Judgements(_) | Supervision::LabelSets(_) => &["adapter", "supcon"],
            _ => &["lda", "supcon"],
        };
        let methods = names.unwrap_or(usual).iter().map(|name| {
            let entry = registry::find(name)?;
            ComparedMethod::usual(entry.name.to_owned(), entry.name, recipe.clone())
        });
        methods.collect()
    }

    fn check(&self, parts: &Parts, judging: &EvaluationSettings) -> Result<()> {
        if parts.validation.is_empty() || parts.test.is_empty() {
            return Err(Error::Data(
                "codes are chosen on a validation part and judged on a test part: hold out both"
                    .into(),
            ));
        }
        if matches!(judging.protocol, Protocol::Classify(_)) || judging.rerank.is_some() {
            let expected = "a ranking without re-ranking: codes are judged by it";
            return Err(Error::parameter("protocol", expected, judging.protocol));
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(Error::parameter("tolerance", "0 or more", self.tolerance));
        }
        if self.bytes.is_empty() || self.bytes.contains(&0) {
            let found = format!("{:?}", self.bytes);
            return Err(Error::parameter("bytes", "numbers of at least 1", found));
        }
        Ok(())
    }
}

impl Candidate {
    /// Method and settings in words.
    fn text(&self) -> String {
        let mut words = vec![self.method.method.clone()];
        let recipe = self.method.recipe.to_string();
        if recipe != "none" {
            words.push(format!("prepare={recipe}"));
        }
        let settings = &self.method.settings;
        words.extend(
            settings
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.join(" ")
    }
}

/// The search for codes on one split.
struct CodeSearch<'e, 'a> {
    experiment: &'e Experiment<'a>,
    split: usize,
    base: Space,
    criterion: Criterion,
    rescore: usize,
    /// Fits without codes, by what they depend on: several codes share one.
    fits: BTreeMap<String, Fitted>,
}

impl CodeSearch<'_, '_> {
    fn parts(&self) -> &Parts {
        &self.experiment.splits[self.split].0
    }

    fn try_on_validation(
        &mut self,
        candidate: &Candidate,
        observer: &mut dyn Observer,
    ) -> Result<(CodeTrial, Result<Chosen>)> {
        let method = &candidate.method;
        let mut trial = CodeTrial {
            method: method.method.clone(),
            prepare: method.recipe.to_string(),
            settings: method.settings.clone(),
            learned: candidate.is_learned,
            code: candidate.code.to_string(),
            space: String::new(),
            item_bytes: None,
            alone: None,
            rescored: None,
            failure: None,
        };
        match self.judge_on_validation(candidate, &mut trial, observer) {
            Ok(chosen) => {
                let alone = trial.alone.map_or(0.0, |value| value.mean);
                let rescored = trial.rescored.map_or(String::new(), |value| {
                    format!(
                        ", {:.4} with rescoring of the first {}",
                        value.mean, self.rescore
                    )
                });
                observer.note(&format!(
                    "{}: {} bytes, {} {alone:.4}{rescored}",
                    candidate.text(),
                    trial.item_bytes.unwrap_or(0),
                    self.experiment.criterion,
                ));
                Ok((trial, Ok(chosen)))
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                trial.failure = Some(error.to_string());
                observer.note(&format!("{}: {error}", candidate.text()));
                Ok((trial, Err(error)))
            }
        }
    }

    fn judge_on_validation(
        &mut self,
        candidate: &Candidate,
        trial: &mut CodeTrial,
        observer: &mut dyn Observer,
    ) -> Result<Chosen> {
        let method = &candidate.method;
        let study = self.experiment.study_of(method, self.split);
        let pipeline = Pipeline::named(&method.method, &method.settings, &method.recipe)?;
        let Parts {
            train, validation, ..
        } = &self.experiment.splits[self.split].0;
        let key = pipeline.uncoded_key();
        if !self.fits.contains_key(&key) {
            let parts = (&train[..], &validation[..]);
            let fitted = study.fit_validated(&pipeline, parts, &self.criterion, None, observer)?;
            self.fits.insert(key.clone(), fitted);
        }
        let fitted = &self.fits[&key];
        let best = study.best_chain(&pipeline, fitted, (train, validation), &self.criterion)?;
        trial.space = best.chain.space().to_string();
        trial.item_bytes = Some(best.chain.item_bytes());
        trial.alone = Some(ValidationValue::new(best.value, &best.values));
        if self.rescore > 0 && is_lossy(candidate.code) {
            let fine = self.fine(candidate, &fitted.chain.in_space(best.chain.space())?)?;
            let stages = self.stages(&best.chain, &fine);
            let judging = study.judging_by_criterion();
            match (study.data).evaluate_rescored(&stages, validation, train, &judging) {
                Ok(scores) => {
                    let values = scores.values(study.criterion);
                    let value = self.criterion.value(&scores);
                    trial.rescored = Some(ValidationValue::new(value, values));
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // Searched alone, it may still serve.
                Err(error) => observer.note(&format!("rescoring {}: {error}", candidate.text())),
            }
        }
        Ok(Chosen {
            settings: method.settings.clone(),
            recipe: method.recipe.clone(),
            space: best.chain.space(),
            last_step: fitted.last_step(),
            value: Some(best.value),
            trials: Vec::new(),
            values: best.values,
        })
    }

    /// What first answers are rescored by: int8 of the map before its code, or of the vectors as they are
    /// where nothing is learned.
    fn fine(&self, candidate: &Candidate, uncoded: &Chain) -> Result<Chain> {
        let data = self.experiment.dataset;
        let chain = match candidate.is_learned {
            true => uncoded.clone(),
            false => Chain::identity(data.dim(), self.base),
        };
        let items = (data.items(), data.item_groups());
        CodeSpec::Int8.fit(chain, false, items, self.experiment.seed)
    }

    /// The model that rescores what `first` finds, with the record of how it came about.
    fn rescoring_model(&self, candidate: &Candidate, chain: Chain, first: &Model) -> Model {
        let mut origin = first.origin.clone();
        if !candidate.is_learned {
            let as_is = baseline(self.base);
            (origin.method, origin.parameters) = (as_is.method, as_is.settings);
            (origin.prepare, origin.facts) = (as_is.recipe.to_string(), BTreeMap::new());
        }
        let code = CodeSpec::Int8.to_string();
        origin.parameters.insert(registry::CODE.into(), code);
        Model {
            chain,
            origin,
            ..first.clone()
        }
    }

    fn stages<'c>(&self, coarse: &'c Chain, fine: &'c Chain) -> TwoChains<'c> {
        TwoChains {
            coarse,
            fine,
            first: self.rescore,
        }
    }

    /// The best of each budget, learned from training and validation part and evaluated on the test part.
    fn points(
        &self,
        budgets: &[usize],
        trials: Vec<CodeTrial>,
        tried: &[(&Candidate, Option<Chosen>)],
        tolerance: f64,
        observer: &mut dyn Observer,
    ) -> Result<CompressionResult> {
        let experiment = self.experiment;
        let learned_from = self.parts().learned_from();
        let study = experiment.study_of(&baseline(self.base), self.split);
        let test = &self.parts().test;
        let base = only(study.judge_base(&[self.base], test, &learned_from, &study.judging)?)?;
        let mut judged: BTreeMap<(usize, bool), usize> = BTreeMap::new();
        let mut found = Vec::new();
        let mut points = Vec::new();
        for &budget in budgets {
            let mut of_way = |is_rescored: bool, may_learn: bool| -> Result<Option<usize>> {
                let value = |trial: &CodeTrial| match is_rescored {
                    true => trial.rescored,
                    false => trial.alone,
                };
                let fits = |trial: &CodeTrial| trial.item_bytes.is_some_and(|b| b <= budget);
                let best = (trials.iter().enumerate())
                    .filter(|(_, trial)| fits(trial) && (may_learn || !trial.learned))
                    .filter_map(|(number, trial)| Some((number, value(trial)?.criterion)))
                    .fold(None, |best: Option<(usize, f64)>, found| match best {
                        Some(best) if best.1 >= found.1 => Some(best),
                        _ => Some(found),
                    });
                let Some((number, _)) = best else {
                    return Ok(None);
                };
                let (candidate, Some(chosen)) = &tried[number] else {
                    return Ok(None);
                };
                let key = (number, is_rescored);
                if let Some(place) = judged.get(&key) {
                    return Ok(Some(*place));
                }
                observer.begin(&format!("test {}", candidate.text()));
                let tried = (number, *candidate, chosen);
                found.push(self.judge_on_test(tried, is_rescored, &base, observer)?);
                judged.insert(key, found.len() - 1);
                Ok(Some(found.len() - 1))
            };
            let alone = of_way(false, true)?;
            points.push(CompressionPoint {
                budget,
                alone,
                unlearned: of_way(false, false)?.filter(|place| Some(*place) != alone),
                rescored: match self.rescore {
                    0 => None,
                    _ => of_way(true, true)?,
                },
            });
        }
        Ok(CompressionResult {
            measure: experiment.criterion,
            base: self.base,
            base_bytes: 4 * experiment.dataset.dim(),
            base_value: base.mean(experiment.criterion),
            points,
            found,
            trials,
            tolerance,
        })
    }

    fn judge_on_test(
        &self,
        (number, candidate, chosen): (usize, &Candidate, &Chosen),
        is_rescored: bool,
        base: &Scores,
        observer: &mut dyn Observer,
    ) -> Result<Compressed> {
        let study = self.experiment.study_of(&candidate.method, self.split);
        let learned_from = self.parts().learned_from();
        let part = study.data.select(&learned_from)?;
        let mut run = Run {
            seed: study.seed,
            observer: Some(observer),
            last_step: chosen.last_step,
            ..Run::default()
        };
        let pipeline = study.pipeline(chosen)?;
        let mut fitted = pipeline.fit_uncoded(&part, &mut run, None)?;
        let uncoded = fitted.chain.clone();
        fitted.chain = pipeline.coded(fitted.chain, &part, study.seed)?;
        let test = &self.parts().test;
        let (rank, item_bytes) = (fitted.chain.output_dim(), fitted.chain.item_bytes());
        let (scores, fine) = match is_rescored {
            false => (study.scores(&fitted.chain, test, &learned_from)?, None),
            true => {
                let fine = self.fine(candidate, &uncoded)?;
                let stages = self.stages(&fitted.chain, &fine);
                let judging = &study.judging;
                let found =
                    (study.data).evaluate_rescored(&stages, test, &learned_from, judging)?;
                (found, Some(fine))
            }
        };
        // Where all queries count alike, what training has seen of them says nothing.
        let seen = match study.judging.new_items {
            NewItems::All => None,
            _ => study.data.seen_queries(test, &learned_from),
        };
        let seen = (seen, study.data.seen_kind());
        let verdicts = Verdicts::new(base.clone(), scores, seen, study.seed)?;
        // What a model says of itself is what its own code gives.
        let held_out = (!is_rescored).then(|| self.experiment.held_out(&verdicts));
        let model = study.model(chosen, fitted, &learned_from, held_out)?;
        Ok(Compressed {
            trial: number,
            is_learned: candidate.is_learned,
            rank,
            item_bytes,
            rescoring: fine.map(|chain| self.rescoring_model(candidate, chain, &model)),
            model,
            verdicts,
        })
    }
}

/// Whether a code loses so much that rescoring may pay.
fn is_lossy(code: CodeSpec) -> bool {
    !matches!(code, CodeSpec::None | CodeSpec::Float16 | CodeSpec::Int8)
}
