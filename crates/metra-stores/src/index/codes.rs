//! Items held as codes: in memory as they are, with the vectors before their code in a mapped file where first answers
//! are rescored.

use super::{Ask, exact_among};
use crate::{Error, Result, rescored_answers};
use metra::data::{Corpus, MappedCorpus, MemoryCorpus, RowId};
use metra::linalg::RowBuf;
use metra::model::{Chain, Code, CodedItems, Embedding, Model, Origin, Space};
use metra::search::{HammingItems, Neighbours, nearest_among, top_k};
use rayon::prelude::*;
use std::path::Path;

/// Items of an index as codes.
pub(super) struct CodedIndex {
    space: Space,
    pub(super) items: CodedItems,
    /// Bits, ready for the Hamming distance.
    hamming: Option<HammingItems>,
    /// The vectors before their code.
    pub(super) vectors: Option<MappedCorpus>,
}

impl CodedIndex {
    /// Read the codes of so many items.
    pub(super) fn open(
        (codes, code): (&Path, &Path),
        vectors: Option<MappedCorpus>,
        space: Space,
        (rows, dim): (u64, usize),
    ) -> Result<Self> {
        let code = read_code(code, space, dim)?;
        let bytes = std::fs::read(codes).map_err(|e| Error::io(codes, e))?;
        let items =
            CodedItems::new(code, dim, bytes).map_err(|e| Error::file(codes, e.to_string()))?;
        if items.len() != rows {
            let problem = format!(
                "expected the codes of {rows} items, but found {}",
                items.len()
            );
            return Err(Error::file(codes, problem));
        }
        let hamming = match items.code() {
            Code::Bits { .. } => Some(HammingItems::new(
                items.code().item_bytes(dim),
                items.codes(),
            )?),
            _ => None,
        };
        Ok(CodedIndex {
            space,
            items,
            hamming,
            vectors,
        })
    }

    /// How to search where nobody says: in two stages where a second one is finer or the first one quicker.
    pub(super) fn usual(&self, k: usize) -> Ask {
        match self.hamming.is_some() || self.vectors.is_some() {
            true => Ask::Approximate {
                effort: rescored_answers(k),
            },
            false => Ask::Exact,
        }
    }

    /// What answers are ranked by in the end.
    fn ranked(&self) -> &dyn Corpus {
        match &self.vectors {
            Some(vectors) => vectors,
            None => &self.items,
        }
    }

    /// Search with queries as the map gives them, before any code.
    pub(super) fn search(&self, queries: &dyn Corpus, k: usize, ask: Ask) -> Result<Neighbours> {
        if k == 0 {
            return Err(metra::Error::parameter("k", "at least 1", 0).into());
        }
        let code = self.items.code();
        let is_rounded = code.codes_queries() && (self.vectors.is_none() || self.hamming.is_none());
        let rounded = match is_rounded {
            true => Some(self.rounded(queries)?),
            false => None,
        };
        let coarse = rounded.as_ref().map_or(queries, |rounded| rounded as _);
        let last = match self.vectors {
            Some(_) => queries,
            None => coarse,
        };
        let Ask::Approximate { effort } = ask else {
            return Ok(top_k(self.space, last, self.ranked(), k, false)?);
        };
        let first = effort.max(k);
        let found = match &self.hamming {
            Some(hamming) => hamming.top_k(&self.encoded(queries)?, first)?,
            None => top_k(self.space, coarse, &self.items, first, false)?,
        };
        let k = k.min(found.k);
        let ranked: Vec<metra::Result<Vec<(RowId, f32)>>> = (0..found.queries())
            .into_par_iter()
            .map_init(
                || (RowBuf::empty(1), RowBuf::empty(1)),
                |(query, buffer), number| {
                    last.check_stop()?;
                    last.gather(&[number as u64], query)?;
                    let candidates = found.ids_of(number);
                    let row = query.rows().row(0);
                    nearest_among(self.space, row, self.ranked(), candidates, k, buffer)
                },
            )
            .collect();
        // Whichever thread ends first, the first failure is reported.
        let answers: Vec<_> = ranked.into_iter().collect::<metra::Result<_>>()?;
        Ok(Neighbours::of_queries(k, answers))
    }

    /// Search among some of the items, each of which is compared.
    pub(super) fn search_among(
        &self,
        queries: &dyn Corpus,
        k: usize,
        items: &[RowId],
    ) -> Result<Neighbours> {
        let rounded = match self.vectors.is_none() && self.items.code().codes_queries() {
            true => Some(self.rounded(queries)?),
            false => None,
        };
        let queries = rounded.as_ref().map_or(queries, |rounded| rounded as _);
        exact_among(self.space, queries, self.ranked(), k, items)
    }

    fn encoded(&self, queries: &dyn Corpus) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        queries.scan(0..queries.len(), &mut |first, rows| {
            (self.items.code()).encode(first, self.space, rows, &mut bytes)
        })?;
        Ok(bytes)
    }

    /// What the codes of queries stand for.
    fn rounded(&self, queries: &dyn Corpus) -> Result<MemoryCorpus> {
        let mut rows = RowBuf::empty(1);
        let code = self.items.code();
        code.decode(queries.dim(), &self.encoded(queries)?, &mut rows)?;
        Ok(MemoryCorpus::new(rows)?)
    }
}

/// A file with a code: a model that maps nothing.
pub(super) fn write_code(path: &Path, chain: &Chain) -> Result<()> {
    let only = Chain::identity(chain.output_dim(), chain.space());
    let only = only.with_code(chain.code().cloned())?;
    Ok(Model::new(None, only, Origin::default())?.save(path)?)
}

fn read_code(path: &Path, space: Space, dim: usize) -> Result<Code> {
    let model = Model::load(path)?;
    let same = (model.chain.space(), model.chain.output_dim()) == (space, dim);
    match model.chain.code() {
        Some(code) if same => Ok(code.clone()),
        _ => {
            let problem = format!("expected a code of {dim} dimensions compared by {space}");
            Err(Error::file(path, problem))
        }
    }
}
