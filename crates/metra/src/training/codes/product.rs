//! Centroids of product codes, and the rotation of OPQ: Ge, He, Ke & Sun, "Optimized Product Quantization", PAMI
//! 2014: from principal axes dealt out so that the blocks' variances have equal products, codes and the rotation
//! that brings the vectors nearest to them in turn.

use super::k_means::{lloyd, start};
use super::rotation::towards;
use crate::Result;
use crate::data::MemoryCorpus;
use crate::execute::moments;
use crate::linalg::{RowBuf, Rows, map_rows};
use crate::model::{Code, LowRank, MOST_CENTROIDS, ProductCode, Space, range};
use crate::random::Stream;
use rayon::prelude::*;

/// Passes of Lloyd's algorithm for the centroids that stay.
const PASSES: usize = 20;
/// Turns between codes and rotation, with as many passes for centroids in each.
const TURNS: (usize, usize) = (20, 2);

/// Centroids of all blocks.
pub(super) fn fit(rows: Rows<'_>, blocks: usize, seed: u64) -> Result<ProductCode> {
    refine(rows, blocks, None, PASSES, seed)
}

/// Centroids after so many passes more.
fn refine(
    rows: Rows<'_>,
    blocks: usize,
    before: Option<&ProductCode>,
    passes: usize,
    seed: u64,
) -> Result<ProductCode> {
    let dim = rows.dim();
    let of_blocks: Vec<RowBuf> = (0..blocks)
        .into_par_iter()
        .map(|block| {
            let range = range(dim, blocks, block);
            let (mut part, mut centroids) = (RowBuf::empty(1), RowBuf::empty(1));
            rows.columns(range.clone(), &mut part);
            let mut random = Stream::new(seed, "centroids", block as u64);
            match before {
                Some(before) => before.centroids().columns(range, &mut centroids),
                None => centroids = start(part.rows(), MOST_CENTROIDS, &mut random),
            }
            lloyd(part.rows(), &mut centroids, passes);
            centroids
        })
        .collect();
    let mut all = RowBuf::zeros(of_blocks[0].len(), dim);
    for (block, centroids) in of_blocks.iter().enumerate() {
        for (number, centroid) in centroids.rows().iter().enumerate() {
            all.row_mut(number)[range(dim, blocks, block)].copy_from_slice(centroid);
        }
    }
    ProductCode::new(blocks, all)
}

/// The rotation of OPQ.
pub(super) fn rotation(
    rows: Rows<'_>,
    blocks: usize,
    seed: u64,
    check: &dyn Fn() -> Result<()>,
) -> Result<LowRank> {
    let dim = rows.dim();
    let mut rotation = balanced_axes(rows, blocks)?;
    let (mut turned, mut near) = (RowBuf::empty(dim), RowBuf::empty(dim));
    let mut products = RowBuf::empty(dim);
    let mut code: Option<ProductCode> = None;
    let mut bytes = Vec::new();
    for _ in 0..TURNS.0 {
        check()?;
        map_rows(rows, rotation.rows(), &mut turned)?;
        let refined = refine(turned.rows(), blocks, code.as_ref(), TURNS.1, seed)?;
        let coder = Code::Product(refined.clone());
        bytes.clear();
        coder.encode(0, Space::SquaredL2, turned.rows(), &mut bytes)?;
        coder.decode(dim, &bytes, &mut near)?;
        rotation = towards(near.rows(), rows, &mut products)?;
        code = Some(refined);
    }
    LowRank::new(rotation, None)
}

