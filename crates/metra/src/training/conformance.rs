//! Conformance tests that every method must pass, for authors of new methods too.
//!
//! ```
//! use metra::methods::Lda;
//! use metra::training::conformance::{Case, SupervisionCase, broken};
//! use metra::training::{AnyMethod, Method};
//!
//! let learner = || -> metra::Result<Box<dyn AnyMethod>> {
//!     Ok(Box::new(Lda { rank: 4, ..Lda::default() }.checked()?))
//! };
//! let case = Case { learner: &learner, supervision: SupervisionCase::Labels, learns: true, closed_form: true };
//! assert_eq!(broken(&case), Vec::<String>::new());
//! ```
//!
//! The laws: order by dissimilarity is the order by the space over embedded vectors, and search
//! keeps it; a second fit gives the same bytes, on one thread as on two; another set gives others;
//! the order of rows changes nothing but rounding, for closed forms; what is saved is what is loaded; a fit
//! that was ended and goes on gives the same bytes;
//! supervision that cannot be used is named; and a learner that learns beats Euclid on rows it has
//! not seen of a set with a known answer.

use super::{AnyMethod, FitCheckpoint, Observer, PreparedCorpus, Progress, Recipe, Run};
use crate::data::synthetic::{LabelledVectors, Nuisance};
use crate::data::{Batch, Corpus, MemoryCorpus, RowId, Storage, Subset};
use crate::dataset::Dataset;
use crate::evaluate::{EvaluationOptions, LeaveOneOut, Measure, evaluate};
use crate::linalg::RowBuf;
use crate::model::{Chain, Embedding, Map, Model, Origin, Side, Space, embed_corpus};
use crate::random::Stream;
use crate::search::top_k;
use crate::supervision::{
    ClassOrdering, Comparisons, Judgement, Judgements, LabelSets, Labels, Orderings, Relevance,
    SharedLabels, Supervision, Taxonomy, Tree, derive,
};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The supervision that a method gets on the synthetic set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisionCase {
    /// Class labels.
    Labels,
    /// Two labels per row: its class, and one that it shares with the rows of another class.
    LabelSets,
    /// Orderings of the classes by attributes.
    Orderings,
    /// A tree of the classes.
    Taxonomy,
    /// Similar and dissimilar pairs.
    Pairs,
    /// Triplets.
    Triplets,
    /// Triplets as quadruplets, with similar and dissimilar pairs.
    Mixed,
}

impl SupervisionCase {
    /// All kinds.
    pub(crate) const ALL: [SupervisionCase; 7] = [
        SupervisionCase::Labels,
        SupervisionCase::LabelSets,
        SupervisionCase::Orderings,
        SupervisionCase::Taxonomy,
        SupervisionCase::Pairs,
        SupervisionCase::Triplets,
        SupervisionCase::Mixed,
    ];
}

/// A learner and what is expected of it beyond the laws that hold for all.
pub struct Case<'a> {
    /// Makes the learner; its settings should make it quick on 16 numbers and some hundred rows.
    pub learner: &'a (dyn Fn() -> Result<Box<dyn AnyMethod>> + Sync),
    /// What it learns from.
    pub supervision: SupervisionCase,
    /// Whether it looks at the supervision, and so must find the signal.
    pub learns: bool,
    /// Whether it is a closed form, in which the order of rows can change nothing but rounding.
    pub closed_form: bool,
}

/// 20 classes that differ in 4 of 16 coordinates; the other 12 are loud noise.
pub const SET: Nuisance = Nuisance {
    classes: 20,
    signal: 4,
    noise: 12,
    seed: 3,
};

/// How much better than Euclid a learned metric must be on [`SET`], in mAP.
pub const CLEARLY: f64 = 0.2;

type Law = (&'static str, fn(&Case<'_>) -> Result<(), Broken>);

const LAWS: &[Law] = &[
    ("embedding keeps the order", keeps_order),
    ("a second fit gives the same bytes", same_bytes),
    ("one thread and two give the same bytes", same_on_threads),
    ("another set gives other bytes", depends_on_data),
    ("the order of rows changes nothing", row_order),
    ("what is saved is loaded", saved_is_loaded),
    ("a fit that was ended goes on to the same bytes", resumes),
    ("unusable supervision is named", names_supervision),
    ("it beats Euclid on new rows", beats_euclid),
];

/// The laws that the learner breaks, each with what was found. Empty for a good learner.
pub fn broken(case: &Case<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, law) in LAWS {
        if let Err(Broken(what)) = law(case) {
            found.push(format!("{name}: {what}"));
        }
    }
    found
}

