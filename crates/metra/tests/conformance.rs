//! Laws that every learner of the registry keeps, run from one table: a learner that is added to
//! the registry and not to the table fails here.

use metra::data::synthetic::{Labelled, Nuisance};
use metra::data::{Batch, Corpus, MemoryCorpus, RowId, Subset};
use metra::evaluate::{LeaveOneOut, Measure, Options, Qrels, Truth, evaluate};
use metra::learn::registry::{ENTRIES, find};
use metra::learn::{Learner, PreparedCorpus, Problem, Recipe, Run};
use metra::linalg::RowBuf;
use metra::metric::{
    Chain, Embedding, Map, Metric, Model, Origin, Side, Space, Storage, embed_corpus,
};
use metra::random::Stream;
use metra::search::top_k;
use metra::supervision::{ClassOrdering, Judgement, Judgements, Labels, Orderings, Supervision};
use std::collections::BTreeMap;

/// One learner with settings that make it quick, and what is expected of it.
struct Case {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Looks at the supervision, and so finds the signal.
    learned: bool,
    /// Refuses everything but class labels.
    labels_only: bool,
    /// A closed form, in which the order of the rows can change nothing but rounding.
    closed_form: bool,
    /// Learns from orderings of classes alone, which are then made from the signal.
    orderings: bool,
}

const CASES: &[Case] = &[
    Case {
        name: "euclid",
        settings: &[],
        learned: false,
        labels_only: false,
        closed_form: true,
        orderings: false,
    },
    Case {
        name: "cosine",
        settings: &[],
        learned: false,
        labels_only: false,
        closed_form: true,
        orderings: false,
    },
    Case {
        name: "pca",
        settings: &[("rank", "6")],
        learned: false,
        labels_only: false,
        closed_form: true,
        orderings: false,
    },
    Case {
        name: "whitening",
        settings: &[("rank", "14")],
        learned: false,
        labels_only: false,
        closed_form: true,
        orderings: false,
    },
    Case {
        name: "lda",
        settings: &[("rank", "4")],
        learned: true,
        labels_only: true,
        closed_form: true,
        orderings: false,
    },
    Case {
        name: "warca",
        settings: WARCA,
        learned: true,
        labels_only: false,
        closed_form: false,
        orderings: false,
    },
    Case {
        name: "qwise",
        settings: &[("count", "1500")],
        learned: true,
        labels_only: false,
        closed_form: false,
        orderings: false,
    },
    Case {
        name: "attributes",
        settings: &[("count", "1500")],
        learned: true,
        labels_only: false,
        closed_form: false,
        orderings: true,
    },
];

const WARCA: &[(&str, &str)] = &[
    ("rank", "4"),
    ("steps", "400"),
    ("batch", "128"),
    ("pool", "128"),
];

/// How much better than Euclid a learned metric must be on the synthetic set, in mAP.
const CLEARLY: f64 = 0.2;

const SET: Nuisance = Nuisance {
    classes: 20,
    signal: 4,
    noise: 12,
    seed: 3,
};

impl Case {
    fn learner(&self) -> Box<dyn Learner> {
        build(self.name, self.settings)
    }

    /// What it can learn from, about the rows of a set.
    fn supervision(&self, corpus: &dyn Corpus, classes: &[i64]) -> Supervision {
        let labels = Labels::from_numbers(classes).unwrap();
        if self.orderings {
            return Supervision::Orderings(by_signal(corpus, labels));
        }
        Supervision::labels(labels)
    }
}

fn build(name: &str, settings: &[(&str, &str)]) -> Box<dyn Learner> {
    let settings: BTreeMap<String, String> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    find(name).unwrap().build(&settings).unwrap()
}

/// Classes ordered by their means in each of the coordinates that tell them apart.
fn by_signal(corpus: &dyn Corpus, labels: Labels) -> Orderings {
    let rows = gathered(corpus);
    let orderings = (0..SET.signal).map(|column| {
        let mean = |class: u32| {
            let members = labels.members(class);
            let values = members.iter().map(|row| rows.row(*row as usize)[column]);
            values.sum::<f32>() / members.len() as f32
        };
        let mut classes: Vec<u32> = (0..labels.classes() as u32).collect();
        classes.sort_by(|a, b| mean(*a).total_cmp(&mean(*b)));
        let names: Vec<&str> = classes.iter().map(|class| labels.name(*class)).collect();
        ClassOrdering::parse(&format!("column {column}"), &names.join("<")).unwrap()
    });
    let orderings = orderings.collect();
    Orderings::new(labels, orderings).unwrap()
}

