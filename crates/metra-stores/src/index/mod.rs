//! A local index: the items of one model in a folder, for people without a vector store.
//!
//! ```text
//! index.json       what is in the folder, with lengths and digests of the other files
//! vectors.f32      the mapped items, little-endian, row after row; mapped into memory at search
//! codes.u8         the items as codes, where the model has one; vectors are then those before it, or absent
//! code.safetensors what codes stand for, with them
//! ids.text         what to call them, where they have names
//! labels.text      their labels, where they have some
//! graph.usearch    an approximate graph over them, where there is one
//! ```
//!
//! Without a graph search is exact: every query against every item. With one, the graph names
//! candidates and [`metra::search::nearest_among`] puts them into the metric's own order. An index
//! knows the model it was made with and refuses another.

mod codes;
#[cfg(feature = "index")]
mod graph;
#[cfg(not(feature = "index"))]
#[path = "no_graph.rs"]
mod graph;
#[cfg(feature = "index")]
mod graph_check;
mod manifest;
mod settings;
mod texts;
mod write;

pub use manifest::{FileMark, GraphFacts, Manifest, ModelMark, Verify};
pub use settings::{BuildProgress, GraphSettings, Stage};
pub use write::IndexWriter;

use crate::{Error, Result};
use codes::CodedIndex;
use graph::Graph;
use manifest::{CODE, CODES, GRAPH, IDS, LABELS, MANIFEST, VECTORS};
use metra::data::{Corpus, MappedCorpus, RowId, Subset};
use metra::internal::{PreparedItems, check_mapped};
use metra::linalg::RowBuf;
use metra::model::{Model, Space};
use metra::search::{Neighbours, nearest_among, top_k};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use texts::Texts;

/// Items up to which exact search is quick enough that a graph is not worth its time to build.
pub const EXACT_ITEMS: u64 = 1_000_000;

/// Whether this build can build and search a graph.
pub const HAS_GRAPH: bool = cfg!(feature = "index");

/// Queries that one thread answers before it looks for more work.
const QUERIES: u64 = 16;

/// Candidates that are put into the metric's order, for each item asked for. The graph orders as
/// the metric does up to rounding, so that few are enough, and each one is a place in memory that the
/// walk has not been at; blocks are ordered otherwise.
const CANDIDATES: usize = 2;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Every query against every item.
    Exact,
    /// Through the graph, which keeps so many candidates on its way: more find more, and take longer. Of codes, so many
    /// first answers are ranked again: by the vectors before their code, or of bits by the query's numbers.
    Approximate {
        /// Candidates kept, `k` at least.
        effort: usize,
    },
}

/// What an index holds of its items.
enum StoredItems {
    Vectors(Arc<MappedCorpus>),
    Codes(Box<CodedIndex>),
}

/// An index, opened.
pub struct LocalIndex {
    folder: PathBuf,
    manifest: Manifest,
    space: Space,
    items: StoredItems,
    ids: Option<Texts>,
    labels: Option<Texts>,
    /// Where the graph is, if there is one, and the graph itself once a search has asked for it.
    graph_file: Option<PathBuf>,
    graph: OnceLock<Graph>,
    /// The items as exact search needs them, which reads all of them, once a search has asked for it.
    prepared: OnceLock<PreparedItems>,
    verify: Verify,
}

impl LocalIndex {
    /// Whether a path is an index rather than a file of vectors.
    pub fn is_at(path: &Path) -> bool {
        path.join(MANIFEST).is_file()
    }

