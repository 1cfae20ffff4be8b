//! Is it worth adding several rankings up, and by which weights? Weights are learned on some queries and evaluated on others, fold by
//! fold, against every ranking alone, reciprocal-rank fusion and equal weights.
//!
//! Whatever is chosen (the scale of scores, for equal weights too) is chosen on the queries that are not evaluated.

use super::scores::Scores;
use super::verdicts::{SeenKind, Verdicts};
use crate::evaluate::{Comparison, Measure, RankedQuery, Verdict};
use crate::random::{Stream, dealt};
use crate::search::{Fusion, ScoreScale};
use crate::training::JudgedLists;
use crate::training::fusion_weights::{ScaledQuery, fit_scaled, lists_of};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;

/// Scales that learned weights are tried on. Ranks have no place here: their fusion is there to need no learning.
const LEARNED_SCALES: [ScoreScale; 3] = [ScoreScale::Raw, ScoreScale::MinMax, ScoreScale::ZScore];
/// Scales on which lists of any origin can have equal weights.
const EQUAL_SCALES: [ScoreScale; 2] = [ScoreScale::MinMax, ScoreScale::ZScore];
/// Parts of the queries to learn from by which the scale of learned weights is chosen.
const INNER_FOLDS: usize = 3;

/// How weights are learned and evaluated.
#[derive(Debug, Clone)]
pub struct FusionStudy {
    /// What is measured; scales are chosen and the advice is given by the first.
    pub measures: Vec<Measure>,
    /// How often the queries are dealt into a part to learn from and a part to evaluate on.
    pub folds: usize,
    /// Seed of the folds and of the bootstrap.
    pub seed: u64,
}

/// What learned weights are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlearned {
    /// One of the rankings.
    Alone(usize),
    /// Reciprocal-rank fusion.
    ReciprocalRank,
    /// Equal weights of scores from 0 to 1 or in standard deviations.
    Equal,
}

/// One of them, with the learned weights against it.
pub struct FusionContender {
    /// Which one it is.
    pub kind: Unlearned,
    /// Its scores are the base here.
    pub against: Verdicts,
}

/// What to do with several rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusionAdvice {
    /// Add them up by the learned weights.
    Learned,
    /// Add them up without learned weights, which were not shown to be better.
    Unlearned(Unlearned),
}

/// What a study found.
pub struct FusionFound {
    /// Weights learned from all judged queries.
    pub fusion: Fusion,
    /// Equal weights on the scale that serves best on all judged queries.
    pub equal: Fusion,
    /// Those that were learned in each fold.
    pub of_folds: Vec<Fusion>,
    /// For every query the fold in which it was evaluated.
    pub fold_of: Vec<usize>,
    /// The scores of learned weights on queries that they had not seen.
    pub learned: Scores,
    /// What they are compared with: each ranking alone, by ranks, by equal weights.
    pub contenders: Vec<FusionContender>,
    /// What to do.
    pub advice: FusionAdvice,
}

