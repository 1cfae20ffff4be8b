//! Evaluation by comparisons of rows: no ranking and no right answers, only what people said.

use super::Eval;
use crate::args::Common;
use crate::comparisons::{Agreement, Judge};
use crate::inputs::{Loaded, comparisons};
use crate::print;
use crate::ranker::Ranker;
use anyhow::{Result, ensure};
use metra::model::{Chain, Space};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    base: Option<String>,
    agreement: Vec<Agreement>,
}

impl Eval {
    /// How many comparisons the metric orders right, beside the base.
    pub(super) fn agree(&self, ranker: &Ranker, loaded: &Loaded, common: &Common) -> Result<()> {
        ensure!(
            self.splits.is_none() && self.protocol.is_none() && !self.per_query,
            "--splits, --protocol and --per-query are for rankings: leave them out with --pairs, \
             --triplets and --quadruplets"
        );
        let chain = ranker.chain(loaded.table.corpus.dim());
        let groups = ranker.groups(loaded)?;
        let comparisons = comparisons(&self.comparisons, loaded, &self.columns)?;
        let judge = Judge {
            corpus: loaded.table.corpus.as_ref(),
            comparisons: &comparisons,
            seed: self.seed,
        };
        let dim = loaded.table.corpus.dim();
        // Vectors as they are have no base to beat, unless one is asked for.
        let plain = chain.steps().is_empty()
            && *chain.map() == metra::model::Map::Identity
            && chain.code().is_none();
        let base = match self.base {
            None if plain => None,
            base => Some(base.unwrap_or(Space::SquaredL2)),
        };
        let base_chain = base.map(|space| Chain::identity(dim, space));
        let base_metric = base_chain.as_ref();
        let report = Report {
            base: base.map(|space| space.to_string()),
            agreement: judge.judge(&chain, groups.as_ref(), base_metric)?,
        };
        if common.json {
            return print::json(&report);
        }
        for found in &report.agreement {
            print::fact(found.kind, &found.words())?;
        }
        let Some(base) = report.base else {
            return Ok(());
        };
        let rows: Vec<print::Row> = (report.agreement.into_iter())
            .filter_map(|found| found.gain)
            .collect();
        print::table("agreement", &base, "", &rows)
    }
}
