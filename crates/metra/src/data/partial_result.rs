//! Partial results of a pass over some rows, which can be merged with those of other rows.
//!
//! The kinds are few and closed, so that whoever merges needs to know nothing of the pass: not its
//! settings, not its vectors. Each kind splits into blocks that merge on their own, since an engine
//! does not carry a result of any size in one message.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A result of some rows that merges with results of other rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PartialResult {
    /// Numbers that are added, in the order of shards.
    Sum(Vec<f64>),
    /// Counts that are added.
    Count(Vec<u64>),
    /// The nearest rows of each query.
    Nearest(Nearest),
    /// What shards say each for itself: a shard's number, a number within it, and its words.
    Bytes(Vec<(u64, u64, Vec<u8>)>),
}

/// The rows nearest to each query, with their scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Most rows kept for a query.
    pub k: u64,
    /// For each query, rows with their scores from near to far; ties by the smaller row number.
    pub rows: Vec<Vec<(f32, u64)>>,
}

impl PartialResult {
    /// Take in what a later shard says. Both must come from the same pass.
    pub fn merge(&mut self, later: PartialResult) -> Result<()> {
        match (self, later) {
            (PartialResult::Sum(sum), PartialResult::Sum(other)) => add(sum, other, |a, b| a + b),
            (PartialResult::Count(sum), PartialResult::Count(other)) => {
                add(sum, other, u64::saturating_add)
            }
            (PartialResult::Nearest(nearest), PartialResult::Nearest(other)) => {
                nearest.merge(other)
            }
            (PartialResult::Bytes(blocks), PartialResult::Bytes(mut other)) => {
                blocks.append(&mut other);
                Ok(())
            }
            (mine, other) => Err(Error::shape(
                "kind of a partial result",
                mine.kind(),
                other.kind(),
            )),
        }
    }

    /// Split into blocks of about `bytes` each, at least one; [`PartialResult::join`] puts them together.
    pub fn blocks(self, bytes: usize) -> Vec<PartialResult> {
        match self {
            PartialResult::Sum(values) => chunks(values, bytes / 8, PartialResult::Sum),
            PartialResult::Count(values) => chunks(values, bytes / 8, PartialResult::Count),
            PartialResult::Nearest(Nearest { k, rows }) => {
                let query = usize::try_from(k).unwrap_or(usize::MAX).saturating_mul(12);
                chunks(rows, bytes / query.max(1), |rows| {
                    PartialResult::Nearest(Nearest { k, rows })
                })
            }
            PartialResult::Bytes(blocks) => {
                let longest = blocks.iter().map(|(_, _, words)| words.len()).max();
                chunks(
                    blocks,
                    bytes / longest.unwrap_or(1).max(1),
                    PartialResult::Bytes,
                )
            }
        }
    }

    /// Put blocks together that [`PartialResult::blocks`] made, in their order.
    pub fn join(blocks: impl IntoIterator<Item = PartialResult>) -> Result<PartialResult> {
        let mut blocks = blocks.into_iter();
        let first = blocks.next();
        let mut whole = first.ok_or_else(|| Error::shape("blocks of a result", "at least 1", 0))?;
        for block in blocks {
            match (&mut whole, block) {
                (PartialResult::Sum(values), PartialResult::Sum(mut more)) => {
                    values.append(&mut more)
                }
                (PartialResult::Count(values), PartialResult::Count(mut more)) => {
                    values.append(&mut more)
                }
                (PartialResult::Nearest(all), PartialResult::Nearest(mut more)) => {
                    all.rows.append(&mut more.rows)
                }
                (PartialResult::Bytes(blocks), PartialResult::Bytes(mut more)) => {
                    blocks.append(&mut more)
                }
                (mine, other) => {
                    let (expected, found) = (mine.kind(), other.kind());
                    return Err(Error::shape("kind of a block", expected, found));
                }
            }
        }
        if let PartialResult::Bytes(blocks) = &mut whole {
            // Blocks of different shards may have travelled in any order.
            blocks.sort_by_key(|(shard, number, _)| (*shard, *number));
        }
        Ok(whole)
    }

