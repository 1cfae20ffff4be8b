//! Measures by hand, and their expectation over ties against all orders of the tied items.

use super::*;

const ALL: [Measure; 13] = [
    Measure::AveragePrecision,
    Measure::Ndcg,
    Measure::NdcgAt(3),
    Measure::PrecisionAt(1),
    Measure::PrecisionAt(4),
    Measure::RecallAt(3),
    Measure::CmcAt(1),
    Measure::CmcAt(3),
    Measure::CmcMean(4),
    Measure::CmcArea,
    Measure::ReciprocalRank,
    Measure::Auc,
    Measure::InverseNegativePenalty,
];

/// Counts of a ranking given as groups of grades from near to far; 0 is irrelevant.
fn counts(groups: &[&[f32]]) -> PlaceCounts {
    let mut counts = PlaceCounts::default();
    for group in groups {
        let relevant = group.iter().filter(|grade| **grade > 0.0).count() as u64;
        let tied = group.len() as u64 - relevant;
        if relevant > 0 {
            counts.groups.push(TieGroup {
                nearer: counts.irrelevant,
                tied,
                relevant,
            });
            counts
                .grades
                .extend(group.iter().filter(|grade| **grade > 0.0));
        }
        counts.irrelevant += tied;
    }
    counts
}

/// Every measure of one order without ties, straight from its definition.
fn by_definition(measure: Measure, order: &[f32]) -> f64 {
    let relevant = |rank: usize| order[rank - 1] > 0.0;
    let all = order.iter().filter(|g| **g > 0.0).count() as f64;
    let within = |cut: usize| (1..=cut.min(order.len())).filter(|r| relevant(*r)).count() as f64;
    let first = (1..=order.len()).find(|r| relevant(*r)).unwrap();
    let last = (1..=order.len()).rfind(|r| relevant(*r)).unwrap();
    let cmc = |cut: usize| f64::from(u8::from(first <= cut));
    let dcg = |order: &[f32], cut: usize| -> f64 {
        let gains = order.iter().take(cut).enumerate();
        gains
            .map(|(i, g)| f64::from(*g) / (i as f64 + 2.0).log2())
            .sum()
    };
    let ndcg = |cut: usize| {
        let mut ideal = order.to_vec();
        ideal.sort_by(|a, b| b.total_cmp(a));
        dcg(order, cut) / dcg(&ideal, cut)
    };
    match measure {
        Measure::AveragePrecision => {
            let ranks = (1..=order.len()).filter(|r| relevant(*r));
            ranks.map(|r| within(r) / r as f64).sum::<f64>() / all
        }
        Measure::Ndcg => ndcg(usize::MAX),
        Measure::NdcgAt(cut) => ndcg(cut as usize),
        Measure::PrecisionAt(cut) => within(cut as usize) / f64::from(cut),
        Measure::RecallAt(cut) => within(cut as usize) / all,
        Measure::CmcAt(cut) => cmc(cut as usize),
        Measure::CmcMean(cut) => (1..=cut as usize).map(cmc).sum::<f64>() / f64::from(cut),
        Measure::CmcArea => (1..=order.len()).map(cmc).sum::<f64>() / order.len() as f64,
        Measure::ReciprocalRank => 1.0 / first as f64,
        Measure::InverseNegativePenalty => all / last as f64,
        Measure::Accuracy | Measure::HierarchicalAccuracy => panic!("no measure of a ranking"),
        Measure::Auc => {
            let mut won = 0.0;
            for a in 1..=order.len() {
                for b in a + 1..=order.len() {
                    won += f64::from(u8::from(relevant(a) && !relevant(b)));
                }
            }
            won / (all * (order.len() as f64 - all))
        }
    }
}

/// All orders of the tied items, group after group.
fn orders(groups: &[&[f32]]) -> Vec<Vec<f32>> {
    let mut all = vec![Vec::new()];
    for group in groups {
        let mut next = Vec::new();
        for prefix in &all {
            for tail in permutations(group) {
                next.push([prefix.clone(), tail].concat());
            }
        }
        all = next;
    }
    all
}

fn permutations(values: &[f32]) -> Vec<Vec<f32>> {
    if values.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 0..values.len() {
        let mut rest = values.to_vec();
        let value = rest.remove(first);
        all.extend(
            permutations(&rest)
                .into_iter()
                .map(|tail| [vec![value], tail].concat()),
        );
    }
    all
}

