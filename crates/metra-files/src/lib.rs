//! Vectors, labels, ids, groups, judgements and splits from files, for [`metra`].
//!
//! [`read_table`] reads vectors with their columns from Parquet, Feather, npy, npz, CSV and JSON lines
//! by streaming: a corpus beyond the memory limit goes to a memory-mapped file. [`read_qrels`], [`read_run`] and
//! [`read_splits`] read what belongs beside it, [`read_pairs`], [`read_triplets`],
//! [`read_quadruplets`], [`read_orderings`] and [`read_taxonomy`] what else can be said of rows and
//! classes; [`NpyWriter`], [`ParquetVectorWriter`] and [`write_run`] write results. Every error names the file, the place in it, what was expected
//! and what was found.
//!
//! ```
//! use metra_files::{TableOptions, read_table};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("items.csv");
//! std::fs::write(&path, "label,vector_0,vector_1\ncat,1,0\ndog,0,1\n")?;
//! let options = TableOptions { columns: vec!["label".into()], ..TableOptions::default() };
//! let table = read_table(&path, &options, &mut |_, _| {})?;
//! assert_eq!((table.corpus.len(), table.corpus.dim()), (2, 2));
//! assert_eq!(table.columns["label"].get(1), "dog");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod arrow;
mod arrow_container;
mod arrow_sparse;
mod arrow_values;
mod classes;
mod clicks;
mod column;
mod comparisons;
mod csv;
mod element;
mod error;
mod feather_blocks;
mod fusion;
mod json_lines;
mod label_sets;
mod lines;
mod npy;
mod npz;
mod parquet_pages;
mod read;
mod sink;
mod source_file;
mod splits;
mod table;
mod trec;
mod vector_columns;
mod vector_stream;
mod write;

pub use classes::{OrderingsFile, read_orderings, read_taxonomy};
pub use clicks::read_clicks;
pub use column::Column;
pub use comparisons::{
    NamedPairs, PairList, Quadruplets, RowNames, Triplets, read_named_pairs, read_pairs,
    read_quadruplets, read_triplets,
};
pub use element::ElementType;
pub use error::{Error, Place, Result};
pub use fusion::{FusionOrigin, NamedFusion, read_fusion, write_fusion};
pub use label_sets::label_sets;
pub use read::read_table;
pub use splits::read_splits;
pub use table::{Filter, MissingValues, NarrowingRule, ReadProgress, Table, TableOptions};
pub use trec::{
    QrelsByName, QrelsFile, TrecRun, read_qrels, read_qrels_by_name, read_run, write_qrels,
    write_run,
};
pub use vector_stream::{read_vector_stream, write_vector_stream};
pub use write::{NpyWriter, ParquetVectorWriter, VectorLayout, WrittenElement};
