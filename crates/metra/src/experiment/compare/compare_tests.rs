//! Comparisons on a set with a known answer: nuisance columns drown the signal, so what learns from
//! labels is better than what does not.

use super::*;
use crate::data::synthetic::Nuisance;
use crate::dataset::Dataset;
use crate::evaluate::{Empty, GradeGain as NdcgGain, Measure, Ties};
use crate::experiment::{
    Claim, ComparedMethod, EvaluationSettings, Experiment, HoldOut, NewItems, Parts, Portion,
    Protocol, hold_out,
};
use crate::model::Space;
use crate::supervision::Labels;
use crate::training::Recipe;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const MEASURES: [Measure; 2] = [Measure::AveragePrecision, Measure::PrecisionAt(1)];

fn method(name: &str, learner: &str, grid: &[(&str, &[&str])]) -> ComparedMethod {
    let texts = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect();
    ComparedMethod {
        name: name.into(),
        method: learner.into(),
        settings: BTreeMap::new(),
        recipe: Recipe::default(),
        grid: (grid.iter())
            .map(|(name, values)| ((*name).to_owned(), texts(values)))
            .collect(),
        spaces: Vec::new(),
        published: BTreeMap::new(),
    }
}

fn methods() -> Vec<ComparedMethod> {
    let mut lda = method("LDA", "lda", &[("ridge", &["0.001", "0.1", "10"])]);
    lda.settings.insert("rank".into(), "3".into());
    let mut warca = method("WARCA", "warca", &[("rate", &["0.01", "0.1"])]);
    for (name, value) in [
        ("rank", "3"),
        ("steps", "40"),
        ("batch", "32"),
        ("pool", "32"),
    ] {
        warca.settings.insert(name.into(), value.into());
    }
    vec![method("Euclid", "euclid", &[]), lda, warca]
}

/// Build an experiment of two splits and let `test` change and run it.
fn with<R>(test: impl FnOnce(&mut Experiment<'_>) -> R) -> R {
    let set = Nuisance {
        classes: 6,
        signal: 3,
        noise: 9,
        seed: 5,
    }
    .rows(150);
    let labels = Labels::from_numbers(&set.classes).unwrap();
    let stop = AtomicBool::new(false);
    let dataset = Dataset::builder(&set.corpus).labels(labels).stop(&stop);
    let dataset = dataset.build().unwrap();
    let units: Vec<u64> = (0..150).collect();
    let portion = Portion {
        share: 0.3,
        most: 1000,
    };
    let split = |seed: u64| {
        let (rest, test) =
            hold_out(&dataset, &units, HoldOut::Rows, portion, seed, "test").unwrap();
        let (train, validation) =
            hold_out(&dataset, &rest, HoldOut::Rows, portion, seed, "validation").unwrap();
        let parts = Parts {
            train,
            validation,
            test,
        };
        (parts, seed)
    };
    let splits = vec![split(1), split(2)];
    let names = |unit: u64| format!("row {unit}");
    let mut experiment = Experiment {
        name: "nuisance".into(),
        about: String::new(),
        command: "test".into(),
        data: DataFacts {
            text: "made".into(),
            fingerprint: "0".into(),
            supervision: "0".into(),
        },
        dataset: &dataset,
        splits,
        folds: false,
        holdout: HoldOut::Rows,
        judging: EvaluationSettings {
            protocol: Protocol::LeaveOneOut,
            measures: MEASURES.to_vec(),
            ties: Ties::Expected,
            tie_rank: None,
            gain: NdcgGain::Linear,
            empty: Empty::Skip,
            seed: 0,
            rerank: None,
            new_items: NewItems::default(),
        },
        criterion: Measure::AveragePrecision,
        seed: 1,
        methods: methods(),
        base: None,
        budget: 8,
        prefer_defaults: false,
        halving: None,
        claims: Vec::new(),
        facts: Vec::new(),
        names: &names,
        start: None,
        checkpoint: None,
    };
    test(&mut experiment)
}

fn run(experiment: &Experiment<'_>, log: &mut Log, threads: usize) -> Result<Results> {
    experiment.run(log, threads, &mut |_| {})
}

/// Run, stop after this many trials, and tell how many were known at the start.
fn run_until(experiment: &Experiment<'_>, log: &mut Log, last: usize) -> (Result<Results>, usize) {
    let stop = experiment.dataset.stop().unwrap();
    stop.store(false, Ordering::Relaxed);
    let (mut done, mut at_start) = (0, 0);
    let outcome = experiment.run(log, 2, &mut |event| match event {
        Event::Begin { known, .. } => at_start = known,
        Event::Done { .. } => {
            done += 1;
            if done == last {
                stop.store(true, Ordering::Relaxed);
            }
        }
        _ => {}
    });
    (outcome, at_start)
}

#[test]
fn interruption_and_threads_change_no_byte() {
    with(|experiment| {
        let whole = run(experiment, &mut Log::in_memory(), 1)
            .unwrap()
            .to_json()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        for last in [1, 4, 3] {
            let mut log = Log::open(&path).unwrap();
            let (outcome, _) = run_until(experiment, &mut log, last);
            assert!(matches!(outcome, Err(Error::Interrupted)));
            drop(log);
            // A crash may cut the last line off.
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, format!("{text}{{\"kind\":\"tri")).unwrap();
        }
        let mut log = Log::open(&path).unwrap();
        let (outcome, known) = run_until(experiment, &mut log, usize::MAX);
        assert!(known >= 8, "{known} trials were known");
        assert_eq!(outcome.unwrap().to_json().unwrap(), whole);
        // Everything is known now.
        let (again, known) = run_until(experiment, &mut log, usize::MAX);
        assert_eq!(known, 2 * (2 + 4 + 3));
        assert_eq!(again.unwrap().to_json().unwrap(), whole);
        let back = Results::from_json(&whole).unwrap();
        assert_eq!(back.to_json().unwrap(), whole);
    });
}

