//! Evaluates a model on a data set that it was not trained on.

use super::protocol::{EvaluationSettings, Protocol};
use super::scores::Scores;
use super::study::only;
use crate::Result;
use crate::dataset::Dataset;
use crate::model::{Embedding, Model};

impl Model {
    /// Evaluate on all units of a data set, by the measures that belong to the protocol: one value for each
    /// query and measure, with means and intervals.
    pub fn evaluate(&self, data: &Dataset<'_>, protocol: Protocol) -> Result<Scores> {
        let (settings, _) = EvaluationSettings::new(data, protocol, Vec::new(), None, 1)?;
        let spaces = [self.chain.space()];
        only(data.evaluate_part(&self.chain, &spaces, &data.units(), &[], &settings)?)
    }
}
