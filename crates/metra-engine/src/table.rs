//! A table: Parquet files of one layout in one store, cut into shards that no engine's mood changes.
//!
//! A shard is what one task works on alone and what results are merged by, so its borders must
//! depend on the files only. Number and first row of each piece travel as constant columns beside
//! its rows, since an engine hands pieces out in any order.

use crate::output_folder::{self, is_of_table};
use crate::stores::Place;
use crate::{Error, Result};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, col, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use futures::TryStreamExt;
use object_store::path::Path as StorePath;
use object_store::{ObjectMeta, ObjectStore};
use std::ops::Range;
use std::sync::Arc;

/// Where a table is cut into shards. Row groups stay whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After about so many rows.
    Rows(u64),
    /// Between files: training shards are written a file each.
    Files,
}

/// Constant column beside the rows of a piece: the number of its shard.
pub(crate) const SHARD: &str = "__metra_shard";
/// Constant column beside the rows of a piece: the number of its first row.
pub(crate) const FIRST: &str = "__metra_first";

/// Parquet files that are read as one table.
#[derive(Debug, Clone)]
pub struct ShardedTable {
    address: String,
    store: ObjectStoreUrl,
    schema: SchemaRef,
    shards: Vec<Shard>,
    /// TableColumns with the value that rows must have there.
    filters: Vec<(String, String)>,
}

/// What one task works on: some row groups, in order.
#[derive(Debug, Clone)]
struct Shard {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    file: ObjectMeta,
    /// Where its row groups begin, and where those after it do.
    range: (i64, i64),
    /// Number of its first row in the table, as rows pass the filter.
    first: u64,
    rows: u64,
}

