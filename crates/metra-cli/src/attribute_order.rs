//! Pairs of rows that attributes order right, as `metra train` says it of its test parts and
//! `metra attributes eval` of other rows.

use crate::print;
use anyhow::Result;
use metra::evaluate::PairwiseOrderAccuracy;
use metra::experiment::MeanAndDeviation;
use serde::Serialize;

/// Pairs that one attribute orders right.
#[derive(Serialize, Clone)]
pub(crate) struct OrderedRow {
    pub(crate) attribute: String,
    /// Nothing where the attribute orders no two of the rows.
    #[serde(flatten)]
    pub(crate) ordered: Option<PairwiseOrderAccuracy>,
}

/// Rows of what the library found.
pub(crate) fn ordered_rows(found: Vec<(String, Option<PairwiseOrderAccuracy>)>) -> Vec<OrderedRow> {
    (found.into_iter())
        .map(|(attribute, ordered)| OrderedRow { attribute, ordered })
        .collect()
}

/// The table of some parts, in each of which the same attributes were judged: shares with their
/// interval of one part, means with their deviation of several.
pub(crate) fn table(parts: &[&[OrderedRow]]) -> Result<()> {
    let Some(first) = parts.first().filter(|rows| !rows.is_empty()) else {
        return Ok(());
    };
    let width = first.iter().map(|row| row.attribute.chars().count()).max();
    let width = width.unwrap_or(0).max(9) + 2;
    let spread = match parts.len() {
        1 => "95 % interval".to_owned(),
        several => format!("mean and deviation over {several} splits"),
    };
    print::line(&format!("{:<width$}{:>7}   {spread}", "attribute", "right"))?;
    for (place, row) in first.iter().enumerate() {
        let shares: Vec<f64> = (parts.iter())
            .filter_map(|rows| rows.get(place)?.ordered)
            .map(|ordered| ordered.share)
            .collect();
        let text = match (&row.ordered, shares.len()) {
            (Some(one), 1) => format!(
                "{:>7.4}   [{:.4}, {:.4}]  {} pairs of rows",
                one.share,
                one.low,
                one.high,
                print::count(one.pairs)
            ),
            (_, 0) => "      –   orders no two of the rows".to_owned(),
            _ => {
                let over = MeanAndDeviation::over(&shares);
                format!("{:>7.4}   ± {:.4}", over.mean, over.deviation)
            }
        };
        print::line(&format!("{:<width$}{text}", row.attribute))?;
    }
    Ok(())
}