/// Why a law does not hold.
struct Broken(String);

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Broken(error.to_string())
    }
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken(what())) }
}

/// Supervision of this kind for rows with these classes.
pub fn supervision(kind: SupervisionCase, classes: &[i64]) -> Result<Supervision> {
    let labels = Labels::from_numbers(classes)?;
    let rows = labels.len() as u64;
    let pairs = |labels: &Labels| {
        let mut random = Stream::new(1, "conformance pairs", 0);
        let (mut similar, mut dissimilar) = (Vec::new(), Vec::new());
        for _ in 0..4 * rows {
            if let Some([query, near, far]) = derive::triplet(labels, &mut random) {
                similar.push([query, near]);
                dissimilar.push([query, far]);
            }
        }
        Comparisons::new(rows).with_pairs(&similar, &dissimilar)
    };
    let triplets = |labels: &Labels| -> Vec<[RowId; 3]> {
        let mut random = Stream::new(1, "conformance triplets", 0);
        (0..8 * rows)
            .filter_map(|_| derive::triplet(labels, &mut random))
            .collect()
    };
    Ok(match kind {
        SupervisionCase::Labels => Supervision::Labels(labels),
        SupervisionCase::LabelSets => {
            let lists: Vec<Vec<String>> = (labels.names().iter().zip(0..))
                .map(|(class, number)| vec![class.clone(), format!("pair {}", number / 2)])
                .collect();
            Supervision::LabelSets(LabelSets::new(&lists, labels.of(), SharedLabels::Number)?)
        }
        SupervisionCase::Pairs => Supervision::Comparisons(pairs(&labels)?),
        SupervisionCase::Triplets => {
            Supervision::Comparisons(Comparisons::new(rows).with_triplets(&triplets(&labels))?)
        }
        SupervisionCase::Mixed => {
            let quadruplets: Vec<_> = triplets(&labels)
                .iter()
                .map(derive::as_quadruplet)
                .collect();
            Supervision::Comparisons(pairs(&labels)?.with_quadruplets(&quadruplets)?)
        }
        SupervisionCase::Orderings => {
            // Classes in the order of their centres in each coordinate of the signal.
            let mut orderings = Vec::new();
            for attribute in 0..SET.signal {
                let mut centres: Vec<(f64, &str)> = (0..labels.classes() as u32)
                    .map(|class| {
                        let name = labels.name(class);
                        let number = name.parse::<u64>().unwrap_or(0);
                        let mut centre = Stream::new(SET.seed, "synthetic class", number);
                        let value = (0..=attribute).map(|_| centre.normal()).last();
                        (value.unwrap_or(0.0), name)
                    })
                    .collect();
                centres.sort_by(|a, b| a.0.total_cmp(&b.0));
                let names: Vec<&str> = centres.iter().map(|(_, name)| *name).collect();
                orderings.push(ClassOrdering::parse(
                    &format!("attribute {attribute}"),
                    &names.join("<"),
                )?);
            }
            Supervision::Orderings(Orderings::new(labels, orderings)?)
        }
        SupervisionCase::Taxonomy => {
            let edges: Vec<(String, String)> = (0..labels.classes() as u32)
                .map(|class| (labels.name(class).to_owned(), "all".to_owned()))
                .collect();
            Supervision::Taxonomy(Taxonomy::new(labels, Tree::from_edges(&edges)?)?)
        }
    })
}

fn supervision_of(case: &Case<'_>, set: &LabelledVectors) -> Result<Supervision> {
    supervision(case.supervision, &set.classes)
}

fn fit(learner: &dyn AnyMethod, corpus: &dyn Corpus, supervision: &Supervision) -> Result<Map> {
    learner.fit(&Dataset::new(corpus, supervision)?, &mut Run::new(5))
}

/// The model file of a fit: everything that a user could see of it.
fn bytes(case: &Case<'_>, corpus: &dyn Corpus, supervision: &Supervision) -> Result<Vec<u8>> {
    bytes_of_run(case, corpus, supervision, Run::new(5))
}

fn bytes_of_run(
    case: &Case<'_>,
    corpus: &dyn Corpus,
    supervision: &Supervision,
    mut run: Run<'_>,
) -> Result<Vec<u8>> {
    let learner = (case.learner)()?;
    let map = learner.fit(&Dataset::new(corpus, supervision)?, &mut run)?;
    let chain = Chain::new(
        corpus.dim(),
        Vec::new(),
        map,
        first_space(learner.as_ref())?,
    )?;
    model(learner.as_ref(), chain, run.facts)?.to_bytes()
}

