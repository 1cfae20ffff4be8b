//! Ways to change the model, where it is known which one is right.

use super::*;

const CLASSES: usize = 20;
const EACH: usize = 8;

/// Rows of classes in eight dimensions, of which a space keeps some, each times its factor.
fn spaces(old: &[(usize, f64)], new: &[(usize, f64)]) -> (MemoryCorpus, MemoryCorpus) {
    let mut stream = Stream::new(6, "migration test", 0);
    let centres: Vec<[f64; 8]> = (0..CLASSES)
        .map(|_| std::array::from_fn(|_| stream.normal()))
        .collect();
    let (mut rows, mut other) = (Vec::new(), Vec::new());
    for row in 0..CLASSES * EACH {
        let centre = centres[row % CLASSES];
        // The last three dimensions know nothing of classes.
        let latent: [f64; 8] = std::array::from_fn(|dim| match dim {
            0..5 => centre[dim] + 0.3 * stream.normal(),
            _ => stream.normal(),
        });
        let kept = |space: &[(usize, f64)]| -> Vec<f32> {
            space
                .iter()
                .map(|(dim, factor)| (latent[*dim] * factor) as f32)
                .collect()
        };
        rows.extend(kept(old));
        other.extend(kept(new));
    }
    let corpus = |values, dim| MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap());
    (
        corpus(rows, old.len()).unwrap(),
        corpus(other, new.len()).unwrap(),
    )
}

fn truth() -> Vec<QueryTruth> {
    let of = |row: usize| QueryTruth {
        grades: (0..CLASSES * EACH)
            .filter(|other| *other != row && other % CLASSES == row % CLASSES)
            .map(|other| (other as u32, 1.0))
            .collect(),
        cluster: (row % CLASSES) as u64,
    };
    (0..CLASSES * EACH).map(of).collect()
}

fn study() -> MigrationStudy {
    MigrationStudy {
        measures: vec![Measure::AveragePrecision, Measure::PrecisionAt(1)],
        space: Space::SquaredL2,
        share: 0.5,
        seed: 1,
    }
}

fn found(old: &[(usize, f64)], new: &[(usize, f64)], is_judged: bool) -> MigrationFound {
    let (old, new) = spaces(old, new);
    let (rows, truth): (Vec<u64>, _) = ((0..old.len()).collect(), truth());
    let data = TwoSpaces {
        old: &old,
        new: &new,
        queries: MigrationQueries::Items(&rows),
        truth: is_judged.then_some(&truth),
    };
    study().run(&data).unwrap()
}

fn mean(found: &MigrationFound, way: MigrationWay) -> f64 {
    let found = found.ways.iter().find(|found| found.way == way).unwrap();
    found.scores.mean(found.scores.measures()[0])
}

const ALL: [(usize, f64); 5] = [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)];

#[test]
fn what_the_old_items_do_not_hold_must_be_embedded() {
    let found = found(&[(0, 1.0), (1, 1.0), (5, 1.0)], &ALL, true);
    assert_eq!(
        found.advice,
        MigrationAdvice::Choose(MigrationWay::EmbedAll)
    );
    let of = |way| mean(&found, way);
    assert!(of(MigrationWay::EmbedAll) > of(MigrationWay::MapItems) + 0.2);
    let all = &found.ways[4];
    assert!(all.against_all.is_none() && all.gains[0].1.low > 0.0);
    assert!(found.ways[0].gains.is_empty());
}

#[test]
fn what_they_hold_needs_a_map_alone() {
    // Both spaces hold the same, but the old one is led by what says nothing.
    let new: Vec<(usize, f64)> = (0..8)
        .map(|dim| (dim, if dim < 5 { 1.0 } else { 0.01 }))
        .collect();
    let old: Vec<(usize, f64)> = (0..8)
        .map(|dim| (dim, if dim < 5 { 1.0 } else { 4.0 }))
        .collect();
    let found = found(&old, &new, true);
    assert_eq!(
        found.advice,
        MigrationAdvice::Choose(MigrationWay::MapItems)
    );
    let (mapped, all) = (
        mean(&found, MigrationWay::MapItems),
        mean(&found, MigrationWay::EmbedAll),
    );
    assert!((mapped - all).abs() < 0.01, "{mapped} {all}");
    assert!(mean(&found, MigrationWay::Both) > all - 0.02);
    assert!(found.weights.is_some());
}

#[test]
fn a_worse_model_is_not_changed_to() {
    let found = found(&ALL, &[(0, 1.0), (5, 1.0), (6, 1.0)], true);
    assert_eq!(found.advice, MigrationAdvice::Choose(MigrationWay::Stay));
}

#[test]
fn nothing_is_advised_without_judgements() {
    let found = found(&ALL, &ALL, false);
    assert_eq!(found.advice, MigrationAdvice::Unknown);
    assert_eq!(found.ways.len(), 5);
    assert_eq!(mean(&found, MigrationWay::EmbedAll), 1.0);
    assert!(mean(&found, MigrationWay::MapItems) > 0.95);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (old, new) = spaces(&ALL, &ALL);
    let message = |queries: MigrationQueries<'_>, truth: Option<&[QueryTruth]>, share: f64| {
        let data = TwoSpaces {
            old: &old,
            new: &new,
            queries,
            truth,
        };
        let study = MigrationStudy { share, ..study() };
        study.run(&data).err().unwrap().to_string()
    };
    let few = [1, 2, 3];
    let error = message(MigrationQueries::Items(&few), None, 0.5);
    assert_eq!(error, "queries: expected at least 10, but found 3");
    let rows: Vec<u64> = (0..20).collect();
    let one = [QueryTruth::default()];
    let error = message(MigrationQueries::Items(&rows), Some(&one), 0.5);
    assert!(error.contains("expected 20, but found 1"), "{error}");
    let error = message(MigrationQueries::Items(&rows), None, 1.0);
    assert!(error.contains("share must be between 0 and 1"), "{error}");
    let part = Subset::new(&new, rows.clone()).unwrap();
    let error = message(MigrationQueries::Apart(&old, &part), None, 0.5);
    assert!(error.contains("queries in both spaces"), "{error}");
}
