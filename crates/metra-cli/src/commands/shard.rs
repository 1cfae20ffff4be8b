//! `metra shard`: a table written anew with whole classes together, for training by rounds.

use crate::args::{ClusterArgs, Common};
use crate::cluster_args::{describe, say};
use anyhow::Result;
use clap::Args;
use metra_engine::Sharding;
use metra_files::Filter;
use serde::Serialize;
use std::time::Instant;

/// Write training shards: whole classes together, balanced, shuffled by seed.
#[derive(Args)]
pub(crate) struct Shard {
    /// The table: a Parquet file or a folder of them, local or s3://
    data: String,
    /// Column of class labels
    #[arg(long, value_name = "COLUMN")]
    label: String,
    /// Number of shards; at least as many as tasks are to run at the same time
    #[arg(long, value_name = "N")]
    shards: u64,
    /// Columns to write (repeatable; default: all)
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Keep only rows with this value (column=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Seed of the deal of classes and of the shuffle
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder to write to, local or s3://
    #[arg(short, long, value_name = "FOLDER")]
    output: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Serialize)]
struct Done {
    rows: Vec<u64>,
    bytes: u64,
    seconds: f64,
    output: String,
}

impl Shard {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let began = Instant::now();
        let place = self.cluster.cluster.as_deref().unwrap_or("here");
        let engine = self.cluster.engine(place, common)?;
        let table = (self.cluster).open(&engine, &self.data, self.cluster.cut(), &self.filters)?;
        say(common, "data", &describe(&table))?;
        let sharded = engine.shard(
            &table,
            &Sharding {
                label: &self.label,
                shards: self.shards,
                seed: self.seed,
                columns: self.keep.clone(),
                folder: &self.output,
                replace: common.force,
            },
        )?;
        let done = Done {
            seconds: began.elapsed().as_secs_f64(),
            rows: sharded.rows,
            bytes: sharded.bytes,
            output: self.output.clone(),
        };
        if common.json {
            return crate::print::json(&done);
        }
        let (least, most) = (done.rows.iter().min(), done.rows.iter().max());
        let fact = format!(
            "{} of {} to {} rows",
            done.rows.len(),
            least.unwrap_or(&0),
            most.unwrap_or(&0)
        );
        say(common, "shards", &fact)?;
        say(common, "time", &format!("{:.1} s", done.seconds))?;
        say(common, "output", &done.output)
    }
}
