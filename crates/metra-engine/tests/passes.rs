//! Passes over real Parquet files by DataFusion in this process, against the library's own.

mod tables;

use metra::data::Corpus;
use metra::internal::Keys;
use metra::internal::Symmetric;
use metra::internal::{keyed_sums, moments, spread, within_scatter};
use metra_engine::{Cut, Engine, TableCorpus};
use tables::Made;

fn assert_close(found: &Symmetric, expected: &Symmetric) {
    let largest = expected.entries().norm_max();
    for i in 0..expected.dim() {
        for j in 0..=i {
            let difference = found.entries()[(i, j)] - expected.entries()[(i, j)];
            assert!(
                difference.abs() <= 1e-12 * largest,
                "({i}, {j}): {difference}"
            );
        }
    }
}

#[test]
fn moments_and_sums_equal_those_of_the_library() {
    let made = Made::new(5, 700, 6, 1);
    let engine = Engine::here(2).unwrap();
    let table = engine.open(&made.address(), Cut::Rows(500)).unwrap();
    assert_eq!((table.len(), table.shards() > 5), (3500, true));
    let mut corpus = TableCorpus::new(&engine, table, None).unwrap();
    let labels = corpus.labels("label").unwrap();
    assert_eq!(labels.of(), made.labels().of());
    let local = made.corpus();
    let (found, expected) = (moments(&corpus).unwrap(), moments(&local).unwrap());
    assert_eq!(found.count, 3500);
    assert_close(&found.covariance, &expected.covariance);
    let keys = Keys::Class(labels.of());
    let sums = keyed_sums(&corpus, keys, labels.classes()).unwrap();
    let expected = keyed_sums(&local, keys, labels.classes()).unwrap();
    assert_eq!(sums.counts, expected.counts);
    assert!((&sums.sums - &expected.sums).norm_max() <= 1e-12 * expected.sums.norm_max());
    let weights = vec![1.0; labels.classes()];
    assert_close(
        &within_scatter(&corpus, keys, &sums, &weights).unwrap(),
        &within_scatter(&local, keys, &expected, &weights).unwrap(),
    );
    let (found, expected) = (spread(&corpus).unwrap(), spread(&local).unwrap());
    for (a, b) in found.deviation.iter().zip(&expected.deviation) {
        assert!((a - b).abs() <= 1e-12 * b);
    }
}

#[test]
fn rows_are_scanned_and_gathered_in_order() {
    let made = Made::new(3, 1500, 4, 2);
    let engine = Engine::here(2).unwrap();
    let table = engine.open(&made.address(), Cut::Rows(1000)).unwrap();
    let corpus = TableCorpus::new(&engine, table, None).unwrap();
    let local = made.corpus();
    let mut seen = Vec::new();
    let mut next = 700;
    let scanned = corpus.scan(700..4400, &mut |first, rows| {
        assert_eq!(first, next);
        next += rows.len() as u64;
        seen.extend_from_slice(rows.values());
        Ok(())
    });
    scanned.unwrap();
    assert_eq!(seen, &local.rows().values()[700 * 4..4400 * 4]);
    let mut out = metra::linalg::RowBuf::empty(4);
    corpus.gather(&[4499, 0, 2222, 0], &mut out).unwrap();
    for (place, row) in [4499, 0, 2222, 0].into_iter().enumerate() {
        assert_eq!(out.row(place), local.rows().row(row));
    }
    assert!(corpus.gather(&[4500], &mut out).is_err());
}

#[test]
fn threads_change_no_byte() {
    let made = Made::new(4, 3000, 8, 3);
    let of = |threads| {
        let engine = Engine::here(threads).unwrap();
        let table = engine.open(&made.address(), Cut::Rows(1000)).unwrap();
        let corpus = TableCorpus::new(&engine, table, None).unwrap();
        let found = moments(&corpus).unwrap();
        let entries = found.covariance.entries();
        let bits: Vec<u64> = (0..8)
            .flat_map(|i| (0..8).map(move |j| entries[(i, j)].to_bits()))
            .collect();
        bits
    };
    let one = of(1);
    for threads in [1, 2, 3] {
        assert_eq!(of(threads), one, "{threads} threads");
    }
}
