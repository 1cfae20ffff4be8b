//! `metra fuse`: several rankings of the same queries, such as a lexical and a dense one, added up to one.

mod report;
mod runs;

use crate::args::Common;
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::evaluate::Measure;
use metra::experiment::{FusionFound, FusionStudy, Protocol};
use metra::search::{Fusion, ScoreScale};
use metra_files::{FusionOrigin, NamedFusion, read_fusion, read_qrels_by_name, write_fusion};
use report::{Report, Written};
use runs::Runs;
use std::path::PathBuf;

/// Add rankings of the same queries up to one: by weights learned from judgements, or without learning.
///
/// With --qrels, weights are learned on some of the judged queries and evaluated on the others, fold by fold, against each
/// ranking alone, reciprocal-rank fusion and equal weights; the last line says which of them to use. The weights of
/// --output are learned from all judged queries. In the run of --run, no judged query is ranked by weights that were
/// learned from it, so that it can be evaluated.
///
/// A ranking that does not have an item counts as if the item came last in it; by reciprocal ranks it counts nothing.
#[derive(Args)]
pub(crate) struct Fuse {
    /// TREC runs, two or more; a ranking is named after its file, without the extension
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    rankings: Vec<PathBuf>,
    /// Relevance judgements to learn weights from
    #[arg(long, value_name = "FILE", required_unless_present_any = ["weights", "equal"])]
    qrels: Option<PathBuf>,
    /// Use the weights of this file, which an earlier call wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["qrels", "equal"], requires = "run")]
    weights: Option<PathBuf>,
    /// Use equal weights of scores on this scale: rrf (reciprocal ranks), min-max, z-score or raw
    #[arg(long, value_name = "SCALE", conflicts_with = "qrels", requires = "run")]
    equal: Option<ScoreScale>,
    /// Where to write the learned weights (JSON)
    #[arg(short, long, value_name = "FILE", requires = "qrels")]
    output: Option<PathBuf>,
    /// Write the fused ranking here, as a TREC run
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Items per query in the fused ranking
    #[arg(short, default_value_t = 1000)]
    k: usize,
    /// Parts that the judged queries are dealt into; each part is ranked by weights that were learned from the others
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,
    /// Measures, comma-separated; the first one decides (default: ndcg@10, map, mrr, p@1, r@10, r@100)
    #[arg(long, value_delimiter = ',')]
    measures: Vec<Measure>,
    /// Seed of the folds and of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Fuse {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(self.k > 0, "-k must be at least 1, but is 0");
        let runs = Runs::read(&self.rankings)?;
        match &self.qrels {
            Some(_) => self.learn(&runs, common),
            None => self.apply(&runs, common),
        }
    }

    fn learn(&self, runs: &Runs, common: &Common) -> Result<()> {
        let Some(path) = &self.qrels else {
            bail!("name relevance judgements with --qrels");
        };
        let judged = runs.judged(&read_qrels_by_name(path)?);
        ensure!(
            !judged.queries.is_empty(),
            "{}: expected judgements of the runs' queries, but found none with a relevant item: are the ids the same?",
            path.display()
        );
        let study = FusionStudy {
            measures: match self.measures.is_empty() {
                true => Protocol::Judged.measures(),
                false => self.measures.clone(),
            },
            folds: self.folds,
            seed: self.seed,
        };
        let found = study.run(&judged.queries)?;
        if let Some(output) = &self.output {
            let fusion = NamedFusion {
                names: runs.names.clone(),
                fusion: found.fusion.clone(),
            };
            let origin = FusionOrigin {
                queries: judged.queries.len(),
                seed: self.seed,
                version: env!("CARGO_PKG_VERSION"),
            };
            write_fusion(output, &fusion, &origin)?;
        }
        let written = Written {
            weights_file: self.output.clone(),
            run_file: self.run.clone(),
        };
        self.write_run(runs, |query| {
            unseen_weights(&found, judged.numbers.get(query))
        })?;
        Report::new(runs, &judged, &study, &found, written).print(common)
    }

    fn apply(&self, runs: &Runs, common: &Common) -> Result<()> {
        let fusion = match (&self.weights, self.equal) {
            (Some(path), _) => runs.in_order(path, &read_fusion(path)?)?,
            (None, Some(scale)) => Fusion::equal(scale, runs.names.len())?,
            (None, None) => bail!("name --qrels, --weights or --equal"),
        };
        let queries = self.write_run(runs, |_| &fusion)?;
        report::applied(queries, &fusion, self.run.as_deref(), common)
    }

    /// Write every query's ranking by the weights that are given for it; how many there are.
    fn write_run<'f>(&self, runs: &Runs, fusion: impl Fn(&str) -> &'f Fusion) -> Result<usize> {
        let Some(path) = &self.run else { return Ok(0) };
        let fused = runs.fused(self.k, fusion)?;
        metra_files::write_run(path, &fused, "metra")?;
        Ok(fused.queries.len())
    }
}

/// Weights that were learned without a query: those of its fold, or of all judged queries for one without judgements.
fn unseen_weights<'f>(found: &'f FusionFound, number: Option<&usize>) -> &'f Fusion {
    number.map_or(&found.fusion, |number| {
        &found.of_folds[found.fold_of[*number]]
    })
}
