//! Lloyd's algorithm, on one thread: blocks of a product code run side by side.

use crate::linalg::{RowBuf, Rows, cross, squared_norms};
use crate::model::nearest;
use crate::random::Stream;

/// Rows whose products with all centroids are taken at once.
const BATCH: usize = 1024;

/// Move centroids to the means of the rows nearest to them, so many times. A centroid that no row is nearest to
/// takes the row that is farthest from its own, the next one the next.
pub(super) fn lloyd(rows: Rows<'_>, centroids: &mut RowBuf, passes: usize) {
    let (dim, count) = (rows.dim(), centroids.len());
    let mut norms = Vec::new();
    let mut products = vec![0.0; BATCH * count];
    let mut far: Vec<(f32, usize)> = Vec::new();
    for _ in 0..passes {
        squared_norms(centroids.rows(), &mut norms);
        let mut sums = vec![0.0_f64; count * dim];
        let mut counts = vec![0_u64; count];
        far.clear();
        for start in (0..rows.len()).step_by(BATCH) {
            let part = rows.slice(start, rows.len().min(start + BATCH));
            let products = &mut products[..part.len() * count];
            cross(part, centroids.rows(), -2.0, products);
            for (place, (row, products)) in
                part.iter().zip(products.chunks_exact(count)).enumerate()
            {
                let (own, distance) = nearest(products, &norms);
                counts[own] += 1;
                let sums = &mut sums[own * dim..(own + 1) * dim];
                let mut squared = 0.0;
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += f64::from(*value);
                    squared += value * value;
                }
                far.push((distance + squared, start + place));
            }
        }
        let empty = counts.iter().filter(|count| **count == 0).count();
        if empty > 0 {
            far.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        let mut farthest = far.iter();
        for (centroid, count) in counts.iter().enumerate() {
            let target = centroids.row_mut(centroid);
            match (*count, farthest.as_slice().first()) {
                (0, Some((_, row))) => {
                    target.copy_from_slice(rows.row(*row));
                    farthest.next();
                }
                (0, None) => {}
                (count, _) => {
                    let sums = &sums[centroid * dim..(centroid + 1) * dim];
                    for (value, sum) in target.iter_mut().zip(sums) {
                        *value = (sum / count as f64) as f32;
                    }
                }
            }
        }
    }
}

/// Different rows to start from, fewer where there are fewer.
pub(super) fn start(rows: Rows<'_>, count: usize, random: &mut Stream) -> RowBuf {
    let mut out = RowBuf::empty(rows.dim());
    for row in random.choose(rows.len() as u64, count) {
        out.extend(rows.slice(row as usize, row as usize + 1));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_found_and_none_stays_empty() {
        // Two clusters on a line; both centroids start in the first, so that one has no row.
        let values = vec![0.0, 0.1, 0.2, 10.0, 10.1, 10.2];
        let rows = RowBuf::from_values(values, 1).unwrap();
        let mut centroids = RowBuf::from_values(vec![0.0, 0.0], 1).unwrap();
        lloyd(rows.rows(), &mut centroids, 8);
        let mut found = centroids.values().to_vec();
        found.sort_by(f32::total_cmp);
        for (found, expected) in found.iter().zip([0.1, 10.1]) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }
}
