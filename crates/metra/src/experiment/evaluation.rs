//! Evaluates fitted preprocessing and a map on a part of a data set.

use super::protocol::{EvaluationSettings, Protocol, check_rerank};
use super::retrieval_task::RetrievalTask;
use super::scores::Scores;
use super::verdicts::SeenKind;
use crate::data::{Batch, ColumnRange, Corpus, Interruptible};
use crate::dataset::Dataset;
use crate::evaluate::{EvaluationOptions, evaluate, evaluate_reranked, evaluate_two_stages};
use crate::linalg::RowBuf;
use crate::model::{Chain, Embedding, Side, Space};
use crate::search::two_stages::Stage;
use crate::supervision::{Labels, Relevance, Supervision};
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

    /// The methods that a method is compared with where none is named.
    pub fn baselines(&self) -> &'static [&'static str] {
        match self.has_two_spaces() {
            true => &["procrustes"],
            false => &["euclid", "cosine"],
        }
    }

    /// What the baseline that is compared in this space is called.
    pub fn baseline_name(&self, base: Space) -> String {
        match self.has_two_spaces() {
            true => format!("procrustes by {base}"),
            false => base.to_string(),
        }
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
        if let Supervision::LabelSets(sets) = self.supervision()
            && sets.pairs() == sets.items() * (sets.items() - 1)
        {
            return Err(Error::Data(
                "every two rows share a label, so that every answer is right: leave out what all rows have"
                    .into(),
            ));
        }
        if settings.rerank.is_some() {
            check_rerank(chain, settings.protocol)?;
        }
        let mut scores: Vec<Result<Scores>> = spaces
            .iter()
            .map(|_| Ok(Scores::new(&settings.measures)))
            .collect();
        let options = options(settings);
        let mut evaluate_task = |task: &RetrievalTask<'_>| {
            // What was embedded for the task is asked for block by block.
            let stop = self.stop_or_never();
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
            // Neither has a class to find.
            Supervision::Judgements(_) | Supervision::LabelSets(_) => {}
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

    /// The flag that stops work on the data set, or one that is never set.
    fn stop_or_never(&self) -> &AtomicBool {
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.stop().unwrap_or(&NEVER)
    }

    /// Evaluate a search in two stages on some units: the `first` items by `coarse` are rescored by `fine`.
    pub(super) fn evaluate_rescored(
        &self,
        stages: &TwoChains<'_>,
        units: &[u64],
        trained: &[u64],
        settings: &EvaluationSettings,
    ) -> Result<Scores> {
        let options = options(settings);
        let mut scores = Scores::new(&settings.measures);
        let dims = [stages.coarse.output_dim(), stages.fine.output_dim()];
        self.retrieval_tasks(stages, units, trained, settings, &mut |task| {
            let stop = self.stop_or_never();
            let (first, second) = (0..dims[0], dims[0]..dims[0] + dims[1]);
            let queries = &Interruptible::new(task.queries, stop);
            let items = &Interruptible::new(task.items, stop);
            let coarse = Stage {
                space: stages.coarse.space(),
                queries: &ColumnRange::new(queries, first.clone())?,
                items: &ColumnRange::new(items, first)?,
            };
            let fine = Stage {
                space: stages.fine.space(),
                queries: &ColumnRange::new(queries, second.clone())?,
                items: &ColumnRange::new(items, second)?,
            };
            let found = evaluate_two_stages(coarse, fine, stages.first, task.truth, &options)?;
            scores.extend(task.ids, |unit| self.cluster(unit), &found);
            Ok(())
        })?;
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

fn options(settings: &EvaluationSettings) -> EvaluationOptions<'_> {
    EvaluationOptions {
        measures: settings.measures.clone(),
        ties: settings.ties,
        tie_rank: settings.tie_rank.as_deref(),
        gain: settings.gain,
        empty: settings.empty,
        ..EvaluationOptions::default()
    }
}

/// Two chains as one embedding: vectors of the first and then those of the second. Items are searched by the
/// first, and the first items are rescored by the second.
pub(super) struct TwoChains<'a> {
    pub(super) coarse: &'a Chain,
    pub(super) fine: &'a Chain,
    /// Items that are rescored.
    pub(super) first: usize,
}

impl TwoChains<'_> {
    fn embed(&self, first: u64, side: Side, batch: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        let mut parts = [RowBuf::empty(1), RowBuf::empty(1)];
        for (chain, part) in [self.coarse, self.fine].into_iter().zip(&mut parts) {
            match side {
                Side::Query => chain.embed_queries(first, batch, part)?,
                Side::Item => chain.embed_items(first, batch, part)?,
            }
        }
        out.reset(batch.rows.len(), self.output_dim());
        let (dim, width) = (parts[0].dim(), self.output_dim());
        for (number, row) in out.values_mut().chunks_exact_mut(width).enumerate() {
            row[..dim].copy_from_slice(parts[0].row(number));
            row[dim..].copy_from_slice(parts[1].row(number));
        }
        Ok(())
    }
}

impl Embedding for TwoChains<'_> {
    fn space(&self) -> Space {
        self.coarse.space()
    }

    fn input_dim(&self) -> usize {
        self.coarse.input_dim()
    }

    fn query_input_dim(&self) -> usize {
        self.coarse.query_input_dim()
    }

    fn output_dim(&self) -> usize {
        self.coarse.output_dim() + self.fine.output_dim()
    }

    fn embed_queries(&self, first: u64, queries: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.embed(first, Side::Query, queries, out)
    }

    fn embed_items(&self, first: u64, items: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.embed(first, Side::Item, items, out)
    }
}
