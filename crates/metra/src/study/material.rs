//! What a study works on, and how a part of it is judged.

use super::classifier::Classifier;
use super::rounds::Round;
use super::scores::Scores;
use crate::data::{Corpus, Groups, RowId, Subset};
use crate::evaluate::{Empty, Gain, Measure, Options, Ties, evaluate, evaluate_reranked};
use crate::learn::{Learner, Observer, Prepared, PreparedCorpus, Problem, Recipe, Run};
use crate::linalg::{RowBuf, Rows};
use crate::metric::{Chain, Embedded, Map, Side, Space, Step, Storage, embed_corpus};
use crate::search::Rerank;
use crate::supervision::{Labels, Supervision};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Vectors with the group (camera, session) of each, where known.
#[derive(Clone, Copy)]
pub struct Collection<'a> {
    /// The vectors.
    pub corpus: &'a dyn Corpus,
    /// Their groups.
    pub groups: Option<&'a Groups>,
}

/// Items, queries where they are another collection, and supervision. The units that are split
/// are rows where there are labels and queries where there are judgements.
pub struct Material<'a> {
    /// The items.
    pub items: Collection<'a>,
    /// The queries, where they are not the items.
    pub queries: Option<Collection<'a>>,
    /// What is learned from: of a part, what it says of the part's units alone.
    pub supervision: Supervision,
    /// Labels to split and to judge by where the supervision has none of its own (comparisons).
    pub judged_by: Option<Labels>,
    /// How much memory to take.
    pub storage: Storage,
}

/// Judges fitted steps and a map on a validation part; larger is better.
pub type Validation<'a> = dyn Fn(&[Step], &Map) -> Result<f64> + 'a;

/// Who is searched for by whom when a part is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Every row of the part against all others of it.
    LeaveOneOut,
    /// Every row of the part against the rows that were learned from.
    AgainstTraining,
    /// One image a person against one (WARCA, Sec. 4.2), repeated; both camera directions.
    SingleShot {
        /// How often images are drawn anew.
        repeats: u32,
    },
    /// Every row against all others, those of the same identity and camera left out (Market-1501).
    CrossCamera,
    /// Queries against items.
    Judged,
    /// Every row of the part is given a class, with the rows that were learned from as reference.
    Classify(Classifier),
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::LeaveOneOut => "leave-one-out",
            Protocol::AgainstTraining => "against-training",
            Protocol::SingleShot { .. } => "single-shot",
            Protocol::CrossCamera => "cross-camera",
            Protocol::Judged => "judged",
            Protocol::Classify(classifier) => return write!(f, "classify ({classifier})"),
        })
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "leave-one-out" => Protocol::LeaveOneOut,
            "against-training" => Protocol::AgainstTraining,
            "single-shot" => Protocol::SingleShot { repeats: 1 },
            "cross-camera" => Protocol::CrossCamera,
            "judged" => Protocol::Judged,
            "classify" => Protocol::Classify(Classifier::default()),
            other => {
                let expected = "leave-one-out, against-training, single-shot, cross-camera, \
                                judged or classify";
                return Err(Error::parameter("protocol", expected, format!("{other:?}")));
            }
        })
    }
}

impl Protocol {
    /// What fits the supervision.
    pub fn default_for(supervision: &Supervision) -> Self {
        match supervision {
            Supervision::Judgements(_) => Protocol::Judged,
            _ => Protocol::LeaveOneOut,
        }
    }

    /// Measures worth showing.
    pub fn measures(self) -> Vec<Measure> {
        match self {
            Protocol::SingleShot { .. } | Protocol::CrossCamera => vec![
                Measure::AveragePrecision,
                Measure::CmcAt(1),
                Measure::CmcAt(5),
                Measure::CmcAt(10),
                Measure::CmcAt(20),
                Measure::CmcMean(20),
                Measure::CmcArea,
                Measure::InverseNegativePenalty,
            ],
            Protocol::Judged => vec![
                Measure::NdcgAt(10),
                Measure::AveragePrecision,
                Measure::ReciprocalRank,
                Measure::PrecisionAt(1),
                Measure::RecallAt(10),
                Measure::RecallAt(100),
            ],
            Protocol::Classify(_) => vec![Measure::Accuracy],
            _ => vec![
                Measure::AveragePrecision,
                Measure::PrecisionAt(1),
                Measure::PrecisionAt(10),
                Measure::ReciprocalRank,
                Measure::NdcgAt(10),
                Measure::Auc,
            ],
        }
    }

