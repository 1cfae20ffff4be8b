//! `metra gate`: may a candidate replace the base? One decision, with an exit code for CI.

mod report;

use crate::args::Common;
use crate::inputs::{
    Columns, ComparisonArgs, Files, Loaded, QrelsArgs, SupervisionInput, load, protocol_for,
    row_name, split_names,
};
use crate::ranker::{Against, Ranker};
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::Dataset;
use metra::evaluate::{EvaluationOptions, Measure};
use metra::experiment::{EvaluationSettings, Gate as Found, Protocol, Scores, Slicing, Terms};
use metra::model::{Embedding, SeenRows};
use metra::search::Rerank;
use metra_files::{Filter, NarrowingRule, read_splits};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Decide whether a candidate may replace the baseline, from queries that neither was trained on.
///
/// Both rank the same held-out queries. The candidate ships only if the whole 95 % interval of its
/// gain lies above 0 and above --min-gain. Slices (by class size or number of relevant items, by
/// whether training judgements name one of them, and by the columns of --slice) have wider
/// intervals, which hold all together; a slice is called worse only where such an interval lies
/// below 0. Queries about items that no training judgement names may never get worse.
///
/// Exit codes: 0 ship; 1 something failed; 2 wrong use; 3 no evidence of a gain; 4 worse;
/// 5 a gain below --min-gain; 6 nothing to gain; 7 a slice gets worse (queries about new items, or
/// with --no-worse-slice any slice); 8 the candidate learned from these rows; 9 another measure gets
/// worse (unless --allow-worse-measures).
#[derive(Args)]
pub(crate) struct Gate {
    /// The baseline that serves today: euclid, cosine or dot on the input vectors, or a model file
    #[arg(long, value_name = "BASE")]
    base: PathBuf,
    /// The candidate that may replace it: a model file, or a score
    #[arg(long, value_name = "MODEL")]
    candidate: PathBuf,
    /// Held-out vectors (.parquet, .npy, .csv, .jsonl, …); or give --queries, --items and --qrels
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "queries",
        conflicts_with = "queries"
    )]
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    qrels: QrelsArgs,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Use the rows of the same file with this value as the gallery (repeatable)
    #[arg(long, value_name = "FILTER", requires = "data")]
    gallery_where: Vec<Filter>,
    /// Use only the test part of a split of this file, as `metra train` held it out
    #[arg(long, value_name = "FILE", conflicts_with = "gallery_where")]
    splits: Option<PathBuf>,
    /// Which split of the file, counted from 0
    #[arg(long, value_name = "N", requires = "splits", default_value_t = 0)]
    split: usize,
    /// Evaluation protocol: leave-one-out, single-shot, cross-camera; with --splits also
    /// against-training
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Number of random draws of the single-shot protocol
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    /// Re-rank both by k-reciprocal neighbours: `default`, or any of k1=20,k2=6,lambda=0.3
    #[arg(long, value_name = "SETTINGS")]
    rerank: Option<Rerank>,
    /// Measure to decide by (default: map with labels, ndcg@10 with qrels)
    #[arg(long)]
    measure: Option<Measure>,
    /// The gain that must be shown: the interval's lower end must reach it
    #[arg(long, value_name = "GAIN", default_value_t = 0.0)]
    min_gain: f64,
    /// Report the values of this column of the queries separately (repeatable)
    #[arg(long = "slice", value_name = "COLUMN")]
    slices: Vec<String>,
    /// Do not ship where a slice gets reliably worse
    #[arg(long)]
    no_worse_slice: bool,
    /// Ship although another measure, such as p@1, gets reliably worse
    #[arg(long)]
    allow_worse_measures: bool,
    /// Number of the worst regressions that are listed
    #[arg(long, value_name = "N", default_value_t = 10)]
    worst: usize,
    /// Seed of the protocol's draws and of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What is ranked, as one narrowing reads it.
enum Rows {
    Files(Box<Files>),
    Parts(Box<Loaded>, Box<Loaded>),
}

impl Rows {
    /// The table whose rows are queries.
    fn queries(&self) -> &Loaded {
        match self {
            Rows::Files(files) => files.unit_table(),
            Rows::Parts(loaded, _) => loaded,
        }
    }
}

/// What is ranked, as one ranker's groups have it.
enum Ranked<'r> {
    Data(Box<Dataset<'r>>, &'r Files),
    Parts(&'r Loaded, &'r Loaded),
}

