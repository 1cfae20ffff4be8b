//! Writing an index: items one block after the other into a folder of another name, which takes its
//! own name when all is there, so that a folder with the right name is always a whole index.

use super::graph::Graph;
use super::manifest::{
    DigestedFile, FileMark, GRAPH, IDS, LABELS, Manifest, ModelMark, VECTORS, digest_file,
};
use super::settings::{BuildProgress, GraphSettings, Stage};
use super::texts::Texts;
use crate::bytes::little_endian;
use crate::{Error, Result};
use metra::data::MappedCorpus;
use metra::internal::{AtomicFolder, check_mapped};
use metra::linalg::Rows;
use metra::model::{Embedding, Model, Space};
use std::collections::BTreeMap;
use std::path::Path;

/// Writes an index, item by item.
pub struct IndexWriter {
    /// Removed with all in it unless the index is finished.
    building: AtomicFolder,
    vectors: DigestedFile,
    files: BTreeMap<String, FileMark>,
    model: ModelMark,
    space: Space,
    dim: usize,
    rows: u64,
}

impl IndexWriter {
    /// An index in `folder`, which must not exist yet, of items as `model` maps them. `name` is what
    /// a message will call the model.
    pub fn create(folder: &Path, model: &Model, name: &str) -> Result<Self> {
        let building = AtomicFolder::create(folder)?;
        Ok(IndexWriter {
            vectors: DigestedFile::create(&building.path().join(VECTORS))?,
            building,
            files: BTreeMap::new(),
            model: ModelMark::of(name, model)?,
            space: model.chain.space(),
            dim: model.chain.output_dim(),
            rows: 0,
        })
    }

    /// Append items, mapped by the model.
    pub fn push(&mut self, rows: Rows<'_>) -> metra::Result<()> {
        if rows.dim() != self.dim {
            return Err(metra::Error::shape(
                "dimension of the mapped items",
                self.dim,
                rows.dim(),
            ));
        }
        for row in rows.iter() {
            check_mapped(self.rows, row)?;
            if self.space == Space::Cosine && row.iter().all(|value| *value == 0.0) {
                return Err(metra::Error::Row {
                    row: self.rows,
                    problem: "has length 0 after the map: a cosine does not exist".into(),
                });
            }
            self.rows += 1;
        }
        self.vectors
            .write(&little_endian(rows.values()))
            .map_err(|e| metra::Error::io(self.building.path().join(VECTORS), e))
    }

    /// Number of items so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What to call the items, after the last one was pushed; without this, row numbers.
    pub fn ids<S: AsRef<str>>(&mut self, ids: impl IntoIterator<Item = S>) -> Result<()> {
        self.texts(IDS, ids)
    }

    /// A label for each item, to be shown with it.
    pub fn labels<S: AsRef<str>>(&mut self, labels: impl IntoIterator<Item = S>) -> Result<()> {
        self.texts(LABELS, labels)
    }

    fn texts<S: AsRef<str>>(
        &mut self,
        name: &str,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<()> {
        let mark = Texts::write(&self.building.path().join(name), texts, self.rows)?;
        self.files.insert(name.to_owned(), mark);
        Ok(())
    }

    /// Link the items into a graph if one is wanted, and give the folder its name.
    pub fn finish(
        mut self,
        graph: Option<&GraphSettings>,
        progress: &mut BuildProgress<'_>,
    ) -> Result<Manifest> {
        if self.rows == 0 {
            return Err(metra::Error::Data("there is no item to index".into()).into());
        }
        let path = self.building.path().join(VECTORS);
        let written = self.vectors.finish().map_err(|e| Error::io(&path, e))?;
        self.files.insert(VECTORS.to_owned(), written);
        let mut manifest = Manifest::new(self.model, self.space, self.rows, self.dim);
        if let Some(settings) = graph {
            settings.check()?;
            let items = MappedCorpus::open(&path, 0, self.rows as usize, self.dim)?;
            let path = self.building.path().join(GRAPH);
            let facts = Graph::build(&path, self.space, &items, settings, progress)?;
            manifest.graph = Some(facts);
            let total = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
            let mut done = 0;
            let written = digest_file(&path, &mut |bytes| {
                done += bytes;
                progress(Stage::Digest, done, total.len())
            })?;
            self.files.insert(GRAPH.to_owned(), written);
        }
        manifest.files = self.files;
        manifest.write(self.building.path())?;
        self.building.finish()?;
        Ok(manifest)
    }
}