fn by_labels(set: &Labelled) -> Supervision {
    Supervision::labels(Labels::from_numbers(&set.classes).unwrap())
}

fn fit(learner: &dyn Learner, corpus: &dyn Corpus, supervision: &Supervision) -> Map {
    let problem = Problem::new(corpus, supervision).unwrap();
    learner.fit(&problem, &mut Run::new(5)).unwrap()
}

fn model(learner: &dyn Learner, chain: Chain, facts: BTreeMap<String, f64>) -> Model {
    let origin = Origin {
        method: learner.name().into(),
        parameters: learner.parameters(),
        seed: 5,
        facts,
        ..Origin::default()
    };
    Model::new(None, chain, origin).unwrap()
}

/// The model file of a fit: everything that a user could see of it.
fn bytes(learner: &dyn Learner, corpus: &dyn Corpus, supervision: &Supervision) -> Vec<u8> {
    let problem = Problem::new(corpus, supervision).unwrap();
    let mut run = Run::new(5);
    let map = learner.fit(&problem, &mut run).unwrap();
    let chain = Chain::new(corpus.dim(), Vec::new(), map, learner.spaces()[0]).unwrap();
    model(learner, chain, run.facts).to_bytes().unwrap()
}

/// Mean average precision of a map in a space.
fn precision(
    map: &Map,
    space: Space,
    queries: &dyn Corpus,
    items: &dyn Corpus,
    truth: &dyn Truth,
) -> f64 {
    let chain = Chain::new(items.dim(), Vec::new(), map.clone(), space).unwrap();
    let storage = Storage::default();
    let asking = embed_corpus(&chain, Side::Query, queries, None, &storage).unwrap();
    let searched = embed_corpus(&chain, Side::Item, items, None, &storage).unwrap();
    let options = Options {
        measures: vec![Measure::AveragePrecision],
        ..Options::default()
    };
    let found = evaluate(space, asking.corpus(), searched.corpus(), truth, &options);
    found.unwrap().mean(Measure::AveragePrecision).unwrap()
}

#[test]
fn the_table_has_every_learner_of_the_registry() {
    let listed: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let registered: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(listed, registered);
    for case in CASES {
        let needs = find(case.name).unwrap().needs;
        assert_eq!(case.labels_only, needs == "labels", "{}", case.name);
        assert_eq!(case.learned, needs != "nothing", "{}", case.name);
    }
}

/// Score of two embedded vectors in f64, from the definition of the space.
fn score(space: Space, query: &[f32], item: &[f32]) -> f64 {
    let wide = |row: &[f32]| row.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    let (query, item) = (wide(query), wide(item));
    let product: f64 = query.iter().zip(&item).map(|(a, b)| a * b).sum();
    let length = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>().sqrt();
    match space {
        Space::SquaredL2 => query.iter().zip(&item).map(|(a, b)| (a - b).powi(2)).sum(),
        Space::InnerProduct => -product,
        Space::Cosine => -product / (length(&query) * length(&item)),
        Space::Blocks { .. } => unreachable!("blocks have no embedding that a store could search"),
    }
}

/// Taken in this order, the values must not fall by more than 1e-5 of their range.
fn assert_order(values: &[f32], order: &[usize], what: &str) {
    let ends = |(low, high): (f32, f32), value: &f32| (low.min(*value), high.max(*value));
    let (low, high) = values.iter().fold((f32::MAX, f32::MIN), ends);
    let mut farthest = f32::MIN;
    for item in order {
        let value = values[*item];
        assert!(
            value >= farthest - 1e-5 * (high - low),
            "{what}: item {item} at {value} comes after {farthest}"
        );
        farthest = farthest.max(value);
    }
}

fn gathered(corpus: &dyn Corpus) -> RowBuf {
    let rows: Vec<RowId> = (0..corpus.len()).collect();
    let mut out = RowBuf::empty(corpus.dim());
    corpus.gather(&rows, &mut out).unwrap();
    out
}

#[test]
fn embedding_keeps_the_order_of_the_dissimilarity_in_every_space() {
    let set = SET.rows(300);
    let queries = Subset::new(&set.corpus, (0..40).collect()).unwrap();
    for case in CASES {
        let supervision = case.supervision(&set.corpus, &set.classes);
        let learner = case.learner();
        assert!(!learner.spaces().is_empty());
        for recipe in ["none", "centre+scale"] {
            let recipe: Recipe = recipe.parse().unwrap();
            let steps = recipe.fit(&set.corpus, None).unwrap();
            let prepared = PreparedCorpus::new(&set.corpus, None, &steps);
            let map = fit(learner.as_ref(), &prepared, &supervision);
            for space in learner.spaces() {
                let what = format!("{} after {recipe} by {space}", case.name);
                let chain = Chain::new(SET.dim(), steps.clone(), map.clone(), *space).unwrap();
                check_order(&chain, &queries, &set.corpus, &what);
            }
        }
    }
}

