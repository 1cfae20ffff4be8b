//! Bad input, in one table, for every learner of the registry: none may panic, and each either fits
//! to something finite and usable or says what is wrong and where.

use metra::Dataset;
use metra::data::synthetic::Nuisance;
use metra::data::{Batch, Corpus, MappedCorpus, MemoryCorpus, Storage, Subset};
use metra::evaluate::{EvaluationOptions, LeaveOneOut, Measure, evaluate};
use metra::internal::check_finite;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Chain, Embedded, Embedding, Map, Side, Space, embed_corpus};
use metra::pipeline::registry::{ENTRIES, Entry, find};
use metra::search::top_k;
use metra::supervision::{Labels, Supervision, SupervisionKind};
use metra::training::{AnyMethod, PreparedCorpus, Recipe, Run};
use std::collections::BTreeMap;

const SET: Nuisance = Nuisance {
    classes: 5,
    signal: 2,
    noise: 4,
    seed: 9,
};

/// Rows with the class of each.
#[derive(Clone)]
struct Set {
    rows: Vec<Vec<f32>>,
    classes: Vec<i64>,
}

impl Set {
    fn good() -> Set {
        let made = SET.rows(40);
        Set {
            rows: made.corpus.rows().iter().map(<[f32]>::to_vec).collect(),
            classes: made.classes,
        }
    }

    /// The good set with every value changed, given its row and column.
    fn mapped(change: impl Fn(usize, usize, f32) -> f32) -> Set {
        let mut set = Set::good();
        for (row, values) in set.rows.iter_mut().enumerate() {
            for (column, value) in values.iter_mut().enumerate() {
                *value = change(row, column, *value);
            }
        }
        set
    }

    /// The good set with other classes, given the row.
    fn classed(class: impl Fn(usize) -> i64) -> Set {
        let mut set = Set::good();
        set.classes = (0..set.rows.len()).map(class).collect();
        set
    }

    /// The first rows of the good set.
    fn first(len: usize) -> Set {
        let mut set = Set::good();
        set.rows.truncate(len);
        set.classes.truncate(len);
        set
    }

    fn buffer(&self) -> RowBuf {
        RowBuf::from_values(self.rows.concat(), self.rows[0].len()).unwrap()
    }

    fn corpus(&self) -> metra::Result<MemoryCorpus> {
        MemoryCorpus::new(self.buffer())
    }

    fn labels(&self) -> Labels {
        Labels::from_numbers(&self.classes).unwrap()
    }
}

/// The learner with few steps and a rank that every set here allows.
/// Those that learn from labels.
fn learners() -> impl Iterator<Item = &'static Entry> {
    ENTRIES
        .iter()
        .filter(|entry| entry.needs != [SupervisionKind::Orderings])
}

fn quick(name: &str) -> Box<dyn AnyMethod> {
    let entry = find(name).unwrap();
    let mut settings = BTreeMap::new();
    for (parameter, value) in [
        ("rank", "2"),
        ("dims", "2"),
        ("steps", "30"),
        ("batch", "32"),
        ("pool", "32"),
        // A kernel of histograms refuses values below 0, which these sets have.
        ("kernel", "linear"),
    ] {
        if entry.has(parameter) {
            settings.insert(parameter.to_owned(), value.to_owned());
        }
    }
    entry.build(&settings).unwrap()
}

fn fit(learner: &dyn AnyMethod, set: &Set) -> metra::Result<Map> {
    let corpus = set.corpus()?;
    let supervision = Supervision::labels(set.labels());
    learner.fit(&Dataset::new(&corpus, &supervision)?, &mut Run::new(1))
}

/// All rows through a map.
fn embedded(map: &Map, space: Space, corpus: &dyn Corpus) -> metra::Result<Embedded> {
    let chain = Chain::new(corpus.dim(), Vec::new(), map.clone(), space)?;
    embed_corpus(&chain, Side::Item, corpus, None, &Storage::default())
}

