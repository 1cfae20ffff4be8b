//! Qwise as a learner: each form finds the signal, blocks are searched in order, and nonsense is
//! named.

use super::*;
use crate::data::synthetic::Nuisance;
use crate::data::{Batch, MemoryCorpus};
use crate::model::Chain;
use crate::search::top_k;
use crate::supervision::{ClassOrdering, Comparisons, Labels, Tree};

const SET: Nuisance = Nuisance {
    classes: 8,
    signal: 4,
    noise: 8,
    seed: 2,
};

fn fit(settings: Qwise, corpus: &MemoryCorpus, supervision: &Supervision) -> (Map, Run<'static>) {
    let data = Dataset::new(corpus, supervision).unwrap();
    let mut run = Run::new(3);
    let map = settings.checked().unwrap().fit(&data, &mut run).unwrap();
    (map, run)
}

fn small(form: QwiseForm) -> Qwise {
    Qwise {
        form,
        count: 2000,
        ..Qwise::default()
    }
}

#[test]
fn weights_find_the_columns_that_tell_classes_apart() {
    let set = SET.rows(200);
    let labels = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    let (map, run) = fit(small(QwiseForm::Diagonal), &set.corpus, &labels);
    let Map::Diagonal(factors) = map else {
        panic!("expected a diagonal map")
    };
    let least = factors[..4].iter().copied().fold(f32::MAX, f32::min);
    let most = factors[4..].iter().copied().fold(0.0, f32::max);
    assert!(least > 3.0 * most, "{factors:?}");
    assert!(run.facts["kkt_residual"] < 1e-7);
    assert_eq!(run.facts["constraints"], 2000.0);
}

#[test]
fn blocks_are_searched_in_the_order_of_their_dissimilarity() {
    let set = SET.rows(1100);
    let labels = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    let settings = Qwise {
        block: 2,
        ..small(QwiseForm::Blocks)
    };
    let space = settings.clone().checked().unwrap().spaces()[0];
    assert_eq!(space, Space::Blocks { size: 2 });
    let (map, _) = fit(settings, &set.corpus, &labels);
    let Map::Diagonal(factors) = &map else {
        panic!("expected a diagonal map")
    };
    // One weight a block: its columns share it, and the signal's two blocks have the most.
    assert!(factors.chunks(2).all(|block| block[0] == block[1]));
    assert!(factors[0].min(factors[2]) > factors[4..].iter().copied().fold(0.0, f32::max));
    let chain = Chain::new(12, Vec::new(), map.clone(), space).unwrap();
    let mut scores = Vec::new();
    let rows = set.corpus.rows();
    let queries = Batch::new(rows.slice(0, 30));
    chain
        .dissimilarity(&queries, &Batch::new(rows), &mut scores)
        .unwrap();
    // By hand in f64: Σ_b w_b |x_b − y_b|.
    let by_hand = |a: &[f32], b: &[f32]| -> f64 {
        let blocks = a.chunks(2).zip(b.chunks(2)).zip(factors.chunks(2));
        blocks
            .map(|((a, b), w)| {
                let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
                f64::from(w[0]) * squares.sum::<f64>().sqrt()
            })
            .sum()
    };
    for (item, score) in scores[..1100].iter().enumerate() {
        let expected = by_hand(rows.row(0), rows.row(item));
        assert!((f64::from(*score) - expected).abs() < 1e-4 * expected.max(1.0));
    }
    // More items than a tile, so that the last tile is filled up.
    let mut mapped = RowBuf::empty(12);
    map.apply(0, crate::model::Side::Item, rows, &mut mapped)
        .unwrap();
    let items = MemoryCorpus::new(mapped.clone()).unwrap();
    let queries = Subset::new(&items, (0..30).collect()).unwrap();
    let found = top_k(space, &queries, &items, 1100, false).unwrap();
    for query in 0..30 {
        let own = &scores[query * 1100..(query + 1) * 1100];
        let mut order: Vec<u64> = (0..1100).collect();
        order.sort_by(|a, b| own[*a as usize].total_cmp(&own[*b as usize]).then(a.cmp(b)));
        assert_eq!(found.ids_of(query), order);
        for (id, score) in found.ids_of(query).iter().zip(found.scores_of(query)) {
            assert_eq!(*score, own[*id as usize]);
        }
    }
    assert!(top_k(Space::Blocks { size: 5 }, &queries, &items, 1, false).is_err());
}

#[test]
fn pairs_join_in_with_a_threshold() {
    let set = SET.rows(120);
    let mut random = Stream::new(1, "pairs test", 0);
    let (mut similar, mut dissimilar) = (Vec::new(), Vec::new());
    while similar.len() < 100 || dissimilar.len() < 100 {
        let pair = [random.below(120), random.below(120)];
        let same = set.classes[pair[0] as usize] == set.classes[pair[1] as usize];
        match (pair[0] == pair[1], same) {
            (true, _) => {}
            (_, true) => similar.push(pair),
            (_, false) => dissimilar.push(pair),
        }
    }
    let said = Comparisons::new(120)
        .with_pairs(&similar, &dissimilar)
        .unwrap();
    let (map, run) = fit(
        small(QwiseForm::Diagonal),
        &set.corpus,
        &Supervision::Comparisons(said),
    );
    // A distance beyond the threshold says "dissimilar": right for most pairs it learned from.
    let Map::Diagonal(factors) = map else {
        panic!("expected a diagonal map")
    };
    let threshold = run.facts["threshold"];
    let distance = |pair: &[RowId; 2]| -> f64 {
        let (a, b) = (
            set.corpus.rows().row(pair[0] as usize),
            set.corpus.rows().row(pair[1] as usize),
        );
        let terms = a.iter().zip(b).zip(&factors);
        terms
            .map(|((a, b), f)| f64::from(f * (a - b)).powi(2))
            .sum()
    };
    let right = similar.iter().filter(|p| distance(p) < threshold).count()
        + dissimilar
            .iter()
            .filter(|p| distance(p) > threshold)
            .count();
    let all = similar.len() + dissimilar.len();
    assert!(right as f64 > 0.85 * all as f64, "{right} of {all}");
}

