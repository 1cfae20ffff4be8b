//! `metra export`: a model's map as a file that other programs read.
//!
//! By default that is the metric's own map, as `metra embed` applies it. With `--way` or the record of
//! stored vectors it is what a store is asked with by that plan, and files of FAISS and SQL, which compare as well, always follow
//! a plan.

mod faiss;

use crate::args::{Common, SideName};
use crate::print;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::internal::AtomicFile;
use metra::model::{Distance, Model, Plan, PlanConstraints, Side, Strategy};
use metra_files::Filter;
use metra_stores::Provenance;
use metra_stores::export::{self, Format, MapFormat, SqlColumns};
use serde::Serialize;
use std::path::PathBuf;

/// Write a model's map as a file for other programs: FAISS, ONNX, npy, safetensors, C, SQL.
#[derive(Args)]
pub(crate) struct Export {
    /// The model file
    model: PathBuf,
    /// Where to write: .faiss, .onnx, .npy, .safetensors, .h or .sql; a folder for sentence-transformers
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The format, where the file's name does not say it: onnx, npy, safetensors, c, faiss, sql, or
    /// sentence-transformers for a folder that it loads as a module `Dense`
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    /// Whose map, where queries and items have one each
    #[arg(long, value_enum, conflicts_with = "way")]
    side: Option<SideName>,
    /// Map queries as this plan asks its store: mapped, query-only, extra-coordinate,
    /// rescaled or candidates
    #[arg(long)]
    way: Option<Strategy>,
    /// Divide by the length at the end, so that inner products of a cosine model are cosines
    #[arg(long, conflicts_with = "way")]
    normalise: bool,
    /// Column of ids: of the items of a FAISS index, where they are whole numbers (default: the numbers
    /// of their rows); of the SQL table (default: id)
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// Items to put into the index, mapped (.parquet, .npy, .csv, .jsonl, …)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "FAISS",
        conflicts_with = "index"
    )]
    items: Option<PathBuf>,
    /// Column of their vectors
    #[arg(
        long,
        value_name = "COLUMN",
        help_heading = "FAISS",
        requires = "items"
    )]
    vector: Option<String>,
    /// Column of the camera or session that they come from
    #[arg(
        long,
        value_name = "COLUMN",
        help_heading = "FAISS",
        requires = "items"
    )]
    camera: Option<String>,
    /// Keep only items with this value (column=value or column!=value; repeatable)
    #[arg(
        long = "where",
        value_name = "FILTER",
        help_heading = "FAISS",
        requires = "items"
    )]
    filters: Vec<Filter>,
    /// An index that holds the items already, as the plan stores them, to put the map in front of
    #[arg(long, value_name = "FILE", help_heading = "FAISS")]
    index: Option<PathBuf>,
    /// Table of the items
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "SQL",
        default_value = "items"
    )]
    table: String,
    /// Its column of vectors, as the plan stores them
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "SQL",
        default_value = "embedding"
    )]
    column: String,
    /// What the index over it compares by: l2, ip or cosine (default: what suits the model)
    #[arg(long, help_heading = "SQL")]
    distance: Option<Distance>,
    /// The record of stored vectors (a file with the JSON text beside them): export what they are asked
    /// with, a centre included
    #[arg(long, value_name = "FILE", conflicts_with_all = ["way", "distance", "items"])]
    record: Option<PathBuf>,
    /// Name in the file: of the C function or the SQL function (default: the file's own)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// What was written.
#[derive(Serialize)]
struct Done {
    format: Format,
    side: &'static str,
    way: Option<Strategy>,
    input_dim: usize,
    output_dim: usize,
    compare: String,
    /// Items in an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    /// Whether queries are mapped in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<bool>,
    files: Vec<PathBuf>,
}