/// Whatever one can do with a fitted map on its own rows; every number must be finite.
fn assert_usable(learner: &dyn AnyMethod, map: &Map, set: &Set, what: &str) {
    let corpus = set.corpus().unwrap();
    for space in learner.spaces() {
        let what = format!("{what} by {space}");
        let good = |result: metra::Result<()>| result.unwrap_or_else(|e| panic!("{what}: {e}"));
        let rows = embedded(map, *space, &corpus).unwrap_or_else(|e| panic!("{what}: {e}"));
        let rows = rows.corpus();
        good(check_finite(rows));
        good(top_k(*space, rows, rows, 3, true).map(|found| {
            assert!(found.scores.iter().all(|v| v.is_finite()), "{what}");
        }));
        let labels = set.labels();
        let truth = LeaveOneOut(&labels);
        good(
            evaluate(*space, rows, rows, &truth, &EvaluationOptions::default()).map(|found| {
                for (measure, values) in &found.values {
                    for value in values {
                        let fits = (0.0..=1.0).contains(value) && value.is_sign_positive();
                        assert!(fits, "{what}: {measure} {value:?}");
                    }
                }
            }),
        );
        let chain = Chain::new(corpus.dim(), Vec::new(), map.clone(), *space).unwrap();
        let (all, mut out) = (Batch::new(corpus.rows()), Vec::new());
        good(chain.dissimilarity(&all, &all, &mut out));
        assert!(out.iter().all(|v| v.is_finite()), "{what}");
    }
}

/// A bad set, and the learners that refuse it with what they say; all others must fit.
struct Case {
    name: &'static str,
    set: fn() -> Set,
    refused: &'static [(&'static str, &'static str)],
}

const NOT_A_NUMBER: &str = "row 3, column 4: expected a finite number, but found NaN";
const INFINITE: &str = "row 39, column 0: expected a finite number, but found -inf";
const NO_DIRECTION: &str =
    "all vectors are equal: expected at least one direction in which they differ";
const ALL_EQUAL: &str = "all vectors are equal: nothing can be learned";
const NO_PAIR: &str = "no row has a relevant other row (every class has one row, or no judgement \
                       is above 0): expected at least one relevant pair";
const NO_NEGATIVE: &str =
    "every item is relevant to every query (one class?): expected some irrelevant items";
const EQUALLY_FAR: &str =
    "near and far pairs are equally far apart in every column: nothing can be learned";
const NO_WEIGHT: &str = "no weight is above 0: no column is farther apart in the far pairs than in \
                         the near ones";
const NO_VECTOR_HELPS: &str = "every ranked list puts the relevant items behind the others, or does not tell them apart: no \
     weights above 0 help";
const NOTHING_SEPARATES: &str = "irrelevant pairs are in no direction farther apart than relevant \
                                 ones: nothing can be learned";
/// What a learner of comparisons says where labels give none.
macro_rules! no_quadruplet {
    ($given:literal) => {
        concat!(
            "qwise needs quadruplets, triplets or pairs, or labels, judgements, orderings or a ",
            "taxonomy from which some can be drawn, but was given labels of ",
            $given
        )
    };
}
const ONE_CLASS: &str = "expected at least 2 classes to tell apart, but found 1";