    /// Open the index in a folder, after its files were compared with what it says of them.
    pub fn open(folder: &Path, verify: Verify, progress: &mut BuildProgress<'_>) -> Result<Self> {
        let manifest = Manifest::read(folder)?;
        let lengths = manifest.files.values().map(|file| file.bytes);
        let total = lengths.fold(0, u64::saturating_add);
        let mut done = 0;
        manifest.verify(folder, verify, &mut |bytes| {
            done += bytes;
            progress(Stage::Digest, done, total)
        })?;
        let space = manifest.space(folder)?;
        let wrong = |problem: String| Error::file(&folder.join(MANIFEST), problem);
        let named = |name: &str| {
            let known = manifest.files.contains_key(name);
            known.then(|| folder.join(name))
        };
        let rows = usize::try_from(manifest.rows).map_err(|_| {
            let rows = manifest.rows;
            wrong(format!("{rows} items are more than this machine can map"))
        })?;
        let texts = |name: &str| {
            let path = named(name);
            path.map(|path| Texts::open(&path, manifest.rows))
                .transpose()
        };
        let vectors = named(VECTORS)
            .map(|path| MappedCorpus::open(&path, 0, rows, manifest.dim))
            .transpose()?;
        let codes = named(CODES).zip(named(CODE));
        let items = match (codes, vectors) {
            (Some((codes, code)), vectors) if manifest.code.is_some() => {
                let shape = (manifest.rows, manifest.dim);
                let coded = CodedIndex::open((&codes, &code), vectors, space, shape)?;
                StoredItems::Codes(Box::new(coded))
            }
            (None, Some(vectors)) if manifest.code.is_none() => {
                StoredItems::Vectors(Arc::new(vectors))
            }
            _ => {
                let expected = match &manifest.code {
                    Some(_) => format!("{CODES} and {CODE}"),
                    None => VECTORS.to_owned(),
                };
                return Err(wrong(format!("expected {expected} among its files")));
            }
        };
        let (ids, labels) = (texts(IDS)?, texts(LABELS)?);
        let graph_file = named(GRAPH);
        if manifest.graph.is_some() != graph_file.is_some() {
            let has = manifest.graph.as_ref().map_or("no graph", |_| "a graph");
            return Err(wrong(format!(
                "says that there is {has}, and its files say otherwise"
            )));
        }
        Ok(LocalIndex {
            folder: folder.to_owned(),
            manifest,
            space,
            items,
            ids,
            labels,
            graph_file,
            graph: OnceLock::new(),
            prepared: OnceLock::new(),
            verify,
        })
    }