    /// The same, with what a class tree adds for classes found.
    pub fn measures_for(self, supervision: &Supervision) -> Vec<Measure> {
        let mut measures = self.measures();
        let tree = matches!(supervision, Supervision::Taxonomy(_));
        if tree && matches!(self, Protocol::Classify(_)) {
            measures.push(Measure::HierarchicalAccuracy);
        }
        measures
    }

    /// The measure that settings are chosen by unless another is asked for.
    pub fn criterion(self) -> Measure {
        match self {
            Protocol::Judged => Measure::NdcgAt(10),
            Protocol::Classify(_) => Measure::Accuracy,
            _ => Measure::AveragePrecision,
        }
    }
}

/// How a part is judged.
#[derive(Debug, Clone)]
pub struct Judging {
    /// Who is searched for by whom.
    pub protocol: Protocol,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Rule for ties.
    pub ties: Ties,
    /// Order of tied items for [`Ties::Trec`], one number an item.
    pub tie_rank: Option<Vec<u32>>,
    /// Gain of a grade.
    pub gain: Gain,
    /// Queries with nothing relevant.
    pub empty: Empty,
    /// Seed of the protocol's own draws.
    pub seed: u64,
    /// Re-rank by k-reciprocal neighbours before judging.
    pub rerank: Option<Rerank>,
}

impl Judging {
    /// By this protocol with these measures, or with those worth showing; and the measure to
    /// choose by, which is among them.
    pub fn new(
        material: &Material<'_>,
        protocol: Protocol,
        mut measures: Vec<Measure>,
        criterion: Option<Measure>,
        seed: u64,
    ) -> Result<(Self, Measure)> {
        check_protocol(material, protocol)?;
        if measures.is_empty() {
            measures = protocol.measures_for(&material.supervision);
        }
        let criterion = criterion.unwrap_or_else(|| protocol.criterion());
        if !measures.contains(&criterion) {
            measures.insert(0, criterion);
        }
        let judging = Judging {
            protocol,
            measures,
            ties: Ties::Expected,
            tie_rank: None,
            gain: Gain::Linear,
            empty: Empty::Skip,
            seed,
            rerank: None,
        };
        Ok((judging, criterion))
    }
}

impl<'a> Material<'a> {
    /// Number of units that can be split.
    pub fn units(&self) -> u64 {
        self.supervision.queries()
    }

    /// The units that can be split: rows, or those queries that have something relevant.
    pub fn askable(&self) -> Vec<u64> {
        match &self.supervision {
            Supervision::Judgements(judgements) => (0..self.units())
                .filter(|query| !judgements.of(*query).is_empty())
                .collect(),
            _ => (0..self.units()).collect(),
        }
    }

    /// The labels that rows are split and judged by.
    pub fn labels(&self) -> Option<&Labels> {
        match &self.supervision {
            // The units are queries then, and labels would be those of rows.
            Supervision::Judgements(_) => None,
            supervision => supervision.as_labels().or(self.judged_by.as_ref()),
        }
    }

    /// The labels, or an error that names what there is instead.
    pub(super) fn need_labels(&self) -> Result<&Labels> {
        self.labels().ok_or_else(|| {
            Error::Data(format!(
                "judging a ranking needs labels or judgements, but there are only {}",
                self.supervision.describe()
            ))
        })
    }

    /// Fit preprocessing and learner on some units. `validate` judges the map on its way.
    pub fn fit(
        &self,
        units: &[u64],
        recipe: &Recipe,
        learner: &dyn Learner,
        run: &mut Run<'_>,
        validate: Option<&Validation<'_>>,
    ) -> Result<(Vec<Step>, Map)> {
        match (&self.supervision, self.queries) {
            (Supervision::Judgements(judgements), Some(queries)) => {
                let part = Subset::new(queries.corpus, units.to_vec())?;
                let part_groups = queries.groups.map(|g| g.select(units));
                let supervision = Supervision::judgements(judgements.select_queries(units)?);
                let steps = recipe.fit(self.items.corpus, self.items.groups)?;
                let memory = self.storage.memory;
                let items = PreparedCorpus::new(self.items.corpus, self.items.groups, &steps);
                let items = Prepared::new(items, memory)?;
                let asking = PreparedCorpus::new(&part, part_groups.as_ref(), &steps);
                let asking = Prepared::new(asking, memory)?;
                let problem = Problem::between(asking.corpus(), items.corpus(), &supervision)?;
                let map = fit_validated(learner, &problem, run, &steps, validate)?;
                Ok((steps, map))
            }
            (Supervision::Judgements(judgements), None) => {
                // The queries are items too: all rows stay, and other queries ask for nothing.
                let supervision = Supervision::judgements(judgements.restricted_to(units));
                let steps = recipe.fit(self.items.corpus, self.items.groups)?;
                let items = PreparedCorpus::new(self.items.corpus, self.items.groups, &steps);
                let items = Prepared::new(items, self.storage.memory)?;
                let problem = Problem::new(items.corpus(), &supervision)?;
                let map = fit_validated(learner, &problem, run, &steps, validate)?;
                Ok((steps, map))
            }
            (supervision, _) => {
                let all = self.items.corpus;
                let some = Subset::new(all, units.to_vec())?;
                // The whole may be one slice, which a list of its rows would hide.
                let whole = units.iter().copied().eq(0..all.len());
                let part: &dyn Corpus = if whole { all } else { &some };
                let groups = self.items.groups.map(|g| g.select(units));
                let supervision = supervision.select(units)?;
                let steps = recipe.fit(part, groups.as_ref())?;
                let seen = PreparedCorpus::new(part, groups.as_ref(), &steps);
                let prepared = Prepared::new(seen, self.storage.memory)?;
                let problem = Problem::new(prepared.corpus(), &supervision)?;
                let map = fit_validated(learner, &problem, run, &steps, validate)?;
                Ok((steps, map))
            }
        }
    }

