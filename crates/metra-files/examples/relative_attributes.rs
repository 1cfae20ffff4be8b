//! Relative attributes by several schemes of constraints, each with its settings chosen on a
//! validation part of every split's training rows, judged by a Gaussian a class on the test rows.
//!
//! `cargo run -p metra-files --example relative_attributes -- FOLDER SET [SCHEME …]`
//!
//! FOLDER holds SET.parquet (columns `vector`, `label`), SET.json (`relative_ordering`: attribute →
//! level of every class) and SET.splits.json. This made docs/results/relative_attributes.md.

use metra::evaluate::{Empty, Gain, Measure, Ties};
use metra::learn::{Observer, Progress, Recipe};
use metra::metric::{Space, Storage};
use metra::study::{
    Classifier, Collection, HoldOut, Judging, Material, MeanAndDeviation, Portion, Protocol, Study,
    Watch, hold_out,
};
use metra::supervision::{ClassOrdering, Orderings, Supervision};
use metra_files::{TableOptions, read_splits, read_table};
use std::collections::BTreeMap;
use std::error::Error;
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

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
}

impl Watch for Silent {
    fn begin(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

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
    let text = std::fs::read_to_string(file("json"))?;
    let orderings = orderings(&serde_json::from_str(&text)?)?;
    let material = Material {
        items: Collection {
            corpus: table.corpus.as_ref(),
            groups: None,
        },
        queries: None,
        supervision: Supervision::Orderings(Orderings::new(labels, orderings)?),
        storage: Storage::default(),
    };
    let names: Vec<String> = (0..material.units()).map(|row| row.to_string()).collect();
    let splits = read_splits(&file("splits.json"))?;
    let mut out = std::io::stdout().lock();
    for (name, settings) in SCHEMES {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        for share in [0.0, 0.5] {
            let (mut validated, mut accuracy) = (Vec::new(), Vec::new());
            let mut chosen_settings = BTreeMap::<String, usize>::new();
            for split in &splits.splits {
                let (train, test) = split.positions(&names)?;
                let study = study(&material, settings, share)?;
                // 20 of 30 rows a class learn, 10 choose.
                let portion = Portion {
                    share: 1.0 / 3.0,
                    most: 4000,
                };
                let (kept, held) =
                    hold_out(&material, &train, HoldOut::Rows, portion, 1, "validation")?;
                let chosen = study.choose(&kept, &held, &mut Silent, None)?;
                let text = format!("{} {}", chosen.recipe, chosen.settings["lambda"]);
                *chosen_settings.entry(text).or_default() += 1;
                validated.extend(chosen.value);
                let fitted = study.fit(&train, &chosen, &mut Silent, None)?;
                let found = material.judge(
                    &fitted.chain,
                    &[Space::SquaredL2],
                    &test,
                    &train,
                    &study.judging,
                )?;
                for scores in found {
                    accuracy.push(100.0 * scores?.mean(Measure::Accuracy));
                }
            }
            let test = MeanAndDeviation::over(&accuracy);
            let validation = 100.0 * MeanAndDeviation::over(&validated).mean;
            writeln!(
                out,
                "{set} | {name} | share {share} | validation {validation:.1} | test {:.1} ± {:.1} \
                 | {chosen_settings:?}",
                test.mean, test.deviation
            )?;
        }
    }
    Ok(())
}

fn study<'a>(
    material: &'a Material<'a>,
    settings: &[(&str, &str)],
    share: f64,
) -> Result<Study<'a>, Box<dyn Error>> {
    let owned = |text: &&str| (*text).to_owned();
    Ok(Study {
        material,
        method: "attributes".into(),
        settings: (settings.iter())
            .map(|(name, value)| (owned(name), owned(value)))
            .collect(),
        recipe: "none".parse::<Recipe>()?,
        grid: vec![
            (
                "prepare".into(),
                ["scale", "sqrt+l2"].iter().map(owned).collect(),
            ),
            (
                "lambda".into(),
                ["1e-3", "3e-3", "1e-2", "3e-2"].iter().map(owned).collect(),
            ),
        ],
        spaces: vec![Space::SquaredL2],
        base: Some(Space::SquaredL2),
        judging: Judging {
            protocol: Protocol::Classify(Classifier::Gaussian { share }),
            measures: vec![Measure::Accuracy],
            ties: Ties::Expected,
            tie_rank: None,
            gain: Gain::Linear,
            empty: Empty::Skip,
            seed: 1,
        },
        criterion: Measure::Accuracy,
        seed: 1,
    })
}

/// Class numbers by level, joined as an orderings file writes them.
fn orderings(json: &serde_json::Value) -> Result<Vec<ClassOrdering>, Box<dyn Error>> {
    let missing = || "expected `relative_ordering`: attribute → level of every class";
    let attributes = json["attributes"].as_array().ok_or_else(missing)?;
    let mut all = Vec::new();
    for attribute in attributes {
        let name = attribute.as_str().ok_or_else(missing)?;
        let levels = json["relative_ordering"][name]
            .as_array()
            .ok_or_else(missing)?;
        let mut by_level = BTreeMap::<i64, Vec<String>>::new();
        for (class, level) in levels.iter().enumerate() {
            let level = level.as_i64().ok_or_else(missing)?;
            by_level.entry(level).or_default().push(class.to_string());
        }
        let levels: Vec<String> = by_level.values().map(|classes| classes.join("~")).collect();
        all.push(ClassOrdering::parse(name, &levels.join("<"))?);
    }
    Ok(all)
}