const CASES: &[Case] = &[
    Case {
        name: "not a number",
        set: || Set::mapped(|row, column, v| if (row, column) == (3, 4) { f32::NAN } else { v }),
        refused: &[
            ("euclid", NOT_A_NUMBER),
            ("cosine", NOT_A_NUMBER),
            ("pca", NOT_A_NUMBER),
            ("whitening", NOT_A_NUMBER),
            ("lda", NOT_A_NUMBER),
            ("warca", NOT_A_NUMBER),
            ("slr", NOT_A_NUMBER),
            ("slr-adapter", NOT_A_NUMBER),
            ("qwise", NOT_A_NUMBER),
        ],
    },
    Case {
        name: "infinite",
        set: || Set::mapped(|row, _, v| if row == 39 { f32::NEG_INFINITY } else { v }),
        refused: &[
            ("euclid", INFINITE),
            ("cosine", INFINITE),
            ("pca", INFINITE),
            ("whitening", INFINITE),
            ("lda", INFINITE),
            ("warca", INFINITE),
            ("slr", INFINITE),
            ("slr-adapter", INFINITE),
            ("qwise", INFINITE),
        ],
    },
    Case {
        name: "constant columns",
        set: || Set::mapped(|_, column, v| if column % 2 == 0 { 7.5 } else { v }),
        refused: &[],
    },
    Case {
        name: "all constant",
        set: || Set::mapped(|_, _, _| 3.0),
        refused: &[
            ("pca", NO_DIRECTION),
            ("whitening", NO_DIRECTION),
            ("lda", ALL_EQUAL),
            ("warca", ALL_EQUAL),
            ("slr", ALL_EQUAL),
            ("qwise", EQUALLY_FAR),
            ("vector-weights", NO_VECTOR_HELPS),
        ],
    },
    Case {
        name: "duplicates of the same label",
        set: || doubled(0),
        refused: &[],
    },
    Case {
        name: "duplicates of another label",
        set: || doubled(1),
        refused: &[],
    },
    Case {
        // All relevant pairs are at distance 0: they have no scale and no spread.
        name: "every class one point",
        set: || {
            let good = Set::good();
            let class = |row: usize| good.classes[row] as usize;
            Set::mapped(|row, column, _| good.rows[class(row)][column])
        },
        refused: &[(
            "itml",
            "itml needs similar and dissimilar pairs of different vectors: of 2140 pairs 140 coincide, \
             and of the others 0 are similar",
        )],
    },
    Case {
        name: "some classes of one row",
        set: || {
            Set::classed(|row| {
                if row < 10 {
                    100 + row as i64
                } else {
                    row as i64 % 5
                }
            })
        },
        refused: &[],
    },
    Case {
        name: "only classes of one row",
        set: || Set::classed(|row| row as i64),
        refused: &[
            ("warca", NO_PAIR),
            ("slr", NO_PAIR),
            ("slr-adapter", NO_PAIR),
            ("qwise", no_quadruplet!("40 rows in 40 classes")),
        ],
    },
    Case {
        name: "one class",
        set: || Set::classed(|_| 1),
        refused: &[
            ("lda", ONE_CLASS),
            ("warca", NO_NEGATIVE),
            ("slr", NO_NEGATIVE),
            ("slr-adapter", NO_NEGATIVE),
            ("qwise", no_quadruplet!("40 rows in 1 classes")),
        ],
    },
    Case {
        name: "fewer rows than dimensions",
        set: || {
            let mut set = Set::first(5);
            set.classes = vec![0, 0, 1, 1, 1];
            set
        },
        // With labels drawn at random, far pairs happen to be nearer in every column.
        refused: &[
            ("qwise", NO_WEIGHT),
            ("kissme", NOTHING_SEPARATES),
            ("vector-weights", NO_VECTOR_HELPS),
        ],
    },
    Case {
        name: "columns of very different scales",
        set: || Set::mapped(|_, column, v| v * if column % 2 == 0 { 1e8 } else { 1e-8 }),
        refused: &[],
    },
    Case {
        name: "a large offset",
        set: || Set::mapped(|_, _, v| v + 1e4),
        refused: &[],
    },
    Case {
        name: "tiny values",
        set: || Set::mapped(|_, _, v| v * 1e-12),
        refused: &[],
    },
    Case {
        name: "huge values",
        set: || Set::mapped(|_, _, v| v * 1e12),
        refused: &[],
    },
    Case {
        name: "one row",
        set: || Set::first(1),
        refused: &[
            ("pca", NO_DIRECTION),
            ("whitening", NO_DIRECTION),
            ("lda", ONE_CLASS),
            ("warca", NO_PAIR),
            ("slr", NO_PAIR),
            ("slr-adapter", NO_PAIR),
            ("qwise", no_quadruplet!("1 rows in 1 classes")),
        ],
    },
    Case {
        name: "two rows of two classes",
        set: || Set::first(2),
        refused: &[
            ("warca", NO_PAIR),
            ("slr", NO_PAIR),
            ("slr-adapter", NO_PAIR),
            ("qwise", no_quadruplet!("2 rows in 2 classes")),
        ],
    },
    Case {
        name: "two rows of one class",
        set: || {
            let mut set = Set::first(2);
            set.classes = vec![4, 4];
            set
        },
        refused: &[
            ("lda", ONE_CLASS),
            ("warca", NO_NEGATIVE),
            ("slr", NO_NEGATIVE),
            ("slr-adapter", NO_NEGATIVE),
            ("qwise", no_quadruplet!("2 rows in 1 classes")),
        ],
    },
];

/// The first half of the good set twice, the second time with classes counted up by `shift`.
fn doubled(shift: i64) -> Set {
    let mut set = Set::first(20);
    set.rows.extend_from_within(..);
    set.classes.extend_from_within(..);
    set.classes[20..]
        .iter_mut()
        .for_each(|class| *class += shift);
    set
}