impl FusionStudy {
    /// Learn and evaluate weights. All queries have as many lists.
    pub fn run(&self, queries: &[JudgedLists]) -> Result<FusionFound> {
        let lists = lists_of(queries)?;
        if lists < 2 {
            return Err(Error::shape("ranked lists to add up", "at least 2", lists));
        }
        if self.folds < 2 || self.folds > queries.len() {
            let expected = format!(
                "between 2 and {} (the judged queries there are)",
                queries.len()
            );
            return Err(Error::parameter("folds", expected, self.folds));
        }
        let fold_of = Stream::new(self.seed, "fusion folds", 0).deal(queries.len(), self.folds);
        let task = FusionTask::new(queries, lists);
        let (mut of_folds, mut equal) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for fold in 0..self.folds {
            let rest = dealt(&fold_of, fold, false);
            of_folds.push(self.learned(&task, &rest)?);
            equal.push(self.best_equal(&task, &rest)?);
            let items = |number: usize| queries[number].grades.keys().copied();
            let known: BTreeSet<u32> = rest.into_iter().flat_map(items).collect();
            let is_seen = |number: &usize| items(*number).any(|item| known.contains(&item));
            seen.extend(
                dealt(&fold_of, fold, true)
                    .into_iter()
                    .filter(is_seen)
                    .map(|number| number as u64),
            );
        }
        let all: Vec<usize> = (0..queries.len()).collect();
        let scores = |fusion: &dyn Fn(usize) -> Fusion| task.scores(&all, &self.measures, fusion);
        let learned = scores(&|query| of_folds[fold_of[query]].clone())?;
        let mut contenders = Vec::new();
        let alone = (0..lists).map(Unlearned::Alone);
        for kind in alone.chain([Unlearned::ReciprocalRank, Unlearned::Equal]) {
            let base = match kind {
                Unlearned::Equal => scores(&|query| equal[fold_of[query]].clone())?,
                Unlearned::ReciprocalRank => {
                    let fusion = Fusion::equal(ScoreScale::ReciprocalRank, lists)?;
                    scores(&|_| fusion.clone())?
                }
                Unlearned::Alone(list) => {
                    let weights = (0..lists).map(|other| if other == list { 1.0 } else { 0.0 });
                    let fusion = Fusion::new(ScoreScale::Raw, weights.collect())?;
                    scores(&|_| fusion.clone())?
                }
            };
            let seen = (Some(seen.clone()), SeenKind::Items);
            let against = Verdicts::new(base, learned.clone(), seen, self.seed)?;
            contenders.push(FusionContender { kind, against });
        }
        Ok(FusionFound {
            fusion: self.learned(&task, &all)?,
            equal: self.best_equal(&task, &all)?,
            of_folds,
            fold_of,
            advice: self.advice(&contenders)?,
            learned,
            contenders,
        })
    }

    fn criterion(&self) -> Result<Measure> {
        let first = self.measures.first().copied();
        first.ok_or_else(|| Error::shape("measures", "at least 1", 0))
    }

    /// Weights on the scale that serves best on parts of these queries which the weights had not seen.
    fn learned(&self, task: &FusionTask, queries: &[usize]) -> Result<Fusion> {
        let folds = INNER_FOLDS.min(queries.len());
        let value = |scale: ScoreScale| -> Result<f64> {
            let mut values = 0.0;
            for fold in 0..folds {
                let part = |is_test: bool| -> Vec<usize> {
                    let places =
                        (0..queries.len()).filter(|place| (place % folds == fold) == is_test);
                    places.map(|place| queries[place]).collect()
                };
                let fusion = task.fit(&part(false), scale)?;
                let test = part(true);
                values += test.len() as f64 * self.value(task, &test, &fusion)?;
            }
            Ok(values / queries.len() as f64)
        };
        task.fit(queries, best_scale(&LEARNED_SCALES, value)?)
    }

    fn best_equal(&self, task: &FusionTask, queries: &[usize]) -> Result<Fusion> {
        let equal = |scale| Fusion::equal(scale, task.lists);
        equal(best_scale(&EQUAL_SCALES, |scale| {
            self.value(task, queries, &equal(scale)?)
        })?)
    }

    fn value(&self, task: &FusionTask, queries: &[usize], fusion: &Fusion) -> Result<f64> {
        let criterion = self.criterion()?;
        let scores = task.scores(queries, &[criterion], &|_| fusion.clone())?;
        Ok(scores.mean(criterion))
    }

