//! `metra migrate`: may the embedding model be changed, and how?

mod inputs;
mod report;

use crate::args::Common;
use crate::interrupt::stoppable;
use anyhow::{Result, ensure};
use clap::Args;
use inputs::BothSpaces;
use metra::data::Narrowing;
use metra::evaluate::Measure;
use metra::experiment::{MigrationQueries, MigrationStudy, Protocol, TwoSpaces};
use metra::internal::fingerprint;
use metra::model::{Model, Origin, Space};
use metra::training::Alignment;
use metra_files::MissingValues;
use report::{Prices, Report};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Compare ways to change the embedding model: stay, map, embed a part or all items anew, or use both.
///
/// OLD and NEW have the same items in both models' spaces; a sample of the collection is enough, with the items that are judged. Right answers come from --qrels or from
/// --label. Without them the new model's first ten items are taken for right: that tells what a map loses of the new model, but not
/// whether the new model is better.
///
/// Maps between the spaces are learned from the items. No item is ranked by a map that was learned from it. Rankings are looked at up to
/// 1,000 items.
#[derive(Args)]
pub(crate) struct Migrate {
    /// Items as the old model embeds them
    old: PathBuf,
    /// The same items as the new model embeds them; may be the same file with another --new-vector
    new: PathBuf,
    /// Column of ids by which rows of both files are matched (default: row numbers, of files of equal length)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    id: Option<String>,
    /// Column of vectors (default: `vector`, or the only list column)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    vector: Option<String>,
    /// Column of the new vectors (default: that of --vector)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    new_vector: Option<String>,
    /// Rows with a missing value (empty, NaN or null): error, or skip to leave them out
    #[arg(
        long,
        value_name = "RULE",
        default_value_t,
        help_heading = "Data",
        hide_short_help = true
    )]
    missing: MissingValues,
    /// Queries as the old model embeds them (default: the items themselves)
    #[arg(long, value_name = "FILE", requires_all = ["new_queries", "id"], help_heading = "Supervision")]
    old_queries: Option<PathBuf>,
    /// The same queries as the new model embeds them
    #[arg(
        long,
        value_name = "FILE",
        requires = "old_queries",
        help_heading = "Supervision"
    )]
    new_queries: Option<PathBuf>,
    /// TREC qrels file (query 0 item grade per line)
    #[arg(
        long,
        value_name = "FILE",
        requires = "old_queries",
        help_heading = "Supervision"
    )]
    qrels: Option<PathBuf>,
    /// Column of class labels in OLD: items of one class are right answers to each other
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with = "old_queries",
        help_heading = "Supervision"
    )]
    label: Option<String>,
    /// How vectors are compared, by both models: cosine, euclid or dot
    #[arg(long, value_name = "SCORE", default_value_t = Space::Cosine)]
    score: Space,
    /// Share of the items that the way `embed a part` embeds anew, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    /// Most queries to rank; from more, so many are drawn at random
    #[arg(long, value_name = "N", default_value_t = 2000)]
    sample: usize,
    /// Measures, comma-separated; the first one decides (default: ndcg@10 and others with --qrels, map and others with --label)
    #[arg(long, value_delimiter = ',')]
    measures: Vec<Measure>,
    /// Items in the whole collection (default: as many as in OLD)
    #[arg(long, value_name = "N", help_heading = "Cost")]
    collection: Option<u64>,
    /// Price of embedding 1,000 items by the new model, in any currency (default: 0; without both prices none is shown)
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Cost"
    )]
    embed_price: Option<f64>,
    /// Price of writing 1,000 vectors to the store, in the same currency (default: 0)
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Cost"
    )]
    write_price: Option<f64>,
    /// Write the map from the new space into the old one here, as a model: for queries
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    query_map: Option<PathBuf>,
    /// Write the map from the old space into the new one here, as a model: for stored items
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    item_map: Option<PathBuf>,
    /// Seed of the draws and of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The share of the new model's first ten items that is found: what the advice speaks of where nothing is judged.
const FOUND: Measure = Measure::RecallAt(10);

impl Migrate {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(self.sample > 0, "--sample must be at least 1, but is 0");
        let prices = Prices::new(self.embed_price, self.write_price)?;
        let both = BothSpaces::read(self, common)?;
        let (old, new) = both.items.corpora()?;
        let (old, new) = (stoppable(&old), stoppable(&new));
        let asked = match &both.asked {
            Some(asked) => Some(asked.corpora()?),
            None => None,
        };
        let queries = match &asked {
            Some((old, new)) => MigrationQueries::Apart(old, new),
            None => MigrationQueries::Items(&both.rows),
        };
        let study = MigrationStudy {
            measures: self.measures(),
            space: self.score,
            share: self.share,
            seed: self.seed,
        };
        let data = TwoSpaces {
            old: &old,
            new: &new,
            queries,
            truth: both.truth.as_deref(),
        };
        let found = study.run(&data)?;
        let (of_old, of_new) = (&both.items.old, &both.items.new);
        let maps = [
            (
                &self.query_map,
                &found.query_map,
                (of_new, &new),
                (of_old, &old),
            ),
            (
                &self.item_map,
                &found.item_map,
                (of_old, &old),
                (of_new, &new),
            ),
        ];
        for (path, map, (from, rows), (to, targets)) in maps {
            let Some(path) = path else { continue };
            ensure!(
                to.table.narrowing.is_none(),
                "{}: its columns lie so far from 0 that they are shifted when they are read, and a map into them cannot be written: \
                 store them as 32-bit numbers about their means",
                to.table.path.display()
            );
            let digests = (fingerprint(rows)?, fingerprint(targets)?);
            self.model(map, from.table.narrowing.clone(), digests)?
                .save(path)?;
        }
        Report::new(self, &both, &study, &found, prices).print(common)
    }

    fn measures(&self) -> Vec<Measure> {
        let usual = match (&self.label, &self.qrels) {
            // Whatever looks at all items is not known here.
            (Some(_), _) => vec![
                Measure::AveragePrecision,
                Measure::PrecisionAt(1),
                Measure::PrecisionAt(10),
                Measure::ReciprocalRank,
            ],
            (None, Some(_)) => Protocol::Judged.measures(),
            (None, None) => vec![FOUND, Measure::RecallAt(100), Measure::CmcAt(1)],
        };
        let mut measures = match self.measures.is_empty() {
            true => usual,
            false => self.measures.clone(),
        };
        let is_judged = self.label.is_some() || self.qrels.is_some();
        if !is_judged && !measures.contains(&FOUND) {
            measures.push(FOUND);
        }
        measures
    }

    fn model(
        &self,
        map: &Alignment,
        narrowing: Option<Narrowing>,
        (from, to): (String, String),
    ) -> Result<Model> {
        let origin = Origin {
            method: "alignment".into(),
            parameters: BTreeMap::from([("form".into(), map.form.to_string())]),
            seed: self.seed,
            data: from,
            supervision: to,
            facts: BTreeMap::from([("reciprocal rank".into(), map.reciprocal_rank)]),
            ..Origin::default()
        };
        Ok(Model::new(narrowing, map.whole.clone(), origin)?)
    }
}
