//! The laws of `learn::conformance`, run for every learner of the registry from one table: a learner
//! that is added to the registry and not to the table fails here. Beside them every way in which
//! WARCA can be set to work.

use metra::Dataset;
use metra::data::synthetic::LabelledVectors;
use metra::data::{Corpus, RowId, Storage, Subset};
use metra::evaluate::{EvaluationOptions, LeaveOneOut, Measure, Qrels, Truth, evaluate};
use metra::model::{Chain, Map, Side, Space, embed_corpus};
use metra::pipeline::registry::{ENTRIES, find};
use metra::supervision::{Judgement, Judgements, Labels, Supervision};
use metra::training::conformance::{CLEARLY, Case, SET, SupervisionCase, broken};
use metra::training::{AnyMethod, Run};
use std::collections::BTreeMap;

type Settings = &'static [(&'static str, &'static str)];

/// One test a learner: its name, settings that make it quick, what it learns from, whether it learns
/// from that, and whether it is a closed form.
macro_rules! table {
    ($( $test:ident: $name:literal, $settings:expr, $supervision:ident, $learns:literal, $closed:literal; )*) => {
        const TABLE: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                let settings: Settings = $settings;
                let learner = || Ok(build($name, settings));
                let case = Case {
                    learner: &learner,
                    supervision: SupervisionCase::$supervision,
                    learns: $learns,
                    closed_form: $closed,
                };
                assert_eq!(broken(&case), Vec::<String>::new());
            }
        )*
    };
}

// Procrustes leaves items as they are, with all their noise.
table! {
    euclid: "euclid", &[], Labels, false, true;
    cosine: "cosine", &[], Labels, false, true;
    pca: "pca", &[("rank", "6")], Labels, false, true;
    whitening: "whitening", &[("rank", "14")], Labels, false, true;
    vector_weights: "vector-weights", &[("dims", "4")], Labels, true, true;
    lda: "lda", &[("rank", "4")], Labels, true, true;
    kissme: "kissme", &[("rank", "16")], Labels, true, true;
    xqda: "xqda", &[("rank", "4")], Labels, true, true;
    cca: "cca", &[("rank", "4"), ("ridge", "0.01")], Labels, true, true;
    procrustes: "procrustes", &[("form", "regression"), ("ridge", "0.001")], Labels, false, true;
    lfda: "lfda", &[("rank", "4")], Labels, true, true;
    kernel_lfda: "kernel-lfda", &[("rank", "4"), ("kernel", "linear"), ("landmarks", "400")], Labels, true, true;
    mfa: "mfa", &[("rank", "4")], Labels, true, true;
    lmnn: "lmnn", &[("rank", "4")], Labels, true, false;
    nca: "nca", &[("rank", "16"), ("batch", "160"), ("steps", "400"), ("rate", "0.1")], Labels, true, false;
    itml: "itml", &[("pairs", "400"), ("cycles", "30")], Labels, true, false;
    oasis: "oasis", &[("steps", "40")], Labels, true, false;
    loreta: "loreta", LORETA, Labels, true, false;
    mlr: "mlr", &[("cost", "1000"), ("rounds", "20"), ("rows", "400")], Labels, true, false;
    mlapg: "mlapg", &[("iterations", "40"), ("rows", "300")], Labels, true, false;
    svmml: "svmml", &[("lambda", "0.000001"), ("steps", "100"), ("rows", "400")], Labels, true, false;
    pcca: "pcca", PCCA, Labels, true, false;
    kernel_pcca: "kernel-pcca", KERNEL_PCCA, Labels, true, false;
    warca: "warca", WARCA, Labels, true, false;
    kernel_warca: "kernel-warca", KERNEL_WARCA, Labels, true, false;
    frml: "frml", FRML, Labels, true, false;
    multi_similarity: "multi-similarity", IN_BATCH, Labels, true, false;
    supcon: "supcon", IN_BATCH, Labels, true, false;
    proxy_anchor: "proxy-anchor", PROXY_ANCHOR, Labels, true, false;
    slr: "slr", &[("rank", "4"), ("iterations", "3")], Labels, true, true;
    slr_adapter: "slr-adapter", &[("ridge", "0.001"), ("iterations", "20")], Labels, true, true;
    adapter: "adapter", &[("lambda", "0.0001"), ("rate", "0.05"), ("steps", "200")], Labels, true, false;
    qwise: "qwise", &[("count", "1500")], Labels, true, false;
    attributes: "attributes", &[("count", "1500")], Orderings, true, false;
    rank_svm: "rank-svm", &[], Orderings, true, true;
}