fn first_space(learner: &dyn AnyMethod) -> Result<Space> {
    let spaces = learner.spaces();
    (spaces.first().copied()).ok_or_else(|| Error::shape("spaces", "at least 1", 0))
}

fn model(learner: &dyn AnyMethod, chain: Chain, facts: BTreeMap<String, f64>) -> Result<Model> {
    let origin = Origin {
        method: learner.name().into(),
        parameters: learner.parameters(),
        seed: 5,
        facts,
        ..Origin::default()
    };
    Model::new(None, chain, origin)
}

fn keeps_order(case: &Case<'_>) -> Result<(), Broken> {
    let set = SET.rows(300);
    let supervision = supervision_of(case, &set)?;
    let learner = (case.learner)()?;
    first_space(learner.as_ref())?;
    for recipe in ["none", "centre+scale"] {
        let steps = recipe.parse::<Recipe>()?.fit(&set.corpus, None)?;
        let prepared = PreparedCorpus::new(&set.corpus, None, &steps);
        let map = fit(learner.as_ref(), &prepared, &supervision)?;
        for space in learner.spaces() {
            let chain = Chain::new(SET.dim(), steps.clone(), map.clone(), *space)?;
            order_of(&chain, &set.corpus)
                .map_err(|Broken(what)| Broken(format!("after {recipe} by {space}: {what}")))?;
        }
    }
    Ok(())
}

/// The order by dissimilarity against that by the embedded vectors and that of the search.
fn order_of(chain: &Chain, items: &MemoryCorpus) -> Result<(), Broken> {
    let asking = items.rows().slice(0, 40);
    let (asking, searched) = (Batch::new(asking), Batch::new(items.rows()));
    let mut wanted = Vec::new();
    chain.dissimilarity(&asking, &searched, &mut wanted)?;
    let space = chain.space();
    if matches!(space, Space::Blocks { .. }) {
        // No vector store can search it, so that there is no second order to hold it against.
        return Ok(());
    }
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    chain.embed_queries(0, &asking, &mut left)?;
    chain.embed_items(0, &searched, &mut right)?;
    require(left.dim() == chain.output_dim(), || {
        format!("dimension {}, not {}", left.dim(), chain.output_dim())
    })?;
    let (queries, all) = (
        MemoryCorpus::new(left.clone())?,
        MemoryCorpus::new(right.clone())?,
    );
    let found = top_k(space, &queries, &all, right.len(), false)?;
    for query in 0..left.len() {
        let wanted = &wanted[query * right.len()..(query + 1) * right.len()];
        let scores: Vec<f64> = (right.rows().iter())
            .map(|item| score(space, left.row(query), item))
            .collect();
        let mut order: Vec<usize> = (0..right.len()).collect();
        order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        in_order(wanted, &order)?;
        let ids = found.ids_of(query);
        let order: Vec<usize> = ids.iter().map(|id| *id as usize).collect();
        in_order(wanted, &order).map_err(|Broken(what)| Broken(format!("search: {what}")))?;
    }
    Ok(())
}