    /// Judge a metric on some units, in each of the spaces. `trained` are the units learned from,
    /// which serve as the gallery of [`Protocol::AgainstTraining`].
    pub fn judge(
        &self,
        chain: &Chain,
        spaces: &[Space],
        units: &[u64],
        trained: &[u64],
        judging: &Judging,
    ) -> Result<Vec<Result<Scores>>> {
        if judging.rerank.is_some() {
            check_rerank(chain.map(), judging.protocol)?;
        }
        let mut scores: Vec<Result<Scores>> = spaces
            .iter()
            .map(|_| Ok(Scores::new(&judging.measures)))
            .collect();
        let options = Options {
            measures: judging.measures.clone(),
            ties: judging.ties,
            tie_rank: judging.tie_rank.as_deref(),
            gain: judging.gain,
            empty: judging.empty,
            ..Options::default()
        };
        let mut judge_round = |round: &Round<'_>| {
            let (queries, items, truth) = (round.queries, round.items, round.truth);
            for (space, scores) in spaces.iter().zip(&mut scores) {
                if let Ok(so_far) = scores {
                    let found = match &judging.rerank {
                        None => evaluate(*space, queries, items, truth, &options),
                        Some(rerank) => {
                            let own = round.own;
                            evaluate_reranked(rerank, *space, queries, items, own, truth, &options)
                        }
                    };
                    match found {
                        Ok(found) => so_far.extend(round.ids, |unit| self.cluster(unit), &found),
                        Err(error) => *scores = Err(error),
                    }
                }
            }
            Ok(())
        };
        match &self.supervision {
            // Judgements and classes found exclude each other.
            Supervision::Judgements(_) => {}
            _ => {
                let labels = self.need_labels()?;
                if let Protocol::Classify(classifier) = judging.protocol {
                    let part_labels = labels.select(units)?;
                    let asking = self.embed(chain, Side::Query, self.items, Some(units))?;
                    let known = self.embed(chain, Side::Item, self.items, Some(trained))?;
                    let known_labels = labels.select(trained)?;
                    let tree = match &self.supervision {
                        Supervision::Taxonomy(taxonomy) => Some(taxonomy.tree()),
                        _ => None,
                    };
                    for (space, scores) in spaces.iter().zip(&mut scores) {
                        let asked: (&dyn Corpus, &Labels) = (&asking, &part_labels);
                        let found = classifier.judge(
                            *space,
                            asked,
                            (&known, &known_labels),
                            tree,
                            &judging.measures,
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
        self.rounds(chain, units, trained, judging, &mut judge_round)?;
        Ok(scores)
    }

    /// Of these queries those with a relevant item that training had seen as relevant to one of
    /// its own; `None` without judgements.
    pub(super) fn seen_queries(&self, queries: &[u64], trained: &[u64]) -> Option<BTreeSet<u64>> {
        let Supervision::Judgements(judgements) = &self.supervision else {
            return None;
        };
        let known = judgements.restricted_to(trained).judged_items();
        let items = |query: &u64| judgements.of(*query).iter();
        let seen = |query: &u64| items(query).any(|(item, _)| known[*item as usize]);
        Some(queries.iter().copied().filter(seen).collect())
    }

    /// What the bootstrap resamples: the identity of a row, or the query itself.
    pub(super) fn cluster(&self, unit: u64) -> u64 {
        match self.labels() {
            Some(labels) => u64::from(labels.of()[unit as usize]),
            None => unit,
        }
    }

    pub(super) fn embed<'b>(
        &self,
        chain: &Chain,
        side: Side,
        collection: Collection<'b>,
        units: Option<&'b [u64]>,
    ) -> Result<EmbeddedPart<'b>> {
        let Collection { corpus, groups } = collection;
        let embedded = match units {
            None => embed_corpus(chain, side, corpus, groups, &self.storage)?,
            Some(units) => {
                let part = Subset::new(corpus, units.to_vec())?;
                let groups = groups.map(|g| g.select(units));
                embed_corpus(chain, side, &part, groups.as_ref(), &self.storage)?
            }
        };
        Ok(EmbeddedPart {
            embedded,
            corpus,
            units,
        })
    }
}

/// An embedded part that knows which rows it was made from, for messages.
pub(super) struct EmbeddedPart<'a> {
    embedded: Embedded,
    corpus: &'a dyn Corpus,
    units: Option<&'a [u64]>,
}

impl EmbeddedPart<'_> {
    /// One number of every row; an error where there is no such number.
    pub(super) fn column(&self, column: usize) -> Result<Vec<f32>> {
        if column >= self.dim() {
            let expected = format!("above {column}");
            return Err(Error::shape("numbers of mapped rows", expected, self.dim()));
        }
        let mut values = Vec::with_capacity(self.len() as usize);
        self.scan(0..self.len(), &mut |_, rows| {
            values.extend(rows.iter().map(|row| row[column]));
            Ok(())
        })?;
        Ok(values)
    }
}

