//! `metra pages learn`: weights of regions from screenshots over time.

use super::{Lessons, describe, draw_weights, labels};
use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra_images::pages::{Frame, PageModel, Series};
use serde::Serialize;
use std::path::PathBuf;

/// Learn which regions of a page matter from screenshots over time, without labels or with a few.
///
/// Two successive versions should be nearer than two that lie much farther apart and enclose them: weights
/// are sought under which that holds. Screenshots must have one width; heights are cut or filled up with
/// white to the median.
#[derive(Args)]
pub(super) struct Learn {
    /// Folder of screenshots whose names have times (2026-11-15T10-30-00.png) or numbers, or a list of
    /// them (CSV with the columns path and time)
    #[arg(value_name = "FOLDER|LIST")]
    place: PathBuf,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A few pairs to learn from as well: name, name and changed or same a line, parted by tabs or commas;
    /// the threshold is then learned too
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Draw the weights over the latest screenshot
    #[arg(long, value_name = "PNG")]
    heat: Option<PathBuf>,
    #[command(flatten)]
    lessons: Lessons,
}

#[derive(Serialize)]
struct Learned {
    screenshots: usize,
    width: u32,
    height: u32,
    /// Cells from left to right, of a grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<usize>,
    /// Left, top, width and height of each region, where it is no grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    regions: Option<Vec<[u32; 4]>>,
    comparisons: f64,
    labels: usize,
    threshold: f64,
    /// Weights, a row of cells each; of regions all in one.
    weights: Vec<Vec<f64>>,
}

impl Learn {
    pub(super) fn run(&self, common: &Common) -> Result<u8> {
        let series = Series::open(&self.place)?;
        let labels = labels(self.labels.as_ref(), &series)?;
        let frame = Frame::of(&series)?;
        let described = describe(&series, frame, self.lessons.layout(frame)?)?;
        let model = self.lessons.learn(&series, &described, &labels)?;
        model.save(&self.output)?;
        if let Some(path) = &self.heat {
            draw_weights(path, &series, &model)?;
        }
        let facts = &model.model().origin.facts;
        let learned = Learned {
            screenshots: series.versions().len(),
            width: model.frame().width,
            height: model.frame().height,
            cells: model.layout().side(),
            regions: regions(&model),
            comparisons: facts.get("constraints").copied().unwrap_or(0.0) - labels.len() as f64,
            labels: labels.len(),
            threshold: model.threshold(),
            weights: rows(&model),
        };
        if common.json {
            print::json(&learned)?;
            return Ok(0);
        }
        print::fact(
            "series",
            &format!(
                "{} screenshots of {} × {}",
                learned.screenshots, learned.width, learned.height
            ),
        )?;
        let labelled = match labels.len() {
            0 => "no labels".into(),
            some => format!("{some} labelled pairs"),
        };
        let comparisons = print::count(learned.comparisons as u64);
        print::fact(
            "learned from",
            &format!(" {comparisons} comparisons by time, {labelled}"),
        )?;
        print::fact("threshold", &format!("{:.4}", learned.threshold))?;
        print::line("weights, in percent of their sum:")?;
        match model.layout().side() {
            Some(_) => grid(&model)?,
            None => list(&model)?,
        }
        print::fact("model", &self.output.display().to_string())?;
        if let Some(path) = &self.heat {
            print::fact("heat map", &path.display().to_string())?;
        }
        Ok(0)
    }
}

/// The boxes of a model's regions, where it has no grid.
pub(super) fn regions(model: &PageModel) -> Option<Vec<[u32; 4]>> {
    let layout = model.layout();
    (layout.side().is_none()).then(|| layout.boxes().to_vec())
}

/// Weights as rows of cells, or of regions all in one row.
pub(super) fn rows(model: &PageModel) -> Vec<Vec<f64>> {
    let all = model.weights().len();
    model
        .weights()
        .chunks(model.layout().side().unwrap_or(all).max(1))
        .map(<[f64]>::to_vec)
        .collect()
}

/// Shares of the weights where they lie on the page; a dot is less than half a percent.
fn grid(model: &PageModel) -> Result<()> {
    let total: f64 = model.weights().iter().sum();
    for row in rows(model) {
        let cells = row.iter().map(|weight| {
            let share = 100.0 * weight / total;
            if share < 0.5 {
                format!("{:>4}", "·")
            } else {
                format!("{share:>4.0}")
            }
        });
        print::line(&cells.collect::<String>())?;
    }
    Ok(())
}

/// Regions with their shares of the weights, the heaviest first; those below half a percent are counted.
fn list(model: &PageModel) -> Result<()> {
    let total: f64 = model.weights().iter().sum();
    let mut all: Vec<(f64, [u32; 4])> = (model.weights().iter())
        .map(|weight| 100.0 * weight / total)
        .zip(model.layout().boxes().iter().copied())
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let heavy = all.iter().take_while(|(share, _)| *share >= 0.5).count();
    for (share, [left, top, width, height]) in &all[..heavy] {
        print::line(&format!(
            "{share:>4.0}  {width} × {height} at {left}, {top}"
        ))?;
    }
    if heavy < all.len() {
        print::line(&format!("   ·  {} others", all.len() - heavy))?;
    }
    Ok(())
}
