//! `metra pages changes`: which successive screenshots differ where it matters.

use super::learn::{regions, rows};
use super::{Lessons, describe, draw_weights, labels, picture, save};
use crate::args::Common;
use crate::interrupt;
use crate::print;
use anyhow::{Context, Result, ensure};
use clap::Args;
use metra_images::pages::{Described, Frame, Labelled, PageModel, Precision, Series, heat};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Ends with this where something changed, if asked to.
const CHANGED: u8 = 3;

/// Score successive screenshots by the changes that matter, and say which changed.
///
/// Without a model it learns from the screenshots themselves first. A pair has changed where its score is
/// above the threshold: that of the model, or the one given. Exit codes: 0; 1 something failed; 2 wrong use;
/// with --exit-code 3 if a pair that was looked at has changed.
#[derive(Args)]
pub(super) struct Changes {
    /// Folder of screenshots whose names have times or numbers, or a list of them (CSV with the columns
    /// path and time)
    #[arg(value_name = "FOLDER|LIST")]
    place: PathBuf,
    /// A model by `metra pages learn` (default: learn from these screenshots)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Look at the latest pairs only, this many; the others are not even read if there is a model
    #[arg(long, value_name = "PAIRS")]
    last: Option<usize>,
    /// Scores above this are changes (default: the model's)
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// What people said about pairs, to judge the scores by: name, name and changed or same a line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Folder for heat maps: one a pair that changed, and weights.png
    #[arg(long, value_name = "DIR")]
    heat: Option<PathBuf>,
    /// End with code 3 if a pair has changed, for cron lines and scripts
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    lessons: Lessons,
}

#[derive(Serialize)]
struct Found {
    threshold: f64,
    changed: usize,
    pairs: Vec<Pair>,
    /// How well labelled pairs are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<Judged>,
    /// Left, top, width and height of each region, where it is no grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    regions: Option<Vec<[u32; 4]>>,
    /// Weights, a row of cells each; of regions all in one.
    weights: Vec<Vec<f64>>,
    /// Heat maps that were written.
    heat: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Pair {
    from: String,
    to: String,
    score: f64,
    euclid: f64,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'static str>,
}

#[derive(Serialize)]
struct Judged {
    pairs: usize,
    euclid: Measured,
    learned: Measured,
    /// Of the pairs said to have changed, those found, and all of them.
    found: [usize; 2],
    /// The same of the pairs said to be the same.
    false_alarms: [usize; 2],
}

#[derive(Serialize)]
struct Measured {
    ap_s: f64,
    ap_d: f64,
    map: f64,
}

impl Measured {
    fn new(precision: Precision) -> Self {
        Measured {
            ap_s: precision.same,
            ap_d: precision.changed,
            map: precision.mean(),
        }
    }
}

impl Changes {
    pub(super) fn run(&self, common: &Common) -> Result<u8> {
        ensure!(self.last != Some(0), "--last must be at least 1, but is 0");
        ensure!(
            self.model.is_none() || self.lessons.regions.is_none(),
            "a model has its own regions: give --model or --regions"
        );
        self.check_heat()?;
        let whole = Series::open(&self.place)?;
        let (series, described, model) = match &self.model {
            Some(path) => {
                let model = PageModel::load(path)?;
                let series = self.part(whole);
                let described = describe(&series, model.frame(), model.layout().clone())?;
                (series, described, model)
            }
            None => {
                let frame = Frame::of(&whole)?;
                let described = describe(&whole, frame, self.lessons.layout(frame)?)?;
                let model = self.lessons.learn(&whole, &described, &[])?;
                (whole, described, model)
            }
        };
        let threshold = self.threshold.unwrap_or(model.threshold());
        let labels = labels(self.labels.as_ref(), &series)?;
        let count = series.versions().len();
        let first = self
            .last
            .map_or(1, |last| count.saturating_sub(last).max(1));
        let mut pairs = Vec::new();
        for later in first..count {
            let [from, to] = [later - 1, later].map(|place| series.versions()[place].name.clone());
            let (score, euclid) = scores(&model, &described, [later - 1, later])?;
            let said = labels.iter().find(|label| label.pair == [later - 1, later]);
            pairs.push(Pair {
                from,
                to,
                score,
                euclid,
                changed: score > threshold,
                said: said.map(|label| if label.changed { "changed" } else { "same" }),
            });
        }
        let judged = judge(&model, &described, &labels, threshold)?;
        if judged.is_none() && self.labels.is_some() {
            tracing::warn!("expected labels of both kinds to judge by, found one kind alone");
        }
        let heat = match &self.heat {
            Some(folder) => self.draw(folder, &series, &described, &model, first, &pairs)?,
            None => Vec::new(),
        };
        let found = Found {
            threshold,
            changed: pairs.iter().filter(|pair| pair.changed).count(),
            pairs,
            judged,
            regions: regions(&model),
            weights: rows(&model),
            heat,
        };
        if common.json {
            print::json(&found)?;
        } else {
            self.print(&found, &model)?;
        }
        Ok(if self.exit_code && found.changed > 0 {
            CHANGED
        } else {
            0
        })
    }

    fn part(&self, series: Series) -> Series {
        match self.last {
            Some(pairs) => series.latest(pairs),
            None => series,
        }
    }

    /// Heat maps among the screenshots would be versions of the page themselves.
    fn check_heat(&self) -> Result<()> {
        if let Some(folder) = &self.heat {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            let same = matches!((folder.canonicalize(), self.place.canonicalize()), (Ok(a), Ok(b)) if a == b);
            ensure!(
                !same,
                "--heat must be another folder than that of the screenshots"
            );
        }
        Ok(())
    }

