//! Kinds of work on two threads against one.
//!
//! `cargo bench -p metra --bench threads`. Medians of interleaved repeats. Evaluation is in the bench of that name.

use metra::Dataset;
use metra::data::synthetic::Nuisance;
use metra::data::{MemoryCorpus, Storage};
use metra::internal::{Stream, gram_within};
use metra::linalg::{Kernel, RowBuf};
use metra::methods::{MultiSimilarity, Warca};
use metra::model::{Chain, LowRank, Map, Side, Space, embed_corpus};
use metra::search::top_k;
use metra::supervision::{Labels, Supervision};
use metra::training::{InBatchTraining, Method, Run, Schedule};
use std::time::Instant;

mod measured;

use measured::{in_threads, say};

const REPEATS: usize = 5;

fn main() -> metra::Result<()> {
    let recipe = Nuisance {
        classes: 100,
        signal: 84,
        noise: 700,
        seed: 1,
    };
    let set = recipe.rows(20_000);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
    let data = Dataset::new(&set.corpus, &supervision)?;
    let warca = Warca {
        schedule: Schedule::of(100),
        ..Warca::default()
    };
    compare("WARCA, 20,000 × 784, 100 steps", || {
        warca.fit(&data, &mut Run::new(1)).map(drop)
    })?;
    let losses = MultiSimilarity {
        training: InBatchTraining {
            schedule: Schedule::of(100),
            ..InBatchTraining::default()
        },
        ..MultiSimilarity::default()
    };
    compare("Multi-Similarity, 20,000 × 784, 100 steps", || {
        losses.fit(&data, &mut Run::new(1)).map(drop)
    })?;
    let map = LowRank::new(uniform(64, 784), None)?;
    let chain = Chain::new(784, Vec::new(), Map::LowRank(map), Space::SquaredL2)?;
    let storage = Storage::default();
    compare("embedding, 20,000 × 784 to 64", || {
        embed_corpus(&chain, Side::Item, &set.corpus, None, &storage).map(drop)
    })?;
    let items = MemoryCorpus::new(uniform(10_000, 64))?;
    compare("exact top-10, 10,000 × 10,000 × 64", || {
        top_k(Space::SquaredL2, &items, &items, 10, false).map(drop)
    })?;
    let histograms = uniform(1_000, 2_580);
    compare("χ² Gram matrix, 1,000 × 2,580", || {
        std::hint::black_box(gram_within(Kernel::ChiSquare, histograms.rows()));
        Ok(())
    })
}

fn compare(name: &str, work: impl Fn() -> metra::Result<()> + Sync) -> metra::Result<()> {
    let seconds = |threads| {
        in_threads(threads, || {
            let start = Instant::now();
            work().map(|()| start.elapsed().as_secs_f64())
        })
    };
    let mut gains = Vec::new();
    for _ in 0..REPEATS {
        gains.push(seconds(1)? / seconds(2)?);
    }
    say(&format!("{name}, two threads"), "× the speed of one", gains);
    Ok(())
}

fn uniform(len: usize, dim: usize) -> RowBuf {
    let mut stream = Stream::new(1, "bench rows", 0);
    let mut rows = RowBuf::zeros(len, dim);
    for value in rows.values_mut() {
        *value = (stream.unit() / dim as f64) as f32;
    }
    rows
}