    /// The part as bytes that [`PartialResult::from_bytes`] reads on any machine.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // Numbers are most of what travels: they are copied as they lie.
        match self {
            PartialResult::Sum(values) => Ok(numbers(SUM, values.iter().map(|v| v.to_le_bytes()))),
            PartialResult::Count(values) => {
                Ok(numbers(COUNT, values.iter().map(|v| v.to_le_bytes())))
            }
            other => {
                let mut bytes = vec![OTHER];
                let written = postcard::to_allocvec(other);
                bytes.extend(written.map_err(|e| Error::Data(format!("a result: {e}")))?);
                Ok(bytes)
            }
        }
    }

    /// What [`PartialResult::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<PartialResult> {
        let broken = |problem: String| Error::Data(format!("a partial result: {problem}"));
        let (kind, rest) = bytes
            .split_first()
            .ok_or_else(|| broken("is empty".into()))?;
        let (values, left) = rest.as_chunks::<8>();
        match *kind {
            SUM | COUNT if !left.is_empty() => Err(broken("ends within a number".into())),
            SUM => Ok(PartialResult::Sum(
                values.iter().map(|v| f64::from_le_bytes(*v)).collect(),
            )),
            COUNT => Ok(PartialResult::Count(
                values.iter().map(|v| u64::from_le_bytes(*v)).collect(),
            )),
            _ => postcard::from_bytes(rest).map_err(|e| broken(e.to_string())),
        }
    }

    /// The numbers of a sum.
    pub fn into_sum(self) -> Result<Vec<f64>> {
        match self {
            PartialResult::Sum(values) => Ok(values),
            other => Err(Error::shape("a part of a result", "a sum", other.kind())),
        }
    }

    /// The numbers of a count.
    pub(crate) fn into_count(self) -> Result<Vec<u64>> {
        match self {
            PartialResult::Count(values) => Ok(values),
            other => Err(Error::shape("a part of a result", "a count", other.kind())),
        }
    }

    /// The nearest rows.
    pub(crate) fn into_nearest(self) -> Result<Nearest> {
        match self {
            PartialResult::Nearest(nearest) => Ok(nearest),
            other => Err(Error::shape(
                "a part of a result",
                "nearest rows",
                other.kind(),
            )),
        }
    }

    /// What shards said, in the order of shards.
    pub fn into_bytes(self) -> Result<Vec<(u64, u64, Vec<u8>)>> {
        match self {
            PartialResult::Bytes(blocks) => Ok(blocks),
            other => Err(Error::shape("a part of a result", "words", other.kind())),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            PartialResult::Sum(_) => "a sum",
            PartialResult::Count(_) => "a count",
            PartialResult::Nearest(_) => "nearest rows",
            PartialResult::Bytes(_) => "words",
        }
    }
}

impl Nearest {
    fn merge(&mut self, other: Nearest) -> Result<()> {
        if self.rows.len() != other.rows.len() {
            let (expected, found) = (self.rows.len(), other.rows.len());
            return Err(Error::shape("queries of a partial result", expected, found));
        }
        let k = usize::try_from(self.k).unwrap_or(usize::MAX);
        for (mine, mut other) in self.rows.iter_mut().zip(other.rows) {
            mine.append(&mut other);
            // Scores are finite, so that this order is total.
            mine.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            mine.truncate(k);
        }
        Ok(())
    }
}

/// First byte of a part: its kind.
const SUM: u8 = 0;
const COUNT: u8 = 1;
const OTHER: u8 = 2;

fn numbers(kind: u8, values: impl ExactSizeIterator<Item = [u8; 8]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + 8 * values.len());
    bytes.push(kind);
    bytes.extend(values.flatten());
    bytes
}

