//! Relative attributes by several schemes of constraints, each with its settings chosen on
//! validation parts of every split's training rows, judged by a Gaussian a class on the test rows.
//!
//! `cargo run -p metra-files --example relative_attributes -- FOLDER SET [SCHEME …]`
//!
//! FOLDER holds SET.parquet (columns `vector`, `label`) and SET.splits.json; the classes' orderings
//! are in examples/orderings/SET.txt. This made docs/decisions/relative-attribute-constraints.md.

use metra::evaluate::{Empty, GradeGain, Measure, Ties};
use metra::experiment::{
    Classifier, EvaluationSettings, HoldOut, MeanAndDeviation, NewItems, Portion, Protocol,
    hold_out,
};
use metra::model::{Chain, Space};
use metra::training::Recipe;
use metra::{Dataset, Pipeline};
use metra_files::{TableOptions, read_orderings, read_splits, read_table};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;

/// Name and settings of every scheme that was tried.
const SCHEMES: &[(&str, &[(&str, &str)])] = &[
    ("pairs", &[("pairs", "all"), ("quadruplets", "none")]),
    (
        "pairs, light level",
        &[
            ("pairs", "all"),
            ("quadruplets", "none"),
            ("light", "level"),
        ],
    ),
    (
        "pairs, light classes",
        &[
            ("pairs", "all"),
            ("quadruplets", "none"),
            ("light", "classes"),
        ],
    ),
    (
        "neighbours",
        &[("pairs", "neighbours"), ("quadruplets", "none")],
    ),
    (
        "pairs, weight gap",
        &[("pairs", "all"), ("quadruplets", "none"), ("weight", "gap")],
    ),
    (
        "pairs, weight 1/gap",
        &[
            ("pairs", "all"),
            ("quadruplets", "none"),
            ("weight", "inverse"),
        ],
    ),
    (
        "pairs, margin gap",
        &[("pairs", "all"), ("quadruplets", "none"), ("margin", "gap")],
    ),
    (
        "pairs, margin root",
        &[
            ("pairs", "all"),
            ("quadruplets", "none"),
            ("margin", "root"),
        ],
    ),
    ("nested", &[("pairs", "none"), ("quadruplets", "nested")]),
    ("wider", &[("pairs", "none"), ("quadruplets", "wider")]),
    (
        "wider, margin gap",
        &[
            ("pairs", "none"),
            ("quadruplets", "wider"),
            ("margin", "gap"),
        ],
    ),
    ("level", &[("pairs", "none"), ("quadruplets", "level")]),
    ("class", &[("pairs", "none"), ("quadruplets", "class")]),
    (
        "class, margin root",
        &[
            ("pairs", "none"),
            ("quadruplets", "class"),
            ("margin", "root"),
        ],
    ),
    (
        "pairs + level",
        &[("pairs", "all"), ("quadruplets", "level")],
    ),
    (
        "pairs + class",
        &[("pairs", "all"), ("quadruplets", "class")],
    ),
    (
        "pairs + nested",
        &[("pairs", "all"), ("quadruplets", "nested")],
    ),
    (
        "pairs, rbf",
        &[("pairs", "all"), ("quadruplets", "none"), ("kernel", "rbf")],
    ),
    (
        "class, rbf",
        &[
            ("pairs", "none"),
            ("quadruplets", "class"),
            ("kernel", "rbf"),
        ],
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, set, wanted @ ..] = &arguments[..] else {
        return Err("expected FOLDER SET [SCHEME …]".into());
    };
    let file = |end: &str| PathBuf::from(folder).join(format!("{set}.{end}"));
    let options = TableOptions {
        columns: vec!["label".into()],
        ..TableOptions::default()
    };
    let table = read_table(&file("parquet"), &options, &mut |_, _| {})?;
    let labels = table.column("label")?.to_labels()?;
    let order = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/orderings");
    let order = read_orderings(&order.join(format!("{set}.txt")), &labels, false)?;
    let builder = Dataset::builder(table.corpus.as_ref()).labels(labels);
    let data = builder.orderings(order.orderings).build()?;
    let names: Vec<String> = data.units().iter().map(u64::to_string).collect();
    let splits = read_splits(&file("splits.json"))?;
    let mut out = std::io::stdout().lock();
    for (name, settings) in SCHEMES {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let mut of_share: Vec<Tally> = SHARES.iter().map(|_| Tally::default()).collect();
        for split in &splits.splits {
            let (train, test) = split.positions(&names)?;
            let tried = validate(&data, settings, &train)?;
            for (place, (share, tally)) in SHARES.iter().zip(&mut of_share).enumerate() {
                let better = |a: &&Tried, b: &&Tried| a.values[place].total_cmp(&b.values[place]);
                // The first of equals: simpler preparation and less regularisation come first.
                let best = tried.iter().rev().max_by(better).ok_or("an empty grid")?;
                tally.validation.push(100.0 * best.values[place]);
                *tally.chosen.entry(best.to_string()).or_default() += 1;
                let chain = fit(&data, settings, best, &train)?;
                let found = accuracy(&data, &chain, &test, &train, *share)?;
                tally.test.push(100.0 * found);
            }
        }
        for (share, tally) in SHARES.iter().zip(&of_share) {
            let test = MeanAndDeviation::over(&tally.test);
            let validation = MeanAndDeviation::over(&tally.validation).mean;
            writeln!(
                out,
                "{set} | {name} | share {share} | validation {validation:.1} | test {:.1} ± {:.1} \
                 | {:?}",
                test.mean, test.deviation, tally.chosen
            )?;
        }
    }
    Ok(())
}