impl Export {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let format = self.format()?;
        self.fits(format)?;
        let model = Model::load(&self.model)?;
        let done = match format {
            Format::Faiss => self.faiss(&model, common)?,
            Format::Sql => self.sql(&model)?,
            Format::Map(format) => self.map(&model, format)?,
        };
        if common.json {
            return print::json(&done);
        }
        let sizes = format!("{} → {} dimensions", done.input_dim, done.output_dim);
        print::fact("map", &format!("{sizes}, {} side", done.side))?;
        if let Some(way) = done.way {
            print::fact("way", &way.to_string())?;
        }
        print::fact("compare by", &done.compare)?;
        if let Some(items) = done.items {
            print::fact("items", &print::count(items))?;
        }
        if let Some(function) = done.function {
            print::fact(
                "queries",
                if function {
                    "mapped in the database"
                } else {
                    "mapped outside the database (the file says why)"
                },
            )?;
        }
        for file in &done.files {
            print::fact("output", &file.display().to_string())?;
        }
        Ok(())
    }

    fn format(&self) -> Result<Format> {
        Ok(match self.to {
            Some(format) => format,
            None => Format::of_path(&self.output)?,
        })
    }

    /// Arguments of one format are not silently left out for another.
    fn fits(&self, format: Format) -> Result<()> {
        if format != Format::Faiss {
            ensure!(
                self.items.is_none() && self.index.is_none(),
                "--items and --index are for FAISS: no other format holds items"
            );
        }
        ensure!(
            self.id.is_none() || self.items.is_some() || format == Format::Sql,
            "--id is for items of FAISS (--items) and for SQL: nothing else here has ids"
        );
        if format != Format::Sql {
            ensure!(
                self.distance.is_none(),
                "--distance is for SQL: {}",
                match format {
                    Format::Faiss => "FAISS compares as the plan needs it",
                    _ => "a map alone compares nothing",
                }
            );
        }
        if self.normalise && matches!(format, Format::Faiss | Format::Sql) {
            bail!("--normalise is for maps alone: an index divides where its plan says so");
        }
        Ok(())
    }

    /// A map alone.
    fn map(&self, model: &Model, format: MapFormat) -> Result<Done> {
        let planned = self.way.is_some() || self.record.is_some();
        let (mut export, way) = if planned {
            let plan = self.plan(model, &Distance::ALL)?;
            (export::Export::queries(model, &plan)?, Some(plan.way()))
        } else {
            (export::Export::embedding(model, self.side(model)?)?, None)
        };
        if self.normalise {
            export = export.at_unit_length();
        }
        let files = format.write(&self.output, &export, &self.name()?)?;
        Ok(self.done(Format::Map(format), way, &export, files))
    }

    fn sql(&self, model: &Model) -> Result<Done> {
        ensure!(
            self.side != Some(SideName::Item),
            "a SQL file asks, so that it maps queries: --side item has no place in it"
        );
        let distances = match self.distance {
            Some(distance) => vec![distance],
            None => Distance::ALL.to_vec(),
        };
        let plan = self.plan(model, &distances)?;
        let export = export::Export::queries(model, &plan)?;
        let columns = SqlColumns {
            table: self.table.parse()?,
            id: self.id.clone().unwrap_or_else(|| "id".to_owned()),
            column: self.column.clone(),
        };
        let mut target = AtomicFile::create(&self.output)?;
        let function = export::write_sql(&mut target, &export, &plan, &columns, &self.name()?)?;
        target.finish()?;
        let done = self.done(
            Format::Sql,
            Some(plan.way()),
            &export,
            vec![self.output.clone()],
        );
        Ok(Done {
            function: Some(function),
            ..done
        })
    }

    /// The plan of the record, or the best, or the best by this way, in a store with these distances.
    fn plan(&self, model: &Model, distances: &[Distance]) -> Result<Plan> {
        if let Some(path) = &self.record {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| place.clone())?;
            let plan = Provenance::from_text(text.trim(), &place)?.plan(model, &place)?;
            ensure!(
                distances.contains(&plan.distance()),
                "{place}: the stored vectors are compared by {}, which this format does not have",
                plan.distance()
            );
            return Ok(plan);
        }
        let constraints = PlanConstraints {
            distances: distances.to_vec(),
            way: self.way,
            candidates: self.way == Some(Strategy::Candidates),
            ..PlanConstraints::default()
        };
        Ok(Plan::choose_for_model(model, &constraints)?)
    }

    /// The side asked for; one must be named where the two differ.
    fn side(&self, model: &Model) -> Result<Side> {
        match self.side {
            Some(side) => Ok(side.into()),
            None if model.chain.has_two_sides() => {
                bail!("queries and items are mapped differently: say --side query or --side item")
            }
            None => Ok(Side::Query),
        }
    }

    /// What names in the file begin with.
    fn name(&self) -> Result<String> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => {
                let stem = self.output.file_stem().context("the output has no name")?;
                Ok(export::c_name(&stem.to_string_lossy()))
            }
        }
    }

    fn done(
        &self,
        format: Format,
        way: Option<Strategy>,
        export: &export::Export,
        files: Vec<PathBuf>,
    ) -> Done {
        Done {
            format,
            side: export.side_name(),
            way,
            input_dim: export.input_dim(),
            output_dim: export.output_dim(),
            compare: export.compare().to_owned(),
            items: None,
            function: None,
            files,
        }
    }
}
