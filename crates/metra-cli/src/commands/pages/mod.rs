//! `metra pages`: which changes of a web page matter. Screenshots over time in, scores, thresholds and heat
//! maps out.

mod browser_args;
mod changes;
mod learn;
mod regions;
mod shoot;

use crate::args::Common;
use crate::progress::Reporter;
use anyhow::Result;
use clap::{Args, Subcommand};
use metra_images::pages::{
    Described, Frame, Labelled, Layout, Learning, PageModel, Series, read_labels,
};
use std::path::{Path, PathBuf};

/// Find the changes of a web page that matter, in screenshots taken over time.
///
/// News accumulates while advertisements, menus and clocks only alternate: from the order of versions in
/// time a weight for every cell of a grid, or for every region of the page's own structure, is learned without labels, and a change is scored by where it is.
#[derive(Args)]
pub(crate) struct Pages {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Take a screenshot of each address, into a folder of screenshots named by their time
    Shoot(shoot::Shoot),
    /// Find the boxes of a page's elements, to be weighed in place of cells of a grid
    Regions(regions::Regions),
    /// Learn which regions of a page matter, and the score threshold above which a change is
    /// reported
    Learn(learn::Learn),
    /// Score successive screenshots, report which changed, and draw where
    Changes(changes::Changes),
}

impl Pages {
    pub(crate) fn run(&self, common: &Common) -> Result<u8> {
        match &self.verb {
            Verb::Shoot(verb) => verb.run(common),
            Verb::Regions(verb) => verb.run(common),
            Verb::Learn(verb) => verb.run(common),
            Verb::Changes(verb) => verb.run(common),
        }
    }
}

/// How weights are learned, by `learn` and by `changes` without a model.
#[derive(Args)]
struct Lessons {
    /// Cells from left to right and from top to bottom
    #[arg(long, value_name = "CELLS", default_value_t = 10)]
    grid: usize,
    /// Weigh these boxes in place of cells: CSV with the columns left, top, width and height, as
    /// `metra pages regions` writes it
    #[arg(long, value_name = "CSV", conflicts_with = "grid")]
    regions: Option<PathBuf>,
    /// Weight of |w|² beside the mean loss (default: 0.1, with labels 0.001)
    #[arg(long)]
    lambda: Option<f64>,
    /// Comparisons of versions to draw
    #[arg(long, value_name = "COUNT", default_value_t = Learning::default().count)]
    count: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Lessons {
    /// The places to weigh on screenshots of a size.
    fn layout(&self, frame: Frame) -> Result<Layout> {
        Ok(match &self.regions {
            Some(path) => Layout::read(path, frame)?,
            None => Layout::grid(self.grid, frame)?,
        })
    }

    fn learn(
        &self,
        series: &Series,
        described: &Described,
        labels: &[Labelled],
    ) -> Result<PageModel> {
        let settings = Learning {
            lambda: self.lambda,
            count: self.count,
            seed: self.seed,
            ..Learning::default()
        };
        Ok(PageModel::learn(
            series,
            described,
            labels,
            &settings,
            &crate::interrupt::STOP,
        )?)
    }
}

/// Descriptors of all screenshots, with a bar.
fn describe(series: &Series, frame: Frame, layout: Layout) -> Result<Described> {
    let mut reporter = Reporter::new();
    reporter.start("describe");
    let total = series.versions().len() as u64;
    let mut advance = |done: usize| {
        reporter.advance(done as u64, Some(total), || "screenshots".into());
    };
    Ok(Described::new(
        series,
        frame,
        layout,
        &crate::interrupt::STOP,
        &mut advance,
    )?)
}

/// Labels of a series, with a word about lines that speak of others.
fn labels(path: Option<&PathBuf>, series: &Series) -> Result<Vec<Labelled>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let (labels, unknown) = read_labels(path, series)?;
    if unknown > 0 {
        tracing::warn!(
            "{}: {unknown} lines left out that name no screenshot of the series",
            path.display()
        );
    }
    Ok(labels)
}

/// The picture of a version in the size that cells were cut from.
fn picture(series: &Series, version: usize, frame: Frame) -> Result<metra_images::Picture> {
    let path = series
        .versions()
        .get(version)
        .map_or(Path::new(""), |v| &v.path);
    let picture = metra_images::decode::decode(path, metra_images::Limits::default())?;
    Ok(frame.fit(&picture).into_owned())
}

/// The weights alone, over the latest version.
fn draw_weights(path: &Path, series: &Series, model: &PageModel) -> Result<()> {
    let last = picture(series, series.versions().len() - 1, model.frame())?;
    let hottest = model.weights().iter().copied().fold(0.0, f64::max);
    let drawn = metra_images::pages::heat::over(&last, model.layout(), model.weights(), hottest);
    save(&drawn, path)
}

fn save(picture: &metra_images::Picture, path: &Path) -> Result<()> {
    (picture.save(path)).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}
