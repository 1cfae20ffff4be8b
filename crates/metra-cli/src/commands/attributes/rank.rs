//! `metra attributes rank`: rows in the order of one attribute.

use super::Scored;
use crate::args::Common;
use crate::load::{label, row_name};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

/// Rank rows by one attribute.
#[derive(Args)]
pub(super) struct Rank {
    #[command(flatten)]
    scored: Scored,
    /// The attribute; `metra attributes list` names them
    #[arg(long, value_name = "ATTRIBUTE")]
    by: String,
    /// How many rows to give
    #[arg(short, default_value_t = 20)]
    k: usize,
    /// Those with the least of it first, instead of the most
    #[arg(long)]
    least: bool,
}

#[derive(Serialize)]
struct Ranking<'a> {
    attribute: &'a str,
    /// Rows that were ranked.
    rows: usize,
    ranked: Vec<Ranked>,
}

#[derive(Serialize)]
struct Ranked {
    row: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    score: f32,
    /// The score in standard deviations from the mean of all rows.
    deviations: f64,
}

impl Rank {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        ensure!(self.k > 0, "k must be at least 1, but is 0");
        self.scored.with(&[], common, |loaded, space| {
            let attribute = space.find(&self.by)?;
            let mut order = space.ranked(attribute)?;
            let rows = order.len();
            if !self.least {
                order.reverse();
            }
            let ranked = (order.iter().take(self.k))
                .map(|(row, score)| Ranked {
                    row: row_name(loaded, &self.scored.columns, *row),
                    label: label(loaded, *row),
                    score: *score,
                    deviations: space.standard(attribute, *score),
                })
                .collect();
            let ranking = Ranking {
                attribute: &self.by,
                rows,
                ranked,
            };
            match common.json {
                true => print::json(&ranking),
                false => ranking.print(self.least),
            }
        })
    }
}

impl Ranking<'_> {
    fn print(&self, least: bool) -> Result<()> {
        let first = if least { "least" } else { "most" };
        print::line(&format!(
            "{} {first} first, of {} rows; deviations from their mean, score",
            self.attribute,
            print::count(self.rows as u64)
        ))?;
        for (place, row) in self.ranked.iter().enumerate() {
            let text = format!(
                "{:>5}  {:<28} {:>+7.2} {:>12.6}  {}",
                place + 1,
                row.row,
                row.deviations,
                row.score,
                row.label.as_deref().unwrap_or("")
            );
            print::line(text.trim_end())?;
        }
        Ok(())
    }
}
