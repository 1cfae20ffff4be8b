//! Passes over a corpus: a [`Statistic`] is defined once and folded over shards of rows, on the
//! threads of this process or on the machines that hold the rows.
//!
//! A shard's result depends on its rows alone and shards are merged in order, so a pass gives the
//! same bytes however many threads or machines take part.

pub(crate) mod chosen;
mod digest;
pub(crate) mod moments;
mod row_digests;
pub(crate) mod summed;
pub(crate) mod sums;
pub(crate) mod within;

pub(crate) use chosen::{ChosenRows, fetched};
pub(crate) use digest::{Digest, digest};
pub(crate) use moments::{
    ColumnSums, MOST_DIMENSIONS, Moments, OuterSums, check_square, moments, spread,
};
pub(crate) use row_digests::{SmallestDigests, row_digests};
pub(crate) use sums::{KeyedSums, keyed_sums};
pub(crate) use within::{WithinSums, within_scatter};

use crate::data::{Corpus, Keys, PartialResult, RowId, Task};
use crate::linalg::Rows;
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Rows in a shard, the unit that is folded alone and merged in order.
pub(crate) const SHARD_ROWS: u64 = 1 << 18;

/// What a statistic sees of some rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    /// Number of the first row; the others follow it.
    pub first: u64,
    /// The vectors.
    pub rows: Rows<'a>,
    /// A key for each row (its class or its group), where the statistic needs one.
    pub keys: Option<&'a [u32]>,
}

/// Something that is known of a corpus after seeing every row once, in any shards.
///
/// What is known of a shard is said in [`PartialResult`]s, which anybody can merge; so only the machines
/// that see rows, and the one that asked, need to know the statistic.
pub(crate) trait Statistic: Sized + Send {
    /// The name by which other machines know it.
    const NAME: &'static str;

    /// What must be known beforehand.
    type Spec: Serialize + DeserializeOwned + Send + Sync;
    /// What is known afterwards.
    type Out;

    /// The rows that it is about, increasing, where it is not about all.
    fn rows(_: &Self::Spec) -> Option<&[RowId]> {
        None
    }

    /// Nothing seen yet of the shard with this number.
    fn start(spec: &Self::Spec, shard: u64) -> Result<Self>;

    /// See some rows of the shard, in order.
    fn update(&mut self, sample: &Sample<'_>) -> Result<()>;

    /// Whether rows that follow would change nothing, in this shard and in later ones.
    fn is_done(&self) -> bool {
        false
    }

    /// What the shard has to say.
    fn close(self) -> Result<Vec<PartialResult>>;

    /// The result, from the parts of all shards merged in order.
    fn finish(spec: &Self::Spec, parts: Vec<PartialResult>) -> Result<Self::Out>;
}

/// Fold a statistic over all rows of a corpus, where they lie.
pub(crate) fn fold<S: Statistic>(
    corpus: &dyn Corpus,
    keys: Keys<'_>,
    spec: &S::Spec,
) -> Result<S::Out> {
    let parts = match corpus.pass_executor() {
        Some(executor) => executor.run(Task {
            name: S::NAME,
            spec: encode(spec)?,
            keys: keys.by(),
            prepare: Vec::new(),
            rows: S::rows(spec).map(<[RowId]>::to_vec),
        })?,
        None => fold_here::<S>(corpus, keys.of(), spec)?,
    };
    S::finish(spec, parts)
}

fn fold_here<S: Statistic>(
    corpus: &dyn Corpus,
    keys: Option<&[u32]>,
    spec: &S::Spec,
) -> Result<Vec<PartialResult>> {
    let mut total: Option<Vec<PartialResult>> = None;
    let (mut start, mut number) = (0, 0);
    loop {
        let end = corpus.len().min(start + SHARD_ROWS);
        let mut shard = S::start(spec, number)?;
        corpus.scan(start..end, &mut |first, rows| {
            let place = first as usize;
            let keys = keys.map(|keys| &keys[place..place + rows.len()]);
            shard.update(&Sample { first, rows, keys })
        })?;
        let parts = shard.close()?;
        match &mut total {
            None => total = Some(parts),
            Some(total) => merge(total, parts)?,
        }
        (start, number) = (end, number + 1);
        if start >= corpus.len() {
            return Ok(total.unwrap_or_default());
        }
    }
}

/// Take in what a later shard says, part by part.
pub(crate) fn merge(total: &mut [PartialResult], later: Vec<PartialResult>) -> Result<()> {
    if total.len() != later.len() {
        let (expected, found) = (total.len(), later.len());
        return Err(Error::shape("parts of a shard's result", expected, found));
    }
    for (total, later) in total.iter_mut().zip(later) {
        total.merge(later)?;
    }
    Ok(())
}

/// What a shard says as a list of any length: in messages of at most `each` values.
pub(crate) fn encode_list<T: Serialize>(
    shard: u64,
    values: &[T],
    each: usize,
) -> Result<PartialResult> {
    let messages = (0..).zip(values.chunks(each.max(1)));
    let messages = messages.map(|(number, values)| Ok((shard, number, encode(&values)?)));
    Ok(PartialResult::Bytes(messages.collect::<Result<_>>()?))
}

/// The lists of all shards that [`encode_list`] them, one after the other.
pub(crate) fn decode_list<T: DeserializeOwned>(part: PartialResult) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for (_, _, words) in part.into_bytes()? {
        values.extend(decode::<Vec<T>>(&words)?);
    }
    Ok(values)
}

/// The parts as an array, where there must be this many.
pub(crate) fn expect_parts<const N: usize>(
    parts: Vec<PartialResult>,
) -> Result<[PartialResult; N]> {
    <[PartialResult; N]>::try_from(parts)
        .map_err(|parts| Error::shape("parts of a result", N, parts.len()))
}

/// Settings or words as bytes that another machine with the same version reads.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_allocvec(value)
        .map_err(|error| Error::Data(format!("settings of a pass could not be written: {error}")))
}

/// What [`encode`] wrote.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| {
        Error::Data(format!(
            "settings of a pass could not be read ({error}): is another version running there?"
        ))
    })
}
