//! What ranks: a model file, or a score on the vectors as they are; and how it ranks one part of a
//! file for another, which `eval` and `gate` share.

use crate::args::Common;
use crate::inputs::need_labels;
use crate::inputs::{Files, Loaded, in_file, model_groups};
use anyhow::{Result, bail, ensure};
use metra::Dataset;
use metra::data::{Corpus, Groups};
use metra::evaluate::{
    AgainstGallery, Evaluation, EvaluationOptions, ReIdentification, Truth, evaluate,
    evaluate_reranked,
};
use metra::experiment::Protocol;
use metra::model::{Chain, Embedding, Model, SeenRows, Side, Space, embed_corpus};
use metra::search::Rerank;
use metra_files::NarrowingRule;
use std::path::Path;

/// A model, or a score on the vectors as they are.
pub(crate) enum Ranker {
    Plain(Space),
    Model(Box<Model>),
}

impl Ranker {
    /// By the name of a score, or a model file.
    pub(crate) fn load(name: &Path) -> Result<Self> {
        match name.to_str().and_then(|name| name.parse::<Space>().ok()) {
            Some(space) => Ok(Ranker::Plain(space)),
            None if !name.exists() => bail!(
                "{}: expected euclid, cosine, dot, or a model file, and there is no such file",
                name.display()
            ),
            None => Ok(Ranker::Model(Box::new(Model::load(name)?))),
        }
    }

    pub(crate) fn model(&self) -> Option<&Model> {
        match self {
            Ranker::Plain(_) => None,
            Ranker::Model(model) => Some(model),
        }
    }

    /// How files are narrowed for it.
    pub(crate) fn narrowing(&self) -> NarrowingRule {
        NarrowingRule::of(self.model().and_then(|model| model.narrowing.as_ref()))
    }

    /// How many of these rows it learned from; `None` where it does not keep that.
    pub(crate) fn seen_rows(&self, rows: &dyn Corpus) -> Result<Option<SeenRows>> {
        Ok(match self.model() {
            Some(model) => model.seen_rows(rows)?,
            None => None,
        })
    }

    /// How to find rows that it has not learned from: `hint`, unless there are none.
    pub(crate) fn held_out_hint(&self, hint: &'static str) -> &'static str {
        match self.model().is_some_and(|model| model.origin.refit) {
            true => {
                "it was fitted anew on all rows (--refit), so that none is held out; take other rows"
            }
            false => hint,
        }
    }

    /// The metric on a data set; vectors as they are can be compared only where they are of one model.
    pub(crate) fn chain_for(&self, data: &Dataset<'_>) -> Result<Chain> {
        let dim = match self {
            Ranker::Plain(space) => data.one_space(&space.to_string())?,
            Ranker::Model(_) => data.dim(),
        };
        Ok(self.chain(dim))
    }

    pub(crate) fn chain(&self, dim: usize) -> Chain {
        match self {
            Ranker::Plain(space) => Chain::identity(dim, *space),
            Ranker::Model(model) => model.chain.clone(),
        }
    }

    /// The groups of a file's rows, numbered as the model knows them where it uses them.
    pub(crate) fn groups(&self, loaded: &Loaded) -> Result<Option<Groups>> {
        match self {
            Ranker::Model(model) if model.chain.group_names().is_some() => {
                model_groups(model, loaded)
            }
            _ => Ok(loaded.groups.clone()),
        }
    }

    /// The same for items and queries.
    pub(crate) fn groups_of(&self, files: &Files) -> Result<(Option<Groups>, Option<Groups>)> {
        let queries = files.queries.as_ref().map(|queries| self.groups(queries));
        Ok((self.groups(&files.items)?, queries.transpose()?.flatten()))
    }

    /// Rows of one part of a file against those of another.
    pub(crate) fn against(
        &self,
        queries: &Loaded,
        gallery: &Loaded,
        how: &Against<'_>,
        common: &Common,
    ) -> Result<Evaluation> {
        let (query_labels, gallery_labels) = (need_labels(queries)?, need_labels(gallery)?);
        let chain = self.chain(queries.table.corpus.dim());
        ensure!(
            how.rerank.is_none() || !chain.has_two_sides(),
            "--rerank compares queries with each other: it needs one map for both sides, and no coded items"
        );
        let embed = |side, loaded: &Loaded| -> Result<_> {
            let groups = self.groups(loaded)?;
            let corpus = loaded.table.corpus.as_ref();
            embed_corpus(&chain, side, corpus, groups.as_ref(), &common.storage())
                .map_err(|e| in_file(e, loaded))
        };
        let (left, right) = (embed(Side::Query, queries)?, embed(Side::Item, gallery)?);
        let (left, right) = (left.corpus(), right.corpus());
        let space = chain.space();
        let evaluated = |truth: &dyn Truth| match &how.rerank {
            None => evaluate(space, left, right, truth, how.options),
            Some(rerank) => evaluate_reranked(rerank, space, left, right, None, truth, how.options),
        };
        Ok(match how.protocol {
            Protocol::CrossCamera => {
                let (Some(a), Some(b)) = (&queries.groups, &gallery.groups) else {
                    bail!("the cross-camera protocol needs --camera");
                };
                evaluated(&ReIdentification::new(query_labels, a, gallery_labels, b)?)?
            }
            Protocol::LeaveOneOut => evaluated(&AgainstGallery::new(query_labels, gallery_labels))?,
            other => bail!("the protocol {other} cannot be used with --gallery-where"),
        })
    }
}

/// How one part of a file is ranked for another.
pub(crate) struct Against<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) rerank: Option<Rerank>,
    pub(crate) options: &'a EvaluationOptions<'a>,
}
