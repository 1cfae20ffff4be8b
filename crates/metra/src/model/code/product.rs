//! Product quantisation (Jégou, Douze & Schmid, "Product Quantization for Nearest Neighbor Search", PAMI 2011):
//! dimensions are cut into blocks of about equal size, and each block is replaced by the number of its nearest
//! centroid.

use crate::linalg::{RowBuf, Rows, cross, squared_norms};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Most centroids of a block: their number is a byte.
pub(crate) const MOST_CENTROIDS: usize = 256;
/// Rows that one task codes.
const TASK_ROWS: usize = 1024;

/// Centroids of blocks of dimensions.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductCode {
    blocks: usize,
    /// Row k holds centroid k of every block, side by side.
    centroids: RowBuf,
}

impl ProductCode {
    /// Blocks of dimensions with their centroids: row k of `centroids` holds centroid k of all blocks.
    pub fn new(blocks: usize, centroids: RowBuf) -> Result<Self> {
        let product = ProductCode { blocks, centroids };
        product.check(product.centroids.dim())?;
        Ok(product)
    }

    pub(super) fn check(&self, dim: usize) -> Result<()> {
        if self.centroids.dim() != dim {
            let what = "dimension of the centroids";
            return Err(Error::shape(what, dim, self.centroids.dim()));
        }
        if self.blocks == 0 || self.blocks > dim {
            let expected = format!("1 to {dim} (the dimension)");
            return Err(Error::parameter("blocks of pq", expected, self.blocks));
        }
        let count = self.centroids.len();
        if count == 0 || count > MOST_CENTROIDS {
            let expected = format!("1 to {MOST_CENTROIDS}");
            return Err(Error::shape("centroids of a block", expected, count));
        }
        match self.centroids.values().iter().all(|v| v.is_finite()) {
            true => Ok(()),
            false => Err(Error::Data(
                "the centroids have values that are not finite".into(),
            )),
        }
    }

    /// Number of blocks, which is the number of bytes of an item.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The centroids: row k holds centroid k of every block, side by side.
    pub fn centroids(&self) -> Rows<'_> {
        self.centroids.rows()
    }

    pub(super) fn encode(&self, rows: Rows<'_>, out: &mut Vec<u8>) {
        let (blocks, count) = (self.blocks, self.centroids.len());
        let of_block: Vec<(RowBuf, Vec<f32>)> = (0..blocks)
            .map(|block| {
                let mut centroids = RowBuf::empty(1);
                let range = range(rows.dim(), blocks, block);
                self.centroids.rows().columns(range, &mut centroids);
                let mut norms = Vec::new();
                squared_norms(centroids.rows(), &mut norms);
                (centroids, norms)
            })
            .collect();
        let start = out.len();
        out.resize(start + rows.len() * blocks, 0);
        let tasks = out[start..].par_chunks_mut(TASK_ROWS * blocks).enumerate();
        tasks.for_each(|(task, out)| {
            let first = task * TASK_ROWS;
            let rows = rows.slice(first, first + out.len() / blocks);
            let mut products = vec![0.0; rows.len() * count];
            let mut part = RowBuf::empty(1);
            for (block, (centroids, norms)) in of_block.iter().enumerate() {
                rows.columns(range(rows.dim(), blocks, block), &mut part);
                cross(part.rows(), centroids.rows(), -2.0, &mut products);
                let places = out.iter_mut().skip(block).step_by(blocks);
                for (place, products) in places.zip(products.chunks_exact(count)) {
                    *place = nearest(products, norms).0 as u8;
                }
            }
        });
    }

    pub(super) fn decode(&self, number: usize, code: &[u8], row: &mut [f32]) -> Result<()> {
        let dim = row.len();
        for (block, centroid) in code.iter().enumerate() {
            let centroid = *centroid as usize;
            if centroid >= self.centroids.len() {
                return Err(Error::Row {
                    row: number as u64,
                    problem: format!(
                        "its code names centroid {centroid}, but blocks have {}",
                        self.centroids.len()
                    ),
                });
            }
            let range = range(dim, self.blocks, block);
            row[range.clone()].copy_from_slice(&self.centroids.row(centroid)[range]);
        }
        Ok(())
    }
}

/// The dimensions of a block.
pub(crate) fn range(dim: usize, blocks: usize, block: usize) -> Range<usize> {
    block * dim / blocks..(block + 1) * dim / blocks
}

/// The nearest centroid, the first of several, from −2 times the products with them and their squared lengths;
/// and its squared distance but for the squared length of the row.
pub(crate) fn nearest(products: &[f32], norms: &[f32]) -> (usize, f32) {
    let distances = products.iter().zip(norms).map(|(p, n)| p + n).enumerate();
    distances.fold((0, f32::INFINITY), |best, found| {
        if found.1 < best.1 { found } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_find_their_nearest_centroids() {
        // Five dimensions in two blocks: (0, 1) and (2, 3, 4).
        assert_eq!((range(5, 2, 0), range(5, 2, 1)), (0..2, 2..5));
        let centroids = vec![0., 0., 0., 0., 0., 1., 1., 2., 2., 2.];
        let code = ProductCode::new(2, RowBuf::from_values(centroids, 5).unwrap()).unwrap();
        let rows = RowBuf::from_values(vec![0.9, 0.8, 0.1, 0., 0., 0., 0., 3., 1., 2.], 5).unwrap();
        let mut out = vec![9];
        code.encode(rows.rows(), &mut out);
        assert_eq!(out, [9, 1, 0, 0, 1]);
        let mut row = [0.0; 5];
        code.decode(0, &out[1..3], &mut row).unwrap();
        assert_eq!(row, [1., 1., 0., 0., 0.]);
        let error = code.decode(7, &[0, 2], &mut row).unwrap_err().to_string();
        assert!(error.contains("centroid 2"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let centroids = |count| RowBuf::zeros(count, 4);
        assert!(ProductCode::new(0, centroids(2)).is_err());
        assert!(ProductCode::new(5, centroids(2)).is_err());
        assert!(ProductCode::new(2, centroids(0)).is_err());
        assert!(ProductCode::new(2, centroids(257)).is_err());
        let mut broken = centroids(2);
        broken.values_mut()[3] = f32::NAN;
        assert!(ProductCode::new(2, broken).is_err());
        assert!(ProductCode::new(2, centroids(2)).unwrap().check(5).is_err());
    }
}
