//! The target neighbours of every row inside its class, and its impostors outside.

use crate::Result;
use crate::data::{Corpus, RowId, Subset};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::search::scores::{Items, TILE};
use crate::search::top_k;
use crate::supervision::Labels;
use crate::training::pair_lists::PairLists;
use rayon::prelude::*;

/// The nearest rows of its own class for every row.
pub(super) fn targets(corpus: &dyn Corpus, labels: &Labels, count: usize) -> Result<PairLists> {
    let mut lists = vec![Vec::new(); labels.len()];
    for class in 0..labels.classes() as u32 {
        let members = labels.members(class);
        if members.len() < 2 {
            continue;
        }
        let ids = members.iter().map(|row| RowId::from(*row)).collect();
        let rows = Subset::new(corpus, ids)?;
        let count = count.min(members.len() - 1);
        let found = top_k(Space::SquaredL2, &rows, &rows, count, true)?;
        for (place, row) in members.iter().enumerate() {
            let near = found.ids_of(place).iter();
            lists[*row as usize] = near.map(|id| members[*id as usize]).collect();
        }
    }
    Ok(PairLists::from_lists(lists.into_iter()))
}

/// Rows whose distances to all others are made at once.
const BLOCK: usize = 128;

/// The rows of other classes that are nearer to a row than its reach, at most `most` for each, nearest
/// first; and how many were left out. A row without a reach has none.
pub(super) fn impostors(
    mapped: &dyn Corpus,
    labels: &Labels,
    reach: &[Option<f32>],
    most: usize,
) -> Result<(PairLists, u64)> {
    let items = Items::prepare(Space::SquaredL2, mapped)?;
    let rows: Vec<RowId> = (0..mapped.len()).collect();
    let blocks: Vec<Result<(Vec<Vec<u32>>, u64)>> = rows
        .par_chunks(BLOCK)
        .map(|rows| {
            let queries = items.queries(mapped, rows.to_vec())?;
            let mut found: Vec<Vec<(f32, u32)>> = vec![Vec::new(); rows.len()];
            let (mut buffer, mut products) = (RowBuf::empty(items.dim()), Vec::new());
            let mut left_out = 0;
            for tile in 0..items.tiles() {
                items.products(&queries, tile..tile + 1, &mut buffer, &mut products)?;
                let start = tile * TILE;
                let end = items.len().min(start + TILE);
                let (offsets, classes) = (items.offsets(start..end), &labels.of()[start..end]);
                for (index, row) in rows.iter().enumerate() {
                    let Some(reach) = reach[*row as usize] else {
                        continue;
                    };
                    let class = labels.of()[*row as usize];
                    let bound = (f64::from(reach) - queries.squared(index)) as f32;
                    let scores = products[index * TILE..].iter().zip(offsets).zip(classes);
                    for (item, ((product, offset), other)) in (start as u32..).zip(scores) {
                        let score = product + offset;
                        if score < bound && *other != class {
                            found[index].push((score, item));
                        }
                    }
                    if found[index].len() > 4 * most {
                        left_out += keep_nearest(&mut found[index], most);
                    }
                }
            }
            let kept = found.into_iter().map(|mut found| {
                left_out += keep_nearest(&mut found, most);
                // By reference: a list made from the list itself would keep all the memory of this one.
                found.iter().map(|(_, item)| *item).collect()
            });
            let kept = kept.collect();
            Ok((kept, left_out))
        })
        .collect();
    let (mut lists, mut left_out) = (Vec::with_capacity(rows.len()), 0);
    for block in blocks {
        let (kept, more) = block?;
        lists.extend(kept);
        left_out += more;
    }
    Ok((PairLists::from_lists(lists.into_iter()), left_out))
}

/// The edges of both, each once and in order of rows.
pub(super) fn united(left: &PairLists, right: &PairLists) -> PairLists {
    PairLists::from_lists((0..left.rows()).map(|row| {
        let mut all = [left.of(row), right.of(row)].concat();
        all.sort_unstable();
        all.dedup();
        all
    }))
}

/// Keep the nearest, in the order of their numbers; gives how many went.
fn keep_nearest(found: &mut Vec<(f32, u32)>, most: usize) -> u64 {
    if found.len() <= most {
        return 0;
    }
    let gone = (found.len() - most) as u64;
    let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    found.select_nth_unstable_by(most, order);
    found.truncate(most);
    found.sort_unstable_by_key(|(_, item)| *item);
    gone
}