    /// The graph, which is opened by the first search that walks it: exact search never does.
    fn graph(&self) -> Result<&Graph> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let (Some(path), Some(facts)) = (&self.graph_file, &self.manifest.graph) else {
            let problem = "has no graph to search approximately: index with --approximate";
            return Err(Error::file(&self.folder, problem));
        };
        let graph = Graph::open(
            path,
            self.space,
            self.manifest.rows,
            self.manifest.dim,
            facts,
            rayon::current_num_threads(),
            self.verify == Verify::Lengths,
        )?;
        Ok(self.graph.get_or_init(|| graph))
    }

    /// Open what a first search would open, and look whether the folder was exchanged while it was opened: for a process that
    /// searches for a long time.
    pub fn prepare(&self) -> Result<()> {
        match &self.items {
            _ if self.graph_file.is_some() => drop(self.graph()?),
            StoredItems::Vectors(vectors) => drop(self.prepared(vectors)?),
            StoredItems::Codes(_) => {}
        }
        if Manifest::read(&self.folder)? != self.manifest {
            let problem = "was written anew while it was opened: open it again";
            return Err(Error::file(&self.folder, problem));
        }
        Ok(())
    }

    /// What is in it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// An error if the index was made with another model than this, called `name`.
    pub fn check_model(&self, name: &str, model: &Model) -> Result<()> {
        let (made, given) = (&self.manifest.model, ModelMark::of(name, model)?);
        if made.digest == given.digest {
            return Ok(());
        }
        Err(Error::file(
            &self.folder,
            format!(
                "was made with the model {:?} ({}), but is searched with {:?} ({}): their vectors \
                 cannot be compared; index the items with this model",
                made.name,
                short(&made.digest),
                given.name,
                short(&given.digest)
            ),
        ))
    }

    /// What maps queries for this index, after looking that it was made with this model, called `name`: the model without its code,
    /// because an index rounds queries by itself where their codes are compared.
    pub fn query_model(&self, name: &str, model: &Model) -> Result<Model> {
        self.check_model(name, model)?;
        if model.chain.code().is_some() && !self.is_coded() {
            let problem = "it holds vectors, and the model has a code: index the items again";
            return Err(Error::file(&self.folder, problem));
        }
        Ok(Model {
            chain: model.chain.clone().with_code(None)?,
            ..model.clone()
        })
    }

    /// How to search for `k` items where nobody says: through the graph if there is one, and codes in two stages.
    pub fn usual(&self, k: usize) -> Ask {
        if let StoredItems::Codes(coded) = &self.items {
            return coded.usual(k);
        }
        match &self.graph_file {
            // Items made equally long lie in one more direction, and blocks order otherwise: the walk
            // needs to see more. Recall is in docs/guide/local-index.md.
            Some(_) => Ask::Approximate {
                effort: match self.space {
                    Space::SquaredL2 | Space::Cosine => 64,
                    Space::InnerProduct | Space::Blocks { .. } => 256,
                },
            },
            None => Ask::Exact,
        }
    }

    /// The `k` items nearest to every query, which is mapped by the model, before its code if it has one; all where
    /// there are fewer.
    pub fn search(&self, queries: &dyn Corpus, k: usize, ask: Ask) -> Result<Neighbours> {
        let vectors = match &self.items {
            StoredItems::Codes(coded) => return coded.search(queries, k, ask),
            StoredItems::Vectors(vectors) => vectors,
        };
        let effort = match ask {
            Ask::Exact => return self.exact(queries, vectors, k),
            Ask::Approximate { effort } => effort,
        };
        let graph = self.graph()?;
        if queries.dim() != vectors.dim() {
            let (expected, given) = (vectors.dim(), queries.dim());
            return Err(
                metra::Error::shape("dimension of the mapped queries", expected, given).into(),
            );
        }
        // A walk that keeps most items is slower than looking at all of them in order.
        if k == 0 || effort.max(k) as u64 >= vectors.len() / 2 {
            return self.exact(queries, vectors, k);
        }
        let search = GraphSearch {
            index: self,
            items: vectors,
            graph,
            queries,
            k,
            effort: effort.max(k),
        };
        let blocks: Vec<Result<Vec<ScoredItems>>> = (0..queries.len().div_ceil(QUERIES))
            .into_par_iter()
            .map(|block| search.block(block * QUERIES))
            .collect();
        // Whichever thread ends first, the first failure is reported.
        let blocks: Vec<_> = blocks.into_iter().collect::<Result<_>>()?;
        Ok(Neighbours::of_queries(k, blocks.into_iter().flatten()))
    }

    /// Every query against every item.
    fn exact(
        &self,
        queries: &dyn Corpus,
        items: &Arc<MappedCorpus>,
        k: usize,
    ) -> Result<Neighbours> {
        Ok(self.prepared(items)?.top_k(queries, k)?)
    }

    /// All items ready to be compared. Whoever comes while they are read reads them as well: a lock would be waited for by the threads that
    /// have to read.
    fn prepared(&self, items: &Arc<MappedCorpus>) -> Result<&PreparedItems> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(prepared);
        }
        let items: Arc<dyn Corpus> = Arc::clone(items) as _;
        let prepared = PreparedItems::new(self.space, items)?;
        Ok(self.prepared.get_or_init(|| prepared))
    }

    /// The `k` items nearest to every query among some of the items, each of which is compared; all where there are fewer.
    pub fn search_among(
        &self,
        queries: &dyn Corpus,
        k: usize,
        items: &[RowId],
    ) -> Result<Neighbours> {
        match &self.items {
            StoredItems::Codes(coded) => coded.search_among(queries, k, items),
            StoredItems::Vectors(vectors) => {
                exact_among(self.space, queries, vectors.as_ref(), k, items)
            }
        }
    }

    /// Whether items are held as codes.
    pub fn is_coded(&self) -> bool {
        matches!(self.items, StoredItems::Codes(_))
    }

    /// Whether items have names of their own.
    pub fn has_ids(&self) -> bool {
        self.ids.is_some()
    }

    /// What an item is called: its id, or its row number where it has none.
    pub fn id(&self, item: RowId) -> Result<String> {
        match &self.ids {
            Some(ids) => ids.get(item),
            None => Ok(item.to_string()),
        }
    }

    /// Every label once, and the number of each item's label among them; `None` where items have no labels.
    pub fn labels(&self) -> Result<Option<(Vec<String>, Vec<u32>)>> {
        self.labels.as_ref().map(Texts::distinct).transpose()
    }

    /// An item's label, where items have labels.
    pub fn label(&self, item: RowId) -> Result<Option<String>> {
        self.labels
            .as_ref()
            .map(|labels| labels.get(item))
            .transpose()
    }
}

