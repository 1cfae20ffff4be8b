//! The share of item pairs that a plan orders as the metric does, on a sample.

use super::{Distance, Plan};
use crate::data::Batch;
use crate::linalg::RowBuf;
use crate::model::Chain;
use crate::{Error, Result};

/// Scores nearer than this share of their range have no order that f32 can promise.
const RESOLUTION: f64 = 1e-5;

/// The share of pairs of items that plan and metric order alike, over all queries of a sample.
///
/// Only pairs whose metric scores differ by more than 1e-5 of the query's range of scores count; a
/// pair that the plan ties is not alike; where no pair counts, nothing disagrees and the share is 1.
/// The plan's distances are summed in f32, one number after another, as a plain store does: digits
/// that stored vectors far from the origin lose there show here. Costs queries × items² comparisons.
pub fn agreement(
    chain: &Chain,
    plan: &Plan,
    queries: &Batch<'_>,
    items: &Batch<'_>,
) -> Result<f64> {
    if queries.rows.is_empty() || items.rows.len() < 2 {
        return Err(Error::shape(
            "rows of the sample",
            "at least 1 query and 2 items",
            format!("{} and {}", queries.rows.len(), items.rows.len()),
        ));
    }
    let mut scores = Vec::new();
    chain.dissimilarity(queries, items, &mut scores)?;
    let (mut asked, mut stored) = (RowBuf::empty(1), RowBuf::empty(1));
    plan.map_queries(0, queries, &mut asked)?;
    plan.map_items(0, items, &mut stored)?;
    let (mut alike, mut counted) = (0_u64, 0_u64);
    let mut served = Vec::with_capacity(stored.len());
    for (query, scores) in asked.rows().iter().zip(scores.chunks_exact(stored.len())) {
        served.clear();
        served.extend(
            stored
                .rows()
                .iter()
                .map(|item| dissimilarity(plan.distance(), query, item)),
        );
        let low = scores.iter().copied().fold(f32::INFINITY, f32::min);
        let high = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let least = (f64::from(high) - f64::from(low)) * RESOLUTION;
        let both: Vec<(f32, f32)> = scores.iter().copied().zip(served.iter().copied()).collect();
        for (number, one) in both.iter().enumerate() {
            for other in both.iter().skip(number + 1) {
                let metric = f64::from(one.0) - f64::from(other.0);
                if metric.abs() > least {
                    counted += 1;
                    // A difference that is NaN agrees with nothing.
                    let store = f64::from(one.1) - f64::from(other.1);
                    alike += u64::from(metric * store > 0.0);
                }
            }
        }
    }
    Ok(if counted == 0 {
        1.0
    } else {
        alike as f64 / counted as f64
    })
}

/// Rows of a sample that ask, where it is seen whether a plan needs a centre.
const ASKING: usize = 32;
/// Rows that they are compared with.
const ASKED: usize = 256;

impl Plan {
    /// The same plan, centred on the sample ([`Plan::centred_on`]) where f32 needs it to keep the
    /// metric's order there. A plan without a centre is asked by whatever maps queries, an exported
    /// file for instance; with one, only by those who know it.
    pub fn centred_where_needed(self, metric: &Chain, sample: &Batch<'_>) -> Result<Plan> {
        let first = |count: usize| {
            let count = count.min(sample.rows.len());
            Batch {
                rows: sample.rows.slice(0, count),
                groups: sample.groups.and_then(|groups| groups.get(..count)),
            }
        };
        // Of vectors of two models items cannot ask. The maps that are learned of them are centred, but for items that stay as
        // they are.
        let is_of_two_models = self.chain.query_preprocessing().is_some();
        if sample.rows.len() < 2 || self.items_stay() || is_of_two_models {
            return Ok(self);
        }
        let (asking, asked) = (first(ASKING), first(ASKED));
        let plain = agreement(metric, &self, &asking, &asked)?;
        let centred = self.clone().centred_on(sample)?;
        if centred.centre().is_none() || plain >= agreement(metric, &centred, &asking, &asked)? {
            return Ok(self);
        }
        Ok(centred)
    }
}

/// As a store has it, turned so that smaller is nearer.
fn dissimilarity(distance: Distance, query: &[f32], item: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    match distance {
        Distance::SquaredL2 => query.iter().zip(item).map(|(a, b)| (a - b) * (a - b)).sum(),
        Distance::InnerProduct => -dot(query, item),
        Distance::Cosine => -dot(query, item) / (dot(query, query).sqrt() * dot(item, item).sqrt()),
    }
}