#[test]
fn five_items_by_hand() {
    // Order: wrong, right, wrong, right, wrong. R = 2.
    let found = counts(&[&[0.0], &[1.0], &[0.0], &[1.0], &[0.0]]);
    let value = |measure| found.value(measure, GradeGain::Linear);
    // AP = (1/2 + 2/4) / 2 = 1/2.
    assert_eq!(value(Measure::AveragePrecision), 0.5);
    // First right item at rank 2.
    assert_eq!(value(Measure::ReciprocalRank), 0.5);
    assert_eq!(
        (value(Measure::CmcAt(1)), value(Measure::CmcAt(2))),
        (0.0, 1.0)
    );
    // CMC is 0, 1, 1, 1, 1 over the five ranks.
    assert_eq!(value(Measure::CmcArea), 0.8);
    assert_eq!(value(Measure::CmcMean(2)), 0.5);
    // Pairs (right, wrong) in order: the first right beats 2 of 3, the second 1 of 3.
    assert_eq!(value(Measure::Auc), 0.5);
    // R / rank of the last right item = 2 / 4.
    assert_eq!(value(Measure::InverseNegativePenalty), 0.5);
    assert_eq!(
        (value(Measure::PrecisionAt(4)), value(Measure::RecallAt(2))),
        (0.5, 0.5)
    );
    // DCG = 1/log2(3) + 1/log2(5); ideal = 1 + 1/log2(3).
    let (log3, log5) = (3.0_f64.log2(), 5.0_f64.log2());
    let expected = (1.0 / log3 + 1.0 / log5) / (1.0 + 1.0 / log3);
    assert!((value(Measure::Ndcg) - expected).abs() < 1e-15);
}

#[test]
fn graded_gains_by_hand() {
    // Grades 1, 3: DCG = 1 + 3/log2(3), ideal = 3 + 1/log2(3); with 2^g − 1: 1 + 7/log2(3) over
    // 7 + 1/log2(3).
    let found = counts(&[&[1.0], &[3.0]]);
    let log3 = 3.0_f64.log2();
    let linear = found.value(Measure::Ndcg, GradeGain::Linear);
    assert!((linear - (1.0 + 3.0 / log3) / (3.0 + 1.0 / log3)).abs() < 1e-15);
    let exponential = found.value(Measure::NdcgAt(10), GradeGain::Exponential);
    assert!((exponential - (1.0 + 7.0 / log3) / (7.0 + 1.0 / log3)).abs() < 1e-15);
}

#[test]
fn ties_are_the_mean_over_all_orders() {
    let cases: [&[&[f32]]; 6] = [
        &[&[0.0, 1.0]],
        &[&[1.0, 0.0, 2.0, 0.0, 0.0]],
        &[&[0.0], &[1.0, 3.0, 0.0], &[0.0], &[2.0, 0.0]],
        &[&[1.0, 2.0], &[0.0, 0.0, 1.0]],
        &[&[0.0, 0.0], &[1.0, 1.0, 1.0], &[0.0]],
        &[&[0.0, 0.0, 0.0, 1.0], &[0.0, 2.0]],
    ];
    for groups in cases {
        let found = counts(groups);
        let orders = orders(groups);
        for measure in ALL {
            let mean = orders
                .iter()
                .map(|order| by_definition(measure, order))
                .sum::<f64>()
                / orders.len() as f64;
            let value = found.value(measure, GradeGain::Linear);
            assert!(
                (value - mean).abs() < 1e-12,
                "{measure} of {groups:?}: {value}, not {mean}"
            );
        }
        let mut curve = vec![0.0; 8];
        found.add_first_rank(&mut curve);
        for cut in 1..=8_u32 {
            let sum: f64 = curve[..cut as usize].iter().sum();
            let expected = found.value(Measure::CmcAt(cut), GradeGain::Linear);
            assert!((sum - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn a_constant_score_is_worth_chance() {
    // 1 right item among 100 tied ones: rank-1 is 1/100, AUC 1/2, the expected rank 50.5.
    let mut group = vec![0.0; 99];
    group.push(1.0);
    let found = counts(&[&group]);
    let value = |measure| found.value(measure, GradeGain::Linear);
    assert!((value(Measure::CmcAt(1)) - 0.01).abs() < 1e-12);
    assert_eq!(value(Measure::Auc), 0.5);
    assert!((value(Measure::CmcArea) - 0.505).abs() < 1e-12);
    // AP of one item is 1/rank: the mean of 1/i, H(100)/100 = 0.0518738.
    assert!((value(Measure::AveragePrecision) - 0.051_873_775).abs() < 1e-8);
    assert_eq!(
        counts(&[&[1.0]]).value(Measure::Auc, GradeGain::Linear),
        0.5
    );
}

#[test]
fn precision_at_recall_is_the_largest_from_there_on() {
    // Relevant at ranks 2, 3 and 6: precision 1/2, 2/3 and 1/2 at recall 1/3, 2/3 and 1. At recall
    // 0 and 0.2 the best to come is 2/3, as at 0.4 and 0.6; 0.8 and 1 need the third item.
    let precision = |counts: &PlaceCounts| {
        let mut levels = [0.0; 6];
        counts.add_precision(&mut levels);
        levels
    };
    let order: [&[f32]; 6] = [&[0.0], &[1.0], &[1.0], &[0.0], &[0.0], &[1.0]];
    let (two_thirds, half) = (2.0 / 3.0, 0.5);
    let expected = [two_thirds, two_thirds, two_thirds, two_thirds, half, half];
    assert_eq!(precision(&counts(&order)), expected);
    // With a fourth relevant item that is not ranked, recall ends at 3/4.
    let mut missing = counts(&order);
    missing.missing.push(1.0);
    assert_eq!(
        precision(&missing),
        [two_thirds, two_thirds, two_thirds, half, 0.0, 0.0]
    );
    // One of two tied items is at rank 3/2 on average, so precision is 2/3 throughout.
    assert_eq!(precision(&counts(&[&[0.0, 1.0]])), [two_thirds; 6]);
}