/// Principal axes in an order in which blocks have about equal products of variances: the next largest goes to
/// the block with the least product so far that has room. Variances count from the smallest that is not 0, so that
/// every axis makes a product larger, whatever the scale of the rows.
fn balanced_axes(rows: Rows<'_>, blocks: usize) -> Result<RowBuf> {
    let dim = rows.dim();
    let mut buffer = RowBuf::empty(dim);
    buffer.extend(rows);
    let axes = moments(&MemoryCorpus::new(buffer)?)?.covariance.eigen()?;
    let rotation = axes.leading_rows(dim);
    let largest = axes.values.first().copied().unwrap_or(0.0);
    let least = (1e-9 * largest).max(f64::MIN_POSITIVE);
    let mut places: Vec<Vec<usize>> = (0..blocks)
        .map(|block| range(dim, blocks, block).rev().collect())
        .collect();
    let mut logs = vec![0.0_f64; blocks];
    let mut target = RowBuf::zeros(dim, dim);
    for axis in 0..dim {
        let with_room = (0..blocks).filter(|block| !places[*block].is_empty());
        let Some(block) = with_room.min_by(|a, b| logs[*a].total_cmp(&logs[*b])) else {
            break;
        };
        logs[block] += 1.0 + (axes.values[axis].max(least) / least).ln();
        if let Some(place) = places[block].pop() {
            target.row_mut(place).copy_from_slice(rotation.row(axis));
        }
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors along few directions of very different variance, turned at random.
    fn rows() -> RowBuf {
        let mut random = Stream::new(1, "test", 0);
        let turn = super::super::rotation::random_rotation(16, 3).unwrap();
        let mut plain = RowBuf::zeros(600, 16);
        for row in plain.values_mut().chunks_exact_mut(16) {
            for (axis, value) in row.iter_mut().enumerate() {
                *value = (random.normal() * 0.5_f64.powi(axis as i32)) as f32;
            }
        }
        let mut turned = RowBuf::empty(16);
        map_rows(plain.rows(), turn.rows(), &mut turned).unwrap();
        turned
    }

    fn loss(rows: &RowBuf, code: ProductCode) -> f64 {
        let (mut bytes, mut near) = (Vec::new(), RowBuf::empty(1));
        let code = Code::Product(code);
        code.encode(0, Space::SquaredL2, rows.rows(), &mut bytes)
            .unwrap();
        code.decode(16, &bytes, &mut near).unwrap();
        let pairs = rows.values().iter().zip(near.values());
        pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / rows.len() as f64
    }

    #[test]
    fn a_rotation_loses_less_than_none() {
        let rows = rows();
        let plain = loss(&rows, fit(rows.rows(), 4, 1).unwrap());
        let rotation = rotation(rows.rows(), 4, 1, &|| Ok(())).unwrap();
        let mut turned = RowBuf::empty(1);
        rotation.apply(rows.rows(), &mut turned).unwrap();
        let rotated = loss(&turned, fit(turned.rows(), 4, 1).unwrap());
        assert!(rotated < 0.9 * plain, "{rotated} {plain}");
        // Lengths stay.
        let squares =
            |rows: &RowBuf| -> f64 { rows.values().iter().map(|v| f64::from(*v).powi(2)).sum() };
        assert!((squares(&turned) / squares(&rows) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_largest_axes_go_to_different_blocks_at_any_scale() {
        for factor in [1e-4, 1.0, 1e4] {
            let mut rows = RowBuf::zeros(400, 8);
            let mut random = Stream::new(2, "test", 0);
            for row in rows.values_mut().chunks_exact_mut(8) {
                for (axis, value) in row.iter_mut().enumerate() {
                    *value = (factor * random.normal() * 0.6_f64.powi(axis as i32)) as f32;
                }
            }
            let axes = balanced_axes(rows.rows(), 4).unwrap();
            // The axis that a row of the rotation takes is where its largest value stands.
            let of_block = |block: usize| -> Vec<usize> {
                let range = range(8, 4, block);
                let largest = |row: &[f32]| {
                    let all = row.iter().enumerate();
                    all.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
                        .unwrap()
                        .0
                };
                range.map(|row| largest(axes.row(row))).collect()
            };
            let mut first: Vec<usize> = (0..4).map(|block| of_block(block)[0]).collect();
            first.sort_unstable();
            assert_eq!(first, [0, 1, 2, 3], "at {factor}");
        }
    }

    #[test]
    fn fewer_rows_than_centroids_are_coded_exactly() {
        let mut few = RowBuf::empty(16);
        few.extend(rows().rows().slice(0, 100));
        assert!(loss(&few, fit(few.rows(), 2, 1).unwrap()) < 1e-9);
    }
}
