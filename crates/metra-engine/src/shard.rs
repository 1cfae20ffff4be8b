//! Training shards: a table written anew with whole classes together.
//!
//! Where shards learn on their own, relevant rows must lie in the same one, and its other rows must
//! be a fair sample of irrelevant ones. So classes are dealt out to shards, largest first to the
//! shard with the fewest rows, and rows are shuffled within.

use crate::corpus::TableCorpus;
use crate::engine::Engine;
use crate::operators::{AssignExec, AssignWork, GatherExec, TARGET};
use crate::stores::Place;
use crate::table::Table;
use crate::{Error, Result};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use metra::execute::encode;
use metra::random::Stream;
use metra::supervision::Labels;
use std::sync::Arc;

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharded {
    /// Rows of every shard.
    pub rows: Vec<u64>,
    /// Bytes of all files.
    pub bytes: u64,
}

/// How a table is cut into training shards.
#[derive(Debug, Clone)]
pub struct Sharding<'a> {
    /// Column of the classes.
    pub label: &'a str,
    /// Number of shards.
    pub shards: u64,
    /// Seed of the deal and the shuffle.
    pub seed: u64,
    /// Columns to write; all where none is named.
    pub columns: Vec<String>,
    /// Address of the folder.
    pub folder: &'a str,
}

impl Engine {
    /// Write the rows of a table to training shards.
    pub fn shard(&self, table: &Table, sharding: &Sharding<'_>) -> Result<Sharded> {
        let labels = Labels::from_names(&TableCorpus::names_of(self, table, sharding.label)?)?;
        let shards = deal(&labels, sharding.shards, sharding.seed)?;
        let folder = Place::parse(&format!("{}/", sharding.folder.trim_end_matches('/')))?;
        let known = encode(&(labels.names().to_vec(), shards))?;
        let work = AssignWork {
            classes: sharding.label.to_owned(),
            shards: self.wait(self.pack(known))?,
            seed: sharding.seed,
        };
        let mut columns = match sharding.columns.is_empty() {
            true => table.columns(),
            false => sharding.columns.clone(),
        };
        if !columns.iter().any(|column| column == sharding.label) {
            columns.push(sharding.label.to_owned());
        }
        let read: Vec<&str> = columns.iter().map(String::as_str).collect();
        let all: Vec<usize> = (0..table.shards()).collect();
        let scan = table.scan(&read, &all, self.partitions(all.len()), None)?;
        let assigned = Arc::new(AssignExec::new(scan, Arc::new(work)));
        let doing = format!("cutting {} into shards", table.address());
        let failed = |e| Error::engine(doing.clone(), e);
        let by_target = vec![col(TARGET, &assigned.schema()).map_err(failed)?];
        let tasks = usize::try_from(sharding.shards).unwrap_or(1).max(1);
        let exchange = RepartitionExec::try_new(assigned, Partitioning::Hash(by_target, tasks));
        let exchange = Arc::new(exchange.map_err(failed)?);
        let plan = Arc::new(GatherExec::new(exchange, folder.address() + "/"));
        let written = self.written(plan, &doing)?;
        let mut sharded = Sharded {
            rows: vec![0; tasks],
            bytes: 0,
        };
        for (shard, written) in written {
            sharded.bytes += written.bytes;
            if let Some(rows) = sharded.rows.get_mut(shard as usize) {
                *rows += written.rows;
            }
        }
        let found: u64 = sharded.rows.iter().sum();
        if found != table.len() {
            return Err(Error::Library(metra::Error::Shape {
                what: format!("rows written to {}", sharding.folder),
                expected: table.len().to_string(),
                found: found.to_string(),
            }));
        }
        Ok(sharded)
    }
}

/// The shard of every class: the largest class first, to the shard with the fewest rows.
fn deal(labels: &Labels, shards: u64, seed: u64) -> Result<Vec<u64>> {
    let most = labels.classes() as u64;
    if shards == 0 || shards > most {
        return Err(Error::Library(metra::Error::Parameter {
            name: "shards".into(),
            expected: format!("between 1 and {most} (the classes)"),
            found: shards.to_string(),
        }));
    }
    let mut order: Vec<u32> = (0..labels.classes() as u32).collect();
    // Classes of one size in random order, so that neighbours by name are dealt apart.
    Stream::new(seed, "deal of classes", 0).shuffle(&mut order);
    order.sort_by_key(|class| std::cmp::Reverse(labels.members(*class).len()));
    let mut rows = vec![0_u64; shards as usize];
    let mut shard_of = vec![0; labels.classes()];
    for class in order {
        let emptiest = (0..rows.len())
            .min_by_key(|shard| rows[*shard])
            .unwrap_or(0);
        rows[emptiest] += labels.members(class).len() as u64;
        shard_of[class as usize] = emptiest as u64;
    }
    Ok(shard_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_dealt_evenly() {
        // Sizes 1 to 20 over four shards: 210 rows, 52 or 53 each at best.
        let classes: Vec<i64> = (1..=20).flat_map(|c| vec![c; c as usize]).collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let shard_of = deal(&labels, 4, 1).unwrap();
        let mut rows = [0; 4];
        for (class, shard) in shard_of.iter().enumerate() {
            rows[*shard as usize] += class + 1;
        }
        assert!(rows.iter().all(|rows| (51..=54).contains(rows)), "{rows:?}");
        assert_eq!(shard_of, deal(&labels, 4, 1).unwrap());
        let error = deal(&labels, 21, 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "shards must be between 1 and 20 (the classes), but is 21"
        );
    }
}