const WARCA: Settings = &[
    ("rank", "4"),
    ("steps", "400"),
    ("batch", "128"),
    ("pool", "128"),
];

// The set has negative values, which a kernel of histograms refuses.
const KERNEL_WARCA: Settings = &[
    ("kernel", "linear"),
    ("landmarks", "400"),
    ("rank", "4"),
    ("steps", "400"),
    ("batch", "128"),
    ("pool", "128"),
];

const LORETA: Settings = &[
    ("rank", "4"),
    ("start", "random"),
    ("rate", "0.3"),
    ("steps", "40"),
    ("batch", "1000"),
];

// The directions of largest variance are noise here, from which a descent over all pairs at once does
// not find away: nothing pulls it aside.
const PCCA: Settings = &[
    ("rank", "4"),
    ("start", "random"),
    ("lambda", "0"),
    ("steps", "60"),
    ("pairs", "2000"),
];

const KERNEL_PCCA: Settings = &[
    ("kernel", "linear"),
    ("landmarks", "400"),
    ("rank", "4"),
    ("start", "random"),
    ("lambda", "0"),
    ("steps", "60"),
    ("pairs", "2000"),
];

const FRML: Settings = &[("rank", "4"), ("steps", "400"), ("rate", "1")];

const IN_BATCH: Settings = &[
    ("rank", "4"),
    ("rate", "0.03"),
    ("steps", "200"),
    ("batch", "96"),
    ("drawn", "32"),
];

const PROXY_ANCHOR: Settings = &[
    ("rank", "4"),
    ("alpha", "4"),
    ("rate", "0.03"),
    ("steps", "500"),
    ("batch", "96"),
    ("drawn", "32"),
];

#[test]
fn the_table_has_every_learner_of_the_registry() {
    let registered: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(TABLE, registered);
}

fn build(name: &str, settings: &[(&str, &str)]) -> Box<dyn AnyMethod> {
    let settings: BTreeMap<String, String> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    find(name).unwrap().build(&settings).unwrap()
}

fn by_labels(set: &LabelledVectors) -> Supervision {
    Supervision::labels(Labels::from_numbers(&set.classes).unwrap())
}

#[test]
fn rankers_learn_from_several_labels_per_row() {
    for (name, settings, closed_form) in [
        ("warca", WARCA, false),
        ("supcon", IN_BATCH, false),
        ("slr", &[("rank", "4"), ("iterations", "3")][..], true),
        ("qwise", &[("count", "1500")][..], false),
    ] {
        let learner = || Ok(build(name, settings));
        let case = Case {
            learner: &learner,
            supervision: SupervisionCase::LabelSets,
            learns: true,
            closed_form,
        };
        assert_eq!(broken(&case), Vec::<String>::new(), "{name}");
    }
}

/// What else a learner is said to learn from must work as well.
#[test]
fn qwise_learns_from_every_kind_of_comparison() {
    for supervision in [
        SupervisionCase::Taxonomy,
        SupervisionCase::Pairs,
        SupervisionCase::Triplets,
        SupervisionCase::Mixed,
    ] {
        let learner = || Ok(build("qwise", &[("count", "1500")]));
        let case = Case {
            learner: &learner,
            supervision,
            learns: true,
            closed_form: false,
        };
        assert_eq!(broken(&case), Vec::<String>::new(), "{supervision:?}");
    }
}

#[test]
fn kernel_warca_learns_in_both_ways_from_pairs_too() {
    // Plain steps have no memory that would set their length.
    let preconditioned: Settings = &[("optimiser", "preconditioned"), ("rate", "5")];
    for (more, supervision) in [
        (&[] as Settings, SupervisionCase::Pairs),
        (preconditioned, SupervisionCase::Labels),
    ] {
        let settings = [KERNEL_WARCA, more].concat();
        let learner = || Ok(build("kernel-warca", &settings));
        let case = Case {
            learner: &learner,
            supervision,
            learns: true,
            closed_form: false,
        };
        // 2,500 rows are more than the landmarks, which the preconditioned way refuses.
        let found: Vec<String> = (broken(&case).into_iter())
            .filter(|law| !law.contains("adam where queries are another corpus"))
            .collect();
        assert_eq!(found, Vec::<String>::new(), "{supervision:?}");
    }
}