fn add<T: Copy>(sum: &mut [T], other: Vec<T>, plus: impl Fn(T, T) -> T) -> Result<()> {
    if sum.len() != other.len() {
        let what = "numbers of a partial result";
        return Err(Error::shape(what, sum.len(), other.len()));
    }
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = plus(*sum, other);
    }
    Ok(())
}

fn chunks<T>(
    mut values: Vec<T>,
    most: usize,
    part: impl Fn(Vec<T>) -> PartialResult,
) -> Vec<PartialResult> {
    let most = most.max(1);
    if values.len() <= most {
        return vec![part(values)];
    }
    let mut blocks = Vec::with_capacity(values.len().div_ceil(most));
    while values.len() > most {
        let rest = values.split_off(most);
        blocks.push(part(std::mem::replace(&mut values, rest)));
    }
    blocks.push(part(values));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(rows: &[&[(f32, u64)]]) -> PartialResult {
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        PartialResult::Nearest(Nearest { k: 2, rows })
    }

    #[test]
    fn every_kind_merges_by_hand() {
        for (mut first, later, expected) in [
            (
                PartialResult::Sum(vec![1.0, 2.0]),
                PartialResult::Sum(vec![0.5, -2.0]),
                PartialResult::Sum(vec![1.5, 0.0]),
            ),
            (
                PartialResult::Count(vec![1]),
                PartialResult::Count(vec![2]),
                PartialResult::Count(vec![3]),
            ),
            (
                nearest(&[&[(1.0, 5), (3.0, 1)], &[(2.0, 9)]]),
                nearest(&[&[(1.0, 2), (2.0, 7)], &[]]),
                // Of the two at 1.0 the smaller row number comes first; only two are kept.
                nearest(&[&[(1.0, 2), (1.0, 5)], &[(2.0, 9)]]),
            ),
            (
                PartialResult::Bytes(vec![(0, 0, vec![1])]),
                PartialResult::Bytes(vec![(1, 0, vec![2])]),
                PartialResult::Bytes(vec![(0, 0, vec![1]), (1, 0, vec![2])]),
            ),
        ] {
            first.merge(later).unwrap();
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn what_does_not_belong_together_is_an_error() {
        assert!(
            PartialResult::Sum(vec![1.0])
                .merge(PartialResult::Count(vec![1]))
                .is_err()
        );
        assert!(
            PartialResult::Sum(vec![1.0])
                .merge(PartialResult::Sum(vec![]))
                .is_err()
        );
        assert!(nearest(&[&[]]).merge(nearest(&[])).is_err());
        assert!(
            PartialResult::join([PartialResult::Sum(vec![]), PartialResult::Count(vec![])])
                .is_err()
        );
        assert!(PartialResult::join([]).is_err());
    }

    #[test]
    fn blocks_join_to_the_whole() {
        let sum = PartialResult::Sum((0..1000).map(f64::from).collect());
        let count = PartialResult::Count((0..77).collect());
        let near = nearest(&[&[(1.0, 5)], &[(2.0, 9)], &[(3.0, 9)]]);
        let blocks = PartialResult::Bytes((0..9).map(|n| (n / 3, n % 3, vec![7; 40])).collect());
        for (part, blocks) in [(sum, 125), (count, 10), (near, 2), (blocks, 9)] {
            let split = part.clone().blocks(64);
            assert_eq!(split.len(), blocks, "{}", part.kind());
            let split = split.iter().map(|block| {
                let bytes = block.to_bytes().unwrap();
                assert!(PartialResult::from_bytes(&bytes[..bytes.len() - 1]).is_err());
                PartialResult::from_bytes(&bytes).unwrap()
            });
            assert_eq!(PartialResult::join(split).unwrap(), part);
        }
        assert_eq!(PartialResult::Sum(vec![]).blocks(64).len(), 1);
    }
}
