//! The two graphs of MFA: near pairs inside classes and near pairs across their borders.
//!
//! Both come of one pass over all pairs of rows in tiles, as searches have it. Rows are taken class by
//! class, so that a block of them shares the lists of its classes.

use crate::Result;
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::search::scores::{Items, TILE, ordered};
use crate::supervision::Labels;
use rayon::prelude::*;

/// Rows in a block. Fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 128;

pub(super) struct Graphs {
    /// Pairs of rows of one class, of which one is among the nearest of the other; each once.
    pub(super) intrinsic: Vec<(RowId, RowId)>,
    /// Pairs of rows of different classes that are among the nearest of such pairs for one of the two
    /// classes; each once.
    pub(super) penalty: Vec<(RowId, RowId)>,
}

/// The nearest `near` rows of its own class for each row, and the nearest `far` pairs of a row inside
/// and a row outside for each class. Ties go to the smaller row numbers.
pub(super) fn graphs(
    corpus: &dyn Corpus,
    labels: &Labels,
    near: usize,
    far: usize,
) -> Result<Graphs> {
    let items = Items::prepare(Space::SquaredL2, corpus)?;
    let by_class: Vec<u32> = (0..labels.classes() as u32)
        .flat_map(|class| labels.members(class).iter().copied())
        .collect();
    let blocks: Vec<Result<Block>> = by_class
        .par_chunks(BLOCK)
        .map(|rows| block(&items, corpus, labels, rows, near, far))
        .collect();
    let mut inside = Vec::new();
    let mut across: Vec<Nearest> = (0..labels.classes()).map(|_| Nearest::new(far)).collect();
    for block in blocks {
        let block = block?;
        inside.extend(block.near);
        for (class, found) in block.far {
            for pair in found.kept() {
                across[class as usize].offer(pair);
            }
        }
    }
    let penalty = across.into_iter().flat_map(Nearest::kept);
    Ok(Graphs {
        intrinsic: once(inside.into_iter()),
        penalty: once(penalty),
    })
}

/// A pair with its distance, ordered by it and then by the rows.
type Pair = (u64, u32, u32);

struct Block {
    near: Vec<Pair>,
    /// The classes of the block with their nearest pairs across the border.
    far: Vec<(u32, Nearest)>,
}

fn block(
    items: &Items<'_>,
    corpus: &dyn Corpus,
    labels: &Labels,
    rows: &[u32],
    near: usize,
    far: usize,
) -> Result<Block> {
    let queries = items.queries(corpus, rows.iter().map(|row| RowId::from(*row)).collect())?;
    let mut inside: Vec<Nearest> = rows.iter().map(|_| Nearest::new(near)).collect();
    let mut across: Vec<(u32, Nearest)> = Vec::new();
    for row in rows {
        let class = labels.of()[*row as usize];
        if across.last().is_none_or(|(last, _)| *last != class) {
            across.push((class, Nearest::new(far)));
        }
    }
    let (mut buffer, mut products) = (RowBuf::empty(items.dim()), Vec::new());
    for tile in 0..items.tiles() {
        items.products(&queries, tile..tile + 1, &mut buffer, &mut products)?;
        let start = tile * TILE;
        let end = items.len().min(start + TILE);
        let (offsets, classes) = (items.offsets(start..end), &labels.of()[start..end]);
        let mut place = 0;
        for (index, row) in rows.iter().enumerate() {
            let class = labels.of()[*row as usize];
            if across[place].0 != class {
                place += 1;
            }
            let (inside, across) = (&mut inside[index], &mut across[place].1);
            let scores = products[index * TILE..].iter().zip(offsets).zip(classes);
            for (item, ((product, offset), other)) in (start as u32..).zip(scores) {
                let score = product + offset;
                if *other != class {
                    across.offer_score(items.reported(score, queries.squared(index)), *row, item);
                } else if item != *row {
                    inside.offer_score(score, *row, item);
                }
            }
        }
    }
    Ok(Block {
        near: inside.into_iter().flat_map(Nearest::kept).collect(),
        far: across,
    })
}