#[test]
fn losses_in_a_batch_learn_from_pairs_too() {
    for name in ["multi-similarity", "supcon"] {
        let learner = || Ok(build(name, IN_BATCH));
        let case = Case {
            learner: &learner,
            supervision: SupervisionCase::Pairs,
            learns: true,
            closed_form: false,
        };
        assert_eq!(broken(&case), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn another_seed_gives_other_bytes() {
    let set = SET.rows(300);
    let supervision = by_labels(&set);
    let data = Dataset::new(&set.corpus, &supervision).unwrap();
    for (name, settings) in [
        ("warca", WARCA),
        ("kernel-warca", KERNEL_WARCA),
        ("frml", FRML),
        ("multi-similarity", IN_BATCH),
        ("supcon", IN_BATCH),
        ("proxy-anchor", IN_BATCH),
    ] {
        let learner = build(name, settings);
        let with = |seed| learner.fit(&data, &mut Run::new(seed)).unwrap();
        assert!(with(1) != with(2), "{name}");
    }
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
    let options = EvaluationOptions {
        measures: vec![Measure::AveragePrecision],
        ..EvaluationOptions::default()
    };
    let found = evaluate(space, asking.corpus(), searched.corpus(), truth, &options);
    found.unwrap().mean(Measure::AveragePrecision).unwrap()
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
fn supervision_of_other_rows_is_refused_before_any_fit() {
    let set = SET.rows(200);
    let refused = |data: metra::Result<Dataset<'_>>, expected: &str| {
        assert_eq!(data.err().unwrap().to_string(), expected);
    };
    let few = Supervision::labels(Labels::from_numbers(&set.classes[..150]).unwrap());
    refused(
        Dataset::new(&set.corpus, &few),
        "items the supervision speaks of: expected 200, but found 150",
    );
    let between = Supervision::judgements(judgements(&set.classes, &set.classes, false));
    refused(
        Dataset::new(&set.corpus, &between),
        "corpora: expected two, but found one",
    );
}

#[test]
fn a_start_that_needs_labels_says_so() {
    let set = SET.rows(200);
    let judged = Supervision::judgements(judgements(&set.classes, &set.classes, true));
    let data = Dataset::new(&set.corpus, &judged).unwrap();
    let settings = [WARCA, &[("start", "lda")]].concat();
    let error = build("warca", &settings).fit(&data, &mut Run::new(1));
    let error = error.unwrap_err().to_string();
    let expected = "warca with start=lda needs class labels";
    assert!(error.starts_with(expected), "{error}");
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
    data: &Dataset<'_>,
    truth: &dyn Truth,
    supervision: &str,
) {
    let settings = [WARCA, &[way]].concat();
    let map = build("warca", &settings).fit(data, &mut Run::new(1));
    let what = format!("{}={} with {supervision}", way.0, way.1);
    let map = map.unwrap_or_else(|error| panic!("{what}: {error}"));
    let Map::LowRank(low_rank) = &map else {
        panic!("{what}: expected a low-rank map");
    };
    let mut values = low_rank.weights().values().iter();
    assert!(values.all(|value| value.is_finite()), "{what}");
    let (queries, items) = (data.queries(), data.items());
    let of = |map| precision(map, Space::SquaredL2, queries, items, truth);
    let (base, learned) = (of(&Map::Identity), of(&map));
    assert!(learned > base + CLEARLY, "{what}: {learned}, {base}");
}

#[test]
fn warca_learns_from_labels_in_every_way() {
    let set = SET.rows(300);
    let supervision = by_labels(&set);
    let data = Dataset::new(&set.corpus, &supervision).unwrap();
    let labels = Labels::from_numbers(&set.classes).unwrap();
    for way in WARCA_WAYS {
        assert_beats_euclid(*way, &data, &LeaveOneOut(&labels), "labels");
    }
}

#[test]
fn warca_learns_from_judgements_between_corpora_in_every_way() {
    let set = SET.rows(400);
    let queries = Subset::new(&set.corpus, (0..100).collect()).unwrap();
    let items = Subset::new(&set.corpus, (100..400).collect()).unwrap();
    let judged = judgements(&set.classes[..100], &set.classes[100..], false);
    let supervision = Supervision::judgements(judged.clone());
    let data = Dataset::between(&queries, &items, &supervision).unwrap();
    for way in WARCA_WAYS.iter().filter(|way| way.1 != "lda") {
        assert_beats_euclid(*way, &data, &Qrels(&judged), "judgements between corpora");
    }
}

#[test]
fn warca_learns_from_judgements_within_one_corpus_in_every_way() {
    let set = SET.rows(300);
    let judged = judgements(&set.classes, &set.classes, true);
    let supervision = Supervision::judgements(judged.clone());
    let data = Dataset::new(&set.corpus, &supervision).unwrap();
    for way in WARCA_WAYS.iter().filter(|way| way.1 != "lda") {
        assert_beats_euclid(*way, &data, &Qrels(&judged), "judgements within a corpus");
    }
}
