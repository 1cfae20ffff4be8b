//! One split from choice to model: what `metra train` does, and every front end that trains.

use super::{Chosen, Fitted, HoldOut, Parts, Study, Verdicts, Watch, cost};
use crate::Result;
use crate::data::{Narrowing, fingerprint};
use crate::metric::{Gain, HeldOut, Model, Origin, Space};
use std::sync::atomic::AtomicBool;

/// What one split gave.
pub struct Training {
    /// Settings chosen on the validation part.
    pub chosen: Chosen,
    /// The metric, learned from training and validation part.
    pub fitted: Fitted,
    /// The base that it was compared with.
    pub base: Space,
    /// What the test part says; `None` where there is none.
    pub verdicts: Option<Verdicts>,
    /// CPU seconds of the fit with the chosen settings.
    pub cpu_seconds: f64,
}

impl Study<'_> {
    /// Choose on the validation part, learn from it too, and judge on the test part.
    pub fn train(
        &self,
        parts: &Parts,
        watch: &mut dyn Watch,
        stop: Option<&AtomicBool>,
    ) -> Result<Training> {
        let chosen = self.choose(&parts.train, &parts.validation, watch, stop)?;
        let learned_from = parts.learned_from();
        watch.begin("fit");
        let (fitted, cpu_seconds) = cost::timed(|| self.fit(&learned_from, &chosen, watch, stop));
        let fitted = fitted?;
        let base = self.choose_base(&parts.train, &parts.validation)?;
        let verdicts = match parts.test.is_empty() {
            true => None,
            false => Some(self.judge_test(&fitted.chain, base, &parts.test, &learned_from)?),
        };
        Ok(Training {
            chosen,
            fitted,
            base,
            verdicts,
            cpu_seconds,
        })
    }

    /// Learn from everything with what was chosen.
    pub fn refit(
        &self,
        parts: &Parts,
        chosen: &Chosen,
        watch: &mut dyn Watch,
        stop: Option<&AtomicBool>,
    ) -> Result<Fitted> {
        let mut all = [&parts.train[..], &parts.validation, &parts.test].concat();
        all.sort_unstable();
        watch.begin("refit");
        self.fit(&all, chosen, watch, stop)
    }

    /// The model to save. `judged` is what the test part said, with what was new in it; `narrowing`
    /// is how the vectors became f32.
    pub fn model(
        &self,
        chosen: &Chosen,
        fitted: Fitted,
        judged: Option<(&Verdicts, HoldOut)>,
        narrowing: Option<Narrowing>,
    ) -> Result<Model> {
        let held_out = judged.map(|(verdicts, kind)| HeldOut {
            kind: kind.to_string(),
            queries: verdicts.base.queries().len() as u64,
            measures: (verdicts.rows.iter())
                .map(|(measure, found)| {
                    let gain = Gain {
                        base: found.base,
                        learned: found.learned,
                        low: found.low,
                        high: found.high,
                    };
                    (measure.to_string(), gain)
                })
                .collect(),
        });
        let origin = Origin {
            method: self.method.clone(),
            parameters: fitted.parameters,
            prepare: chosen.recipe.to_string(),
            seed: self.seed,
            data: fingerprint(self.material.items.corpus)?,
            supervision: self.material.supervision.fingerprint(),
            facts: fitted.facts,
            held_out,
        };
        Model::new(narrowing, fitted.chain, origin)?.with_outputs(fitted.outputs)
    }
}