    /// Every claim is that the whole interval of a difference lies on one side of 0, for all that it is claimed against.
    fn advice(&self, contenders: &[FusionContender]) -> Result<FusionAdvice> {
        let criterion = self.criterion()?;
        let verdict = |rows: &[(Measure, Comparison)]| {
            let row = rows.iter().find(|(measure, _)| *measure == criterion);
            row.map_or(Verdict::NoEvidence, |(_, found)| found.verdict())
        };
        let is_alone = |contender: &&FusionContender| matches!(contender.kind, Unlearned::Alone(_));
        // Learned weights are shown to be better than it, and not at the cost of new items.
        let is_beaten = |contender: &FusionContender| {
            verdict(&contender.against.rows) == Verdict::Better
                && verdict(&contender.against.unseen) != Verdict::Worse
        };
        if contenders.iter().all(is_beaten) {
            return Ok(FusionAdvice::Learned);
        }
        let mean = |contender: &&FusionContender| contender.against.base.mean(criterion);
        let best = |of: &[&FusionContender]| {
            let best = of
                .iter()
                .copied()
                .max_by(|a, b| mean(a).total_cmp(&mean(b)));
            best.map(|contender| contender.kind)
        };
        let mut simple = Vec::new();
        for contender in contenders.iter().filter(|contender| !is_alone(contender)) {
            let mut beats = !is_beaten(contender);
            for alone in contenders.iter().filter(is_alone) {
                let gain =
                    contender
                        .against
                        .base
                        .against(&alone.against.base, criterion, self.seed)?;
                beats &= gain.verdict() == Verdict::Better;
            }
            if beats {
                simple.push(contender);
            }
        }
        if let Some(kind) = best(&simple) {
            return Ok(FusionAdvice::Unlearned(kind));
        }
        let alone: Vec<&FusionContender> = contenders.iter().filter(is_alone).collect();
        if alone.iter().all(|contender| is_beaten(contender)) {
            return Ok(FusionAdvice::Learned);
        }
        Ok(best(&alone).map_or(FusionAdvice::Learned, FusionAdvice::Unlearned))
    }
}

/// The queries on all scales.
struct FusionTask {
    lists: usize,
    scaled: Vec<(ScoreScale, Vec<ScaledQuery>)>,
}

impl FusionTask {
    fn new(queries: &[JudgedLists], lists: usize) -> Self {
        let scaled = ScoreScale::ALL.map(|scale| {
            let of =
                (queries.iter()).map(|query| ScaledQuery::new(&query.lists, &query.grades, scale));
            (scale, of.collect())
        });
        FusionTask {
            lists,
            scaled: scaled.into(),
        }
    }

    fn on(&self, wanted: ScoreScale) -> &[ScaledQuery] {
        let found = self.scaled.iter().find(|(scale, _)| *scale == wanted);
        found.map_or(&[], |(_, queries)| queries)
    }

    fn fit(&self, queries: &[usize], scale: ScoreScale) -> Result<Fusion> {
        let all = self.on(scale);
        fit_scaled(
            queries.iter().map(|number| &all[*number]),
            scale,
            self.lists,
        )
    }

    /// Scores of queries, each fused as `fusion` has it for its number.
    fn scores(
        &self,
        queries: &[usize],
        measures: &[Measure],
        fusion: &dyn Fn(usize) -> Fusion,
    ) -> Result<Scores> {
        let ranked = |number: &usize| {
            let fusion = fusion(*number);
            self.on(fusion.scale())[*number].ranked(fusion.weights(), *number as u64)
        };
        let ranked: Vec<RankedQuery> = queries.iter().map(ranked).collect();
        let numbers: Vec<u64> = queries.iter().map(|number| *number as u64).collect();
        Scores::of_rankings(&numbers, |query| query, &ranked, measures)
    }
}

impl fmt::Display for FusionAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FusionAdvice::Learned => "learned weights",
            FusionAdvice::Unlearned(Unlearned::Alone(_)) => "one ranking alone",
            FusionAdvice::Unlearned(Unlearned::ReciprocalRank) => "reciprocal-rank fusion",
            FusionAdvice::Unlearned(Unlearned::Equal) => "equal weights",
        })
    }
}