impl Gate {
    pub(crate) fn run(&self, common: &Common) -> Result<u8> {
        let base = Ranker::load(&self.base)?;
        let candidate = Ranker::load(&self.candidate)?;
        let rule = candidate.narrowing();
        let rows = self.read(&rule, common)?;
        let ranked = self.ranked(&candidate, &rows, common)?;
        let measures = self.measures(&rows);
        let new = self.scores(&candidate, &ranked, &measures, common)?;
        // Vectors as they are are read as the candidate reads them; another model may read them in
        // its own way.
        let own = match &base {
            Ranker::Model(_) if base.narrowing() != rule => {
                Some(self.read(&base.narrowing(), common)?)
            }
            _ => None,
        };
        let base_rows = own.as_ref().unwrap_or(&rows);
        let old = self.ranked(&base, base_rows, common)?;
        let old = self.scores(&base, &old, &measures, common)?;
        ensure!(
            !new.queries().is_empty(),
            "none of the {} queries has anything relevant among what is searched",
            new.skipped()
        );
        let measure = measures[0];
        let seen_rows = self.seen_rows(&candidate, &ranked, new.queries())?;
        let terms = Terms {
            measure,
            min_gain: self.min_gain,
            no_worse_slice: self.no_worse_slice,
            allow_worse_measures: self.allow_worse_measures,
            trained_on: seen_rows.is_some_and(|seen| seen.is_leak()),
            listed: self.worst,
            seed: self.seed,
        };
        let cuts = self.cuts(&candidate, &ranked, rows.queries(), new.queries())?;
        let found = Found::new(&old, &new, &cuts, &terms)?;
        let name = |query: u64| row_name(rows.queries(), &self.columns, query);
        let is_model = matches!(candidate, Ranker::Model(_));
        let report = self.report(&found, measure, &new, seen_rows, is_model, &name);
        report.print(common)?;
        Ok(found.decision.exit_code())
    }

    fn read(&self, rule: &NarrowingRule, common: &Common) -> Result<Rows> {
        let extra: Vec<&str> = self.slices.iter().map(String::as_str).collect();
        if let Some(files) = Files::apart(&self.qrels, &self.columns, &extra, rule, common)? {
            return Ok(Rows::Files(Box::new(files)));
        }
        let Some(data) = &self.data else {
            bail!("name held-out vectors with --data, or --queries, --items and --qrels");
        };
        let load_part = |extra: &[&str], filters: &[Filter]| {
            load(data, &self.columns, extra, filters, rule.clone(), common).map(Box::new)
        };
        let loaded = load_part(&extra, &self.filters)?;
        if !self.gallery_where.is_empty() {
            return Ok(Rows::Parts(loaded, load_part(&[], &self.gallery_where)?));
        }
        Ok(Rows::Files(Box::new(Files::one(*loaded))))
    }