#[test]
fn an_interrupted_comparison_tells_what_is_known() {
    with(|experiment| {
        let whole = run(experiment, &mut Log::in_memory(), 1).unwrap();
        let mut log = Log::in_memory();
        let mut shown = Vec::new();
        while run_until(experiment, &mut log, 1).0.is_err() {
            match experiment.results_so_far(&log) {
                // Nothing is finished, or not yet the base.
                Err(_) => assert!(shown.is_empty()),
                Ok(part) => {
                    let finished = part.lines.iter().filter(|line| !line.failed()).count();
                    shown.push((part.protocol.splits.len(), finished));
                    // What is finished is what the whole says of this split.
                    for (line, all) in part.lines.iter().zip(&whole.lines) {
                        let first = line.splits.first().filter(|split| !split.values.is_empty());
                        if let Some(split) = first {
                            assert_eq!(split.values, all.splits[0].values);
                        }
                    }
                }
            }
        }
        assert!(
            shown.contains(&(1, 1)) || shown.contains(&(1, 2)),
            "{shown:?}"
        );
    });
}

#[test]
fn the_model_of_a_method_is_the_one_that_was_judged() {
    with(|experiment| {
        let mut log = Log::in_memory();
        let results = run(experiment, &mut log, 1).unwrap();
        let model = experiment.model_of(&log, "LDA", Space::SquaredL2, 0);
        let held_out = model.unwrap().unwrap().origin.held_out.unwrap();
        let line = results
            .lines
            .iter()
            .find(|line| line.name == "LDA")
            .unwrap();
        let found = held_out.measures["map"].learned;
        assert!((found - line.splits[0].values[0]).abs() < 1e-12);
        assert!(
            experiment
                .model_of(&log, "NCA", Space::SquaredL2, 0)
                .is_err()
        );
    });
}

/// Answers that are shown are those that were judged: the share of first answers that are right is P@1.
#[test]
fn answers_are_those_of_the_metric_that_was_judged() {
    with(|experiment| {
        let mut log = Log::in_memory();
        let results = run(experiment, &mut log, 2).unwrap();
        for (split, name) in [(0, "Euclid"), (1, "LDA"), (1, "WARCA")] {
            let ranked = experiment.ranked(&log, name, split, 3).unwrap();
            let ranked = ranked.unwrap();
            let test = &experiment.splits[split].0.test;
            let held_out = |unit: &u64| test.contains(unit);
            assert!(
                ranked
                    .iter()
                    .all(|r| held_out(&r.query) && r.found.len() == 3)
            );
            assert!((ranked.iter().flat_map(|r| &r.found)).all(|a| held_out(&a.item)));
            let first = ranked.iter().filter(|r| r.first_right == 1).count();
            let line = results.lines.iter().find(|line| line.name == name).unwrap();
            let judged = line.splits[split].values[1];
            assert!(
                (first as f64 / ranked.len() as f64 - judged).abs() < 1e-9,
                "{name}"
            );
        }
        assert!(experiment.ranked(&log, "LDA", 2, 3).is_err());
        assert!(experiment.ranked(&log, "none", 0, 3).is_err());
    });
}

