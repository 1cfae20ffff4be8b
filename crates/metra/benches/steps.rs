//! Steps of training over minibatches against the bare products of the same shapes, on one thread.
//!
//! `cargo bench -p metra --bench steps [-- warca | multi-similarity | supcon | proxy-anchor]`. Prints the median ratio
//! of interleaved repeats: times of a shared machine mean little, ratios inside one run do. A step is measured as the
//! difference between fits of many and of few steps, so that it contains all that a step needs: drawing, fetching and
//! centring rows, the loss, the regulariser and Adam.

use faer::Accum;
use metra::Dataset;
use metra::data::MemoryCorpus;
use metra::data::synthetic::Nuisance;
use metra::methods::warca::{Start, Warca};
use metra::methods::{MultiSimilarity, ProxyAnchor, SupCon};
use metra::supervision::{Labels, Supervision};
use metra::training::{InBatchTraining, Method, Run, Schedule};
use std::time::Instant;

mod measured;

use measured::{Matrix, in_threads, say};

const RANK: usize = 64;
const REPEATS: usize = 15;
/// Steps of the shorter and of the longer fit.
const STEPS: (u64, u64) = (5, 45);

fn main() -> metra::Result<()> {
    in_threads(1, measure)
}

fn measure() -> metra::Result<()> {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|word| word == name);
    let images = Rows::new(784, 100)?;
    let reduced = Rows::new(100, 10)?;
    if is_asked(Warca::NAME) {
        let fit = |schedule| Warca {
            rank: RANK,
            batch: 512,
            pool: 512,
            schedule,
            start: Start::Random,
            ..Warca::default()
        };
        let bare = Bare::new(784, 3 * 512, 0..512, 1024..1536);
        images.compare(
            "WARCA step, d = 784, rank 64, batch = pool = 512",
            fit,
            &bare,
        )?;
    }
    let training = |schedule| InBatchTraining {
        rank: RANK,
        batch: 512,
        drawn: 128,
        schedule,
        start: Start::Random,
        ..InBatchTraining::default()
    };
    // About the rows of a batch, less those drawn twice.
    let within = Bare::new(100, 640, 0..640, 0..640);
    if is_asked(MultiSimilarity::NAME) {
        let fit = |schedule| MultiSimilarity {
            training: training(schedule),
            ..MultiSimilarity::default()
        };
        let name = "Multi-Similarity step, d = 100, rank 64, batch of 512 + 128";
        reduced.compare(name, fit, &within)?;
    }
    if is_asked(SupCon::NAME) {
        let fit = |schedule| SupCon {
            training: training(schedule),
            ..SupCon::default()
        };
        let name = "SupCon step, d = 100, rank 64, batch of 512 + 128";
        reduced.compare(name, fit, &within)?;
    }
    if is_asked(ProxyAnchor::NAME) {
        let fit = |schedule| ProxyAnchor {
            training: training(schedule),
            ..ProxyAnchor::default()
        };
        let bare = Bare::new(784, 640, 0..100, 0..640);
        let name = "Proxy-Anchor step, d = 784, 100 classes, rank 64, batch of 512 + 128";
        images.compare(name, fit, &bare)?;
    }
    Ok(())
}

/// Rows to train on.
struct Rows {
    corpus: MemoryCorpus,
    supervision: Supervision,
}

impl Rows {
    fn new(dim: usize, classes: u64) -> metra::Result<Self> {
        let recipe = Nuisance {
            classes,
            signal: dim / 4,
            noise: dim - dim / 4,
            seed: 1,
        };
        let set = recipe.rows(20_000);
        Ok(Rows {
            supervision: Supervision::labels(Labels::from_numbers(&set.classes)?),
            corpus: set.corpus,
        })
    }

    fn compare<M: Method>(
        &self,
        name: &str,
        method: impl Fn(Schedule) -> M,
        bare: &Bare,
    ) -> metra::Result<()> {
        let data = Dataset::new(&self.corpus, &self.supervision)?;
        let fit = |steps: u64| -> metra::Result<f64> {
            let learner = method(Schedule::of(steps)).checked()?;
            let start = Instant::now();
            learner.fit(&data, &mut Run::new(1))?;
            Ok(start.elapsed().as_secs_f64())
        };
        let (few, many) = STEPS;
        let mut ratios = Vec::new();
        for _ in 0..REPEATS {
            let products = bare.seconds(many - few);
            ratios.push((fit(many)? - fit(few)?) / products);
        }
        say(name, "× the bare products", ratios);
        Ok(())
    }
}

/// The products that a step cannot do without.
struct Bare {
    rows: Matrix,
    map: Matrix,
    embedded: Matrix,
    weights: Matrix,
    /// Which of the embedded rows are compared with which.
    anchors: std::ops::Range<usize>,
    items: std::ops::Range<usize>,
}

impl Bare {
    fn new(
        dim: usize,
        rows: usize,
        anchors: std::ops::Range<usize>,
        items: std::ops::Range<usize>,
    ) -> Self {
        Bare {
            rows: Matrix::new(rows, dim),
            map: Matrix::new(RANK, dim),
            embedded: Matrix::new(rows, RANK),
            weights: Matrix::new(anchors.len(), items.len()),
            anchors,
            items,
        }
    }

    fn seconds(&self, repeats: u64) -> f64 {
        let (rows, map) = (self.rows.get(), self.map.get());
        let (embedded, weights) = (self.embedded.get(), self.weights.get());
        let anchors = embedded.subrows(self.anchors.start, self.anchors.len());
        let items = embedded.subrows(self.items.start, self.items.len());
        let mut mapped = Matrix::new(rows.nrows(), RANK);
        let mut compared = Matrix::new(anchors.nrows(), items.nrows());
        let mut by_anchor = Matrix::new(anchors.nrows(), RANK);
        let mut by_item = Matrix::new(items.nrows(), RANK);
        let mut gradient = Matrix::new(RANK, map.ncols());
        let mut gram = Matrix::new(RANK, RANK);
        let start = Instant::now();
        for _ in 0..repeats {
            let replace = Accum::Replace;
            mapped.product(replace, rows, map.transpose());
            compared.product(replace, anchors, items.transpose());
            by_anchor.product(replace, weights, items);
            by_item.product(replace, weights.transpose(), anchors);
            gradient.product(replace, embedded.transpose(), rows);
            gram.product(replace, map, map.transpose());
            gradient.product(Accum::Add, gram.get(), map);
        }
        start.elapsed().as_secs_f64()
    }
}
