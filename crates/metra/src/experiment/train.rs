//! Trains one method on one split and returns the model with its test results; `metra train` and
//! every front end that trains one method use it.

use super::cost;
use super::definition::Experiment;
use super::study::{Chosen, Study};
use super::verdicts::Verdicts;
use crate::evaluate::{Comparison, Measure};
use crate::model::{HeldOut, MeasuredGain, Model, Space};
use crate::training::Observer;
use crate::{Error, Result};

/// What one split gave.
pub struct SplitResult {
    /// Settings chosen on the validation part.
    pub chosen: Chosen,
    /// The model, learned from training and validation part.
    pub model: Model,
    /// The baseline that it was compared with.
    pub base: Space,
    /// What the test part says; `None` where there is none.
    pub verdicts: Option<Verdicts>,
    /// CPU seconds of the fit with the chosen settings.
    pub cpu_seconds: f64,
}

impl<'a> Experiment<'a> {
    /// The study of the first method on a split.
    pub(super) fn first_study(&self, split: usize) -> Result<Study<'a>> {
        if self.methods.is_empty() || split >= self.splits.len() {
            let (methods, splits) = (self.methods.len(), self.splits.len());
            let expected = format!("a method and a split below {splits}");
            let found = format!("{methods} methods and split {split}");
            return Err(Error::shape("what to train", expected, found));
        }
        Ok(self.study(0, split))
    }

    /// Name the baseline where none was named: the better of Euclid and cosine on the validation part of
    /// the first split. All splits are then compared with the same one.
    pub fn choose_base(&mut self) -> Result<()> {
        if self.base.is_none() {
            let study = self.first_study(0)?;
            let parts = &self.splits[0].0;
            let base = study.choose_base(&parts.train, &parts.validation)?;
            self.base = Some(base.to_string());
        }
        Ok(())
    }

    /// Choose settings of the first method on the validation part of a split, learn from it too, and
    /// evaluate on the test part.
    pub fn train(&self, split: usize, observer: &mut dyn Observer) -> Result<SplitResult> {
        let study = self.first_study(split)?;
        let parts = &self.splits[split].0;
        let chosen = study.choose(&parts.train, &parts.validation, observer)?;
        let learned_from = parts.learned_from();
        observer.begin("fit");
        let (fitted, cpu_seconds) = cost::timed(|| study.fit(&learned_from, &chosen, observer));
        let fitted = fitted?;
        let base = study.choose_base(&parts.train, &parts.validation)?;
        let verdicts = match parts.test.is_empty() {
            true => None,
            false => Some(study.judge_test(&fitted.chain, base, &parts.test, &learned_from)?),
        };
        let held_out = verdicts.as_ref().map(|verdicts| self.held_out(verdicts));
        Ok(SplitResult {
            model: study.model(&chosen, fitted, &learned_from, held_out)?,
            chosen,
            base,
            verdicts,
            cpu_seconds,
        })
    }

    /// Learn from everything of a split with what was chosen there. The model keeps what its test part said.
    pub fn refit(
        &self,
        split: usize,
        result: &SplitResult,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let study = self.first_study(split)?;
        let parts = &self.splits[split].0;
        let mut all = [&parts.train[..], &parts.validation, &parts.test].concat();
        all.sort_unstable();
        observer.begin("refit");
        let fitted = study.fit(&all, &result.chosen, observer)?;
        let held_out = result.model.origin.held_out.clone();
        let mut model = study.model(&result.chosen, fitted, &all, held_out)?;
        model.origin.refit = true;
        Ok(model)
    }

    /// What a test part said, as a model keeps it.
    pub fn held_out(&self, verdicts: &Verdicts) -> HeldOut {
        let gains = |rows: &[(Measure, Comparison)]| {
            let gains = rows.iter().map(|(measure, found)| {
                let gain = MeasuredGain {
                    base: found.base,
                    learned: found.learned,
                    low: found.low,
                    high: found.high,
                };
                (measure.to_string(), gain)
            });
            gains.collect()
        };
        HeldOut {
            kind: self.holdout.to_string(),
            queries: verdicts.base.queries().len() as u64,
            measures: gains(&verdicts.rows),
            seen_items: gains(&verdicts.seen),
            unseen_items: gains(&verdicts.unseen),
        }
    }
}