/// Exact search among some of the items.
fn exact_among(
    space: Space,
    queries: &dyn Corpus,
    all: &dyn Corpus,
    k: usize,
    items: &[RowId],
) -> Result<Neighbours> {
    let among = Subset::new(all, items.to_vec())?;
    let mut found = top_k(space, queries, &among, k, false)?;
    for id in &mut found.ids {
        *id = items[*id as usize];
    }
    Ok(found)
}

/// Items with their scores, the nearest first.
type ScoredItems = Vec<(RowId, f32)>;

/// A search through the graph.
struct GraphSearch<'a> {
    index: &'a LocalIndex,
    items: &'a Arc<MappedCorpus>,
    graph: &'a Graph,
    queries: &'a dyn Corpus,
    k: usize,
    effort: usize,
}

impl GraphSearch<'_> {
    /// Answer the queries of a block.
    fn block(&self, first: RowId) -> Result<Vec<ScoredItems>> {
        let (space, items) = (self.index.space, self.items);
        let numbers: Vec<RowId> = (first..self.queries.len().min(first + QUERIES)).collect();
        let (mut queries, mut buffer) = (RowBuf::empty(1), RowBuf::empty(1));
        self.queries.gather(&numbers, &mut queries)?;
        let kept = match space {
            Space::Blocks { .. } => self.effort,
            Space::SquaredL2 | Space::InnerProduct | Space::Cosine => {
                self.effort.min(CANDIDATES * self.k)
            }
        };
        let mut answers = Vec::with_capacity(numbers.len());
        for (number, query) in numbers.iter().zip(queries.rows().iter()) {
            let in_query = |error: Error| self.in_query(error, *number);
            check_mapped(self.queries.origin(*number), query)?;
            let mut candidates = self
                .graph
                .candidates(query, self.effort)
                .map_err(in_query)?;
            candidates.truncate(kept);
            let found = nearest_among(
                space,
                query,
                items.as_ref(),
                &candidates,
                self.k,
                &mut buffer,
            )
            .map_err(|e| in_query(e.into()))?;
            if found.len() == self.k {
                answers.push(found);
                continue;
            }
            // Parts of a graph can be out of reach of each other; then look at all items.
            let alone = Subset::new(self.queries, vec![*number])?;
            let exact = self.index.exact(&alone, items, self.k)?;
            answers.push(exact.ids.into_iter().zip(exact.scores).collect());
        }
        Ok(answers)
    }

    /// An error about the one query that was asked, with its number.
    fn in_query(&self, error: Error, number: RowId) -> Error {
        let number = self.queries.origin(number);
        match error {
            Error::Library(metra::Error::Score { item, score, .. }) => metra::Error::Score {
                query: number,
                item,
                score,
            }
            .into(),
            Error::Library(metra::Error::Data(problem)) => metra::Error::Row {
                row: number,
                problem,
            }
            .into(),
            other => other,
        }
    }
}

/// The beginning of a digest, enough for people to tell two apart.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod codes_tests;
#[cfg(test)]
mod tests;