/// The scale with the largest value, the first of equal ones. Where weights cannot be learned on a scale, another one is taken.
fn best_scale(
    scales: &[ScoreScale],
    value: impl Fn(ScoreScale) -> Result<f64>,
) -> Result<ScoreScale> {
    let mut best: Option<(ScoreScale, f64)> = None;
    let mut failed = None;
    for scale in scales {
        match value(*scale) {
            Ok(value) if best.is_none_or(|(_, most)| value > most) => best = Some((*scale, value)),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
    }
    match (best, failed) {
        (Some((scale, _)), _) => Ok(scale),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::shape("scales to choose from", "at least 1", 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const STUDY: [Measure; 2] = [Measure::NdcgAt(10), Measure::ReciprocalRank];

    fn study() -> FusionStudy {
        FusionStudy {
            measures: STUDY.to_vec(),
            folds: 5,
            seed: 1,
        }
    }

    /// Queries with one relevant item of 40, whose score lies above those of others by `signal` deviations of each list.
    fn drawn(queries: usize, signal: &[f64], factor: f64) -> Vec<JudgedLists> {
        let mut stream = Stream::new(3, "fusion study test", 0);
        let query = |number: usize| {
            let mut list = |signal: f64| -> Vec<(u32, f64)> {
                let mut scores: Vec<(u32, f64)> =
                    (0..40).map(|item| (item, stream.normal())).collect();
                scores[number % 40].1 += signal;
                scores.iter_mut().for_each(|(_, score)| *score *= factor);
                scores
            };
            JudgedLists {
                lists: signal.iter().map(|signal| list(*signal)).collect(),
                grades: BTreeMap::from([(number as u32 % 40, 1.0)]),
            }
        };
        (0..queries).map(query).collect()
    }

    #[test]
    fn weights_are_learned_where_lists_differ_in_worth() {
        let found = study().run(&drawn(1500, &[2.5, 1.1], 1.0)).unwrap();
        assert_eq!(found.advice, FusionAdvice::Learned);
        let weights = found.fusion.weights();
        assert!(
            weights[0] > 1.5 * weights[1] && weights[1] > 0.0,
            "{weights:?}"
        );
        assert_eq!(found.of_folds.len(), 5);
        for (fold, count) in
            (0..5).map(|f| (f, found.fold_of.iter().filter(|of| **of == f).count()))
        {
            assert_eq!(count, 300, "{fold}");
        }
        assert_eq!(found.contenders.len(), 4);
        // Items repeat after 40 queries, so that the rest of a fold knows them.
        let against = &found.contenders[0].against;
        assert!(against.unseen.is_empty() && !against.seen.is_empty());
    }

    #[test]
    fn equal_lists_need_no_weights_and_useless_ones_no_fusion() {
        let found = study().run(&drawn(300, &[1.5, 1.5], 4.0)).unwrap();
        assert_eq!(found.advice, FusionAdvice::Unlearned(Unlearned::Equal));
        let found = study().run(&drawn(200, &[2.5, 0.0], 1.0)).unwrap();
        assert_eq!(found.advice, FusionAdvice::Unlearned(Unlearned::Alone(0)));
    }

    #[test]
    fn no_query_is_evaluated_by_weights_that_saw_it() {
        // One query whose judgement contradicts all others can pull the weights of other folds only.
        let mut queries = drawn(50, &[2.0, 0.2], 1.0);
        let before = study().run(&queries).unwrap();
        queries[0].lists[0][0].1 = -50.0;
        let after = study().run(&queries).unwrap();
        let own = before.fold_of[0];
        assert_eq!(before.fold_of, after.fold_of);
        assert_eq!(before.of_folds[own], after.of_folds[own]);
        assert_ne!(before.fusion, after.fusion);
    }

    #[test]
    fn too_little_to_study_is_an_error() {
        let queries = drawn(4, &[1.0, 1.0], 1.0);
        assert!(
            study()
                .run(&queries)
                .err()
                .unwrap()
                .to_string()
                .contains("folds")
        );
        assert!(study().run(&[]).is_err());
        let mut uneven = drawn(10, &[1.0, 1.0], 1.0);
        uneven[3].lists.pop();
        let error = study().run(&uneven).err().unwrap().to_string();
        assert_eq!(error, "ranked lists of query 3: expected 2, but found 1");
        let one = drawn(10, &[1.0], 1.0);
        assert!(
            study()
                .run(&one)
                .err()
                .unwrap()
                .to_string()
                .contains("at least 2")
        );
    }
}