#[test]
fn settings_are_the_best_on_validation_and_tables_are_means_over_queries() {
    with(|experiment| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let results = run(experiment, &mut Log::open(&path).unwrap(), 2).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let records: Vec<Record> = (text.lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let lda = results.line("LDA").unwrap();
        for (number, split) in lda.splits.iter().enumerate() {
            let mut best: Option<(f64, String)> = None;
            for record in &records {
                if let Record::Trial {
                    line,
                    split,
                    settings,
                    value: Some(value),
                    ..
                } = record
                    && line == "LDA"
                    && *split == number
                    && best.as_ref().is_none_or(|(so_far, _)| value > so_far)
                {
                    best = Some((*value, settings["ridge"].clone()));
                }
            }
            let (value, ridge) = best.unwrap();
            assert_eq!(
                (split.validation, &split.chosen["ridge"]),
                (Some(value), &ridge)
            );
        }
        // Both splits test 6 × 8 rows or so; the gain is the mean difference over all of them.
        let values = |name: &str| -> Vec<f64> {
            let judged = records.iter().filter_map(|record| match record {
                Record::Judged {
                    line,
                    split,
                    scores: Some(scores),
                    ..
                } if line == name => Some((*split, scores.values[0].clone())),
                _ => None,
            });
            let sorted: BTreeMap<usize, Vec<f64>> = judged.collect();
            sorted.into_values().flatten().collect()
        };
        let (base, learned) = (values("Euclid"), values("LDA"));
        let differences: f64 = base.iter().zip(&learned).map(|(b, l)| l - b).sum();
        let gain = &lda.against_base[0];
        assert!((gain.difference - differences / base.len() as f64).abs() < 1e-12);
        assert_eq!((gain.queries, gain.clusters), (base.len(), 6));
        assert_eq!(
            (results.base.as_str(), gain.evidence),
            ("Euclid", Evidence::Better)
        );
        assert!(gain.wide_low < gain.low && gain.high < gain.wide_high);
        let changes = lda.queries.as_ref().unwrap();
        assert_eq!(changes.better + changes.equal + changes.worse, base.len());
        assert_eq!(
            changes.histogram.iter().sum::<usize>(),
            changes.better + changes.worse
        );
        assert!(changes.gains[0].query.starts_with("row "));
        assert_eq!((lda.cmc.len(), lda.precision.len()), (50, 21));
        let euclid = results.line("Euclid").unwrap();
        assert!(euclid.against_base.is_empty() && euclid.queries.is_none());
    });
}

#[test]
fn a_larger_grid_runs_only_what_is_new() {
    with(|experiment| {
        let mut log = Log::in_memory();
        run(experiment, &mut log, 2).unwrap();
        experiment.methods[1].grid[0].1.push("100".into());
        let (outcome, known) = run_until(experiment, &mut log, usize::MAX);
        // Two new trials of LDA, and its two fits again only if the new ridge won.
        assert_eq!(known, 2 * (2 + 3 + 3));
        assert_eq!(outcome.unwrap().line("LDA").unwrap().trials, 4);
        // Of a grid beyond the budget so many are tried as it allows, the same on every split.
        experiment.budget = 2;
        let results = run(experiment, &mut log, 2).unwrap();
        assert_eq!(results.line("LDA").unwrap().trials, 2);
    });
}

#[test]
fn halving_ends_with_a_full_fit() {
    with(|experiment| {
        experiment.methods[2].grid = vec![(
            "rate".into(),
            ["1e-6", "0.01", "0.03"].map(String::from).to_vec(),
        )];
        experiment.halving = Some(3);
        let mut log = Log::in_memory();
        let (outcome, _) = run_until(experiment, &mut log, usize::MAX);
        let results = outcome.unwrap();
        let warca = results.line("WARCA").unwrap();
        // A rate of a millionth learns nothing and cannot lead after a third of the steps.
        assert!(
            warca
                .splits
                .iter()
                .all(|split| split.chosen["rate"] != "1e-6")
        );
        assert_eq!(results.protocol.halving, Some(3));
    });
}

