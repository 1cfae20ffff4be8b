//! `metra push`: a model into a live table of PostgreSQL; `--swap` and `--rollback` change which column
//! applications search.

mod show;

use crate::args::{Common, PlanArgs, size};
use crate::interrupt::STOP;
use crate::print;
use crate::progress::Reporter;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use metra::model::{Distance, Model};
use metra_stores::TableName;
use metra_stores::postgres::{Address, Pushing, Swapped, Swapping, VectorType, rollback, swap};
use show::{Done, Exchanged, Outline};
use std::path::PathBuf;
use std::time::Instant;

/// Put a model into a live table of PostgreSQL, swap it in, roll it back.
///
/// A new column gets what the model's plan stores, in batches of one transaction each; the table stays
/// readable and writable. A push that was ended, however, is continued by repeating it, and so are rows
/// that came later. The column's comment and the table metra_models say what was done.
#[derive(Args)]
pub(crate) struct Push {
    /// The model file
    model: PathBuf,
    /// The database: postgres://user@host/database (password: there, or in PGPASSWORD)
    database: String,
    /// The table (`docs` or `schema.docs`)
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// Column of ids: whole numbers, texts or UUIDs that differ
    #[arg(long, value_name = "COLUMN", default_value = "id")]
    id: String,
    /// Column of the input vectors (vector or halfvec)
    #[arg(long, value_name = "COLUMN")]
    from: String,
    /// Column to write; made if it is absent. With --keep-items none is written
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["keep_items", "rollback"],
          conflicts_with = "keep_items")]
    to: Option<String>,
    /// Type of a new column: vector (4 bytes a number), halfvec (2 bytes, three digits) or bit (1 bit, for models
    /// trained with --code bits or hamming)
    #[arg(long = "type", value_name = "TYPE", default_value = "vector")]
    kind: VectorType,
    /// Make an index by the plan's distance, if there is none
    #[arg(long, value_enum)]
    index: Option<IndexName>,
    /// Memory that the server may use to make it (512M, 2G; default: its own setting)
    #[arg(long, value_name = "SIZE", requires = "index", value_parser = size)]
    index_memory: Option<u64>,
    /// Rows of a transaction
    #[arg(long, value_name = "N", default_value_t = 1000)]
    batch: usize,
    #[command(flatten)]
    constraint_args: PlanArgs,
    /// Column of the camera or session a vector comes from, where the model needs it
    #[arg(long, value_name = "COLUMN")]
    camera: Option<String>,
    /// Name of the model in the registry (default: the model file's)
    #[arg(long)]
    name: Option<String>,
    /// Write rows that have a vector again, because input vectors changed
    #[arg(long, conflicts_with = "keep_items")]
    refill: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Give applications the column of --to under the name that they search, in one transaction
    #[arg(long, conflicts_with_all = ["dry_run", "keep_items", "index", "refill", "rollback"])]
    swap: bool,
    /// Give them back what a swap put aside
    #[arg(long, conflicts_with_all = ["dry_run", "keep_items", "index", "refill"])]
    rollback: bool,
    /// With --swap and --rollback: the column that applications search (default: that of --from)
    #[arg(long, value_name = "COLUMN")]
    live: Option<String>,
    /// With --swap: what the replaced column is called from then on (default: its name and _former)
    #[arg(long, value_name = "COLUMN", requires = "swap")]
    former: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum IndexName {
    Hnsw,
}

impl Push {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let address = Address::parse(&self.database)?;
        let address = address.noticing(|said| tracing::info!("the server says: {said}"));
        let model = Model::load(&self.model)?;
        let table: TableName = self.table.parse()?;
        if self.swap || self.rollback {
            return self.exchange(&address, &model, table, common);
        }
        let stem = self
            .model
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let what = Pushing {
            table,
            id: self.id.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            kind: self.kind,
            camera: self.camera.clone(),
            constraints: self.constraint_args.constraints(&Distance::ALL)?,
            name: self.name.clone().or(stem).unwrap_or_else(|| "model".into()),
            batch: self.batch,
            index: self.index.is_some(),
            index_memory: self.index_memory,
            refill: self.refill,
        };
        let mut push = metra_stores::postgres::Push::prepare(
            &address,
            &model,
            &what,
            (!self.dry_run).then_some(&STOP),
        )?;
        if self.dry_run {
            return Outline::new(&mut push)?.show(common);
        }
        Outline::head(&push, common)?;
        let began = Instant::now();
        let mut reporter = Reporter::new();
        let mut current = String::new();
        let mut written = 0;
        let outcome = push.run(
            &mut |stage, done, total| {
                if current != stage {
                    reporter.start(stage);
                    stage.clone_into(&mut current);
                }
                written = done;
                let unit = if stage == "index" { "blocks" } else { "rows" };
                reporter.advance(done, total, || unit.into());
            },
            &STOP,
        );
        reporter.finish();
        if let Err(metra_stores::Error::Library(metra::Error::Interrupted)) = &outcome {
            tracing::warn!(
                "stopped in «{current}» at {}: the same command continues where it was",
                print::count(written)
            );
        }
        Done::new(&push, outcome?, began.elapsed()).show(common)
    }

    fn exchange(
        &self,
        address: &Address,
        model: &Model,
        table: TableName,
        common: &Common,
    ) -> Result<()> {
        let live = self.live.clone().unwrap_or_else(|| self.from.clone());
        let swapped = if self.rollback {
            rollback(address, model, &table, &live, &STOP)?
        } else {
            let to = self.to.clone().unwrap_or_default();
            ensure!(
                to != live,
                "--to and the column that applications search must differ"
            );
            let former = self
                .former
                .clone()
                .unwrap_or_else(|| format!("{live}_former"));
            let what = Swapping {
                table,
                live: live.clone(),
                to,
                former,
            };
            swap(address, model, &what, &STOP)?
        };
        if let Swapped::Renamed { missing: 1.., .. } = &swapped {
            tracing::warn!("rows without a vector in {live:?}: repeat the push to fill them");
        }
        Exchanged::new(self.rollback, swapped).show(common)
    }
}
