//! Exact evaluation against the bare matrix products of the same shapes, on one thread, and on two against one.
//!
//! `cargo bench -p metra --bench evaluation [-- CLASSES …]`. Repeats of both are interleaved, because the machine
//! may be busy with other things. With 20,000 classes a query has three relevant items, as with judgements.
#![allow(missing_docs, clippy::print_stdout)]

use metra::data::{Corpus, MemoryCorpus};
use metra::evaluate::{AgainstGallery, EvaluationOptions, Measure, evaluate};
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::model::Space;
use metra::supervision::Labels;
use std::time::Instant;

mod measured;

use measured::{bare_products, in_threads, megabytes, say};

const QUERIES: usize = 10_000;
const ITEMS: usize = 60_000;
const DIM: usize = 64;
const REPEATS: usize = 5;

fn main() {
    in_threads(1, || {
        let asked: Vec<u64> = (std::env::args().skip(1))
            .filter_map(|word| word.parse().ok())
            .collect();
        for classes in if asked.is_empty() {
            vec![20_000, 600, 10]
        } else {
            asked
        } {
            measure(classes);
        }
        say(
            "exact mAP, CMC and AUC, peak memory",
            "MB",
            vec![megabytes("VmHWM")],
        );
    });
}

fn measure(classes: u64) {
    let (queries, query_classes) = draw(QUERIES, classes, 1);
    let (items, item_classes) = draw(ITEMS, classes, 2);
    let query_labels = Labels::from_numbers(&query_classes).expect("labels");
    let item_labels = Labels::from_numbers(&item_classes).expect("labels");
    let truth = AgainstGallery::new(&query_labels, &item_labels);
    let options = EvaluationOptions {
        measures: vec![
            Measure::AveragePrecision,
            Measure::CmcAt(1),
            Measure::CmcAt(10),
            Measure::Auc,
        ],
        ..EvaluationOptions::default()
    };
    let run = || {
        let start = Instant::now();
        let found = evaluate(Space::SquaredL2, &queries, &items, &truth, &options);
        std::hint::black_box(found.expect("an evaluation"));
        start.elapsed().as_secs_f64()
    };
    let (mut ratios, mut gains) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let start = Instant::now();
        bare_products(queries.rows(), items.rows());
        let bare = start.elapsed().as_secs_f64();
        let ours = run();
        ratios.push(ours / bare);
        gains.push(ours / in_threads(2, run));
    }
    let name =
        format!("exact mAP, CMC and AUC, 10,000 queries × 60,000 items × 64, {classes} classes");
    say(&name, "× the bare products", ratios);
    say(&format!("{name}, two threads"), "× the speed of one", gains);
}

/// Classes around random centres, overlapping enough that no ranking is perfect.
fn draw(len: usize, classes: u64, seed: u64) -> (MemoryCorpus, Vec<i64>) {
    let mut rows = RowBuf::zeros(len, DIM);
    let mut own = Stream::new(seed, "bench rows", 0);
    let centres: Vec<Vec<f64>> = (0..classes)
        .map(|class| {
            let mut stream = Stream::new(0, "bench centres", class);
            (0..DIM).map(|_| 0.5 * stream.normal()).collect()
        })
        .collect();
    let mut labels = Vec::with_capacity(len);
    for row in 0..len {
        let class = own.below(classes);
        for (value, centre) in rows.row_mut(row).iter_mut().zip(&centres[class as usize]) {
            *value = (centre + own.normal()) as f32;
        }
        labels.push(class as i64);
    }
    let corpus = MemoryCorpus::new(rows).expect("finite rows");
    assert_eq!(corpus.len(), len as u64);
    (corpus, labels)
}