/// Score of two embedded vectors in f64, from the definition of the space.
fn score(space: Space, query: &[f32], item: &[f32]) -> f64 {
    let pairs = || {
        query
            .iter()
            .zip(item)
            .map(|(a, b)| (f64::from(*a), f64::from(*b)))
    };
    let product: f64 = pairs().map(|(a, b)| a * b).sum();
    let length = |row: &[f32]| {
        row.iter()
            .map(|v| f64::from(*v).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    match space {
        Space::SquaredL2 => pairs().map(|(a, b)| (a - b).powi(2)).sum(),
        Space::InnerProduct => -product,
        Space::Cosine => -product / (length(query) * length(item)),
        Space::Blocks { size } => {
            let blocks = query.chunks(size as usize).zip(item.chunks(size as usize));
            let squares = blocks.map(|(q, x)| {
                let pairs = q.iter().zip(x);
                pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
            });
            squares.map(f64::sqrt).sum()
        }
    }
}

/// Taken in `order`, the values must not fall by more than 1e-5 of their range.
fn in_order(values: &[f32], order: &[usize]) -> Result<(), Broken> {
    let ends = |(low, high): (f32, f32), value: &f32| (low.min(*value), high.max(*value));
    let (low, high) = values.iter().fold((f32::MAX, f32::MIN), ends);
    let mut farthest = f32::MIN;
    for item in order {
        let value = values[*item];
        require(value >= farthest - 1e-5 * (high - low), || {
            format!("item {item} at {value} comes after {farthest}")
        })?;
        farthest = farthest.max(value);
    }
    require(order.len() == values.len(), || "items are missing".into())
}

fn same_bytes(case: &Case<'_>) -> Result<(), Broken> {
    let set = SET.rows(300);
    let supervision = supervision_of(case, &set)?;
    let once = bytes(case, &set.corpus, &supervision)?;
    let again = bytes(case, &set.corpus, &supervision)?;
    require(once == again, || "they differ".into())
}

fn same_on_threads(case: &Case<'_>) -> Result<(), Broken> {
    // More rows than a scan hands over at once, so that there are blocks to be spread; and fewer
    // rows than dimensions, which takes another way through most learners.
    let tall = SET.rows(2500);
    let wide = Nuisance { noise: 296, ..SET }.rows(120);
    for set in [&tall, &wide] {
        let supervision = supervision_of(case, set)?;
        let with = |threads: usize| -> Result<Vec<u8>, Broken> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().map_err(|e| Broken(e.to_string()))?;
            Ok(pool.install(|| bytes(case, &set.corpus, &supervision))?)
        };
        let same = with(1)? == with(2)?;
        require(same, || {
            format!("they differ in {} dimensions", set.corpus.dim())
        })?;
    }
    Ok(())
}

fn depends_on_data(case: &Case<'_>) -> Result<(), Broken> {
    // Without this, equal bytes could come of a learner that ignores what it is given.
    if !case.learns {
        return Ok(());
    }
    let (set, other) = (SET.rows(300), Nuisance { seed: 4, ..SET }.rows(300));
    let supervision = supervision_of(case, &set)?;
    let one = bytes(case, &set.corpus, &supervision)?;
    let two = bytes(case, &other.corpus, &supervision)?;
    require(one != two, || "they are the same".into())
}

fn row_order(case: &Case<'_>) -> Result<(), Broken> {
    if !case.closed_form {
        return Ok(());
    }
    let set = SET.rows(1500);
    let mut order: Vec<RowId> = (0..1500).collect();
    Stream::new(1, "order of rows", 0).shuffle(&mut order);
    let classes: Vec<i64> = order.iter().map(|r| set.classes[*r as usize]).collect();
    let shuffled = Subset::new(&set.corpus, order)?;
    let learner = (case.learner)()?;
    let one = fit(learner.as_ref(), &set.corpus, &supervision_of(case, &set)?)?;
    let other = fit(
        learner.as_ref(),
        &shuffled,
        &supervision(case.supervision, &classes)?,
    )?;
    let space = first_space(learner.as_ref())?;
    let scores = |map: Map| -> Result<Vec<f32>> {
        let chain = Chain::new(SET.dim(), Vec::new(), map, space)?;
        let (asking, all) = (set.corpus.rows().slice(0, 20), set.corpus.rows());
        let mut out = Vec::new();
        chain.dissimilarity(&Batch::new(asking), &Batch::new(all), &mut out)?;
        Ok(out)
    };
    let (one, other) = (scores(one)?, scores(other)?);
    let largest = one.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
    for (place, (a, b)) in one.iter().zip(&other).enumerate() {
        require((a - b).abs() <= 1e-3 * largest, || {
            format!("score {place}: {a} and {b}")
        })?;
    }
    Ok(())
}

fn saved_is_loaded(case: &Case<'_>) -> Result<(), Broken> {
    let set = SET.rows(300);
    let supervision = supervision_of(case, &set)?;
    let steps = "centre+scale".parse::<Recipe>()?.fit(&set.corpus, None)?;
    let prepared = PreparedCorpus::new(&set.corpus, None, &steps);
    let learner = (case.learner)()?;
    let mut run = Run::new(5);
    let map = learner.fit(&Dataset::new(&prepared, &supervision)?, &mut run)?;
    for space in learner.spaces() {
        let chain = Chain::new(SET.dim(), steps.clone(), map.clone(), *space)?;
        let saved = model(learner.as_ref(), chain, run.facts.clone())?;
        let bytes = saved.to_bytes()?;
        let loaded = Model::from_bytes(&bytes)?;
        require(loaded == saved, || format!("another model by {space}"))?;
        require(loaded.to_bytes()? == bytes, || {
            format!("other bytes by {space}")
        })?;
    }
    Ok(())
}

/// Ends a fit after a part of its steps.
struct EndAfter<'a> {
    part: f64,
    stop: &'a AtomicBool,
}