#[test]
fn a_full_matrix_finds_the_signal_with_a_low_rank() {
    for rows in [200, 11] {
        let set = Nuisance { classes: 3, ..SET }.rows(rows);
        let labels = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let settings = Qwise {
            count: 1000,
            lambda: 2e-3,
            ..small(QwiseForm::Full)
        };
        let (map, run) = fit(settings, &set.corpus, &labels);
        let Map::LowRank(map) = map else {
            panic!("expected a low-rank map")
        };
        assert_eq!(map.output_dim() as f64, run.facts["rank"]);
        assert!(map.output_dim() <= 8, "{}", map.output_dim());
        if rows == 200 {
            let part = |range: std::ops::Range<usize>| -> f32 {
                let weights = map.weights();
                let rows = weights.iter();
                rows.map(|row| row[range.clone()].iter().map(|v| v * v).sum::<f32>())
                    .sum()
            };
            let (signal, noise) = (part(0..4), part(4..12));
            assert!(signal > 5.0 * noise, "{signal} {noise}");
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let set = SET.rows(50);
    let problem_of = |supervision: &Supervision, settings: Qwise| {
        let data = Dataset::new(&set.corpus, supervision).unwrap();
        let learner = settings.checked().unwrap();
        let error = learner.fit(&data, &mut Run::new(1)).unwrap_err();
        error.to_string()
    };
    let nothing = Supervision::Comparisons(Comparisons::new(50));
    let error = problem_of(&nothing, Qwise::default());
    assert!(error.starts_with("qwise needs quadruplets"), "{error}");
    let labels = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    let uneven = Qwise {
        block: 5,
        ..small(QwiseForm::Blocks)
    };
    assert!(problem_of(&labels, uneven).contains("block must be a divisor of 12"));
    let huge = Qwise {
        block: 5000,
        ..Qwise::default()
    };
    assert!(huge.checked().is_err());
}

/// Every kind of class supervision beside comparisons, and a taxonomy beside orderings: with as many drawn as
/// given, a weight of 1 is the fit to the list of both.
#[test]
fn what_is_known_of_classes_joins_comparisons() {
    let set = SET.rows(200);
    let labels = Labels::from_numbers(&set.classes).unwrap();
    let edges: Vec<(String, String)> = (0..8)
        .map(|class: u32| (class.to_string(), format!("branch {}", class / 3)))
        .chain((0..3).map(|branch| (format!("branch {branch}"), "root".to_owned())))
        .collect();
    let tree = || Tree::from_edges(&edges).unwrap();
    let ordering = || vec![ClassOrdering::parse("size", "0<1~2<3<4<5~6~7").unwrap()];
    let given: Vec<Quadruplet> = (0..500_u64)
        .map(|n| derive::as_quadruplet(&[n % 200, (n * 7 + 1) % 200, (n * 13 + 2) % 200]))
        .filter(|q| q.near[0] != q.near[1] && q.far[0] != q.far[1] && q.near != q.far)
        .collect();
    let builder = || Dataset::builder(&set.corpus).labels(labels.clone());
    let compared = || builder().quadruplets(given.clone());
    let together = [
        compared().build(),
        compared().taxonomy(tree()).build(),
        compared().orderings(ordering()).build(),
        builder().orderings(ordering()).taxonomy(tree()).build(),
    ];
    for (case, data) in together.into_iter().enumerate() {
        let data = data.unwrap();
        assert_eq!(data.class_supervision().len(), 1, "{case}");
        for form in [QwiseForm::Diagonal, QwiseForm::Full] {
            let settings = Qwise {
                class_weight: 1.0,
                count: given.len(),
                ..small(form)
            };
            let fit_to = |settings: &Qwise, data: &Dataset<'_>| {
                settings.clone().fit(data, &mut Run::new(3)).unwrap()
            };
            let found = fit_to(&settings, &data);
            let mut all = derive::quadruplets(data.supervision(), given.len(), 3).unwrap();
            let beside = &data.class_supervision()[0];
            all.extend(derive::quadruplets(beside, given.len(), 3).unwrap());
            let listed = Comparisons::new(200).with_quadruplets(&all).unwrap();
            let listed = Supervision::Comparisons(listed);
            let listed = Dataset::new(&set.corpus, &listed).unwrap();
            let plain = Qwise {
                class_weight: 0.0,
                ..settings.clone()
            };
            assert_eq!(found, fit_to(&plain, &listed), "{case} {form:?}");
            assert_ne!(found, fit_to(&plain, &data), "{case} {form:?}");
        }
    }
    let alone = builder().build().unwrap();
    let settings = Qwise {
        class_weight: 1.0,
        ..small(QwiseForm::Diagonal)
    };
    let error = settings.fit(&alone, &mut Run::new(3)).unwrap_err();
    assert!(error.to_string().contains("class_weight"), "{error}");
}
