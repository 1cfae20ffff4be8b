//! `metra features`: images to a Parquet file of vectors, one row an image.
//!
//! Rows are written as they are made, so neither images nor vectors of a folder are ever all in memory.

use crate::args::{Common, size};
use crate::interrupt;
use crate::print;
use crate::progress::Reporter;
use anyhow::{Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use metra::linalg::Rows;
use metra::training::Observer;
use metra_files::{Column, ParquetVectorWriter};
use metra_images::describe::JoinedFeatures;
use metra_images::list::ENDINGS;
use metra_images::rows::describe_all;
use metra_images::{
    Describe, Gist, GistSettings, Grid, LabHistogram, Limits, List, Lomo, Pattern, Stripes,
    Unmatched,
};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Turn images into vectors: a folder in, a Parquet file out.
///
/// Each image is a row with its path, what its name or the list says of it, and the vector.
#[derive(Args)]
pub(crate) struct Features {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// Colour and texture histograms of horizontal stripes, for images of people: 2,580 dimensions
    Stripes {
        #[command(flatten)]
        from: From,
        /// Number of stripes; each has 430 dimensions
        #[arg(long, value_name = "N", default_value_t = 6)]
        stripes: usize,
    },
    /// Colours and textures of small windows (LOMO), for images of people: 26,960 dimensions
    Lomo {
        #[command(flatten)]
        from: From,
        /// Append the histograms of six stripes: 29,540 dimensions in all
        #[arg(long)]
        stripes: bool,
    },
    /// GIST texture descriptor in 4 × 4 blocks, for scenes, faces and objects: 512 dimensions
    Gist {
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        gist: GistArguments,
        /// Append colour histograms (Lab) with this many bins per axis; 10 give 542 dimensions in
        /// all
        #[arg(long, value_name = "BINS")]
        lab: Option<usize>,
    },
    /// GIST descriptor of every cell of a grid, for screenshots: 51,200 dimensions
    Grid {
        #[command(flatten)]
        from: From,
        /// Cells in each direction
        #[arg(long, value_name = "N", default_value_t = 10)]
        cells: usize,
        #[command(flatten)]
        gist: GistArguments,
    },
}

#[derive(Args)]
struct GistArguments {
    /// GIST of red, green and blue rather than of grey: three times the dimensions
    #[arg(long)]
    colour: bool,
    /// Blocks in each direction
    #[arg(long, value_name = "N", default_value_t = GistSettings::default().blocks)]
    blocks: usize,
    /// Width and height to which images or cells are brought
    #[arg(long, value_name = "PIXELS", default_value_t = GistSettings::default().side)]
    side: usize,
}

#[derive(Args)]
struct From {
    /// Folders (with all below, by path) and files: PNG, JPEG, BMP, WebP
    #[arg(value_name = "INPUT", required_unless_present = "manifest")]
    inputs: Vec<PathBuf>,
    /// A list instead (.csv, .tsv): a column `path`, from the list's folder; other columns are kept
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    manifest: Option<PathBuf>,
    /// What names say, as {label}_c{camera}: {name} and {name:number} are columns, * is anything.
    /// With / it is held against the path below the folder, else against the file's name
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// What to do with a path that does not fit the pattern
    #[arg(long, value_enum, default_value = "fail", requires = "pattern")]
    unmatched: Choice,
    /// What to do with a file that cannot be read as an image
    #[arg(long, value_enum, default_value = "fail")]
    on_error: Choice,
    /// The most pixels an image may have; a thread may take 32 bytes for each
    #[arg(long, value_name = "N", default_value_t = Limits::default().pixels, help_heading = "Limits")]
    max_pixels: u64,
    /// The most bytes a file may have (512K, 100M)
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().bytes, value_parser = size, help_heading = "Limits")]
    max_bytes: u64,
    /// Where to write: .parquet, with the vectors in the column `vector`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// End there, and write nothing
    Fail,
    /// Leave it out, and say so
    Skip,
}

#[derive(Serialize)]
struct Skipped {
    path: PathBuf,
    reason: String,
}

#[derive(Serialize)]
struct Done {
    images: u64,
    dim: usize,
    columns: Vec<String>,
    skipped: Vec<Skipped>,
    unmatched: u64,
    passed_over: u64,
    seconds: f64,
    images_per_second: f64,
    output: PathBuf,
}

impl Features {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let (from, what): (&From, Box<dyn Describe>) = match &self.kind {
            Kind::Stripes { from, stripes } => (from, Box::new(Stripes::new(*stripes)?)),
            Kind::Lomo { from, stripes } => {
                let mut parts: Vec<Box<dyn Describe>> = vec![Box::new(Lomo)];
                if *stripes {
                    parts.push(Box::new(Stripes::new(6)?));
                }
                (from, Box::new(JoinedFeatures(parts)))
            }
            Kind::Gist { from, gist, lab } => {
                let mut parts: Vec<Box<dyn Describe>> = vec![Box::new(Gist::new(gist.settings())?)];
                if let Some(bins) = lab {
                    parts.push(Box::new(LabHistogram::new(*bins)?));
                }
                (from, Box::new(JoinedFeatures(parts)))
            }
            Kind::Grid { from, cells, gist } => {
                (from, Box::new(Grid::with(*cells, gist.settings())?))
            }
        };
        let done = from.describe(&*what)?;
        if common.json {
            return print::json(&done);
        }
        done.print()
    }
}

