//! `metra embed`: vectors through a model, to a file that a vector store can load.

#[cfg(feature = "cluster")]
mod cluster;

use crate::args::{ClusterArgs, Common, SideName};
#[cfg(not(feature = "cluster"))]
use crate::feature_off::OnCluster;
use crate::inputs::Columns;
use crate::inputs::{in_file, load, model_groups};
use crate::interrupt;
use crate::print;
use crate::progress::Reporter;
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Code, Embedding, Int8Scale, Model, Side, for_each_embedded};
use metra_files::{
    Column, Filter, NarrowingRule, NpyWriter, ParquetVectorWriter, VectorLayout, WrittenElement,
};
use serde::Serialize;
use std::path::PathBuf;

/// Map vectors with a model, for a vector store.
#[derive(Args)]
pub(crate) struct Embed {
    /// The model file
    model: PathBuf,
    /// The vectors (.parquet, .npy, .csv, .jsonl, …)
    data: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Where to write: .npy, or .parquet with the columns of --id, --label and --keep
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Whose map to use; needed where queries and items have one each
    #[arg(long, value_enum)]
    side: Option<SideName>,
    /// Columns to copy into a Parquet output (repeatable)
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Write the f32 vectors that codes stand for instead of the codes, with a model that has some
    #[arg(long)]
    decoded: bool,
    /// Divide by the length, so that stores with inner product serve a cosine model
    #[arg(long)]
    normalise: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// With --cluster: write 16-bit floats
    #[arg(
        long,
        requires = "cluster",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    f16: bool,
}

#[derive(Serialize)]
struct Done {
    rows: u64,
    dim: usize,
    /// What is written of a vector.
    element: String,
    score: String,
    output: PathBuf,
}

enum Writer<'a> {
    Npy(NpyWriter),
    Parquet(Box<ParquetVectorWriter<'a>>),
}

impl Writer<'_> {
    fn push(&mut self, rows: Rows<'_>) -> metra_files::Result<()> {
        match self {
            Writer::Npy(writer) => writer.push(rows),
            Writer::Parquet(writer) => writer.push(rows),
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> metra_files::Result<()> {
        match self {
            Writer::Npy(writer) => writer.push_bytes(bytes),
            Writer::Parquet(writer) => writer.push_bytes(bytes),
        }
    }
}

/// How codes of mapped vectors of `dim` dimensions are written.
fn layout(code: &Code, dim: usize) -> VectorLayout {
    let bytes = code.item_bytes(dim);
    let (dim, element, scale) = match code {
        Code::Float16 => (dim, WrittenElement::Float16, false),
        Code::Int8(Int8Scale::PerVector) => (dim, WrittenElement::Int8, true),
        Code::Int8(_) => (dim, WrittenElement::Int8, false),
        Code::Bits { .. } | Code::Product(_) => (bytes, WrittenElement::UInt8, false),
    };
    VectorLayout {
        dim,
        element,
        scale,
    }
}

impl Embed {
    /// Whose map to use.
    fn side(&self, model: &Model) -> Result<Side> {
        Ok(match self.side {
            Some(side) => Side::from(side),
            None if model.chain.has_two_sides() => bail!(
                "{} maps queries and items differently{}: say --side query or --side item",
                self.model.display(),
                match model.chain.code() {
                    Some(code) => format!(" (items become {} codes)", code.name()),
                    None => String::new(),
                }
            ),
            None => Side::Item,
        })
    }

    /// The code that is written of vectors of this side.
    fn code<'m>(&self, model: &'m Model, side: Side) -> Option<&'m Code> {
        let code = model.chain.code().filter(|_| !self.decoded);
        code.filter(|code| side == Side::Item || code.codes_queries())
    }

    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        if let Some(place) = self.cluster.place()? {
            return self.on_cluster(place, common);
        }
        let model = Model::load(&self.model)?;
        let named = (self.columns.id.as_deref().into_iter())
            .chain(self.columns.labels()?)
            .chain(self.keep.iter().map(String::as_str));
        let mut keep: Vec<&str> = Vec::new();
        for name in named {
            if !keep.contains(&name) {
                keep.push(name);
            }
        }
        let parquet = match self.output.extension().and_then(|e| e.to_str()) {
            Some("npy") if keep.is_empty() => false,
            Some("npy") => {
                bail!("--id, --label and --keep need a .parquet output: npy holds vectors only")
            }
            Some("parquet") => true,
            _ => bail!("{}: expected .npy or .parquet", self.output.display()),
        };
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let loaded = load(
            &self.data,
            &self.columns,
            &keep,
            &self.filters,
            rule,
            common,
        )?;
        let groups = model_groups(&model, &loaded)?;
        let side = self.side(&model)?;
        let code = self.code(&model, side);
        ensure!(
            code.is_none() || !self.normalise,
            "--normalise is for vectors: codes of a cosine model hold directions already"
        );
        let (rows, dim) = (loaded.table.corpus.len(), model.chain.output_dim());
        let layout = code.map_or(VectorLayout::from(dim), |code| layout(code, dim));
        let mut writer = if parquet {
            let mut kept: Vec<(&str, &Column)> = Vec::new();
            for name in keep {
                kept.push((name, loaded.table.column(name)?));
            }
            Writer::Parquet(Box::new(ParquetVectorWriter::create(
                &self.output,
                "vector",
                layout,
                &kept,
            )?))
        } else {
            Writer::Npy(NpyWriter::create(&self.output, rows, layout)?)
        };
        let mut reporter = Reporter::new();
        reporter.start("embed");
        let mut done = 0;
        let mut failure = None;
        let corpus = loaded.table.corpus.as_ref();
        let mut codes = Vec::new();
        // Codes are made of mapped vectors.
        let uncoded = code
            .map(|_| model.chain.clone().with_code(None))
            .transpose()?;
        let chain = uncoded.as_ref().unwrap_or(&model.chain);
        let outcome = for_each_embedded(chain, side, corpus, groups.as_ref(), &mut |block| {
            interrupt::check()?;
            let mut block: std::borrow::Cow<'_, RowBuf> = std::borrow::Cow::Borrowed(block);
            if self.normalise {
                metra::data::ElementMap::Normalise.apply(done, block.to_mut())?;
            }
            let written = match code {
                None => writer.push(block.rows()),
                Some(code) => {
                    codes.clear();
                    code.encode(done, chain.space(), block.rows(), &mut codes)?;
                    writer.push_bytes(&codes)
                }
            };
            if let Err(error) = written {
                failure = Some(error);
                return Err(metra::Error::Interrupted);
            }
            done += block.len() as u64;
            reporter.advance(done, Some(rows), || "rows".into());
            Ok(())
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        outcome.map_err(|e| in_file(e, &loaded))?;
        match writer {
            Writer::Npy(writer) => writer.finish()?,
            Writer::Parquet(writer) => writer.finish()?,
        }
        reporter.finish();
        let score = model.chain.space().to_string();
        let done = Done {
            rows,
            dim: layout.dim,
            element: code.map_or("f32", Code::name).to_owned(),
            score,
            output: self.output.clone(),
        };
        if common.json {
            return print::json(&done);
        }
        let (rows, output) = (print::count(done.rows), done.output.display());
        let text = match code {
            None => format!("{rows} vectors of dimension {} in {output}", done.dim),
            Some(code) => {
                let bytes = print::plural(code.item_bytes(dim) as u64, "byte");
                format!("{rows} {} codes of {bytes} in {output}", code.name())
            }
        };
        print::line(&format!("{text}; compare them by {}", done.score))
    }
}