fn check_order(chain: &Chain, queries: &dyn Corpus, items: &MemoryCorpus, what: &str) {
    let asking = gathered(queries);
    let (asking, searched) = (Batch::new(asking.rows()), Batch::new(items.rows()));
    let mut wanted = Vec::new();
    chain
        .dissimilarity(&asking, &searched, &mut wanted)
        .unwrap();
    let embedding = chain.embedding().unwrap();
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    embedding.embed_queries(0, &asking, &mut left).unwrap();
    embedding.embed_items(0, &searched, &mut right).unwrap();
    assert_eq!(left.dim(), embedding.output_dim());
    let found = top_k(
        chain.space(),
        &MemoryCorpus::new(left.clone()).unwrap(),
        &MemoryCorpus::new(right.clone()).unwrap(),
        right.len(),
        false,
    );
    let found = found.unwrap();
    for query in 0..left.len() {
        let wanted = &wanted[query * right.len()..(query + 1) * right.len()];
        let scores: Vec<f64> = (right.rows().iter())
            .map(|item| score(embedding.space(), left.row(query), item))
            .collect();
        let mut order: Vec<usize> = (0..right.len()).collect();
        order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        assert_order(wanted, &order, what);
        // The search must keep the promise, too, and not only the definition of the space.
        let order: Vec<usize> = found.ids_of(query).iter().map(|id| *id as usize).collect();
        assert_eq!(order.len(), right.len(), "{what}");
        assert_order(wanted, &order, &format!("search, {what}"));
    }
}

#[test]
fn a_second_fit_gives_the_same_bytes() {
    let set = SET.rows(300);
    for case in CASES {
        let supervision = case.supervision(&set.corpus, &set.classes);
        let learner = case.learner();
        let first = bytes(learner.as_ref(), &set.corpus, &supervision);
        let again = bytes(learner.as_ref(), &set.corpus, &supervision);
        assert!(first == again, "{}: the same learner", case.name);
        let other = bytes(case.learner().as_ref(), &set.corpus, &supervision);
        assert!(first == other, "{}: another learner", case.name);
    }
}

#[test]
fn another_seed_or_another_set_gives_other_bytes() {
    // Without this, equal bytes could come of a learner that ignores what it is given.
    let (set, other) = (SET.rows(300), Nuisance { seed: 4, ..SET }.rows(300));
    let supervision = by_labels(&set);
    for case in CASES.iter().filter(|case| !case.settings.is_empty()) {
        let learner = case.learner();
        let supervision = case.supervision(&set.corpus, &set.classes);
        let one = bytes(learner.as_ref(), &set.corpus, &supervision);
        let two = bytes(learner.as_ref(), &other.corpus, &supervision);
        assert!(one != two, "{}", case.name);
    }
    let problem = Problem::new(&set.corpus, &supervision).unwrap();
    let learner = build("warca", WARCA);
    let with = |seed| learner.fit(&problem, &mut Run::new(seed)).unwrap();
    assert!(with(1) != with(2));
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    // More rows than a scan hands over at once, so that there are blocks to be spread; and fewer
    // rows than dimensions, which takes another way through most learners.
    let tall = SET.rows(2500);
    let wide = Nuisance { noise: 296, ..SET }.rows(120);
    for set in [&tall, &wide] {
        for case in CASES {
            let supervision = case.supervision(&set.corpus, &set.classes);
            let with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let pool = pool.build().unwrap();
                pool.install(|| bytes(case.learner().as_ref(), &set.corpus, &supervision))
            };
            let same = with(1) == with(2);
            assert!(same, "{} in {} dimensions", case.name, set.corpus.dim());
        }
    }
}

/// Distances after a map, from differences in f64.
fn distances(map: &Map, corpus: &MemoryCorpus, pairs: &[(usize, usize)]) -> Vec<f64> {
    let chain = Chain::new(corpus.dim(), Vec::new(), map.clone(), Space::SquaredL2).unwrap();
    let mut out = RowBuf::empty(1);
    chain
        .embed_items(0, &Batch::new(corpus.rows()), &mut out)
        .unwrap();
    (pairs.iter())
        .map(|(a, b)| score(Space::SquaredL2, out.row(*a), out.row(*b)).sqrt())
        .collect()
}

