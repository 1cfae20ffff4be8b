//! Relative attributes on the sets of Parikh & Grauman: floors that a change must not go below. Set
//! METRA_DATA to the folder of the sets.

use metra::evaluate::{Empty, GradeGain, Measure, Ties};
use metra::experiment::{Classifier, EvaluationSettings, NewItems, Protocol};
use metra::methods::qwise::Attributes;
use metra::model::Space;
use metra::{Dataset, Pipeline};
use metra_files::{TableOptions, read_orderings, read_splits, read_table};
use std::ffi::OsStr;
use std::path::Path;

/// Mean accuracy in percent over the ten draws, with plain and half pooled covariances.
fn accuracy(folder: &OsStr, set: &str, recipe: &str, settings: &Attributes) -> [f64; 2] {
    let file = |end: &str| Path::new(folder).join(format!("{set}.{end}"));
    let options = TableOptions {
        columns: vec!["label".into()],
        ..TableOptions::default()
    };
    let table = read_table(&file("parquet"), &options, &mut |_, _| {}).unwrap();
    let labels = table.columns["label"].to_labels().unwrap();
    let order = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/orderings");
    let order = read_orderings(&order.join(format!("{set}.txt")), &labels, false);
    let orderings = order.unwrap().orderings;
    let data = Dataset::builder(table.corpus.as_ref())
        .labels(labels)
        .orderings(orderings)
        .build()
        .unwrap();
    let names: Vec<String> = data.units().iter().map(u64::to_string).collect();
    let pipeline = Pipeline::new(settings.clone()).score(Space::SquaredL2);
    let pipeline = pipeline.prepare(recipe).unwrap();
    let splits = read_splits(&file("splits.json")).unwrap().splits;
    let mut sums = [0.0; 2];
    for split in &splits {
        let (train, test) = split.positions(&names).unwrap();
        let chain = pipeline.fit(&data.select(&train).unwrap()).unwrap().chain;
        for (sum, share) in sums.iter_mut().zip([0.0, 0.5]) {
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
            let scores = data.evaluate_part(&chain, &[Space::SquaredL2], &test, &train, &judging);
            let scores = scores.unwrap().remove(0).unwrap();
            *sum += 100.0 * scores.mean(Measure::Accuracy) / splits.len() as f64;
        }
    }
    sums
}

#[test]
#[ignore = "needs the data sets of METRA_DATA"]
fn attributes_classify_scenes_and_faces() {
    let Some(folder) = metra_testing::data() else {
        return;
    };
    let with = |lambda| Attributes {
        lambda,
        ..Attributes::default()
    };
    let [plain, pooled] = accuracy(&folder, "osr_gist", "sqrt+l2", &with(1e-2));
    println!("OSR: plain {plain:.1} %, half pooled {pooled:.1} %");
    assert!(plain >= 70.5 && pooled >= 73.0, "{plain} {pooled}");
    let [plain, pooled] = accuracy(&folder, "pubfig", "sqrt+l2", &with(3e-3));
    println!("PubFig: plain {plain:.1} %, half pooled {pooled:.1} %");
    assert!(plain >= 68.0 && pooled >= 75.0, "{plain} {pooled}");
}
