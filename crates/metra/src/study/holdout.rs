//! Honest hold-outs: two parts of the same kind, one to choose with and one to be read once.

use super::material::Material;
use crate::data::{positions, stratified_rows, whole_classes};
use crate::random::Stream;
use crate::supervision::{Judgements, Relevance, Supervision};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What is new at use, and so must be new in the held-out parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOut {
    /// Whole classes: re-identification, new products.
    Identities,
    /// Rows of known classes: intents, categories.
    Rows,
    /// Queries over known items.
    Queries,
    /// Queries none of whose relevant items training has seen.
    Items,
    /// Nothing is held out: no tuning, no table, no verdict.
    None,
}

impl fmt::Display for HoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HoldOut::Identities => "identities",
            HoldOut::Rows => "rows",
            HoldOut::Queries => "queries",
            HoldOut::Items => "items",
            HoldOut::None => "none",
        })
    }
}

impl FromStr for HoldOut {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "identities" => HoldOut::Identities,
            "rows" => HoldOut::Rows,
            "queries" => HoldOut::Queries,
            "items" => HoldOut::Items,
            "none" => HoldOut::None,
            other => {
                let expected = "identities, rows, queries, items or none";
                return Err(Error::parameter("holdout", expected, format!("{other:?}")));
            }
        })
    }
}

impl HoldOut {
    /// What fits the supervision: with labels, identities where the median class has fewer than
    /// five rows (as in re-identification) and rows otherwise; with judgements, queries.
    pub fn default_for(supervision: &Supervision) -> Self {
        match supervision {
            Supervision::Labels(labels) if labels.median_class_size() < 5 => HoldOut::Identities,
            Supervision::Labels(_) => HoldOut::Rows,
            Supervision::Judgements(_) => HoldOut::Queries,
        }
    }
}

/// Share and largest size of a held-out part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Portion {
    /// Share of what there is.
    pub share: f64,
    /// At most this many rows (or queries): beyond some thousand, precision no longer needs them
    /// and training does.
    pub most: usize,
}

/// Units (rows with labels, queries with judgements) of each part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// To learn from.
    pub train: Vec<u64>,
    /// To choose settings, score and number of steps.
    pub validation: Vec<u64>,
    /// To be read once.
    pub test: Vec<u64>,
}

/// Split `units` in two: kept and held out.
pub fn hold_out(
    material: &Material<'_>,
    units: &[u64],
    kind: HoldOut,
    portion: Portion,
    seed: u64,
    purpose: &str,
) -> Result<(Vec<u64>, Vec<u64>)> {
    if !(portion.share > 0.0 && portion.share < 1.0) {
        return Err(Error::parameter(
            "a held-out share",
            "between 0 and 1",
            portion.share,
        ));
    }
    let mut stream = Stream::new(seed, purpose, 0);
    let share = portion
        .share
        .min(portion.most as f64 / units.len().max(1) as f64);
    let pick = |places: Vec<u64>| places.into_iter().map(|p| units[p as usize]).collect();
    let (kept, held): (Vec<u64>, Vec<u64>) = match (kind, &material.supervision) {
        (HoldOut::None, _) => return Ok((units.to_vec(), Vec::new())),
        (HoldOut::Identities | HoldOut::Rows, Supervision::Labels(labels)) => {
            let classes: Vec<u32> = units.iter().map(|u| labels.of()[*u as usize]).collect();
            let (kept, held) = if kind == HoldOut::Identities {
                whole_classes(&classes, share, &mut stream)
            } else {
                stratified_rows(&classes, share, &mut stream)
            };
            (pick(kept), pick(held))
        }
        (HoldOut::Queries, Supervision::Judgements(_)) => {
            let (kept, held) = positions(units.len() as u64, share, &mut stream);
            (pick(kept), pick(held))
        }
        (HoldOut::Items, Supervision::Judgements(judgements)) => {
            let (kept, held) = positions(units.len() as u64, share, &mut stream);
            let (kept, held): (Vec<u64>, Vec<u64>) = (pick(kept), pick(held));
            (without_shared_items(judgements, kept, &held), held)
        }
        (kind, supervision) => {
            let expected = match supervision {
                Supervision::Labels(_) => "identities, rows or none with labels",
                Supervision::Judgements(_) => "queries, items or none with judgements",
            };
            return Err(Error::parameter("holdout", expected, kind));
        }
    };
    if held.is_empty() || kept.is_empty() {
        return Err(Error::Data(format!(
            "holding out {kind} leaves {} of {} to learn from and {} to judge by: expected some of \
             both (use --holdout none to train without judging)",
            kept.len(),
            units.len(),
            held.len()
        )));
    }
    Ok((kept, held))
}

/// Drop the queries that share a relevant item with one held out.
fn without_shared_items(judgements: &Judgements, kept: Vec<u64>, held: &[u64]) -> Vec<u64> {
    let mut taken = vec![false; judgements.items() as usize];
    for query in held {
        for (item, _) in judgements.of(*query) {
            taken[*item as usize] = true;
        }
    }
    kept.into_iter()
        .filter(|query| {
            judgements
                .of(*query)
                .iter()
                .all(|(item, _)| !taken[*item as usize])
        })
        .collect()
}
