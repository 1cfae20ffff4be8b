//! Ranked sheets of a comparison: what the base and the best method find for the same held-out queries.
//!
//! The log of a comparison has measures and not answers. So both are fitted again on the first split as
//! they were judged there, which costs one fit each. Some queries are drawn by the seed, so that nobody
//! picks the pretty ones, and as many are those that the best method does worst on.

use super::write_bytes;
use crate::image_sheet::{ImageSheet, Pick, pick};
use crate::inputs::Input;
use crate::interrupt::{self};
use crate::progress::Reporter;
use anyhow::{Context, Result, ensure};
use clap::Args;
use metra::experiment::Experiment;
use metra::experiment::Ranking;
use metra::experiment::compare::{Log, Results};
use metra_images::encode::{jpeg, png};
use metra_images::sheet::Sheet;
use metra_report::{SheetGroup, SheetPicture};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the two kinds of sheets are called.
const DRAWN: &str = "drawn";
const WORST: &str = "worst";
/// Answers shown.
const ANSWERS: usize = 10;
/// Height of thumbnails in pixels.
const HEIGHT: u32 = 112;
/// Quality of the pictures inside the report; those beside it lose nothing.
const QUALITY: u8 = 82;
/// Bytes of pictures that a report may hold: as text they take a third more.
const MOST_BYTES: usize = 3_000_000;

/// Sheets of what was found.
#[derive(Args, Clone, Default)]
pub(super) struct Sheeted {
    /// Add images of the ranked results of the baseline and the best method to the report and
    /// beside it; image paths are relative to this folder (`.` where `metra features` was run
    /// here); both are fitted once more
    #[arg(long, value_name = "ROOT", help_heading = "Result images")]
    pub(super) sheets: Option<PathBuf>,
    /// Column of the images' paths
    #[arg(
        long,
        value_name = "COLUMN",
        default_value = "path",
        help_heading = "Result images"
    )]
    sheet_path: String,
    /// Number of random queries to show, and of the queries that the best method does worst on
    #[arg(
        long,
        value_name = "N",
        default_value_t = 6,
        help_heading = "Result images"
    )]
    sheet_queries: usize,
}

impl Sheeted {
    /// The column that is read beside the others.
    pub(super) fn columns(&self) -> Option<&str> {
        self.sheets.as_ref().map(|_| self.sheet_path.as_str())
    }

    /// The sheets of a report; empty where none were asked for.
    pub(super) fn draw(
        &self,
        experiment: &Experiment<'_>,
        log: &Log,
        results: &Results,
        read: &Input<'_>,
        folder: &Path,
    ) -> Result<metra_report::Sheets> {
        let Some(root) = &self.sheets else {
            return Ok(metra_report::Sheets::default());
        };
        ensure!(
            !read.data.has_separate_queries(),
            "--sheets shows rows of one file of vectors, but queries and items are apart"
        );
        let album = ImageSheet::new(root, read.files.unit_table(), &self.sheet_path)?;
        let methods = answers(experiment, log, results)?;
        let Some((best, ranked)) = methods.last() else {
            tracing::warn!("there are no sheets, because no method was fitted on the first split");
            return Ok(metra_report::Sheets::default());
        };
        let folder = folder.join("sheets");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        remove_sheets(&folder).with_context(|| folder.display().to_string())?;
        let count = self.sheet_queries;
        let chosen = [
            (DRAWN, "Drawn at random".to_owned(), Pick::Drawn(count)),
            (WORST, format!("Worst of {best}"), Pick::Worst(count)),
        ];
        let mut groups = Vec::new();
        let (mut bytes, mut left_out) = (0, 0);
        let mut reporter = Reporter::new();
        reporter.start("draw sheets");
        for (word, title, how) in chosen {
            let mut sheets = Vec::new();
            let places = pick(ranked, &how, experiment.seed);
            for (number, place) in places.into_iter().enumerate() {
                interrupt::check()?;
                let (sheet, caption) = one(&album, &methods, &ranked[place]);
                let picture = sheet.draw()?;
                let file = folder.join(sheet_name(word, number));
                write_bytes(&file, &png(&picture)?)?;
                let jpeg = jpeg(&picture, QUALITY)?;
                if bytes + jpeg.len() > MOST_BYTES {
                    left_out += 1;
                    continue;
                }
                bytes += jpeg.len();
                sheets.push(SheetPicture {
                    caption,
                    size: picture.dimensions(),
                    jpeg,
                });
                reporter.advance(number as u64 + 1, Some(count as u64), || title.clone());
            }
            groups.push(SheetGroup { title, sheets });
        }
        reporter.finish();
        album.finish()?;
        let words = self.words(results, &methods, left_out);
        Ok(metra_report::Sheets { words, groups })
    }

    fn words(&self, results: &Results, methods: &Methods, left_out: usize) -> String {
        let names: Vec<&str> = methods.iter().map(|(name, _)| name.as_str()).collect();
        let split = match results.protocol.splits.len() {
            1 => "the test part",
            _ => "the test part of the first split",
        };
        let mut words = format!(
            "What {} found in {split}: the query on the left, then the {ANSWERS} nearest with their rank and \
             dissimilarity. A thick green frame is right, a thin red one wrong.",
            names.join(" and ")
        );
        if left_out > 0 {
            words.push_str(&format!(
                " {left_out} more would make this file too large and are in the folder sheets beside it."
            ));
        }
        words
    }
}

/// Methods with their answers; the best is the last.
type Methods = Vec<(String, Vec<Ranking>)>;

fn answers(experiment: &Experiment<'_>, log: &Log, results: &Results) -> Result<Methods> {
    let mut names = vec![&results.base];
    if results.best != results.base {
        names.push(&results.best);
    }
    let mut methods = Vec::new();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        tracing::info!("sheets: fit {name} again as on the first split");
        if let Some(ranked) = experiment.ranked(log, name, 0, ANSWERS)? {
            methods.push((name.clone(), ranked));
        }
    }
    Ok(methods)
}

/// The sheet of one query, and what it shows in words.
fn one(album: &ImageSheet<'_>, methods: &Methods, shown: &Ranking) -> (Sheet, String) {
    let mut sheet = Sheet::new(HEIGHT);
    let mut ranks = Vec::new();
    for (name, ranked) in methods {
        // The rounds of a protocol are the same for every method.
        let same = |r: &&Ranking| (r.round, r.query) == (shown.round, shown.query);
        if let Some(ranking) = ranked.iter().find(same) {
            let words = format!("{name}: right at rank {}", ranking.first_right);
            sheet.heading(words.as_str());
            album.add(&mut sheet, ranking);
            ranks.push(words);
        }
    }
    let caption = format!("{}. {}.", album.path(shown.query), ranks.join("; "));
    (sheet, caption)
}

fn sheet_name(word: &str, number: usize) -> String {
    format!("{word}_{:02}.png", number + 1)
}

/// Remove sheets of an earlier run, which would be taken for this one's; nothing else that lies there.
fn remove_sheets(folder: &Path) -> std::io::Result<()> {
    for word in [DRAWN, WORST] {
        for number in 0.. {
            match std::fs::remove_file(folder.join(sheet_name(word, number))) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_sheets_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "drawn_01.png",
            "drawn_02.png",
            "worst_01.png",
            "holiday.png",
            "notes.txt",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        remove_sheets(folder.path()).unwrap();
        let left = |name: &&str| folder.path().join(name).exists();
        let left: Vec<&str> = names.iter().copied().filter(left).collect();
        assert_eq!(left, ["holiday.png", "notes.txt"]);
    }
}
