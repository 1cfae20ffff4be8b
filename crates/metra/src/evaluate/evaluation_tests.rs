//! Whole evaluations: by hand, by definition, on any number of threads, and of a constant scorer.

use super::*;
use crate::data::{Groups, MemoryCorpus};
use crate::evaluate::{AgainstGallery, LeaveOneOut, ReIdentification, Verdict};
use crate::linalg::RowBuf;
use crate::random::Stream;
use crate::supervision::Labels;

fn line(values: &[f32]) -> MemoryCorpus {
    MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap()
}

fn options(measures: &[Measure]) -> EvaluationOptions<'static> {
    EvaluationOptions {
        measures: measures.to_vec(),
        ..EvaluationOptions::default()
    }
}

#[test]
fn a_relevant_item_whose_score_leaves_f32_is_an_error() {
    // Behind so many others that the counters are emptied before it is scored.
    for relevant in [3, 20, 300] {
        let count = 40_000;
        let mut values: Vec<f32> = (0..count).map(|place| place as f32 * 1e-3).collect();
        values[count - 5] = 3e19;
        let items = line(&values);
        let classes: Vec<i64> = (0..count)
            .map(|place| i64::from(place >= count - relevant - 5))
            .collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let (query, class) = (line(&[1.0]), Labels::from_numbers(&[1]).unwrap());
        let truth = AgainstGallery::new(&class, &labels);
        let found = evaluate(Space::SquaredL2, &query, &items, &truth, &options(&[]));
        assert!(matches!(found, Err(Error::Score { .. })), "{found:?}");
    }
}

#[test]
fn leave_one_out_by_hand() {
    // Points 0 (a), 1 (b), 3 (a), 7 (b), 20 (c) on a line.
    // Query 0 (a): order 1 b, 3 a, … : AP 1/2. Query 1 (b): 0 a, 3 a, 7 b: AP 1/3.
    // Query 3 (a): 1 b, 0 a: AP 1/2. Query 7 (b): 3 a, 1 b: AP 1/2. Query 20: nothing relevant.
    let points = line(&[0.0, 1.0, 3.0, 7.0, 20.0]);
    let labels = Labels::from_names(&["a", "b", "a", "b", "c"]).unwrap();
    let asked = options(&[Measure::AveragePrecision, Measure::CmcAt(2)]);
    let found = evaluate(
        Space::SquaredL2,
        &points,
        &points,
        &LeaveOneOut(&labels),
        &asked,
    )
    .unwrap();
    assert_eq!(found.queries, vec![0, 1, 2, 3]);
    assert_eq!(found.clusters, vec![0, 1, 0, 1]);
    assert_eq!(found.skipped, 1);
    let precision = found.of(Measure::AveragePrecision).unwrap();
    assert_eq!(precision, [0.5, 1.0 / 3.0, 0.5, 0.5]);
    assert_eq!(found.mean(Measure::CmcAt(2)), Some(0.75));
    assert_eq!(found.curve[..4], [0.0, 0.75, 1.0, 1.0]);
    assert_eq!(found.mean(Measure::Auc), None);
    let zero = EvaluationOptions {
        empty: Empty::Zero,
        ..asked
    };
    let found = evaluate(
        Space::SquaredL2,
        &points,
        &points,
        &LeaveOneOut(&labels),
        &zero,
    )
    .unwrap();
    assert_eq!((found.queries.len(), found.skipped), (5, 0));
    assert_eq!(found.mean(Measure::CmcAt(2)), Some(0.6));
}

#[test]
fn market_junk_does_not_push_the_right_answer_back() {
    // Query 7 by c1 at 0. Gallery by distance: 1: 7 by c1 (junk), 2: -1 (ignored), 3: 0 by c3
    // (distractor, wrong), 4: 7 by c2 (right). Without junk the order is wrong, right: AP 1/2.
    let query_labels = Labels::from_names(&["7"]).unwrap();
    let item_labels = Labels::from_names(&["7", "-1", "0", "7"]).unwrap();
    let (query_cameras, item_cameras) =
        (Groups::new(&["c1"]), Groups::new(&["c1", "c2", "c3", "c2"]));
    let truth =
        ReIdentification::new(&query_labels, &query_cameras, &item_labels, &item_cameras).unwrap();
    let measures = [
        Measure::AveragePrecision,
        Measure::CmcAt(1),
        Measure::CmcAt(2),
    ];
    let (queries, items) = (line(&[0.0]), line(&[1.0, 2.0, 3.0, 4.0]));
    let found = evaluate(
        Space::SquaredL2,
        &queries,
        &items,
        &truth,
        &options(&measures),
    )
    .unwrap();
    let means: Vec<f64> = measures.iter().map(|m| found.mean(*m).unwrap()).collect();
    assert_eq!(means, vec![0.5, 0.0, 1.0]);
}

fn classes(len: usize, dim: usize, classes: u64, spread: f64) -> (MemoryCorpus, Labels) {
    let mut stream = Stream::new(3, "test", 0);
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for _ in 0..len {
        let class = stream.below(classes);
        let mut centre = Stream::new(3, "test centre", class);
        values.extend((0..dim).map(|_| (2.0 + centre.normal() + spread * stream.normal()) as f32));
        labels.push(class as i64);
    }
    let corpus = MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap();
    (corpus, Labels::from_numbers(&labels).unwrap())
}