    /// The rows as a ranker's groups have them.
    fn ranked<'r>(&self, ranker: &Ranker, rows: &'r Rows, common: &Common) -> Result<Ranked<'r>> {
        let files = match rows {
            Rows::Files(files) => files,
            Rows::Parts(queries, gallery) => return Ok(Ranked::Parts(queries, gallery)),
        };
        let input = SupervisionInput {
            qrels: self.qrels.qrels.as_deref(),
            two_spaces: self.qrels.two_spaces,
            comparisons: &ComparisonArgs::default(),
            orderings: None,
            taxonomy: None,
        };
        let data = input.dataset(files, &self.columns, ranker.groups_of(files)?, common)?;
        Ok(Ranked::Data(Box::new(data), files))
    }

    /// The measure asked for, or the one that fits, and then others that are shown beside it.
    fn measures(&self, rows: &Rows) -> Vec<Measure> {
        let protocol = self.protocol.unwrap_or(match rows {
            Rows::Files(_) if self.qrels.qrels.is_some() => Protocol::Judged,
            Rows::Files(_) | Rows::Parts(..) => Protocol::LeaveOneOut,
        });
        let first = self.measure.unwrap_or_else(|| protocol.criterion());
        let others = protocol.measures().into_iter();
        let mut measures = vec![first];
        measures.extend(others.filter(|other| *other != first));
        measures
    }

    fn scores(
        &self,
        ranker: &Ranker,
        ranked: &Ranked<'_>,
        measures: &[Measure],
        common: &Common,
    ) -> Result<Scores> {
        match ranked {
            Ranked::Parts(queries, gallery) => {
                let options = EvaluationOptions {
                    measures: measures.to_vec(),
                    ..EvaluationOptions::default()
                };
                let how = Against {
                    protocol: self.protocol.unwrap_or(Protocol::LeaveOneOut),
                    rerank: self.rerank,
                    options: &options,
                };
                let found = ranker.against(queries, gallery, &how, common)?;
                let ids: Vec<u64> = (0..queries.table.corpus.len()).collect();
                let class = |query: u64| {
                    let labels = queries.labels.as_ref();
                    labels.map_or(query, |labels| u64::from(labels.of()[query as usize]))
                };
                Ok(Scores::of(&ids, class, &found))
            }
            Ranked::Data(data, files) => {
                let scores = self.judge(ranker, data, files.unit_table(), measures.to_vec());
                scores.map_err(|error| files.locate(error))
            }
        }
    }

    fn judge(
        &self,
        ranker: &Ranker,
        data: &Dataset<'_>,
        table: &Loaded,
        measures: Vec<Measure>,
    ) -> Result<Scores> {
        let protocol = protocol_for(self.protocol, self.repeats, data.supervision());
        ensure!(
            protocol != Protocol::AgainstTraining || self.splits.is_some(),
            "the protocol {protocol} needs a training part: give --splits, or name the gallery with \
             --gallery-where"
        );
        ensure!(
            !matches!(protocol, Protocol::Classify(_)),
            "the gate judges rankings, not classes"
        );
        let first = measures.first().copied();
        let (judging, _) = EvaluationSettings::new(data, protocol, measures, first, self.seed)?;
        let judging = EvaluationSettings {
            rerank: self.rerank,
            ..judging
        };
        let units = data.units();
        let (train, test) = match &self.splits {
            None => (Vec::new(), units),
            Some(path) => {
                let set = read_splits(path)?;
                let names = split_names(set.by, data, table, &self.columns)?;
                let Some(split) = set.splits.get(self.split) else {
                    let count = set.splits.len();
                    bail!("--split must be below {count}, but is {}", self.split);
                };
                let (train, mut test) = split.positions(&names)?;
                test.retain(|unit| units.binary_search(unit).is_ok());
                (train, test)
            }
        };
        let chain = ranker.chain_for(data)?;
        let mut scores = data.evaluate_part(&chain, &[chain.space()], &test, &train, &judging)?;
        Ok(scores.swap_remove(0)?)
    }

    /// Ways to cut the queries: by how much there is to find for each, and by columns.
    fn cuts(
        &self,
        candidate: &Ranker,
        ranked: &Ranked<'_>,
        query_table: &Loaded,
        queries: &[u64],
    ) -> Result<Vec<Slicing>> {
        let mut cuts = Vec::new();
        match ranked {
            Ranked::Data(data, _) => {
                if let Some(model) = candidate.model() {
                    cuts.extend(Slicing::by_seen_items(model, data, queries)?);
                }
                cuts.extend(Slicing::by_relevant(data, queries));
            }
            Ranked::Parts(asking, gallery) => {
                if let (Some(rows), Some(gallery)) = (&asking.labels, &gallery.labels) {
                    cuts.extend(Slicing::by_gallery(rows, gallery, queries));
                }
            }
        }
        for column in &self.slices {
            let values = query_table.table.column(column)?;
            let value = |query: &u64| values.get(*query as usize).into_owned();
            let values: Vec<String> = queries.iter().map(value).collect();
            cuts.push(Slicing::by_value(column, &values));
        }
        Ok(cuts)
    }

    /// How many of the queries the candidate learned from, where it keeps that.
    fn seen_rows(
        &self,
        candidate: &Ranker,
        ranked: &Ranked<'_>,
        queries: &[u64],
    ) -> Result<Option<SeenRows>> {
        match ranked {
            Ranked::Parts(loaded, _) => candidate.seen_rows(loaded.table.corpus.as_ref()),
            Ranked::Data(data, _) => {
                // A protocol may ask a query several times.
                let units: Vec<u64> = BTreeSet::from_iter(queries).into_iter().copied().collect();
                candidate.seen_rows(&*data.unit_rows(&units)?)
            }
        }
    }
}
