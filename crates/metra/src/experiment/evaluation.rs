//! Evaluates fitted preprocessing and a map on a part of a data set.

use super::protocol::{EvaluationSettings, Protocol, check_rerank};
use super::retrieval_task::RetrievalTask;
use super::scores::Scores;
use super::verdicts::SeenKind;
use crate::data::{Corpus, Interruptible};
use crate::dataset::Dataset;
use crate::evaluate::{EvaluationOptions, evaluate, evaluate_reranked};
use crate::model::{Chain, Side, Space};
use crate::supervision::{Labels, Supervision};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

impl Dataset<'_> {
    /// The labels that rows are evaluated by, or an error that names what there is instead.
    pub(super) fn evaluation_labels(&self) -> Result<&Labels> {
        self.labels().ok_or_else(|| {
            Error::Data(format!(
                "evaluating a ranking needs labels or relevance judgements, but there are only {}",
                self.supervision().describe()
            ))
        })
    }

    /// Evaluate a chain on some units, in each of the spaces. `trained` are the units learned from,
    /// which serve as the gallery of [`Protocol::AgainstTraining`].
    pub fn evaluate_part(
        &self,
        chain: &Chain,
        spaces: &[Space],
        units: &[u64],
        trained: &[u64],
        settings: &EvaluationSettings,
    ) -> Result<Vec<Result<Scores>>> {
        if self.labels().is_some_and(|labels| labels.classes() < 2) {
            return Err(Error::Data(
                "all rows are of one class, so that every answer is right: expected at least 2 classes"
                    .into(),
            ));
        }
        if settings.rerank.is_some() {
            check_rerank(chain.map(), settings.protocol)?;
        }
        let mut scores: Vec<Result<Scores>> = spaces
            .iter()
            .map(|_| Ok(Scores::new(&settings.measures)))
            .collect();
        let options = EvaluationOptions {
            measures: settings.measures.clone(),
            ties: settings.ties,
            tie_rank: settings.tie_rank.as_deref(),
            gain: settings.gain,
            empty: settings.empty,
            ..EvaluationOptions::default()
        };
        let mut evaluate_task = |task: &RetrievalTask<'_>| {
            // What was embedded for the task is asked for block by block.
            static NEVER: AtomicBool = AtomicBool::new(false);
            let stop = self.stop().unwrap_or(&NEVER);
            let queries = &Interruptible::new(task.queries, stop);
            let (items, truth) = (&Interruptible::new(task.items, stop), task.truth);
            for (space, scores) in spaces.iter().zip(&mut scores) {
                if let Ok(so_far) = scores {
                    let found = match &settings.rerank {
                        None => evaluate(*space, queries, items, truth, &options),
                        Some(rerank) => {
                            let own = task.own;
                            evaluate_reranked(rerank, *space, queries, items, own, truth, &options)
                        }
                    };
                    match found {
                        Ok(found) => so_far.extend(task.ids, |unit| self.cluster(unit), &found),
                        // What one score cannot rank, others may; Ctrl-C ends them all.
                        Err(Error::Interrupted) => return Err(Error::Interrupted),
                        Err(error) => *scores = Err(error),
                    }
                }
            }
            Ok(())
        };
        match self.supervision() {
            // Judgements and classes found exclude each other.
            Supervision::Judgements(_) => {}
            _ => {
                let labels = self.evaluation_labels()?;
                if let Protocol::Classify(classifier) = settings.protocol {
                    let part_labels = labels.select(units)?;
                    let queries = self.embed_items(chain, Side::Query, Some(units))?;
                    let known = self.embed_items(chain, Side::Item, Some(trained))?;
                    let known_labels = labels.select(trained)?;
                    for (space, scores) in spaces.iter().zip(&mut scores) {
                        let part: (&dyn Corpus, &Labels) = (&queries, &part_labels);
                        let found = classifier.judge(
                            *space,
                            part,
                            (&known, &known_labels),
                            (self.tree(), self.orderings()),
                            &settings.measures,
                        );
                        match (found, scores) {
                            (Ok(values), Ok(scores)) => {
                                scores.extend_classified(units, |unit| self.cluster(unit), &values);
                            }
                            (Err(error), scores) => *scores = Err(error),
                            (Ok(_), Err(_)) => {}
                        }
                    }
                    return Ok(scores);
                }
            }
        }
        self.retrieval_tasks(chain, units, trained, settings, &mut evaluate_task)?;
        Ok(scores)
    }

    /// What training had seen, or not, of the queries that [`Dataset::seen_queries`] tells apart.
    pub(super) fn seen_kind(&self) -> SeenKind {
        match self.supervision() {
            Supervision::Orderings(_) => SeenKind::Classes,
            _ => SeenKind::Items,
        }
    }

    /// Of these queries those with a relevant item that training had seen as relevant to one of
    /// its own, or, with orderings of classes, those of a class that training had rows of. `None` without either.
    pub(super) fn seen_queries(&self, queries: &[u64], trained: &[u64]) -> Option<BTreeSet<u64>> {
        let judgements = match self.supervision() {
            Supervision::Judgements(judgements) => judgements,
            Supervision::Orderings(orderings) => {
                let class = |unit: &u64| orderings.labels().of()[*unit as usize];
                let known: BTreeSet<u32> = trained.iter().map(class).collect();
                let seen = queries.iter().filter(|unit| known.contains(&class(unit)));
                let seen: BTreeSet<u64> = seen.copied().collect();
                return Some(seen);
            }
            _ => return None,
        };
        let known = judgements.restricted_to(trained).judged_items();
        let items = |query: &u64| judgements.of(*query).iter();
        let seen = |query: &u64| items(query).any(|(item, _)| known[*item as usize]);
        Some(queries.iter().copied().filter(seen).collect())
    }
}
