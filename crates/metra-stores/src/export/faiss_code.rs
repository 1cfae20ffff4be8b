//! Items of a FAISS index as codes: `IndexPQ` for product codes, `IndexScalarQuantizer` for int8 with a scale per
//! dimension and for f16. Other codes have no index of FAISS that compares floats with them: bits have one by Hamming
//! distance alone, and a scale per vector none.

use crate::Result;
use crate::bytes::write_counted;
use metra::linalg::Rows;
use metra::model::{Code, Embedding, Int8Scale, Plan, ProductCode, Space};

/// Centroids of a block, which FAISS numbers by bytes.
const CENTROIDS: usize = 256;
/// How FAISS numbers its scalar quantisers: `QT_8bit` and `QT_fp16`.
const EIGHT_BITS: i32 = 0;
const HALVES: i32 = 4;

/// A code that FAISS has, and how it is written.
pub(super) struct FaissCode {
    code: Code,
    space: Space,
    dim: usize,
}

impl FaissCode {
    /// The code of what a plan stores, where FAISS has it.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let (code, dim) = (plan.code()?, plan.item_dim());
        let is_known = match code {
            Code::Product(product) => dim.is_multiple_of(product.blocks()),
            Code::Int8(Int8Scale::PerDimension(_)) | Code::Float16 => true,
            Code::Int8(_) | Code::Bits { .. } => false,
        };
        is_known.then(|| FaissCode {
            code: code.clone(),
            space: plan.space(),
            dim,
        })
    }

    /// The four letters that FAISS knows the index by.
    pub(super) fn letters(&self) -> [u8; 4] {
        match self.code {
            Code::Product(_) => *b"IxPq",
            _ => *b"IxSQ",
        }
    }

    /// Bytes of an item.
    pub(super) fn item_bytes(&self) -> usize {
        self.code.item_bytes(self.dim)
    }

    /// What stands between the header and the codes.
    pub(super) fn write_quantiser(&self, bytes: &mut Vec<u8>) {
        match &self.code {
            Code::Product(product) => self.write_product(product, bytes),
            Code::Int8(Int8Scale::PerDimension(scales)) => {
                // FAISS has least + range · (code + ½) / 255, and codes from 0.
                let least = scales.iter().map(|scale| -127.5 * scale);
                let range = scales.iter().map(|scale| 255.0 * scale);
                let trained: Vec<f32> = least.chain(range).collect();
                self.write_scalar(EIGHT_BITS, &trained, bytes);
            }
            _ => self.write_scalar(HALVES, &[], bytes),
        }
    }

    fn write_product(&self, product: &ProductCode, bytes: &mut Vec<u8>) {
        let blocks = product.blocks();
        for number in [self.dim, blocks, 8] {
            bytes.extend((number as u64).to_le_bytes());
        }
        let (centroids, width) = (product.centroids(), self.dim / blocks);
        let mut all = Vec::with_capacity(CENTROIDS * self.dim);
        for block in 0..blocks {
            for number in 0..CENTROIDS {
                // Places that are left over repeat the first centroid, which is found before them.
                let row = centroids.row(if number < centroids.len() { number } else { 0 });
                all.extend(&row[block * width..(block + 1) * width]);
            }
        }
        write_counted(bytes, &all);
    }

    fn write_scalar(&self, kind: i32, trained: &[f32], bytes: &mut Vec<u8>) {
        bytes.extend(kind.to_le_bytes());
        // The range was found by the least and the largest value, with no argument.
        bytes.extend(0_i32.to_le_bytes());
        bytes.extend(0.0_f32.to_le_bytes());
        bytes.extend((self.dim as u64).to_le_bytes());
        bytes.extend((self.item_bytes() as u64).to_le_bytes());
        write_counted(bytes, trained);
    }

    /// The codes of vectors that are what codes stand for, which codes them again as they were.
    pub(super) fn encode(&self, first: u64, rows: Rows<'_>) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(rows.len() * self.item_bytes());
        self.code.encode(first, self.space, rows, &mut bytes)?;
        if let Code::Int8(_) = self.code {
            for byte in &mut bytes {
                *byte = byte.wrapping_add(127);
            }
        }
        Ok(bytes)
    }

    /// What stands behind the codes.
    pub(super) fn write_end(&self, bytes: &mut Vec<u8>) {
        if let Code::Product(product) = &self.code {
            // Plain search, signs not coded, and the threshold of polysemous search above any distance.
            bytes.extend(0_i32.to_le_bytes());
            bytes.push(0);
            bytes.extend((8 * product.blocks() as i32 + 1).to_le_bytes());
        }
    }
}
