//! `metra sheets`: pictures of what held-out queries find.

use crate::args::Common;
use crate::evaluation_args::EvaluationArgs;
use crate::image_sheet::{ImageSheet, Pick, pick, save};
use crate::inputs::{Columns, ComparisonArgs, Files, Input, SupervisionInput, load, row_name};
use crate::interrupt::{self};
use crate::print;
use crate::progress::Reporter;
use crate::ranker::Ranker;
use crate::split_args::SplitArgs;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::experiment::{HoldOut, Ranking};
use metra::model::SeenRows;
use metra_files::Filter;
use metra_images::sheet::{HEIGHTS, Sheet};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Draw what held-out queries find: the query on the left, the nearest pictures beside it, framed green
/// if they are right and red if not.
///
/// The rows that were held out are told by the same options as in training, --splits or --seed with
/// --test among them, so that nothing is shown that was trained on. For a file that the model has never
/// seen, say --holdout none.
#[derive(Args)]
pub(crate) struct Sheets {
    /// The model file, or `euclid` or `cosine` for the untransformed vectors
    model: PathBuf,
    /// The vectors (.parquet, .npy, .csv, .jsonl, …), as `metra features` writes them
    data: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Folder that the images' paths start from: the one where `metra features` was run
    #[arg(long, value_name = "ROOT", default_value = ".")]
    images: PathBuf,
    /// Column of the images' paths
    #[arg(long, value_name = "COLUMN", default_value = "path")]
    path: String,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    #[command(flatten)]
    splitting: SplitArgs,
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// How many answers to show
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Show so many queries, drawn by the seed (default: 8)
    #[arg(long, value_name = "N", conflicts_with_all = ["worst", "query"])]
    queries: Option<usize>,
    /// Show so many queries, those whose first right answer comes last
    #[arg(long, value_name = "N", conflicts_with = "query")]
    worst: Option<usize>,
    /// Show this query, by its path, its id or its row (repeatable)
    #[arg(long, value_name = "NAME")]
    query: Vec<String>,
    /// Height of the thumbnails
    #[arg(long, value_name = "PIXELS", default_value_t = 128)]
    height: u32,
    /// A .png for all queries, or a folder for one .png each
    #[arg(short, long, value_name = "PLACE")]
    output: PathBuf,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown {
    queries: usize,
    first_right_at_1: usize,
    sheets: Vec<ShownQuery>,
}

#[derive(Serialize)]
struct ShownQuery {
    query: String,
    path: String,
    first_right: usize,
    file: PathBuf,
    answers: Vec<ShownAnswer>,
}

#[derive(Serialize)]
struct ShownAnswer {
    item: String,
    path: String,
    dissimilarity: f32,
    right: bool,
}

impl Sheets {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(
            HEIGHTS.contains(&self.height),
            "--height must be between {} and {}, but is {}",
            HEIGHTS.start(),
            HEIGHTS.end(),
            self.height
        );
        ensure!(
            (1..=100).contains(&self.k),
            "-k must be between 1 and 100, but is {}",
            self.k
        );
        ensure!(
            self.splitting.is_single(),
            "sheets show the test part of one split: name one with --split"
        );
        let ranker = Ranker::load(&self.model)?;
        let mut extra = self.splitting.columns();
        extra.push(&self.path);
        let rule = ranker.narrowing();
        let loaded = load(
            &self.data,
            &self.columns,
            &extra,
            &self.filters,
            rule,
            common,
        )?;
        let files = Files::one(loaded);
        let shown = self.show(&ranker, &files, common);
        shown.map_err(|error| files.locate(error))
    }

    fn show(&self, ranker: &Ranker, files: &Files, common: &Common) -> Result<()> {
        let album = ImageSheet::new(&self.images, &files.items, &self.path)?;
        let input = SupervisionInput {
            qrels: None,
            two_spaces: false,
            comparisons: &ComparisonArgs::default(),
            orderings: None,
            taxonomy: None,
        };
        let groups = ranker.groups_of(files)?;
        let read = Input {
            data: input.dataset(files, &self.columns, groups, common)?,
            files,
            columns: &self.columns,
        };
        let (test, trained, seed) = self.held_out(ranker, &read)?;
        let (judging, _) = self.evaluation.settings(&read, seed)?;
        let chain = ranker.chain_for(&read.data)?;
        let ranked = read
            .data
            .ranked(&chain, &test, &trained, &judging, self.k)?;
        ensure!(
            !ranked.is_empty(),
            "none of the {} held-out rows has a right answer among the others",
            test.len()
        );
        let places = self.places(&ranked, &album, &read)?;
        let files = self.draw(&ranked, &places, &album)?;
        album.finish()?;
        self.print(&ranked, &places, &files, &album, &read, common)
    }

    /// The rows that are shown, those that were learned from, and the seed of the protocol's draws.
    fn held_out(&self, ranker: &Ranker, read: &Input<'_>) -> Result<(Vec<u64>, Vec<u64>, u64)> {
        let kind = self.splitting.kind(read);
        if kind == HoldOut::None {
            let units = read.data.units();
            self.check_new(ranker, read, &units)?;
            return Ok((units, Vec::new(), self.splitting.seed));
        }
        let splits = self.splitting.parts(read, kind)?;
        let Some((parts, seed)) = splits.into_iter().next() else {
            bail!("there is no split to show");
        };
        ensure!(
            !parts.test.is_empty(),
            "no row is held out: --test must be above 0"
        );
        self.check_new(ranker, read, &parts.test)?;
        let trained = parts.learned_from();
        Ok((parts.test, trained, seed))
    }