#[test]
fn failures_are_told_and_never_win() {
    with(|experiment| {
        let mut broken = method("Broken", "lda", &[]);
        broken.settings.insert("rank".into(), "500".into());
        experiment.methods.push(broken);
        experiment.claims = vec![
            claim("LDA", "Euclid", Measure::AveragePrecision),
            claim("Euclid", "LDA", Measure::AveragePrecision),
            claim("Broken", "LDA", Measure::PrecisionAt(1)),
        ];
        let results = run(experiment, &mut Log::in_memory(), 2).unwrap();
        let broken = results.line("Broken").unwrap();
        assert!(broken.failed() && broken.measures.is_empty() && broken.against_base.is_empty());
        let why = broken.splits[0].failure.as_deref().unwrap();
        assert!(why.contains("rank"), "{why}");
        assert_ne!(results.best, "Broken");
        let findings: Vec<Finding> = results.claims.iter().map(|c| c.finding).collect();
        let expected = [
            Finding::Reproduced,
            Finding::NotReproduced,
            Finding::Undecided,
        ];
        assert_eq!(findings, expected);
    });
}

fn claim(better: &str, worse: &str, measure: Measure) -> Claim {
    Claim {
        better: better.into(),
        worse: worse.into(),
        measure,
        source: "a test".into(),
        remark: String::new(),
    }
}

#[test]
fn what_cannot_be_compared_is_refused_before_time_is_spent() {
    let message = |change: &dyn Fn(&mut Experiment<'_>)| {
        with(|experiment| {
            change(experiment);
            let outcome = run(experiment, &mut Log::in_memory(), 1);
            outcome.unwrap_err().to_string()
        })
    };
    let error = message(&|e| e.methods[1].name = "Euclid".into());
    assert!(error.contains("\"Euclid\" twice"), "{error}");
    let error = message(&|e| e.base = Some("Cosine".into()));
    assert!(error.contains("Euclid, LDA, WARCA"), "{error}");
    let error = message(&|e| drop(e.methods.remove(0)));
    assert!(error.contains("euclid or cosine"), "{error}");
    let error = message(&|e| e.claims = vec![claim("LDA", "KISSME", MEASURES[0])]);
    assert!(error.contains("KISSME"), "{error}");
    let error = message(&|e| e.claims = vec![claim("LDA", "Euclid", Measure::Auc)]);
    assert!(error.contains("one of those measured"), "{error}");
    let error = message(&|e| e.methods[1].grid[0].1.push("-1".into()));
    assert!(error.contains("ridge"), "{error}");
    let error = message(&|e| e.holdout = HoldOut::None);
    assert!(error.contains("judge by"), "{error}");
    let error = message(&|e| e.halving = Some(1));
    assert!(error.contains("at least 2"), "{error}");
    assert!(message(&|e| e.budget = 0).contains("at least 1"));
}

#[test]
fn a_log_of_something_else_is_refused() {
    with(|experiment| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        experiment.methods.truncate(2);
        run(experiment, &mut Log::open(&path).unwrap(), 1).unwrap();
        let last = experiment.splits.pop().unwrap();
        let error = run(experiment, &mut Log::open(&path).unwrap(), 1).unwrap_err();
        assert!(error.to_string().contains("another comparison"), "{error}");
        let held = Log::open(&path).unwrap();
        let error = Log::open(&path).unwrap_err().to_string();
        assert!(error.contains("is writing to it"), "{error}");
        drop(held);
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        std::fs::write(&path, format!("{head}\nnot json\n")).unwrap();
        let error = Log::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let other = head.replace(super::CODE_DIGEST, "0123456789abcdef");
        std::fs::write(&path, format!("{other}\n{rest}")).unwrap();
        experiment.splits.push(last);
        let error = run(experiment, &mut Log::open(&path).unwrap(), 1).unwrap_err();
        assert!(error.to_string().contains("another build"), "{error}");
        std::fs::write(&path, text).unwrap();
        run(experiment, &mut Log::open(&path).unwrap(), 1).unwrap();
    });
}

#[test]
fn costs_come_from_the_log() {
    with(|experiment| {
        experiment.methods.truncate(2);
        let mut log = Log::in_memory();
        run(experiment, &mut log, 1).unwrap();
        assert_eq!(experiment.without_cost(&log).unwrap(), ["Euclid", "LDA"]);
        let record = experiment.measure_cost(&log, "LDA").unwrap().unwrap();
        log.write(record).unwrap();
        assert_eq!(experiment.without_cost(&log).unwrap(), ["Euclid"]);
        let costs = experiment.costs(&log, 1).unwrap();
        assert!(costs.cpu_seconds > 0.0 && costs.product_seconds > 0.0);
        assert!(costs.lines["LDA"].cpu_seconds > 0.0);
        assert!(experiment.measure_cost(&log, "KISSME").is_err());
    });
}
