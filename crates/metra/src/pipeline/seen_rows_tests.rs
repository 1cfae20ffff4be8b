//! Which rows a fitted model recognises.

use super::Pipeline;
use crate::data::synthetic::Nuisance;
use crate::data::{Corpus, MOST_DIGESTS, MemoryCorpus, Subset};
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::methods::Pca;
use crate::model::{Model, SeenRows};
use crate::supervision::Labels;

fn corpus(rows: usize, seed: u64) -> MemoryCorpus {
    let recipe = Nuisance {
        classes: 10,
        signal: 2,
        noise: 2,
        seed,
    };
    recipe.rows(rows).corpus
}

fn model(rows: &dyn Corpus) -> Model {
    let classes: Vec<i64> = (0..rows.len() as i64).map(|row| row % 2).collect();
    let labels = Labels::from_numbers(&classes).unwrap();
    let data = Dataset::builder(rows).labels(labels).build().unwrap();
    Pipeline::new(Pca { rank: 2 }).fit(&data).unwrap()
}

fn seen(model: &Model, rows: &dyn Corpus) -> SeenRows {
    model.seen_rows(rows).unwrap().unwrap()
}

#[test]
fn leaks_are_recognised_and_clean_rows_are_not_accused() {
    // 100 models of 300 rows each; judged are 200 others, of which none or 5 were learned from.
    for number in 0..100 {
        let all = corpus(500, number);
        let part = |rows: Vec<u64>| Subset::new(&all, rows).unwrap();
        let learned = model(&part((0..300).collect()));
        let clean = seen(&learned, &part((300..500).collect()));
        assert_eq!((clean.recognisable, clean.seen), (200, 0));
        assert!(!clean.is_leak());
        let leaked = seen(&learned, &part((295..495).collect()));
        assert_eq!((leaked.recognisable, leaked.seen), (200, 5));
        assert!(leaked.is_leak());
    }
}

#[test]
fn a_sample_of_many_rows_tells_the_share() {
    let all = corpus(3 * MOST_DIGESTS, 1);
    let part = |rows: Vec<u64>| Subset::new(&all, rows).unwrap();
    let learned = model(&part((0..2 * MOST_DIGESTS as u64).collect()));
    assert_eq!(
        learned.training.as_ref().unwrap().units.digests().len(),
        MOST_DIGESTS
    );
    // A fifth of these was learned from.
    let found = seen(
        &learned,
        &part((MOST_DIGESTS as u64 * 7 / 4..3 * MOST_DIGESTS as u64).collect()),
    );
    assert!(found.recognisable < found.rows && found.seen > 0);
    assert!((found.share() - 0.2).abs() < 0.02, "{found:?}");
    let clean = seen(
        &learned,
        &part((2 * MOST_DIGESTS as u64..3 * MOST_DIGESTS as u64).collect()),
    );
    assert!(clean.recognisable > 0 && clean.seen == 0);
}

#[test]
fn lists_of_two_models_have_nothing_in_common() {
    // 99 rows in common.
    let rows = corpus(100, 1);
    let part = Subset::new(&rows, (1..100).collect()).unwrap();
    let [a, b] = [model(&rows), model(&part)].map(|model| model.training.unwrap());
    let common = |digest: &&u64| b.units.digests().contains(digest);
    assert_eq!(a.units.digests().iter().filter(common).count(), 0);
}

#[test]
fn zero_has_one_sign() {
    let rows = |zero: f32| {
        let values = vec![zero, 1.0, 2.0, 3.0, 7.0, 5.0, zero, 1.0];
        MemoryCorpus::new(RowBuf::from_values(values, 4).unwrap()).unwrap()
    };
    assert_eq!(seen(&model(&rows(0.0)), &rows(-0.0)).seen, 2);
}