    fn draw(
        &self,
        folder: &Path,
        series: &Series,
        described: &Described,
        model: &PageModel,
        first: usize,
        pairs: &[Pair],
    ) -> Result<Vec<PathBuf>> {
        let mut parts = Vec::new();
        for (place, pair) in pairs.iter().enumerate() {
            if pair.changed {
                let later = first + place;
                parts.push((later, model.parts(described, later - 1, later)?));
            }
        }
        let hottest = parts
            .iter()
            .flat_map(|(_, parts)| parts)
            .copied()
            .fold(0.0, f64::max);
        let weights = folder.join("weights.png");
        draw_weights(&weights, series, model)?;
        let mut written = vec![weights];
        for (later, parts) in &parts {
            interrupt::check()?;
            let drawn = heat::over(
                &picture(series, *later, model.frame())?,
                model.layout(),
                parts,
                hottest,
            );
            let stem = series.versions()[*later].path.file_stem();
            let mut name = stem.unwrap_or_default().to_os_string();
            name.push(".heat.png");
            let path = folder.join(name);
            save(&drawn, &path)?;
            written.push(path);
        }
        Ok(written)
    }

    fn print(&self, found: &Found, model: &PageModel) -> Result<()> {
        let frame = model.frame();
        let learned = match &self.model {
            Some(path) => path.display().to_string(),
            None => "learned from these screenshots".into(),
        };
        let (width, height) = (frame.width, frame.height);
        let layout = model.layout().describe();
        print::fact(
            "model",
            &format!("{learned}: {layout} of {width} × {height}"),
        )?;
        let chosen = match (self.threshold, model.labels()) {
            (Some(_), _) => "as given".into(),
            (None, 0) => "between the two heaps of scores that it learned from".into(),
            (None, labels) => format!("learned from {labels} labelled pairs"),
        };
        print::fact("threshold", &format!("{:.4}, {chosen}", found.threshold))?;
        let wide = found
            .pairs
            .iter()
            .map(|pair| pair.to.chars().count())
            .max()
            .unwrap_or(0)
            .max(4);
        print::line(&format!("{:<wide$}  {:>9} {:>9}", "to", "score", "Euclid"))?;
        for pair in &found.pairs {
            let word = if pair.changed { "changed" } else { "" };
            let said = pair
                .said
                .map_or(String::new(), |said| format!("  (said: {said})"));
            let line = format!(
                "{:<wide$}  {:>9.4} {:>9.4}  {word:<7}{said}",
                pair.to, pair.score, pair.euclid
            );
            print::line(line.trim_end())?;
        }
        print::fact(
            "changed",
            &format!("{} of {} pairs", found.changed, found.pairs.len()),
        )?;
        if let Some(judged) = &found.judged {
            print::line(&format!(
                "{:<24}{:>9}{:>9}",
                format!("judged by {} labels", judged.pairs),
                "Euclid",
                "learned"
            ))?;
            let (euclid, learned) = (&judged.euclid, &judged.learned);
            for (name, base, learned) in [
                ("AP_S (same)", euclid.ap_s, learned.ap_s),
                ("AP_D (changed)", euclid.ap_d, learned.ap_d),
                ("MAP", euclid.map, learned.map),
            ] {
                print::line(&format!("{name:<24}{base:>9.4}{learned:>9.4}"))?;
            }
            let ([hits, changed], [alarms, same]) = (judged.found, judged.false_alarms);
            print::fact(
                "found",
                &format!("{hits} of {changed} changes, {alarms} false alarms in {same}"),
            )?;
        }
        if let Some(folder) = &self.heat {
            print::fact(
                "heat maps",
                &format!("{} in {}", found.heat.len(), folder.display()),
            )?;
        }
        Ok(())
    }
}

/// The learned score of a pair, and Euclid's distance of the whole descriptors.
fn scores(model: &PageModel, described: &Described, [a, b]: [usize; 2]) -> Result<(f64, f64)> {
    let score = model.parts(described, a, b)?.iter().sum();
    let euclid = described
        .distances(a, b)?
        .iter()
        .map(|d| d * d)
        .sum::<f64>()
        .sqrt();
    Ok((score, euclid))
}

fn judge(
    model: &PageModel,
    described: &Described,
    labels: &[Labelled],
    threshold: f64,
) -> Result<Option<Judged>> {
    if model.labels() > 0 && !labels.is_empty() {
        tracing::warn!(
            "the model has learned from {} labelled pairs: judged by the same pairs it looks better than it is",
            model.labels()
        );
    }
    let (mut learned, mut euclid) = (Vec::new(), Vec::new());
    for label in labels {
        let (score, base) = scores(model, described, label.pair)?;
        learned.push(score);
        euclid.push(base);
    }
    let changed: Vec<bool> = labels.iter().map(|label| label.changed).collect();
    let (Some(base), Some(own)) = (
        Precision::of(&euclid, &changed)?,
        Precision::of(&learned, &changed)?,
    ) else {
        return Ok(None);
    };
    let count = |wanted: bool| {
        let of = changed
            .iter()
            .zip(&learned)
            .filter(|(changed, _)| **changed == wanted);
        let above = of.clone().filter(|(_, score)| **score > threshold).count();
        [above, of.count()]
    };
    Ok(Some(Judged {
        pairs: labels.len(),
        euclid: Measured::new(base),
        learned: Measured::new(own),
        found: count(true),
        false_alarms: count(false),
    }))
}