impl ShardedTable {
    /// Read the layout of a file, or of all files of a folder that end in `.parquet`, in the order
    /// of their names.
    pub(crate) async fn open(
        address: &str,
        cut: Cut,
        runtime: &RuntimeEnv,
    ) -> Result<ShardedTable> {
        let place = Place::parse(address)?;
        let failed = |problem: String| Error::table(address, problem);
        let store = (runtime.object_store(&place.store)).map_err(|e| failed(e.to_string()))?;
        let files = files_of(&place, store.as_ref()).await?;
        let mut schema: Option<SchemaRef> = None;
        let mut shards = Vec::new();
        let mut open: Option<(Shard, u64)> = None;
        let mut row = 0;
        for file in files {
            let named = |problem: String| {
                Error::table(
                    format!("{}{}", place.store.as_str(), file.location),
                    problem,
                )
            };
            let footer = DFParquetMetadata::new(store.as_ref(), &file);
            let footer = footer.fetch_metadata().await;
            let footer = footer.map_err(|e| named(e.to_string()))?;
            let description = footer.file_metadata();
            let found = parquet_to_arrow_schema(
                description.schema_descr(),
                description.key_value_metadata(),
            );
            let found = found.map_err(|e| named(e.to_string()))?;
            match &schema {
                None => schema = Some(Arc::new(found)),
                Some(known) => same_columns(known, &found).map_err(named)?,
            }
            let starts: Vec<i64> = (footer.row_groups().iter())
                .map(|group| {
                    let column = group.column(0);
                    let dictionary = column.dictionary_page_offset();
                    dictionary.unwrap_or_else(|| column.data_page_offset())
                })
                .collect();
            for (number, group) in footer.row_groups().iter().enumerate() {
                let rows = u64::try_from(group.num_rows()).unwrap_or(0);
                if rows == 0 {
                    continue;
                }
                let size = i64::try_from(file.size).unwrap_or(i64::MAX);
                let end = starts.get(number + 1).copied().unwrap_or(size);
                let (shard, held) = open.get_or_insert_with(|| (Shard { pieces: Vec::new() }, 0));
                match shard.pieces.last_mut() {
                    Some(piece) if piece.file.location == file.location => {
                        piece.range.1 = end;
                        piece.rows += rows;
                    }
                    _ => shard.pieces.push(Piece {
                        file: file.clone(),
                        range: (starts[number], end),
                        first: row,
                        rows,
                    }),
                }
                (row, *held) = (row + rows, *held + rows);
                if matches!(cut, Cut::Rows(most) if *held >= most) {
                    shards.extend(open.take().map(|(shard, _)| shard));
                }
            }
            if cut == Cut::Files {
                shards.extend(open.take().map(|(shard, _)| shard));
            }
        }
        shards.extend(open.map(|(shard, _)| shard));
        let schema = schema.ok_or_else(|| failed("there is no Parquet file".into()))?;
        Ok(ShardedTable {
            address: address.to_owned(),
            store: place.store,
            schema,
            shards,
            filters: Vec::new(),
        })
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        let pieces = self.shards.iter().flat_map(|shard| &shard.pieces);
        pieces.map(|piece| piece.rows).sum()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Whether a file of its store is one of its own.
    pub(crate) fn reads(&self, location: &StorePath) -> bool {
        let mut pieces = self.shards.iter().flat_map(|shard| &shard.pieces);
        pieces.any(|piece| piece.file.location == *location)
    }

    /// Names of its columns.
    pub fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The type of a column.
    pub fn column(&self, name: &str) -> Result<&DataType> {
        let found = self.schema.field_with_name(name);
        found.map(Field::data_type).map_err(|_| {
            let names: Vec<&str> = (self.schema.fields().iter())
                .map(|field| field.name().as_str())
                .collect();
            let problem = format!("expected a column {name:?} among {}", names.join(", "));
            Error::table(self.address.clone(), problem)
        })
    }

    /// The first column of lists of numbers, where none was named.
    pub fn vector_column(&self) -> Result<String> {
        let mut fields = self.schema.fields().iter();
        let found = fields
            .find(|field| crate::columns::vector_dim(field.name(), field.data_type()).is_ok());
        found.map(|field| field.name().clone()).ok_or_else(|| {
            Error::table(
                self.address.clone(),
                "there is no column of lists of numbers",
            )
        })
    }

    /// The rows whose column has this value, not numbered yet.
    pub(crate) fn filtered(&self, column: &str, value: &str) -> Result<ShardedTable> {
        self.column(column)?;
        let mut table = self.clone();
        table.filters.push((column.to_owned(), value.to_owned()));
        Ok(table)
    }

    /// Number the rows anew by how many of each piece pass the filter.
    pub(crate) fn numbered(mut self, rows_of: impl Fn(u64, u64) -> u64) -> ShardedTable {
        let mut row = 0;
        for (number, shard) in self.shards.iter_mut().enumerate() {
            for piece in &mut shard.pieces {
                piece.rows = rows_of(number as u64, piece.first);
            }
            shard.pieces.retain(|piece| piece.rows > 0);
            for piece in &mut shard.pieces {
                piece.first = row;
                row += piece.rows;
            }
        }
        self.shards.retain(|shard| !shard.pieces.is_empty());
        self
    }

    /// The shards that hold one of these rows, which increase.
    pub(crate) fn shards_with(&self, rows: &[u64]) -> Vec<usize> {
        let holds = |shard: &Shard| {
            shard.pieces.iter().any(|piece| {
                let at = rows.partition_point(|row| *row < piece.first);
                rows.get(at)
                    .is_some_and(|row| *row < piece.first + piece.rows)
            })
        };
        (0..self.shards.len())
            .filter(|shard| holds(&self.shards[*shard]))
            .collect()
    }

    /// The shards that hold rows of a range.
    pub(crate) fn shards_within(&self, range: Range<u64>) -> Vec<usize> {
        let holds = |shard: &Shard| {
            let mut pieces = shard.pieces.iter();
            pieces.any(|piece| piece.first < range.end && piece.first + piece.rows > range.start)
        };
        (0..self.shards.len())
            .filter(|shard| holds(&self.shards[*shard]))
            .collect()
    }

    /// A scan of some columns of some shards, spread over `partitions`; number of the shard and of
    /// a piece's first row follow the columns. `batch_rows` are the rows of a batch.
    pub(crate) fn scan(
        &self,
        columns: &[&str],
        shards: &[usize],
        partitions: usize,
        batch_rows: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let doing = || format!("planning to read {}", self.address);
        let failed = |e: datafusion::error::DataFusionError| Error::engine(doing(), e);
        let extra = [
            Arc::new(Field::new(SHARD, DataType::UInt64, false)),
            Arc::new(Field::new(FIRST, DataType::UInt64, false)),
        ];
        let table_schema = TableSchema::builder(self.schema.clone())
            .with_table_partition_cols(extra.to_vec())
            .build();
        let whole = table_schema.table_schema().clone();
        let mut source = ParquetSource::new(table_schema)
            .with_table_parquet_options(TableParquetOptions::default());
        if let Some(predicate) = self.predicate(&whole).map_err(failed)? {
            source = source.with_predicate(predicate);
        }
        let mut wanted = Vec::new();
        for name in columns {
            self.column(name)?;
            wanted.push(*name);
        }
        for (column, _) in &self.filters {
            if !wanted.contains(&column.as_str()) {
                wanted.push(column);
            }
        }
        wanted.extend([SHARD, FIRST]);
        let indices = wanted.iter().filter_map(|name| whole.index_of(name).ok());
        let config = FileScanConfigBuilder::new(self.store.clone(), Arc::new(source))
            .with_projection_indices(Some(indices.collect()))
            .map_err(failed)?
            .with_file_groups(self.groups(shards, partitions))
            .with_batch_size(batch_rows)
            // Otherwise a partition that has nothing left takes files of another, and a shard is
            // read in two places.
            .with_preserve_order(true)
            .build();
        let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        match self.predicate(&scan.schema()).map_err(failed)? {
            None => Ok(scan),
            Some(predicate) => {
                let filter = FilterExec::try_new(predicate, scan);
                Ok(Arc::new(filter.map_err(failed)?))
            }
        }
    }

    /// What rows must satisfy, over columns of this schema.
    fn predicate(
        &self,
        schema: &Schema,
    ) -> datafusion::error::Result<Option<Arc<dyn PhysicalExpr>>> {
        let mut all: Option<Arc<dyn PhysicalExpr>> = None;
        for (column, value) in &self.filters {
            let one = equals(schema, column, value)?;
            all = Some(match all {
                None => one,
                Some(before) => Arc::new(BinaryExpr::new(before, Operator::And, one)),
            });
        }
        Ok(all)
    }

    /// Shards in consecutive runs of about equal length, one run a partition.
    fn groups(&self, shards: &[usize], partitions: usize) -> Vec<FileGroup> {
        let each = shards.len().div_ceil(partitions.max(1)).max(1);
        let file = |number: usize, piece: &Piece| {
            let file = PartitionedFile::new_from_meta(piece.file.clone());
            let file = file.with_range(piece.range.0, piece.range.1);
            file.with_partition_values(vec![
                ScalarValue::UInt64(Some(number as u64)),
                ScalarValue::UInt64(Some(piece.first)),
            ])
        };
        let group = |run: &[usize]| {
            let pieces = run.iter().flat_map(|number| {
                let pieces = self.shards[*number].pieces.iter();
                pieces.map(|piece| file(*number, piece))
            });
            FileGroup::new(pieces.collect())
        };
        shards.chunks(each).map(group).collect()
    }
}

async fn files_of(place: &Place, store: &dyn ObjectStore) -> Result<Vec<ObjectMeta>> {
    let failed = |e: object_store::Error| Error::table(place.address(), e);
    let listed: Vec<ObjectMeta> = store
        .list(Some(&place.path))
        .try_collect()
        .await
        .map_err(failed)?;
    let mut files: Vec<ObjectMeta> = listed.into_iter().filter(is_of_table).collect();
    if !matches!(&files[..], [only] if only.location == place.path) {
        output_folder::check(place, store, &files).await?;
    }
    if files.is_empty() && !place.is_folder {
        use object_store::ObjectStoreExt;
        files.push(store.head(&place.path).await.map_err(failed)?);
    }
    files.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(files)
}

fn same_columns(known: &Schema, found: &Schema) -> std::result::Result<(), String> {
    for field in known.fields() {
        match found.field_with_name(field.name()) {
            Ok(other) if other.data_type() == field.data_type() => {}
            Ok(other) => {
                return Err(format!(
                    "column {}: expected {} as in the first file, but found {}",
                    field.name(),
                    field.data_type(),
                    other.data_type()
                ));
            }
            Err(_) => {
                let name = field.name();
                return Err(format!("expected a column {name:?} as in the first file"));
            }
        }
    }
    Ok(())
}

/// `column = value`, the value as the column's type has it.
fn equals(
    schema: &Schema,
    column: &str,
    value: &str,
) -> datafusion::error::Result<Arc<dyn PhysicalExpr>> {
    let data_type = schema.field_with_name(column)?.data_type().clone();
    let text = ScalarValue::Utf8(Some(value.to_owned()));
    let column = col(column, schema)?;
    Ok(match text.cast_to(&data_type) {
        Ok(value) => Arc::new(BinaryExpr::new(column, Operator::Eq, lit(value))),
        // Compared as text where the text is no value of the column's type: no row has it.
        Err(_) => {
            let column = Arc::new(CastExpr::new(column, DataType::Utf8, None));
            Arc::new(BinaryExpr::new(column, Operator::Eq, lit(text)))
        }
    })
}
