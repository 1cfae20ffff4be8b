//! `metra attributes rank`: rows in the order of one attribute.

use super::Scored;
#[cfg(feature = "images")]
use super::strip::Strip;
use crate::args::Common;
#[cfg(feature = "images")]
use crate::inputs::Loaded;
use crate::inputs::{label, row_name};
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
#[cfg(feature = "images")]
use metra::data::RowId;
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
    #[cfg(feature = "images")]
    #[command(flatten)]
    strip: Strip,
    /// Pictures in the strip, evenly from the least to the most of it
    #[cfg(feature = "images")]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        help_heading = "A strip of pictures"
    )]
    pictures: usize,
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
        #[cfg(feature = "images")]
        let extra = self.strip.columns();
        #[cfg(not(feature = "images"))]
        let extra = Vec::new();
        self.scored.with(&extra, common, |loaded, space| {
            let attribute = space.find(&self.by)?;
            let mut order = space.ranked(attribute)?;
            let rows = order.len();
            #[cfg(feature = "images")]
            self.draw(loaded, &order, |score| space.standard(attribute, score))?;
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

#[cfg(feature = "images")]
impl Rank {
    /// The strip: rows evenly from first to last of the order.
    fn draw(
        &self,
        loaded: &Loaded,
        order: &[(RowId, f32)],
        standard: impl Fn(f32) -> f64,
    ) -> Result<()> {
        let count = self.pictures.clamp(1, order.len().max(1));
        let steps = (count - 1).max(1);
        let shown: Vec<(RowId, String)> = (0..count)
            .filter_map(|place| order.get(place * order.len().saturating_sub(1) / steps))
            .map(|(row, score)| (*row, format!("{:+.2}", standard(*score))))
            .collect();
        let heading = format!(
            "{}, from least to most: {} of {} rows",
            self.by,
            shown.len(),
            print::count(order.len() as u64)
        );
        if let Some(path) = self.strip.draw(loaded, &heading, None, &shown)? {
            tracing::info!("{}: a strip of {} pictures", path.display(), shown.len());
        }
        Ok(())
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
