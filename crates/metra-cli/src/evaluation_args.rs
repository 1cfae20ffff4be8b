//! How held-out parts are judged, from the command's arguments.

use crate::inputs::Input;
use crate::inputs::protocol_for;
use anyhow::Result;
use clap::Args;
use metra::evaluate::Measure;
use metra::experiment::{Classifier, EvaluationSettings, NewItems, Protocol};
use metra::search::Rerank;

/// Protocol and measures.
#[derive(Args, Clone)]
pub(crate) struct EvaluationArgs {
    /// Evaluation protocol: leave-one-out, against-training (gallery = training rows), single-shot,
    /// cross-camera (default: leave-one-out; with qrels, queries against items)
    #[arg(help_heading = "Evaluation", long, hide_short_help = true)]
    pub(crate) protocol: Option<Protocol>,
    /// Evaluate classification accuracy instead of ranking: knn:K, gaussian, or zero-shot (unseen
    /// classes placed by orderings); :SHARE after the last two shrinks towards the pooled covariance
    #[arg(
        help_heading = "Evaluation",
        long,
        conflicts_with = "protocol",
        hide_short_help = true
    )]
    pub(crate) classifier: Option<Classifier>,
    /// Number of random draws of the single-shot protocol
    #[arg(
        help_heading = "Evaluation",
        long,
        value_name = "N",
        default_value_t = 1,
        hide_short_help = true
    )]
    pub(crate) repeats: u32,
    /// Measures to show, comma-separated (map, p@1, ndcg@10, cmc@5, mrr, auc, …)
    #[arg(
        help_heading = "Evaluation",
        long,
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub(crate) measures: Vec<Measure>,
    /// Measure by which settings are chosen (default: map with labels, ndcg@10 with qrels)
    #[arg(help_heading = "Evaluation", long, hide_short_help = true)]
    pub(crate) criterion: Option<Measure>,
    /// With qrels, choose settings for items that no training query names: yes, no, both (the best over
    /// all queries by which neither kind falls behind the baseline) or all (the best over all queries)
    #[arg(
        help_heading = "Evaluation",
        long,
        value_name = "RULE",
        default_value_t,
        hide_short_help = true
    )]
    pub(crate) new_items: NewItems,
    /// Re-rank by k-reciprocal neighbours before measuring, on validation parts too: `default`, or
    /// any of k1=20,k2=6,lambda=0.3
    #[arg(
        help_heading = "Evaluation",
        long,
        value_name = "SETTINGS",
        conflicts_with = "classifier",
        hide_short_help = true
    )]
    pub(crate) rerank: Option<Rerank>,
}

impl Default for EvaluationArgs {
    fn default() -> Self {
        EvaluationArgs {
            protocol: None,
            classifier: None,
            repeats: 1,
            measures: Vec::new(),
            criterion: None,
            new_items: NewItems::default(),
            rerank: None,
        }
    }
}

impl EvaluationArgs {
    /// How to judge, and the measure to choose by.
    pub(crate) fn settings(
        &self,
        input: &Input<'_>,
        seed: u64,
    ) -> Result<(EvaluationSettings, Measure)> {
        let protocol = match self.classifier {
            Some(classifier) => Protocol::Classify(classifier),
            None => protocol_for(self.protocol, self.repeats, input.data.supervision()),
        };
        let (settings, criterion) = EvaluationSettings::new(
            &input.data,
            protocol,
            self.measures.clone(),
            self.criterion,
            seed,
        )?;
        let settings = EvaluationSettings {
            rerank: self.rerank,
            new_items: self.new_items,
            ..settings
        };
        Ok((settings, criterion))
    }
}