#[test]
fn every_learner_fits_or_says_what_is_wrong() {
    let mut wrong = Vec::new();
    for case in CASES {
        let set = (case.set)();
        for entry in learners() {
            let what = format!("{} with {}", entry.name, case.name);
            let learner = quick(entry.name);
            // What learns from the same pairs wants the same.
            let known_as = match entry.name {
                "kernel-warca" | "frml" | "kissme" | "xqda" => "warca",
                "multi-similarity" | "supcon" | "proxy-anchor" | "adapter" => "warca",
                "pcca" | "kernel-pcca" | "itml" | "mlapg" | "mlr" | "svmml" => "warca",
                "oasis" | "loreta" | "lmnn" | "nca" | "cca" | "procrustes" => "warca",
                "vector-weights" => "warca",
                "lfda" | "kernel-lfda" | "mfa" => "lda",
                name => name,
            };
            let said_of = |known: &str| case.refused.iter().find(|(name, _)| *name == known);
            let refusal = said_of(entry.name).or_else(|| said_of(known_as));
            match (fit(learner.as_ref(), &set), refusal) {
                (Ok(map), None) => assert_usable(learner.as_ref(), &map, &set, &what),
                (Err(error), Some((_, text))) if error.to_string() == *text => {}
                (Err(error), Some((_, text))) => {
                    wrong.push(format!("{what}: should say {text}, but says: {error}"));
                }
                (Ok(_), Some((_, text))) => {
                    wrong.push(format!("{what}: fits, but should say: {text}"));
                }
                (Err(error), None) => wrong.push(format!("{what}: should fit, but says: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A mapped file is not read before it is used, so nobody has refused its values when a learner
/// sees them.
#[test]
fn values_that_are_not_finite_never_become_a_map() {
    for (value, column) in [(f32::NAN, 4), (f32::INFINITY, 0)] {
        let set = Set::mapped(|r, c, v| if (r, c) == (3, column) { value } else { v });
        let file = tempfile::NamedTempFile::new().unwrap();
        let values = set.rows.concat();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(file.path(), bytes).unwrap();
        let corpus = MappedCorpus::open(file.path(), 0, 40, SET.dim()).unwrap();
        let error = check_finite(&corpus).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("row 3, column {column}: ")),
            "{error}"
        );
        let supervision = Supervision::labels(set.labels());
        let data = Dataset::new(&corpus, &supervision).unwrap();
        for entry in learners() {
            let learner = quick(entry.name);
            match learner.fit(&data, &mut Run::new(1)) {
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("not finite"), "{}: {error}", entry.name);
                }
                Ok(Map::Identity) => {}
                Ok(_) => panic!("{} learned from {value}", entry.name),
            }
        }
    }
}

/// Mean average precision on the rows learned from.
fn precision(map: &Map, space: Space, set: &Set) -> f64 {
    let corpus = set.corpus().unwrap();
    let rows = embedded(map, space, &corpus).unwrap();
    let labels = set.labels();
    let truth = LeaveOneOut(&labels);
    let options = EvaluationOptions {
        measures: vec![Measure::AveragePrecision],
        ..EvaluationOptions::default()
    };
    let found = evaluate(space, rows.corpus(), rows.corpus(), &truth, &options).unwrap();
    found.mean(Measure::AveragePrecision).unwrap()
}

#[test]
fn neither_scale_nor_offset_changes_what_is_learned() {
    let good = Set::good();
    // f32 keeps steps of 0.001 beside 1e4, so some order is lost; a power of two loses nothing.
    let changed = [
        ("× 2⁻⁴⁰", Set::mapped(|_, _, v| v * 2_f32.powi(-40)), 0.01),
        ("× 2⁴⁰", Set::mapped(|_, _, v| v * 2_f32.powi(40)), 0.01),
        ("+ 1e4", Set::mapped(|_, _, v| v + 1e4), 0.02),
    ];
    for entry in learners() {
        let learner = quick(entry.name);
        let space = learner.spaces()[0];
        let of = |set: &Set| precision(&fit(learner.as_ref(), set).unwrap(), space, set);
        let expected = of(&good);
        for (name, set, tolerance) in &changed {
            if name.starts_with('+') && (space == Space::Cosine || entry.name == "vector-weights") {
                // The angle between vectors is another one after a shift, and so is a product of weighted ones.
                continue;
            }
            if matches!(entry.name, "kernel-lfda" | "kernel-pcca") && name.starts_with('+') {
                // Kernel values are f32, and inner products of 6e8 leave nothing of differences of 1:
                // what comes before a kernel of products is centred by its preparation.
                continue;
            }
            if entry.name == "oasis" && name.starts_with('+') {
                // It learns a product of vectors as they are unless told to centre them.
                continue;
            }
            let found = of(set);
            let what = format!("{} {name}: {found}, not {expected}", entry.name);
            assert!((found - expected).abs() <= *tolerance, "{what}");
        }
    }
}

/// Learners that take the rank 0 for all directions that there are.
const ALL_BY_ZERO: [&str; 4] = ["itml", "mlr", "mlapg", "svmml"];

#[test]
fn a_rank_above_the_dimension_is_refused() {
    let set = Set::good();
    let mut refused = 0;
    // In a kernel's space the dimension is the number of landmarks, and the rank is at most that.
    let of_vectors = |entry: &&Entry| entry.has("rank") && !entry.has("kernel");
    for entry in ENTRIES.iter().filter(of_vectors) {
        let with = |rank: &str| BTreeMap::from([("rank".to_owned(), rank.to_owned())]);
        let error = fit(entry.build(&with("7")).unwrap().as_ref(), &set).unwrap_err();
        let expected = "rank must be between 1 and 6 (the input dimension), but is 7";
        assert_eq!(error.to_string(), expected, "{}", entry.name);
        let none = entry.build(&with("0"));
        if !ALL_BY_ZERO.contains(&entry.name) {
            let error = none.err().unwrap();
            assert_eq!(error.to_string(), "rank must be at least 1, but is 0");
        }
        refused += 1;
    }
    assert!(refused >= 4);
}

#[test]
fn vectors_of_another_dimension_are_refused_at_use() {
    let set = Set::good();
    let narrow = [1.0; 10];
    let narrow = Batch::new(Rows::new(&narrow, 5).unwrap());
    let corpus = set.corpus().unwrap();
    let expected =
        "dimension of the vectors: expected 6 (what the metric was made for), but found 5";
    for entry in learners() {
        let learner = quick(entry.name);
        let map = fit(learner.as_ref(), &set).unwrap();
        for space in learner.spaces() {
            let chain = Chain::new(6, Vec::new(), map.clone(), *space).unwrap();
            let right = Batch::new(corpus.rows());
            let (mut rows, mut scores) = (RowBuf::empty(1), Vec::new());
            let outcomes = [
                chain.embed_queries(0, &narrow, &mut rows),
                chain.embed_items(0, &narrow, &mut rows),
                chain.dissimilarity(&narrow, &right, &mut scores),
                chain.dissimilarity(&right, &narrow, &mut scores),
            ];
            for outcome in outcomes {
                assert_eq!(outcome.unwrap_err().to_string(), expected, "{}", entry.name);
            }
        }
    }
    let other = MemoryCorpus::new(RowBuf::zeros(2, 5)).unwrap();
    let error = top_k(Space::SquaredL2, &other, &corpus, 1, false).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("expected 6") && error.contains("found 5"),
        "{error}"
    );
}

#[test]
fn preparation_names_the_row_it_cannot_take() {
    let cases = [
        (
            "sqrt",
            -0.5,
            "row 3, column 2: expected a value at least 0 for the square root",
        ),
        (
            "log:2",
            -0.5,
            "row 3, column 2: expected a value above -0.5 for log(1 + 2·x)",
        ),
    ];
    for (recipe, value, expected) in cases {
        let set = Set::mapped(|r, c, v| if (r, c) == (3, 2) { value } else { v.abs() });
        refused_by_every_learner(recipe, &set, expected);
    }
    let zero = Set::mapped(|row, _, v| if row == 3 { 0.0 } else { v });
    let expected = "row 3: expected a vector of non-zero length to normalise, but all its values \
                    are 0";
    refused_by_every_learner("l2", &zero, expected);
}

/// Learners that look at the data refuse when they fit, the others when they are used. Training
/// parts are in an order of their own, but the row named is the one of the whole corpus.
fn refused_by_every_learner(recipe: &str, set: &Set, expected: &str) {
    let whole = set.corpus().unwrap();
    let part = Subset::new(&whole, (0..40).rev().collect()).unwrap();
    let classes: Vec<i64> = set.classes.iter().rev().copied().collect();
    let supervision = Supervision::labels(Labels::from_numbers(&classes).unwrap());
    let recipe: Recipe = recipe.parse().unwrap();
    let steps = recipe.fit(&part, None).unwrap();
    let prepared = PreparedCorpus::new(&part, None, &steps);
    let data = Dataset::new(&prepared, &supervision).unwrap();
    for entry in learners() {
        let learner = quick(entry.name);
        let outcome = learner.fit(&data, &mut Run::new(1)).and_then(|map| {
            let space = learner.spaces()[0];
            let chain = Chain::new(SET.dim(), steps.clone(), map, space)?;
            embed_corpus(&chain, Side::Item, &part, None, &Storage::default())
        });
        let error = outcome.err().unwrap().to_string();
        let what = format!("{} after {recipe}: {error}", entry.name);
        assert!(error.starts_with(expected), "{what}");
    }
}

#[test]
fn a_cosine_with_a_zero_vector_names_its_row() {
    let good = Set::good().corpus().unwrap();
    let set = Set::mapped(|row, _, v| if row == 3 { 0.0 } else { v });
    let zero = set.corpus().unwrap();
    let expected = |side: &str| {
        format!(
            "row 3: expected a vector of non-zero length to compare by cosine, but all values of \
             the {side} are 0"
        )
    };
    let error = top_k(Space::Cosine, &good, &zero, 2, false).unwrap_err();
    assert_eq!(error.to_string(), expected("item"));
    let error = top_k(Space::Cosine, &zero, &good, 2, false).unwrap_err();
    assert_eq!(error.to_string(), expected("query"));
    let labels = set.labels();
    let truth = LeaveOneOut(&labels);
    let error = evaluate(
        Space::Cosine,
        &zero,
        &zero,
        &truth,
        &EvaluationOptions::default(),
    );
    assert_eq!(error.unwrap_err().to_string(), expected("item"));
    let chain = Chain::identity(SET.dim(), Space::Cosine);
    let (all, mut out) = (Batch::new(zero.rows()), Vec::new());
    let error = chain.dissimilarity(&all, &all, &mut out).unwrap_err();
    assert!(error.to_string().starts_with("row 3: "), "{error}");
}

/// The dissimilarity is what searches are measured against, so it must not give up where they do
/// not: lengths and products of such values leave f32, their cosines do not.
#[test]
fn the_cosine_of_far_and_near_vectors_is_exact() {
    let good = Set::good().corpus().unwrap();
    let chain = Chain::identity(SET.dim(), Space::Cosine);
    let of = |corpus: &MemoryCorpus| {
        let (all, mut out) = (Batch::new(corpus.rows()), Vec::new());
        chain.dissimilarity(&all, &all, &mut out).unwrap();
        out
    };
    let expected = of(&good);
    for factor in [1e-25, 1e25] {
        let scaled = Set::mapped(|_, _, v| v * factor).corpus().unwrap();
        for (found, expected) in of(&scaled).iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 1e-5,
                "× {factor}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn scores_beyond_f32_are_errors_and_not_infinite() {
    let far = Set::mapped(|_, _, v| v * 1e25).corpus().unwrap();
    let labels = Set::good().labels();
    for space in [Space::SquaredL2, Space::InnerProduct] {
        let chain = Chain::identity(SET.dim(), space);
        let (all, mut out) = (Batch::new(far.rows()), Vec::new());
        let truth = LeaveOneOut(&labels);
        let outcomes = [
            chain.dissimilarity(&all, &all, &mut out),
            top_k(space, &far, &far, 2, false).map(|_| ()),
            evaluate(space, &far, &far, &truth, &EvaluationOptions::default()).map(|_| ()),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err().to_string();
            assert!(
                error.starts_with("the score of query 0 and item "),
                "{error}"
            );
        }
    }
}

#[test]
fn more_neighbours_than_items_are_all_items_and_none_is_an_error() {
    let corpus = Set::good().corpus().unwrap();
    for space in Space::ALL {
        let found = top_k(space, &corpus, &corpus, 1000, false).unwrap();
        assert_eq!((found.k, found.queries()), (40, 40));
        let found = top_k(space, &corpus, &corpus, 1000, true).unwrap();
        assert_eq!((found.k, found.queries()), (39, 40));
        let error = top_k(space, &corpus, &corpus, 0, false).unwrap_err();
        assert_eq!(error.to_string(), "k must be at least 1, but is 0");
    }
}