impl Observer for EndAfter<'_> {
    fn progress(&mut self, progress: &Progress) {
        if progress.step as f64 > self.part * progress.steps as f64 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn resumes(case: &Case<'_>) -> Result<(), Broken> {
    if case.closed_form {
        return Ok(());
    }
    let set = SET.rows(200);
    let supervision = supervision_of(case, &set)?;
    let whole = bytes(case, &set.corpus, &supervision)?;
    let folder = tempfile::tempdir().map_err(|error| Broken(error.to_string()))?;
    let path = folder.path().join("checkpoint");
    for part in [0.3, 0.6, 2.0] {
        let checkpoint = FitCheckpoint::open(&path, "conformance", Duration::ZERO)?;
        let stop = AtomicBool::new(false);
        let mut observer = EndAfter { part, stop: &stop };
        let run = Run {
            observer: Some(&mut observer),
            checkpoint: Some(checkpoint),
            stop: Some(&stop),
            ..Run::new(5)
        };
        match bytes_of_run(case, &set.corpus, &supervision, run) {
            Ok(found) => return require(found == whole, || "they differ".into()),
            Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Broken("it did not come to its end".into()))
}

fn names_supervision(case: &Case<'_>) -> Result<(), Broken> {
    let set = SET.rows(200);
    let learner = (case.learner)()?;
    let mut all: Vec<(String, Supervision)> = Vec::new();
    for kind in SupervisionCase::ALL {
        all.push((format!("{kind:?}"), supervision(kind, &set.classes)?));
    }
    let judged = |within: bool| -> Result<Supervision> {
        let labels = Labels::from_numbers(&set.classes)?;
        let lines: Vec<Judgement> = (0..labels.pairs())
            .map(|number| labels.pair(number))
            // Only later rows are relevant to earlier ones: the relation need not be symmetric.
            .filter(|(query, item)| query < item)
            .map(|(query, item)| Judgement {
                query,
                item,
                grade: 1.0,
            })
            .collect();
        let rows = labels.len() as u64;
        Ok(Supervision::Judgements(if within {
            Judgements::within_one(rows, &lines)?
        } else {
            Judgements::new(rows, rows, &lines)?
        }))
    };
    all.push(("Judgements within".into(), judged(true)?));
    all.push(("Judgements between".into(), judged(false)?));
    for (kind, supervision) in &all {
        let data = if supervision.within() {
            Dataset::new(&set.corpus, supervision)?
        } else {
            Dataset::between(&set.corpus, &set.corpus, supervision)?
        };
        match learner.fit(&data, &mut Run::new(1)) {
            Ok(_) => {}
            Err(Error::Supervision { learner: name, .. }) => {
                let known = name.starts_with(learner.name());
                require(known, || format!("{kind}: the error names {name:?}"))?;
                require(*kind != format!("{:?}", case.supervision), || {
                    format!("it cannot use {kind}, which it is said to learn from")
                })?;
            }
            Err(other) => {
                return Err(Broken(format!("{kind}: another error: {other}")));
            }
        }
    }
    Ok(())
}

fn beats_euclid(case: &Case<'_>) -> Result<(), Broken> {
    if !case.learns {
        return Ok(());
    }
    let set = SET.rows(600);
    let train = Subset::new(&set.corpus, (0..300).collect())?;
    let test = Subset::new(&set.corpus, (300..600).collect())?;
    let supervision = supervision(case.supervision, &set.classes[..300])?;
    let labels = Labels::from_numbers(&set.classes[300..])?;
    let precision = |map: &Map, space: Space| -> Result<f64> {
        let chain = Chain::new(SET.dim(), Vec::new(), map.clone(), space)?;
        let storage = Storage::default();
        let asking = embed_corpus(&chain, Side::Query, &test, None, &storage)?;
        let searched = embed_corpus(&chain, Side::Item, &test, None, &storage)?;
        let options = EvaluationOptions {
            measures: vec![Measure::AveragePrecision],
            ..EvaluationOptions::default()
        };
        let truth = LeaveOneOut(&labels);
        let found = evaluate(space, asking.corpus(), searched.corpus(), &truth, &options)?;
        Ok(found.mean(Measure::AveragePrecision).unwrap_or(0.0))
    };
    let base = precision(&Map::Identity, Space::SquaredL2)?;
    let learner = (case.learner)()?;
    let map = fit(learner.as_ref(), &train, &supervision)?;
    let mut learned = 0.0_f64;
    for space in learner.spaces() {
        learned = learned.max(precision(&map, *space)?);
    }
    require(learned > base + CLEARLY, || {
        format!("mAP {learned:.3}, Euclid has {base:.3}: expected {CLEARLY} more")
    })
}