#[test]
fn threads_change_nothing() {
    let (corpus, labels) = classes(1500, 12, 30, 1.0);
    for space in Space::ALL {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let truth = LeaveOneOut(&labels);
            pool.install(|| {
                evaluate(
                    space,
                    &corpus,
                    &corpus,
                    &truth,
                    &EvaluationOptions::default(),
                )
                .unwrap()
            })
        };
        let found = run(1);
        assert_eq!(found, run(2));
        // Far better than chance (1 in 30), far from perfect: a ranking and not an accident.
        let map = found.mean(Measure::AveragePrecision).unwrap();
        assert!((0.1..0.99).contains(&map), "{space}: {map}");
    }
}

#[test]
fn cmc_equals_its_definition() {
    let (corpus, labels) = classes(400, 6, 20, 1.0);
    let measures = [Measure::CmcAt(1), Measure::CmcAt(5), Measure::CmcAt(20)];
    let found = evaluate(
        Space::SquaredL2,
        &corpus,
        &corpus,
        &LeaveOneOut(&labels),
        &options(&measures),
    )
    .unwrap();
    for (place, query) in found.queries.iter().enumerate() {
        let q = corpus.rows().row(*query as usize);
        let mut order: Vec<(f64, usize)> = (0..400)
            .filter(|item| *item != *query as usize)
            .map(|item| {
                let x = corpus.rows().row(item);
                let parts = q
                    .iter()
                    .zip(x)
                    .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                (parts.sum(), item)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let class = labels.of()[*query as usize];
        let first = order
            .iter()
            .position(|(_, item)| labels.of()[*item] == class)
            .unwrap();
        for (measure, cut) in measures.iter().zip([1, 5, 20]) {
            let expected = f64::from(u8::from(first < cut));
            assert_eq!(found.of(*measure).unwrap()[place], expected);
        }
    }
}

#[test]
fn a_constant_scorer_does_not_win() {
    // 40 equal vectors in 4 classes of 10: rank-1 is 9/39, AUC 1/2.
    let same = line(&[1.0; 40]);
    let labels = Labels::from_numbers(&(0..40).map(|i| i % 4).collect::<Vec<_>>()).unwrap();
    for space in Space::ALL {
        let asked = options(&[Measure::CmcAt(1), Measure::Auc, Measure::AveragePrecision]);
        let found = evaluate(space, &same, &same, &LeaveOneOut(&labels), &asked).unwrap();
        assert!((found.mean(Measure::CmcAt(1)).unwrap() - 9.0 / 39.0).abs() < 1e-12);
        assert_eq!(found.mean(Measure::Auc), Some(0.5));
        assert!(found.mean(Measure::AveragePrecision).unwrap() < 0.4);
    }
}

#[test]
fn off_centre_data_scores_like_centred_data() {
    // The same points around 0 and around 4096, where every value is still exact in f32.
    let (corpus, labels) = classes(500, 8, 25, 0.7);
    let snapped: Vec<f32> = corpus
        .rows()
        .values()
        .iter()
        .map(|v| (v * 128.0).round() / 128.0)
        .collect();
    let moved = snapped.iter().map(|v| v + 4096.0).collect();
    let build = |values| MemoryCorpus::new(RowBuf::from_values(values, 8).unwrap()).unwrap();
    let (near, far) = (build(snapped), build(moved));
    let run = |corpus: &MemoryCorpus| {
        let truth = LeaveOneOut(&labels);
        let asked = options(&[Measure::AveragePrecision]);
        let found = evaluate(Space::SquaredL2, corpus, corpus, &truth, &asked).unwrap();
        found.mean(Measure::AveragePrecision).unwrap()
    };
    assert!((run(&near) - run(&far)).abs() < 1e-3);
}

#[test]
fn comparisons_are_paired() {
    let (corpus, labels) = classes(600, 8, 30, 1.0);
    let truth = LeaveOneOut(&labels);
    let asked = options(&[Measure::AveragePrecision]);
    let run =
        |corpus: &MemoryCorpus| evaluate(Space::SquaredL2, corpus, corpus, &truth, &asked).unwrap();
    let good = run(&corpus);
    let first: Vec<f32> = corpus.rows().iter().map(|row| row[0]).collect();
    let poor = run(&line(&first));
    let bootstrap = Bootstrap::default();
    let compare = |a: &Evaluation, b: &Evaluation| {
        a.compare(b, Measure::AveragePrecision, &bootstrap)
            .unwrap()
            .verdict()
    };
    assert_eq!(compare(&poor, &good), Verdict::Better);
    assert_eq!(compare(&good, &poor), Verdict::Worse);
    assert_eq!(compare(&good, &good), Verdict::NoEvidence);
    assert!(good.compare(&poor, Measure::Auc, &bootstrap).is_err());
}

#[test]
fn wrong_shapes_are_named() {
    let (two, three) = (line(&[1.0, 2.0]), line(&[1.0, 2.0, 3.0]));
    let labels = Labels::from_numbers(&[1, 1, 2]).unwrap();
    let truth = LeaveOneOut(&labels);
    assert!(
        evaluate(
            Space::SquaredL2,
            &two,
            &three,
            &truth,
            &EvaluationOptions::default()
        )
        .is_err()
    );
    assert!(
        evaluate(
            Space::SquaredL2,
            &three,
            &two,
            &truth,
            &EvaluationOptions::default()
        )
        .is_err()
    );
    let trec = EvaluationOptions {
        ties: Ties::Trec,
        ..EvaluationOptions::default()
    };
    let error = evaluate(Space::SquaredL2, &three, &three, &truth, &trec).unwrap_err();
    assert!(error.to_string().contains("tie ranks"), "{error}");
}