/// Shares of the pooled covariance: plain and half.
const SHARES: [f64; 2] = [0.0, 0.5];
const RECIPES: [&str; 2] = ["scale", "sqrt+l2"];
const LAMBDAS: [&str; 4] = ["1e-3", "3e-3", "1e-2", "3e-2"];
/// Validation parts of a third of the training rows each; one of 80 rows is too noisy to choose by.
const VALIDATIONS: u64 = 3;

#[derive(Default)]
struct Tally {
    validation: Vec<f64>,
    test: Vec<f64>,
    chosen: BTreeMap<String, usize>,
}

/// Settings with their mean accuracy on validation parts, one for each share.
struct Tried {
    recipe: &'static str,
    lambda: &'static str,
    values: [f64; 2],
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.recipe, self.lambda)
    }
}

fn validate(
    data: &Dataset<'_>,
    settings: &[(&str, &str)],
    train: &[u64],
) -> Result<Vec<Tried>, Box<dyn Error>> {
    let mut all = Vec::new();
    for recipe in RECIPES {
        for lambda in LAMBDAS {
            let mut tried = Tried {
                recipe,
                lambda,
                values: [0.0; 2],
            };
            for seed in 0..VALIDATIONS {
                let portion = Portion {
                    share: 1.0 / 3.0,
                    most: 4000,
                };
                let rows = HoldOut::Rows;
                let (kept, held) = hold_out(data, train, rows, portion, seed, "validation")?;
                let chain = fit(data, settings, &tried, &kept)?;
                for (value, share) in tried.values.iter_mut().zip(SHARES) {
                    let found = accuracy(data, &chain, &held, &kept, share)?;
                    *value += found / VALIDATIONS as f64;
                }
            }
            all.push(tried);
        }
    }
    Ok(all)
}

fn fit(
    data: &Dataset<'_>,
    settings: &[(&str, &str)],
    tried: &Tried,
    units: &[u64],
) -> Result<Chain, Box<dyn Error>> {
    let mut values = BTreeMap::from([("lambda".to_owned(), tried.lambda.to_owned())]);
    for (name, value) in settings {
        values.insert((*name).to_owned(), (*value).to_owned());
    }
    let recipe: Recipe = tried.recipe.parse()?;
    let pipeline = Pipeline::named("attributes", &values, &recipe)?.score(Space::SquaredL2);
    Ok(pipeline.fit(&data.select(units)?)?.chain)
}

fn accuracy(
    data: &Dataset<'_>,
    chain: &Chain,
    units: &[u64],
    known: &[u64],
    share: f64,
) -> Result<f64, Box<dyn Error>> {
    let judging = EvaluationSettings {
        protocol: Protocol::Classify(Classifier::Gaussian { share }),
        measures: vec![Measure::Accuracy],
        ties: Ties::Expected,
        tie_rank: None,
        gain: GradeGain::Linear,
        empty: Empty::Skip,
        seed: 1,
        rerank: None,
        new_items: NewItems::default(),
    };
    let found = data.evaluate_part(chain, &[Space::SquaredL2], units, known, &judging)?;
    let scores = found.into_iter().next().ok_or("no scores")??;
    Ok(scores.mean(Measure::Accuracy))
}