#[test]
fn the_order_of_the_rows_changes_nothing() {
    let set = SET.rows(1500);
    let mut order: Vec<RowId> = (0..1500).collect();
    Stream::new(1, "order of rows", 0).shuffle(&mut order);
    let classes: Vec<i64> = order.iter().map(|r| set.classes[*r as usize]).collect();
    let shuffled = Subset::new(&set.corpus, order).unwrap();
    let supervision = Supervision::labels(Labels::from_numbers(&classes).unwrap());
    let pairs: Vec<(usize, usize)> = (0..1499).map(|row| (row, row + 1)).collect();
    for case in CASES.iter().filter(|case| case.closed_form) {
        let learner = case.learner();
        let one = fit(learner.as_ref(), &set.corpus, &by_labels(&set));
        let other = fit(learner.as_ref(), &shuffled, &supervision);
        let one = distances(&one, &set.corpus, &pairs);
        let other = distances(&other, &set.corpus, &pairs);
        for (row, (a, b)) in one.iter().zip(&other).enumerate() {
            let what = format!("{}: rows {row} and {}: {a} and {b}", case.name, row + 1);
            assert!((a - b).abs() <= 1e-4 * a, "{what}");
        }
    }
}

#[test]
fn a_saved_model_is_the_model_that_is_loaded() {
    let set = SET.rows(300);
    let folder = tempfile::tempdir().unwrap();
    let recipe: Recipe = "centre+scale".parse().unwrap();
    let steps = recipe.fit(&set.corpus, None).unwrap();
    let prepared = PreparedCorpus::new(&set.corpus, None, &steps);
    for case in CASES {
        let supervision = case.supervision(&set.corpus, &set.classes);
        let problem = Problem::new(&prepared, &supervision).unwrap();
        let learner = case.learner();
        let mut run = Run::new(5);
        let map = learner.fit(&problem, &mut run).unwrap();
        for space in learner.spaces() {
            let chain = Chain::new(SET.dim(), steps.clone(), map.clone(), *space).unwrap();
            let saved = model(learner.as_ref(), chain, run.facts.clone());
            let path = folder.path().join(format!("{}.safetensors", case.name));
            saved.save(&path).unwrap();
            let loaded = Model::load(&path).unwrap();
            assert_eq!(saved, loaded, "{}", case.name);
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes == loaded.to_bytes().unwrap(), "{}", case.name);
        }
    }
}

/// Judgements by class, between two corpora or within one; within one only later rows are relevant
/// to earlier ones, so that the relation is not symmetric.
fn judgements(queries: &[i64], items: &[i64], within: bool) -> Judgements {
    let mut lines = Vec::new();
    for (query, class) in queries.iter().enumerate() {
        for (item, other) in items.iter().enumerate() {
            if class == other && (!within || query < item) {
                lines.push(Judgement {
                    query: query as RowId,
                    item: item as RowId,
                    grade: 1.0,
                });
            }
        }
    }
    let (queries, items) = (queries.len() as u64, items.len() as u64);
    if within {
        Judgements::within_one(items, &lines).unwrap()
    } else {
        Judgements::new(queries, items, &lines).unwrap()
    }
}

#[test]
fn supervision_that_cannot_be_used_is_named_with_what_is_needed() {
    let set = SET.rows(200);
    let judged = Supervision::judgements(judgements(&set.classes, &set.classes, true));
    let between = Supervision::judgements(judgements(&set.classes, &set.classes, false));
    let one = Problem::new(&set.corpus, &judged).unwrap();
    let two = Problem::between(&set.corpus, &set.corpus, &between).unwrap();
    for case in CASES {
        let learner = case.learner();
        for problem in [&one, &two] {
            match learner.fit(problem, &mut Run::new(1)) {
                Ok(_) => assert!(!case.labels_only && !case.orderings, "{}", case.name),
                Err(error) => {
                    let text = error.to_string();
                    assert!(case.labels_only || case.orderings, "{text}");
                    let needs = if case.orderings {
                        "needs orderings of classes"
                    } else {
                        "needs class labels"
                    };
                    let parts = [case.name, needs, "relevance judgements"];
                    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
                }
            }
        }
    }
    let settings = [WARCA, &[("start", "lda")]].concat();
    let error = build("warca", &settings).fit(&one, &mut Run::new(1));
    let error = error.unwrap_err().to_string();
    let expected = "warca with start=lda needs class labels";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn supervision_of_other_rows_is_refused_before_any_fit() {
    let set = SET.rows(200);
    let refused = |problem: metra::Result<Problem<'_>>, expected: &str| {
        assert_eq!(problem.err().unwrap().to_string(), expected);
    };
    let few = Supervision::labels(Labels::from_numbers(&set.classes[..150]).unwrap());
    refused(
        Problem::new(&set.corpus, &few),
        "items the supervision speaks of: expected 200, but found 150",
    );
    let between = Supervision::judgements(judgements(&set.classes, &set.classes, false));
    refused(
        Problem::new(&set.corpus, &between),
        "corpora: expected two, but found one",
    );
    let narrow = Nuisance { noise: 11, ..SET }.rows(200);
    refused(
        Problem::between(&narrow.corpus, &set.corpus, &between),
        "dimension of the queries: expected 16, but found 15",
    );
}