impl Corpus for EmbeddedPart<'_> {
    fn len(&self) -> u64 {
        self.embedded.corpus().len()
    }

    fn dim(&self) -> usize {
        self.embedded.corpus().dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        self.embedded.corpus().gather(rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.embedded.corpus().scan(range, visit)
    }

    fn origin(&self, row: RowId) -> RowId {
        let unit = self
            .units
            .map_or(Some(row), |u| u.get(row as usize).copied());
        unit.map_or(row, |unit| self.corpus.origin(unit))
    }

    fn view(&self) -> Option<Rows<'_>> {
        self.embedded.corpus().view()
    }
}

pub(super) fn no_camera() -> Error {
    Error::parameter(
        "camera",
        "given: the cross-camera protocol needs each row's camera",
        "absent",
    )
}

/// Whether a ranking by this map can be re-ranked.
pub(super) fn check_rerank(map: &Map, protocol: Protocol) -> Result<()> {
    if map.has_two_sides() {
        let expected = "absent for two maps: it compares queries with each other";
        return Err(Error::parameter("rerank", expected, "given"));
    }
    if matches!(protocol, Protocol::Classify(_)) {
        let expected = "absent for classes found: it is for rankings";
        return Err(Error::parameter("rerank", expected, "given"));
    }
    Ok(())
}

fn fit_validated(
    learner: &dyn Learner,
    problem: &Problem<'_>,
    run: &mut Run<'_>,
    steps: &[Step],
    validate: Option<&Validation<'_>>,
) -> Result<Map> {
    let Some(validate) = validate else {
        return learner.fit(problem, run);
    };
    let mut judge = |map: &Map| validate(steps, map);
    let mut validated = Run {
        seed: run.seed,
        observer: run.observer.as_deref_mut().map(|o| o as &mut dyn Observer),
        validate: Some(&mut judge),
        last_step: run.last_step,
        stop: run.stop,
        facts: std::mem::take(&mut run.facts),
        outputs: Vec::new(),
    };
    let result = learner.fit(problem, &mut validated);
    let Run { facts, outputs, .. } = validated;
    (run.facts, run.outputs) = (facts, outputs);
    result
}

/// Whether labels and judging fit together.
pub fn check_protocol(material: &Material<'_>, protocol: Protocol) -> Result<()> {
    let judged = matches!(material.supervision, Supervision::Judgements(_));
    if judged != (protocol == Protocol::Judged) {
        let expected = if judged {
            "judged (with qrels)"
        } else {
            "one for labels"
        };
        return Err(Error::parameter("protocol", expected, protocol));
    }
    if let Protocol::Classify(classifier) = protocol {
        classifier.check()?;
        if material.supervision.as_labels().is_none() {
            let expected = "one that needs no class labels";
            return Err(Error::parameter("protocol", expected, protocol));
        }
    }
    if protocol == Protocol::CrossCamera && material.items.groups.is_none() {
        return Err(no_camera());
    }
    Ok(())
}