impl GistArguments {
    fn settings(&self) -> GistSettings {
        GistSettings {
            side: self.side,
            blocks: self.blocks,
            colour: self.colour,
        }
    }
}

impl From {
    fn describe(&self, what: &dyn Describe) -> Result<Done> {
        let parquet = self.output.extension().is_some_and(|e| e == "parquet");
        ensure!(parquet, "{}: expected .parquet", self.output.display());
        let list = self.list()?;
        let (columns, names) = columns(&list);
        let named: Vec<(&str, &Column)> = names.iter().map(String::as_str).zip(&columns).collect();
        let dim = what.dimension();
        let mut writer = ParquetVectorWriter::create(&self.output, "vector", dim, &named)?;
        let mut pending = Pending::new(dim);
        let mut reporter = Reporter::new();
        reporter.start("features");
        let (start, total) = (Instant::now(), list.entries.len() as u64);
        let mut skipped = Vec::new();
        let limits = Limits {
            pixels: self.max_pixels,
            bytes: self.max_bytes,
        };
        let take = |place: usize, row: metra_images::Result<Vec<f32>>| -> Result<()> {
            match row {
                Ok(row) => pending.add(&row, &mut writer)?,
                Err(error) if error.is_of_one_image() && self.on_error == Choice::Skip => {
                    pending.flush(&mut writer)?;
                    writer.leave_out(1);
                    reporter.note(&format!("skipped {error}"));
                    skipped.push(Skipped {
                        path: list.entries[place].path.clone(),
                        reason: error.problem(),
                    });
                }
                Err(metra_images::Error::Library(error)) => return Err(error.into()),
                Err(error) => return Err(error.into()),
            }
            let done = place as u64 + 1;
            reporter.advance(done, Some(total), || {
                format!(
                    "{:.0} images/s",
                    done as f64 / start.elapsed().as_secs_f64()
                )
            });
            Ok(())
        };
        let stopped = || interrupt::is_stopped();
        describe_all(&list.entries, what, limits, &stopped, take)?;
        let images = total - skipped.len() as u64;
        ensure!(
            images > 0,
            "expected an image that can be read, but all {total} were skipped, the first for: {}",
            skipped.first().map_or("", |skipped| &skipped.reason)
        );
        pending.flush(&mut writer)?;
        writer.finish()?;
        reporter.finish();
        let seconds = start.elapsed().as_secs_f64();
        Ok(Done {
            images,
            dim,
            columns: names,
            skipped,
            unmatched: list.unmatched,
            passed_over: list.passed_over,
            seconds,
            images_per_second: total as f64 / seconds,
            output: self.output.clone(),
        })
    }

    fn list(&self) -> Result<List> {
        let pattern = self.pattern.as_deref().map(Pattern::parse).transpose()?;
        let unmatched = match self.unmatched {
            Choice::Fail => Unmatched::Fail,
            Choice::Skip => Unmatched::Skip,
        };
        let list = match &self.manifest {
            Some(manifest) => List::from_manifest(manifest, pattern.as_ref(), unmatched)?,
            None => List::gather(&self.inputs, pattern.as_ref(), unmatched)?,
        };
        let places = self.manifest.iter().chain(&self.inputs);
        let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
        ensure!(
            !list.entries.is_empty(),
            "{}: expected images ({}), found none ({} do not fit the pattern, {} other files)",
            places.join(", "),
            ENDINGS.join(", "),
            list.unmatched,
            list.passed_over
        );
        Ok(list)
    }
}

/// Everything that is known of the images, as columns with their names.
fn columns(list: &List) -> (Vec<Column>, Vec<String>) {
    let paths = list
        .entries
        .iter()
        .map(|entry| entry.path.to_string_lossy());
    let mut columns = vec![Column::from_texts(paths)];
    for place in 0..list.fields.len() {
        let values = list.entries.iter().map(|entry| {
            let value = entry.fields.get(place);
            value.map_or("", String::as_str)
        });
        columns.push(Column::from_fields(values));
    }
    let names = ["path".to_owned()].into_iter().chain(list.fields.clone());
    (columns, names.collect())
}

/// Rows that wait to be written together.
struct Pending {
    values: Vec<f32>,
    dim: usize,
}

impl Pending {
    /// Numbers that are written together: 1 MB.
    const TOGETHER: usize = 1 << 18;

    fn new(dim: usize) -> Self {
        Pending {
            values: Vec::new(),
            dim,
        }
    }

    fn add(&mut self, row: &[f32], writer: &mut ParquetVectorWriter<'_>) -> Result<()> {
        self.values.extend_from_slice(row);
        if self.values.len() >= Self::TOGETHER {
            self.flush(writer)?;
        }
        Ok(())
    }

    fn flush(&mut self, writer: &mut ParquetVectorWriter<'_>) -> Result<()> {
        if !self.values.is_empty() {
            writer.push(Rows::new(&self.values, self.dim)?)?;
            self.values.clear();
        }
        Ok(())
    }
}

impl Done {
    fn print(&self) -> Result<()> {
        for (name, count) in [
            ("unreadable", self.skipped.len() as u64),
            ("unmatched", self.unmatched),
            ("passed over", self.passed_over),
        ] {
            if count > 0 {
                print::fact(name, &print::count(count))?;
            }
        }
        print::fact("columns", &format!("{}, vector", self.columns.join(", ")))?;
        print::line(&format!(
            "{} images, {} dimensions each, in {} ({:.0} images/s)",
            print::count(self.images),
            print::count(self.dim as u64),
            self.output.display(),
            self.images_per_second
        ))
    }
}