#[test]
fn learned_metrics_beat_euclid_on_rows_they_have_not_seen() {
    let set = SET.rows(600);
    let train = Subset::new(&set.corpus, (0..300).collect()).unwrap();
    let test = Subset::new(&set.corpus, (300..600).collect()).unwrap();
    let labels = Labels::from_numbers(&set.classes[300..]).unwrap();
    let truth = LeaveOneOut(&labels);
    let base = precision(&Map::Identity, Space::SquaredL2, &test, &test, &truth);
    for case in CASES.iter().filter(|case| case.learned) {
        let supervision = case.supervision(&train, &set.classes[..300]);
        let map = fit(case.learner().as_ref(), &train, &supervision);
        let learned = precision(&map, Space::SquaredL2, &test, &test, &truth);
        assert!(learned > base + CLEARLY, "{}: {learned}, {base}", case.name);
    }
}

/// Every way in which WARCA can be set to work, beside its defaults.
const WARCA_WAYS: &[(&str, &str)] = &[
    ("sampling", "pool"),
    ("sampling", "exact"),
    ("sampling", "sequential"),
    ("violators", "one"),
    ("regulariser", "frobenius"),
    ("start", "lda"),
    ("start", "random"),
    ("weights", "uniform"),
];

/// A fit must be finite and beat Euclid on the pairs it learned from.
fn assert_beats_euclid(
    way: (&str, &str),
    problem: &Problem<'_>,
    truth: &dyn Truth,
    supervision: &str,
) {
    let settings = [WARCA, &[way]].concat();
    let map = build("warca", &settings).fit(problem, &mut Run::new(1));
    let what = format!("{}={} with {supervision}", way.0, way.1);
    let map = map.unwrap_or_else(|error| panic!("{what}: {error}"));
    let Map::LowRank(low_rank) = &map else {
        panic!("{what}: expected a low-rank map");
    };
    let mut values = low_rank.weights().values().iter();
    assert!(values.all(|value| value.is_finite()), "{what}");
    let (queries, items) = (problem.queries(), problem.items());
    let of = |map| precision(map, Space::SquaredL2, queries, items, truth);
    let (base, learned) = (of(&Map::Identity), of(&map));
    assert!(learned > base + CLEARLY, "{what}: {learned}, {base}");
}

#[test]
fn warca_learns_from_labels_in_every_way() {
    let set = SET.rows(300);
    let supervision = by_labels(&set);
    let problem = Problem::new(&set.corpus, &supervision).unwrap();
    let labels = Labels::from_numbers(&set.classes).unwrap();
    for way in WARCA_WAYS {
        assert_beats_euclid(*way, &problem, &LeaveOneOut(&labels), "labels");
    }
}

#[test]
fn warca_learns_from_judgements_between_corpora_in_every_way() {
    let set = SET.rows(400);
    let queries = Subset::new(&set.corpus, (0..100).collect()).unwrap();
    let items = Subset::new(&set.corpus, (100..400).collect()).unwrap();
    let judged = judgements(&set.classes[..100], &set.classes[100..], false);
    let supervision = Supervision::judgements(judged.clone());
    let problem = Problem::between(&queries, &items, &supervision).unwrap();
    for way in WARCA_WAYS.iter().filter(|way| way.1 != "lda") {
        assert_beats_euclid(
            *way,
            &problem,
            &Qrels(&judged),
            "judgements between corpora",
        );
    }
}

#[test]
fn warca_learns_from_judgements_within_one_corpus_in_every_way() {
    let set = SET.rows(300);
    let judged = judgements(&set.classes, &set.classes, true);
    let supervision = Supervision::judgements(judged.clone());
    let problem = Problem::new(&set.corpus, &supervision).unwrap();
    for way in WARCA_WAYS.iter().filter(|way| way.1 != "lda") {
        assert_beats_euclid(
            *way,
            &problem,
            &Qrels(&judged),
            "judgements within a corpus",
        );
    }
}
