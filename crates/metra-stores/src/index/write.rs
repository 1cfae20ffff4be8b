//! Writing an index: items one block after the other into a folder of another name, which takes its
//! own name when all is there, so that a folder with the right name is always a whole index.

use super::codes::write_code;
use super::graph::Graph;
use super::manifest::{
    CODE, CODES, DigestedFile, FileMark, GRAPH, IDS, LABELS, Manifest, ModelMark, VECTORS,
    digest_file,
};
use super::settings::{BuildProgress, GraphSettings, Stage};
use super::texts::Texts;
use super::{LocalIndex, StoredItems};
use crate::bytes::little_endian;
use crate::{Error, Result};
use metra::data::{Corpus, MappedCorpus};
use metra::internal::{AtomicFolder, check_mapped};
use metra::linalg::Rows;
use metra::model::{Code, Embedding, Model, Space};
use metra::search::HammingItems;
use std::collections::BTreeMap;
use std::path::Path;

/// Writes an index, item by item.
pub struct IndexWriter {
    /// Removed with all in it unless the index is finished.
    building: AtomicFolder,
    /// Mapped items; of a model with a code those before it, where they are kept.
    vectors: Option<DigestedFile>,
    codes: Option<(Code, DigestedFile)>,
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
        let file = |name: &str| DigestedFile::create(&building.path().join(name));
        let mut files = BTreeMap::new();
        let (codes, vectors) = match model.chain.code() {
            None => (None, Some(file(VECTORS)?)),
            Some(code) => {
                let bytes = code.item_bytes(model.chain.output_dim());
                if matches!(code, Code::Bits { .. }) && bytes > HammingItems::MOST_BYTES {
                    let expected = format!("at most {}", HammingItems::MOST_BYTES);
                    return Err(metra::Error::shape("bytes of an item", expected, bytes).into());
                }
                let path = building.path().join(CODE);
                write_code(&path, &model.chain)?;
                files.insert(CODE.to_owned(), digest_file(&path, &mut |_| Ok(()))?);
                (Some((code.clone(), file(CODES)?)), None)
            }
        };
        Ok(IndexWriter {
            vectors,
            codes,
            building,
            files,
            model: ModelMark::of(name, model)?,
            space: model.chain.space(),
            dim: model.chain.output_dim(),
            rows: 0,
        })
    }

    /// Keep the vectors before their code, too, so that first answers can be rescored by them.
    pub fn keep_vectors(mut self) -> Result<Self> {
        if self.vectors.is_none() {
            self.vectors = Some(DigestedFile::create(&self.building.path().join(VECTORS))?);
        }
        Ok(self)
    }

    /// Append items, mapped by the model, before its code if it has one.
    pub fn push(&mut self, rows: Rows<'_>) -> metra::Result<()> {
        if rows.dim() != self.dim {
            return Err(metra::Error::shape(
                "dimension of the mapped items",
                self.dim,
                rows.dim(),
            ));
        }
        let first = self.rows;
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
        if let Some((code, file)) = &mut self.codes {
            let mut bytes = Vec::new();
            code.encode(first, self.space, rows, &mut bytes)?;
            let path = self.building.path().join(CODES);
            file.write(&bytes).map_err(|e| metra::Error::io(path, e))?;
        }
        self.write_vectors(rows)
    }

    fn write_vectors(&mut self, rows: Rows<'_>) -> metra::Result<()> {
        let Some(file) = &mut self.vectors else {
            return Ok(());
        };
        file.write(&little_endian(rows.values()))
            .map_err(|e| metra::Error::io(self.building.path().join(VECTORS), e))
    }

    /// Append the items of another index of the same model, as they are there; `stop` is asked between blocks.
    pub fn append(
        &mut self,
        former: &LocalIndex,
        stop: &dyn Fn() -> metra::Result<()>,
    ) -> Result<()> {
        let (coded, vectors) = match &former.items {
            StoredItems::Vectors(vectors) => (None, Some(vectors.as_ref())),
            StoredItems::Codes(coded) => (Some(&coded.items), coded.vectors.as_ref()),
        };
        let same_model = former.manifest.model.digest == self.model.digest;
        if !same_model || coded.is_some() != self.codes.is_some() {
            let problem = "expected items of the same model, as it holds them (codes or vectors)";
            return Err(Error::file(&former.folder, problem));
        }
        if self.vectors.is_none() && vectors.is_some() {
            let problem =
                "has vectors to rescore by, which would be lost: keep them here, too (--rescore)";
            return Err(Error::file(&former.folder, problem));
        }
        if self.vectors.is_some() && vectors.is_none() {
            let problem = "has no vectors to rescore by: index with them, or leave them out here";
            return Err(Error::file(&former.folder, problem));
        }
        if let (Some((_, file)), Some(coded)) = (&mut self.codes, coded) {
            let path = self.building.path().join(CODES);
            file.write(coded.codes()).map_err(|e| Error::io(&path, e))?;
        }
        if let Some(vectors) = vectors {
            vectors.scan(0..vectors.len(), &mut |_, rows| {
                stop()?;
                self.write_vectors(rows)
            })?;
        }
        self.rows += former.manifest.rows;
        Ok(())
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
        let mut manifest = Manifest::new(self.model, self.space, self.rows, self.dim);
        manifest.code = (self.codes.as_ref()).map(|(code, _)| code.name().to_owned());
        let path = self.building.path().join(VECTORS);
        let codes = self.codes.map(|(_, file)| (CODES, file));
        let vectors = self.vectors.map(|file| (VECTORS, file));
        for (name, file) in codes.into_iter().chain(vectors) {
            let written = file.finish();
            let written = written.map_err(|e| Error::io(&self.building.path().join(name), e))?;
            self.files.insert(name.to_owned(), written);
        }
        if let Some(settings) = graph {
            settings.check()?;
            if let Some(code) = &manifest.code {
                let expected = format!("none over items as {code}: it has its own copy in f32");
                return Err(metra::Error::parameter("the graph", expected, "asked for").into());
            }
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