/// The nearest pairs offered so far, and some that are not.
struct Nearest {
    count: usize,
    worst: Option<Pair>,
    pairs: Vec<Pair>,
}

impl Nearest {
    fn new(count: usize) -> Self {
        Nearest {
            count,
            worst: None,
            pairs: Vec::new(),
        }
    }

    fn offer_score(&mut self, score: f32, row: u32, item: u32) {
        self.offer((ordered(score), row, item));
    }

    fn offer(&mut self, pair: Pair) {
        if self.worst.is_none_or(|worst| pair < worst) {
            self.pairs.push(pair);
            if self.pairs.len() >= 2 * self.count + 8 {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.pairs.len() > self.count {
            let (_, worst, _) = self.pairs.select_nth_unstable(self.count - 1);
            self.worst = Some(*worst);
            self.pairs.truncate(self.count);
        }
    }

    fn kept(mut self) -> Vec<Pair> {
        self.cut();
        self.pairs
    }
}

/// Pairs of rows, whichever way round, each once and in order.
fn once(pairs: impl Iterator<Item = Pair>) -> Vec<(RowId, RowId)> {
    let mut all: Vec<(RowId, RowId)> = pairs
        .map(|(_, a, b)| (RowId::from(a.min(b)), RowId::from(a.max(b))))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::random::Stream;

    #[test]
    fn graphs_by_hand() {
        // Class 0 at 0, 1, 3; class 1 at 4, 6.5; class 2 at 20. Nearest of the own class: 0–1, 1–0,
        // 3–1; 4–6.5 both ways. Nearest pairs across: class 0: 3–4 (1); class 1: 4–3 (1);
        // class 2: 20–6.5 (13.5).
        let values = vec![0.0, 1.0, 3.0, 4.0, 6.5, 20.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 1).unwrap()).unwrap();
        let labels = Labels::from_numbers(&[0, 0, 0, 1, 1, 2]).unwrap();
        let found = graphs(&corpus, &labels, 1, 1).unwrap();
        assert_eq!(found.intrinsic, vec![(0, 1), (1, 2), (3, 4)]);
        assert_eq!(found.penalty, vec![(2, 3), (4, 5)]);
    }

    #[test]
    fn graphs_equal_sorted_lists_of_all_pairs() {
        // More rows than a block and a tile, classes of different sizes that lie scattered.
        let mut stream = Stream::new(2, "test", 0);
        let values: Vec<f32> = (0..1300 * 3).map(|_| stream.normal() as f32).collect();
        let classes: Vec<i64> = (0..1300)
            .map(|_| (stream.below(100) as i64).min(30))
            .collect();
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap();
        let labels = Labels::from_numbers(&classes).unwrap();
        let found = graphs(&corpus, &labels, 3, 25).unwrap();
        let rows = corpus.rows();
        let distance = |i: usize, j: usize| -> f64 {
            let pairs = rows.row(i).iter().zip(rows.row(j));
            pairs
                .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
                .sum()
        };
        let sorted = |mut all: Vec<(f64, usize, usize)>, count: usize| {
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all.truncate(count);
            all.into_iter()
                .map(|(_, a, b)| (a.min(b) as RowId, a.max(b) as RowId))
                .collect::<Vec<_>>()
        };
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for class in 0..labels.classes() as u32 {
            let mut across = Vec::new();
            for i in labels.members(class).iter().map(|row| *row as usize) {
                let mut inside = Vec::new();
                for j in (0..1300).filter(|j| *j != i) {
                    let list = if classes[i] == classes[j] {
                        &mut inside
                    } else {
                        &mut across
                    };
                    list.push((distance(i, j), i, j));
                }
                near.extend(sorted(inside, 3));
            }
            far.extend(sorted(across, 25));
        }
        for (found, mut wanted) in [(found.intrinsic, near), (found.penalty, far)] {
            wanted.sort_unstable();
            wanted.dedup();
            assert_eq!(found, wanted);
        }
    }
}
