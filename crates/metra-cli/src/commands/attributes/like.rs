//! `metra attributes like`: rows like one, but with more or less of some attributes. What "more"
//! promises is decided in `metra::search`.

use super::Scored;
#[cfg(feature = "images")]
use super::strip::Strip;
use crate::args::Common;
use crate::inputs::{Loaded, label, row_name};
use crate::print;
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use metra::data::RowId;
#[cfg(feature = "images")]
use metra::search::Alike;
use metra::search::{AttributeSpace, Change};
use metra_files::RowNames;
use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Find rows like one, but with more or less of some attributes.
///
/// Every answer has at least as much more (or less) of each attribute named as was asked for, in
/// standard deviations of the attribute over the rows. Among those the rows come first whose scores
/// are nearest to the asked row's, moved by so much: by all attributes, in standard deviations.
#[derive(Args)]
pub(super) struct Like {
    #[command(flatten)]
    scored: Scored,
    /// The row: its id with --id, its number in the file otherwise
    #[arg(long, value_name = "ROW")]
    row: String,
    /// More of this attribute, by at least so many standard deviations (1 unless said; repeatable)
    #[arg(long, value_name = "ATTRIBUTE[=DEVIATIONS]")]
    more: Vec<AttributeChange>,
    /// Less of this attribute, as --more
    #[arg(long, value_name = "ATTRIBUTE[=DEVIATIONS]")]
    less: Vec<AttributeChange>,
    /// How many rows to give
    #[arg(short, default_value_t = 10)]
    k: usize,
    #[cfg(feature = "images")]
    #[command(flatten)]
    strip: Strip,
}

/// An attribute and by how much it is to change.
#[derive(Debug, Clone, PartialEq)]
struct AttributeChange {
    attribute: String,
    deviations: f64,
}

impl FromStr for AttributeChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (attribute, by) = text.rsplit_once('=').unwrap_or((text, "1"));
        let deviations = (by.parse::<f64>().ok()).filter(|by| by.is_finite() && *by > 0.0);
        match deviations {
            Some(deviations) if !attribute.is_empty() => Ok(AttributeChange {
                attribute: attribute.to_owned(),
                deviations,
            }),
            _ => Err(format!(
                "expected an attribute, or one with = and a number above 0, but found {text:?}"
            )),
        }
    }
}

#[derive(Serialize)]
struct Found<'a> {
    /// The row asked for.
    row: Described,
    /// What answers have at least (at most where it is negative) beyond the row, by attribute.
    changes: BTreeMap<&'a str, f64>,
    answers: Vec<Answer>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    row: Described,
    /// From the moved point, in standard deviations.
    distance: f64,
}

/// A row with all its attributes in standard deviations from their means.
#[derive(Serialize)]
struct Described {
    row: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    attributes: BTreeMap<String, f64>,
}

impl Like {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        ensure!(self.k > 0, "k must be at least 1, but is 0");
        #[cfg(feature = "images")]
        let extra = self.strip.columns();
        #[cfg(not(feature = "images"))]
        let extra = Vec::new();
        self.scored.with(&extra, common, |loaded, space| {
            let row = self.find(loaded)?;
            let signs = [(&self.more, 1.0), (&self.less, -1.0)];
            let mut changes = Vec::new();
            let mut wanted = BTreeMap::new();
            for (requested, sign) in signs {
                for change in requested {
                    let by = sign * change.deviations;
                    let attribute = space.find(&change.attribute)?;
                    changes.push(Change { attribute, by });
                    wanted.insert(change.attribute.as_str(), by);
                }
            }
            let alike = space.like(row, &changes, self.k)?;
            let answers = (alike.iter())
                .map(|alike| {
                    Ok(Answer {
                        row: self.describe(loaded, space, alike.row)?,
                        distance: alike.distance,
                    })
                })
                .collect::<Result<_>>()?;
            let found = Found {
                row: self.describe(loaded, space, row)?,
                changes: wanted,
                answers,
            };
            #[cfg(feature = "images")]
            self.draw(loaded, row, &alike, &found)?;
            match common.json {
                true => print::json(&found),
                false => found.print(),
            }
        })
    }

    fn find(&self, loaded: &Loaded) -> Result<RowId> {
        let names = RowNames::new(&loaded.table, self.scored.columns.id.as_deref())?;
        let found = names
            .find(&self.row)
            .map_err(|problem| anyhow!("--row: {problem}"))?;
        found.with_context(|| {
            format!(
                "--row: expected one of the rows that were read of {}, but {:?} was filtered away",
                loaded.table.path.display(),
                self.row
            )
        })
    }

    fn describe(
        &self,
        loaded: &Loaded,
        space: &AttributeSpace<'_>,
        row: RowId,
    ) -> Result<Described> {
        let scores = space.scores_of(&[row])?;
        let Some(scores) = scores.rows().iter().next() else {
            bail!("row {row} has no scores");
        };
        let numbered = space.names().iter().zip(scores).enumerate();
        Ok(Described {
            row: row_name(loaded, &self.scored.columns, row),
            label: label(loaded, row),
            attributes: numbered
                .map(|(place, (name, score))| (name.clone(), space.standard(place, *score)))
                .collect(),
        })
    }
}

