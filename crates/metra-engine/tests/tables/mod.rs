//! Tables made for tests: classes about their own centres, in several files of several row groups.

#![allow(dead_code, reason = "every test file uses a part of it")]

use datafusion::arrow::array::{
    ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use metra::data::MemoryCorpus;
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::supervision::Labels;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Classes that differ in the first half of the coordinates; the other half is loud noise.
pub(crate) struct Made {
    folder: tempfile::TempDir,
    rows: RowBuf,
    classes: Vec<String>,
    per_file: usize,
}

impl Made {
    /// So many files of so many rows each.
    pub(crate) fn new(files: usize, per_file: usize, dim: usize, seed: u64) -> Self {
        Self::with_classes(files, per_file, dim, seed, |row| row * 7 % 40)
    }

    /// The same, the class of each row given.
    pub(crate) fn with_classes(
        files: usize,
        per_file: usize,
        dim: usize,
        seed: u64,
        class_of: impl Fn(usize) -> usize,
    ) -> Self {
        let mut random = Stream::new(seed, "made table", 0);
        let mut values = Vec::with_capacity(files * per_file * dim);
        let mut classes = Vec::new();
        for row in 0..files * per_file {
            let class = class_of(row);
            let mut centre = Stream::new(seed, "centre", class as u64);
            for column in 0..dim {
                let (mean, spread) = match column < dim / 2 {
                    true => (centre.normal(), 0.3),
                    false => (5.0, 2.0),
                };
                values.push((mean + spread * random.normal()) as f32);
            }
            classes.push(format!("class {class:03}"));
        }
        let folder = tempfile::tempdir().unwrap();
        let made = Made {
            folder,
            rows: RowBuf::from_values(values, dim).unwrap(),
            classes,
            per_file,
        };
        for file in 0..files {
            made.write(file);
        }
        made
    }

    fn write(&self, file: usize) {
        let (start, end) = (file * self.per_file, (file + 1) * self.per_file);
        let dim = self.rows.dim();
        let values = self.rows.rows().slice(start, end).values().to_vec();
        let item = Arc::new(Field::new("item", DataType::Float32, false));
        let vectors =
            FixedSizeListArray::new(item, dim as i32, Arc::new(Float32Array::from(values)), None);
        let labels = StringArray::from(self.classes[start..end].to_vec());
        let columns: [(&str, ArrayRef); 2] =
            [("label", Arc::new(labels)), ("vector", Arc::new(vectors))];
        write(
            &self.path().join(format!("part-{file:03}.parquet")),
            &columns,
        );
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    pub(crate) fn address(&self) -> String {
        self.path().display().to_string()
    }

    pub(crate) fn corpus(&self) -> MemoryCorpus {
        MemoryCorpus::new(self.rows.clone()).unwrap()
    }

    pub(crate) fn labels(&self) -> Labels {
        Labels::from_names(&self.classes).unwrap()
    }
}

/// Write columns to a file with row groups of 300 rows.
pub(crate) fn write(path: &Path, columns: &[(&str, ArrayRef)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, array)| array.clone()).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(300))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