    /// Refuse to show rows that the model learned from as if they were new to it.
    fn check_new(&self, ranker: &Ranker, read: &Input<'_>, units: &[u64]) -> Result<()> {
        let seen = ranker.seen_rows(&*read.data.unit_rows(units)?)?;
        if let Some(seen) = seen.filter(SeenRows::is_leak) {
            bail!(
                "{}: {} by {}: {}",
                self.data.display(),
                print::seen_rows(&seen),
                self.model.display(),
                ranker.held_out_hint(
                    "name its test part as in training (--splits and --split, --test-where, or \
                     --holdout, --test and --seed)"
                )
            );
        }
        Ok(())
    }

    /// Places of the rankings that are shown.
    fn places(
        &self,
        ranked: &[Ranking],
        album: &ImageSheet<'_>,
        read: &Input<'_>,
    ) -> Result<Vec<usize>> {
        let seed = self.splitting.seed;
        if let Some(count) = self.worst {
            return Ok(pick(ranked, &Pick::Worst(count), seed));
        }
        if self.query.is_empty() {
            return Ok(pick(ranked, &Pick::Drawn(self.queries.unwrap_or(8)), seed));
        }
        let named = |name: &String| {
            let is_named = |ranking: &Ranking| {
                album.path(ranking.query) == *name
                    || row_name(read.files.unit_table(), read.columns, ranking.query) == *name
            };
            ranked.iter().position(is_named).with_context(|| {
                format!(
                    "--query {name}: expected the path, id or row of one of the held-out queries"
                )
            })
        };
        self.query.iter().map(named).collect()
    }

    /// Write the sheets; the file of every query.
    fn draw(
        &self,
        ranked: &[Ranking],
        places: &[usize],
        album: &ImageSheet<'_>,
    ) -> Result<Vec<PathBuf>> {
        let one = self.output.extension().is_some_and(|e| e == "png");
        let mut reporter = Reporter::new();
        reporter.start("draw");
        let mut sheet = Sheet::new(self.height);
        let mut files = Vec::new();
        for (done, ranking) in places
            .iter()
            .filter_map(|place| ranked.get(*place))
            .enumerate()
        {
            interrupt::check()?;
            sheet.heading(heading(ranking, album));
            album.add(&mut sheet, ranking);
            if one {
                files.push(self.output.clone());
            } else {
                std::fs::create_dir_all(&self.output)
                    .with_context(|| self.output.display().to_string())?;
                let name = file_name(done + 1, &album.path(ranking.query));
                files.push(write(self.output.join(name), &sheet)?);
                sheet = Sheet::new(self.height);
            }
            let total = Some(places.len() as u64);
            reporter.advance(done as u64 + 1, total, || "sheets".into());
        }
        if one {
            write(self.output.clone(), &sheet)?;
        }
        reporter.finish();
        Ok(files)
    }

    fn print(
        &self,
        ranked: &[Ranking],
        places: &[usize],
        files: &[PathBuf],
        album: &ImageSheet<'_>,
        read: &Input<'_>,
        common: &Common,
    ) -> Result<()> {
        let name = |row: u64| row_name(read.files.unit_table(), read.columns, row);
        let shown = places
            .iter()
            .filter_map(|place| ranked.get(*place))
            .zip(files);
        let shown = Shown {
            queries: ranked.len(),
            first_right_at_1: ranked.iter().filter(|r| r.first_right == 1).count(),
            sheets: shown
                .map(|(ranking, file)| ShownQuery {
                    query: name(ranking.query),
                    path: album.path(ranking.query),
                    first_right: ranking.first_right,
                    file: file.clone(),
                    answers: (ranking.found.iter())
                        .map(|answer| ShownAnswer {
                            item: name(answer.item),
                            path: album.path(answer.item),
                            dissimilarity: answer.dissimilarity,
                            right: answer.right,
                        })
                        .collect(),
                })
                .collect(),
        };
        if common.json {
            return print::json(&shown);
        }
        for query in &shown.sheets {
            let text = format!("right at rank {:<5} {}", query.first_right, query.path);
            print::line(text.trim_end())?;
        }
        let right = print::count(shown.first_right_at_1 as u64);
        let queries = print::count(shown.queries as u64);
        print::fact(
            "right first",
            &format!("{right} of {queries} held-out queries"),
        )?;
        print::fact("sheets", &self.output.display().to_string())
    }
}

/// The line above a query.
fn heading(ranking: &Ranking, album: &ImageSheet<'_>) -> String {
    let path = album.path(ranking.query);
    format!("{path}: right at rank {}", ranking.first_right)
}

fn write(place: PathBuf, sheet: &Sheet) -> Result<PathBuf> {
    save(&place, &sheet.draw()?)?;
    Ok(place)
}

/// A name that sorts as the sheets were made, with what of the path can stand in a file's name.
fn file_name(number: usize, path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    let plain = |c: char| {
        if c.is_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let stem: String = stem.to_string_lossy().chars().map(plain).take(60).collect();
    format!("{number:04}_{stem}.png")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_hold_nothing_that_leads_elsewhere() {
        assert_eq!(file_name(7, "cam a/12_c0.png"), "0007_12_c0.png");
        assert_eq!(file_name(12, "../../x: y?.jpg"), "0012_x__y_.png");
        assert_eq!(file_name(1, ""), "0001_.png");
    }
}