#[cfg(feature = "images")]
impl Like {
    /// The strip: the row asked for, and the answers with the attributes named.
    fn draw(&self, loaded: &Loaded, row: RowId, alike: &[Alike], found: &Found<'_>) -> Result<()> {
        if alike.is_empty() {
            return Ok(());
        }
        let named = |of: &Described| -> String {
            let lines = found.changes.keys().map(|name| {
                let value = of.attributes.get(*name).copied().unwrap_or(0.0);
                format!("{value:+.2}")
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let shown: Vec<(RowId, String)> = (alike.iter().zip(&found.answers))
            .map(|(alike, answer)| (alike.row, named(&answer.row)))
            .collect();
        let changes: Vec<String> = (found.changes.iter())
            .map(|(name, by)| match *by < 0.0 {
                true => format!("less {name}"),
                false => format!("more {name}"),
            })
            .collect();
        let heading = format!("like the first, but {}", changes.join(", "));
        let query = Some((row, named(&found.row)));
        if let Some(path) = self.strip.draw(loaded, &heading, query, &shown)? {
            tracing::info!(
                "{}: a strip of {} pictures",
                path.display(),
                shown.len() + 1
            );
        }
        Ok(())
    }
}

impl Found<'_> {
    fn print(&self) -> Result<()> {
        let has = |row: &Described| -> String {
            let named = self.changes.keys().map(|name| {
                let value = row.attributes.get(*name).copied().unwrap_or(0.0);
                format!("{name} {value:+.2}")
            });
            named.collect::<Vec<_>>().join("  ")
        };
        let labelled = |row: &Described| match &row.label {
            Some(label) => format!("{} ({label})", row.row),
            None => row.row.clone(),
        };
        print::fact(
            "like",
            &format!("{:<28}  {}", labelled(&self.row), has(&self.row)),
        )?;
        for (name, by) in &self.changes {
            let (word, bound) = if *by < 0.0 {
                ("less", "at most")
            } else {
                ("more", "at least")
            };
            let from = self.row.attributes.get(*name).copied().unwrap_or(0.0);
            let text = format!(
                "{word} {name}: {bound} {:+.2} deviations from the mean",
                from + by
            );
            print::fact("but", &text)?;
        }
        for (place, answer) in self.answers.iter().enumerate() {
            let text = format!(
                "{:>5}  {:<28} {:>6.2} off   {}",
                place + 1,
                labelled(&answer.row),
                answer.distance,
                has(&answer.row)
            );
            print::line(text.trim_end())?;
        }
        if self.answers.is_empty() {
            print::line("no row has that much: ask for a smaller change, such as ATTRIBUTE=0.5")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_strength() {
        let change = |text: &str| text.parse::<AttributeChange>();
        let of = |attribute: &str, deviations| AttributeChange {
            attribute: attribute.into(),
            deviations,
        };
        assert_eq!(change("smiling"), Ok(of("smiling", 1.0)));
        assert_eq!(change("big nose=0.5"), Ok(of("big nose", 0.5)));
        for text in ["", "=1", "young=", "young=-1", "young=NaN", "young=0"] {
            assert!(change(text).is_err(), "{text:?}");
        }
    }
}
