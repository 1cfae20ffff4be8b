//! `metra eval`: how well a model, or a run made elsewhere, ranks.

mod agree;
#[cfg(feature = "cluster")]
mod cluster;

use crate::args::{ClusterArgs, Common};
#[cfg(not(feature = "cluster"))]
use crate::feature_off::OnCluster;
use crate::inputs::{
    Columns, ComparisonArgs, Files, Loaded, QrelsArgs, SupervisionInput, load, protocol_for,
    row_name, split_names,
};
use crate::print;
use crate::ranker::{Against, Ranker};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::Dataset;
use metra::data::Split;
use metra::evaluate::{
    Bootstrap, Empty, Evaluation, EvaluationOptions, GradeGain, Measure, RankedItem, RankedQuery,
    Ties, evaluate_ranking,
};
use metra::experiment::{
    Classifier, EvaluationSettings, MeanAndDeviation, NewItems, Protocol, Scores, check_protocol,
};
use metra::model::{Chain, Embedding, SeenRows, Space};
use metra::search::Rerank;
use metra_files::{Filter, read_qrels_by_name, read_run, read_splits};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Measure a model's ranking, or a TREC run.
#[derive(Args)]
pub(crate) struct Eval {
    /// The model file, or `euclid` or `cosine` on the input vectors
    #[arg(required_unless_present = "run")]
    model: Option<PathBuf>,
    /// The vectors (.parquet, .npy, .csv, .jsonl, …); or give --queries, --items and --qrels
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    qrels: QrelsArgs,
    #[command(flatten)]
    comparisons: ComparisonArgs,
    /// Class tree, one edge per line: child, parent; with --classifier it adds hierarchical
    /// accuracy
    #[arg(long, value_name = "FILE", requires_all = ["label", "classifier"])]
    taxonomy: Option<PathBuf>,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Use the rows of the same file with this value as the gallery (repeatable)
    #[arg(long, value_name = "FILTER")]
    gallery_where: Vec<Filter>,
    /// Evaluate this TREC run against --qrels; no model is needed
    #[arg(long, value_name = "FILE", requires = "qrels", conflicts_with = "data")]
    run: Option<PathBuf>,
    /// Baseline for a paired comparison: euclid or cosine on the input vectors (default with pairs,
    /// triplets and quadruplets: euclid)
    #[arg(long, value_name = "SCORE")]
    base: Option<Space>,
    /// Evaluation protocol: leave-one-out, single-shot, cross-camera
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Evaluate classification accuracy instead of ranking: knn:K, gaussian, or gaussian:SHARE
    /// (shrinkage towards the pooled covariance), trained on each split's training part
    #[arg(long, conflicts_with = "protocol", requires = "splits")]
    classifier: Option<Classifier>,
    /// Re-rank by k-reciprocal neighbours before measuring, the baseline as well: `default`, or any
    /// of k1=20,k2=6,lambda=0.3
    #[arg(long, value_name = "SETTINGS", conflicts_with_all = ["run", "classifier", "pairs", "triplets", "quadruplets"])]
    rerank: Option<Rerank>,
    /// Number of random draws of the single-shot protocol
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    /// Evaluate on the test part of every split of this file
    #[arg(long, value_name = "FILE")]
    splits: Option<PathBuf>,
    /// Use only this split of the file, counted from 0
    #[arg(long, value_name = "N", requires = "splits")]
    split: Option<usize>,
    /// Evaluate test parts that the model learned from too, which is an error otherwise
    #[arg(long, requires = "splits")]
    allow_seen: bool,
    /// Measures, comma-separated (map, p@1, ndcg@10, cmc@5, mrr, auc, minp, …)
    #[arg(long, value_delimiter = ',')]
    measures: Vec<Measure>,
    /// Ties: `expected` (mean over all orders of tied items) or `trec` (trec_eval's order, id
    /// descending)
    #[arg(long, default_value = "expected", value_parser = ties)]
    ties: Ties,
    /// nDCG gain: `linear` (grade) or `exponential` (2^grade − 1)
    #[arg(long, default_value = "linear", value_parser = gain)]
    gain: GradeGain,
    /// Count queries with nothing relevant as 0 instead of leaving them out
    #[arg(long)]
    count_empty: bool,
    /// Add every query's values to the JSON document
    #[arg(long)]
    per_query: bool,
    /// Seed of the protocol's draws and of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// With --cluster: table of query vectors with the same columns (default: the items themselves,
    /// or the rows of --where)
    #[arg(
        long,
        value_name = "TABLE",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    query_table: Option<String>,
}

#[derive(Serialize)]
struct Report {
    queries: usize,
    skipped_queries: u64,
    /// How many of the queries the model learned from, where it keeps that.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_rows: Option<SeenRows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rerank: Option<String>,
    measures: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<print::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<BTreeMap<String, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_query: Option<BTreeMap<String, BTreeMap<String, f64>>>,
}

impl Eval {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        if let Some(place) = self.cluster.place()? {
            return self.on_cluster(place, common);
        }
        if let (Some(run), Some(qrels)) = (&self.run, &self.qrels.qrels) {
            return self.evaluate_run(run, qrels, common);
        }
        let Some(path) = &self.model else {
            bail!("name a model file, `euclid` or `cosine`");
        };
        self.comparisons.refuse_beside(&self.qrels)?;
        let ranker = Ranker::load(path)?;
        let rule = ranker.narrowing();
        if let Some(files) = Files::apart(&self.qrels, &self.columns, &[], &rule, common)? {
            return self.ranking(&ranker, &files, common);
        }
        let Some(data) = &self.data else {
            bail!("name a file of vectors, or --queries, --items and --qrels");
        };
        ensure!(
            self.ties == Ties::Expected || self.qrels.qrels.is_some(),
            "--ties trec needs --qrels: labels have no document ids to break ties by"
        );
        let read =
            |filters: &[Filter]| load(data, &self.columns, &[], filters, rule.clone(), common);
        let loaded = read(&self.filters)?;
        if !self.gallery_where.is_empty() {
            let gallery = read(&self.gallery_where)?;
            return self.against(&ranker, &loaded, &gallery, common);
        }
        let files = Files::one(loaded);
        let outcome = match self.comparisons.any() {
            true => self.agree(&ranker, &files.items, common),
            false => self.ranking(&ranker, &files, common),
        };
        outcome.map_err(|error| files.locate(error))
    }

    /// Queries against items, or the rows of one file against each other.
    fn ranking(&self, ranker: &Ranker, files: &Files, common: &Common) -> Result<()> {
        let input = SupervisionInput {
            qrels: self.qrels.qrels.as_deref(),
            two_spaces: self.qrels.two_spaces,
            comparisons: &self.comparisons,
            orderings: None,
            taxonomy: self.taxonomy.as_deref(),
        };
        let groups = ranker.groups_of(files)?;
        let data = input.dataset(files, &self.columns, groups, common)?;
        let tie_rank = match self.ties {
            Ties::Expected => None,
            Ties::Trec => Some(id_ranks(&files.items, self.columns.id.as_deref())?),
        };
        let units = match self.count_empty {
            true => (0..data.supervision().queries()).collect(),
            false => data.units(),
        };
        self.judge(ranker, &data, files.unit_table(), &units, tie_rank, common)
    }

    /// Those asked for, or those worth showing.
    fn measures_or(&self, shown: Vec<Measure>) -> Vec<Measure> {
        match self.measures.is_empty() {
            true => shown,
            false => self.measures.clone(),
        }
    }

    fn empty(&self) -> Empty {
        if self.count_empty {
            Empty::Zero
        } else {
            Empty::Skip
        }
    }

    fn judge(
        &self,
        ranker: &Ranker,
        data: &Dataset<'_>,
        unit_table: &Loaded,
        units: &[u64],
        tie_rank: Option<Vec<u32>>,
        common: &Common,
    ) -> Result<()> {
        let protocol = match self.classifier {
            Some(classifier) => Protocol::Classify(classifier),
            None => protocol_for(self.protocol, self.repeats, data.supervision()),
        };
        check_protocol(data, protocol)?;
        ensure!(
            !matches!(protocol, Protocol::Classify(_)) || self.splits.is_some(),
            "classifying needs --splits: their training parts are what classes are known of"
        );
        ensure!(
            protocol != Protocol::AgainstTraining,
            "against-training belongs to train; here name the gallery with --gallery-where"
        );
        let judging = EvaluationSettings {
            protocol,
            measures: self.measures_or(protocol.measures_for(data)),
            ties: self.ties,
            tie_rank,
            gain: self.gain,
            empty: self.empty(),
            seed: self.seed,
            rerank: self.rerank,
            new_items: NewItems::default(),
        };
        let judge = |chain: &Chain, train: &[u64], units: &[u64]| -> Result<Scores> {
            let space = [chain.space()];
            let mut scores = data.evaluate_part(chain, &space, units, train, &judging)?;
            Ok(scores.swap_remove(0)?)
        };
        let parts = self.parts(data, unit_table, units)?;
        let seen_rows = self.seen_rows(ranker, data, &parts)?;
        let chain = &ranker.chain_for(data)?;
        let base_chain = self.base.map(|space| Ranker::Plain(space).chain_for(data));
        let base_chain = base_chain.transpose()?;
        let mut learned = Vec::new();
        let mut base = Vec::new();
        for (train, test) in &parts {
            learned.push(judge(chain, train, test)?);
            if let Some(base_chain) = &base_chain {
                base.push(judge(base_chain, train, test)?);
            }
        }
        let means = |scores: &Scores| -> BTreeMap<String, f64> {
            (scores.measures().iter())
                .map(|m| (m.to_string(), scores.mean(*m)))
                .collect()
        };
        let first = &learned[0];
        let mut measures = BTreeMap::new();
        for measure in first.measures() {
            let total: f64 = learned.iter().map(|s| s.mean(*measure)).sum();
            measures.insert(measure.to_string(), total / learned.len() as f64);
        }
        let mut comparison = Vec::new();
        if let ([only], [base]) = (&learned[..], &base[..]) {
            for measure in only.measures() {
                comparison.push((*measure, only.against(base, *measure, self.seed)?));
            }
        }
        let per_query = self
            .per_query
            .then(|| per_query(first, |unit| row_name(unit_table, &self.columns, unit)));
        let report = Report {
            queries: learned.iter().map(|s| s.queries().len()).sum(),
            skipped_queries: learned.iter().map(Scores::skipped).sum(),
            seen_rows,
            rerank: self.rerank.map(|rerank| rerank.to_string()),
            measures,
            comparison: print::rows(&comparison),
            splits: if learned.len() > 1 {
                learned.iter().map(means).collect()
            } else {
                Vec::new()
            },
            per_query,
        };
        if common.json {
            return print::json(&report);
        }
        self.print(&report, first.measures())?;
        let base = self.base.map_or(String::new(), |b| b.to_string());
        print::comparison_table("against", &base, &comparison)
    }

    /// The units that were learned from and those that are evaluated, of every split that is asked for.
    fn parts(
        &self,
        data: &Dataset<'_>,
        unit_table: &Loaded,
        units: &[u64],
    ) -> Result<Vec<(Vec<u64>, Vec<u64>)>> {
        let Some(path) = &self.splits else {
            return Ok(vec![(Vec::new(), units.to_vec())]);
        };
        let set = read_splits(path)?;
        let names = split_names(set.by, data, unit_table, &self.columns)?;
        let splits = match self.split {
            None => &set.splits[..],
            Some(number) => match set.splits.get(number) {
                Some(split) => std::slice::from_ref(split),
                None => bail!(
                    "--split must be below {}, but is {number}",
                    set.splits.len()
                ),
            },
        };
        let part = |split: &Split| -> Result<(Vec<u64>, Vec<u64>)> {
            let (train, mut test) = split.positions(&names)?;
            test.retain(|unit| units.binary_search(unit).is_ok());
            Ok((train, test))
        };
        splits.iter().map(part).collect()
    }

    /// How many of the evaluated units the model learned from. A test part of a split may have none.
    fn seen_rows(
        &self,
        ranker: &Ranker,
        data: &Dataset<'_>,
        parts: &[(Vec<u64>, Vec<u64>)],
    ) -> Result<Option<SeenRows>> {
        let mut total: Option<SeenRows> = None;
        for (number, (_, test)) in parts.iter().enumerate() {
            let Some(seen) = ranker.seen_rows(&*data.unit_rows(test)?)? else {
                return Ok(None);
            };
            if let (Some(path), true, false) = (&self.splits, seen.is_leak(), self.allow_seen) {
                bail!(
                    "{}: {} by this model in the test part of split {}: {}, or say --allow-seen for a \
                     result that is not held out",
                    path.display(),
                    print::seen_rows(&seen),
                    self.split.unwrap_or(number),
                    ranker.held_out_hint("name the split that it was trained on with --split")
                );
            }
            total = Some(total.map_or(seen, |total| total.and(&seen)));
        }
        Ok(total)
    }

    /// Rows against another part of the file.
    fn against(
        &self,
        ranker: &Ranker,
        queries: &Loaded,
        gallery: &Loaded,
        common: &Common,
    ) -> Result<()> {
        let protocol = self.protocol.unwrap_or(Protocol::LeaveOneOut);
        let options = EvaluationOptions {
            measures: self.measures_or(protocol.measures()),
            gain: self.gain,
            empty: self.empty(),
            ..EvaluationOptions::default()
        };
        let how = Against {
            protocol,
            rerank: self.rerank,
            options: &options,
        };
        let learned = ranker.against(queries, gallery, &how, common)?;
        let mut comparison = Vec::new();
        if let Some(base) = self.base {
            let base = Ranker::Plain(base).against(queries, gallery, &how, common)?;
            let bootstrap = Bootstrap {
                seed: self.seed,
                ..Bootstrap::default()
            };
            for measure in &options.measures {
                comparison.push((*measure, base.compare(&learned, *measure, &bootstrap)?));
            }
        }
        let names = |query: usize| row_name(queries, &self.columns, query as u64);
        let mut report = self.report(&learned, &comparison, names);
        report.seen_rows = ranker.seen_rows(queries.table.corpus.as_ref())?;
        if common.json {
            return print::json(&report);
        }
        self.print(&report, &options.measures)?;
        let base = self.base.map_or(String::new(), |b| b.to_string());
        print::comparison_table("against", &base, &comparison)
    }

    fn evaluate_run(&self, run: &Path, qrels: &Path, common: &Common) -> Result<()> {
        let run = read_run(run)?;
        let qrels = read_qrels_by_name(qrels)?;
        // Ties go by document id descending, as text: one number for every id there is.
        let mut ids: Vec<&str> = run
            .queries
            .values()
            .flatten()
            .map(|(document, _)| document.as_str())
            .collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        let rank: HashMap<&str, u32> = ids.iter().zip(0_u32..).map(|(id, r)| (*id, r)).collect();
        let mut names = Vec::new();
        let mut queries = Vec::new();
        let nothing = BTreeMap::new();
        for (name, documents) in &run.queries {
            let grades = match qrels.get(name) {
                Some(grades) => grades,
                None if self.count_empty => &nothing,
                None => continue,
            };
            let items = (documents.iter())
                .map(|(document, score)| RankedItem {
                    // Smaller is nearer here, larger is better in a run.
                    score: -(*score as f32),
                    grade: grades.get(document).copied().filter(|g| *g > 0.0),
                    tie_rank: rank[document.as_str()],
                })
                .collect();
            let retrieved: HashMap<&str, ()> = documents
                .iter()
                .map(|(document, _)| (document.as_str(), ()))
                .collect();
            let missing = (grades.iter())
                .filter(|(document, grade)| {
                    **grade > 0.0 && !retrieved.contains_key(document.as_str())
                })
                .map(|(_, grade)| *grade)
                .collect();
            queries.push(RankedQuery {
                cluster: queries.len() as u64,
                items,
                missing,
            });
            names.push(name.clone());
        }
        ensure!(!queries.is_empty(), "no query of the run is judged");
        let options = EvaluationOptions {
            measures: self.measures_or(Protocol::Judged.measures()),
            ties: self.ties,
            gain: self.gain,
            empty: self.empty(),
            ..EvaluationOptions::default()
        };
        let found = evaluate_ranking(&queries, &options)?;
        let report = self.report(&found, &[], |query| names[query].clone());
        if common.json {
            return print::json(&report);
        }
        self.print(&report, &options.measures)
    }

    fn report(
        &self,
        found: &Evaluation,
        comparison: &[(Measure, metra::evaluate::Comparison)],
        name: impl Fn(usize) -> String,
    ) -> Report {
        let per_query = self.per_query.then(|| {
            (found.queries.iter().enumerate())
                .map(|(place, query)| {
                    let values = (found.values.iter())
                        .map(|(measure, values)| (measure.to_string(), values[place]))
                        .collect();
                    (name(*query as usize), values)
                })
                .collect()
        });
        Report {
            queries: found.queries.len(),
            skipped_queries: found.skipped,
            seen_rows: None,
            rerank: self.rerank.map(|rerank| rerank.to_string()),
            measures: (found.values.iter())
                .map(|(m, _)| (m.to_string(), found.mean(*m).unwrap_or(0.0)))
                .collect(),
            comparison: print::rows(comparison),
            splits: Vec::new(),
            per_query,
        }
    }

    fn print(&self, report: &Report, measures: &[Measure]) -> Result<()> {
        let queries = print::count(report.queries as u64);
        let skipped = match report.skipped_queries {
            0 => String::new(),
            n => format!(", {} skipped with nothing relevant", print::count(n)),
        };
        print::fact("queries", &format!("{queries}{skipped}"))?;
        print_seen(report.seen_rows)?;
        if let Some(rerank) = &report.rerank {
            print::fact("re-ranked", rerank)?;
        }
        for measure in measures {
            let name = measure.to_string();
            let spread = deviation(&report.splits, &name);
            print::fact(&name, &format!("{:.4}{spread}", report.measures[&name]))?;
        }
        Ok(())
    }
}

fn deviation(splits: &[BTreeMap<String, f64>], name: &str) -> String {
    if splits.len() < 2 {
        return String::new();
    }
    let values: Vec<f64> = splits.iter().map(|s| s[name]).collect();
    let over = MeanAndDeviation::over(&values);
    format!(" ± {:.4} over {} splits", over.deviation, values.len())
}

fn per_query(
    scores: &Scores,
    name: impl Fn(u64) -> String,
) -> BTreeMap<String, BTreeMap<String, f64>> {
    (scores.queries().iter().enumerate())
        .map(|(place, unit)| {
            let values = (scores.measures().iter())
                .map(|measure| (measure.to_string(), scores.values(*measure)[place]))
                .collect();
            (name(*unit), values)
        })
        .collect()
}

/// Place of every item when ties go by id descending, as text.
fn id_ranks(items: &Loaded, id: Option<&str>) -> Result<Vec<u32>> {
    let ids = items.table.column(id.context("--id is needed")?)?;
    let names: Vec<String> = ids.iter().map(|n| n.into_owned()).collect();
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_by(|a, b| names[*b as usize].cmp(&names[*a as usize]));
    let mut rank = vec![0; names.len()];
    for (place, item) in order.into_iter().enumerate() {
        rank[item as usize] = place as u32;
    }
    Ok(rank)
}

fn ties(text: &str) -> Result<Ties, String> {
    match text {
        "expected" => Ok(Ties::Expected),
        "trec" => Ok(Ties::Trec),
        other => Err(format!(
            "expected `expected` or `trec`, but found {other:?}"
        )),
    }
}

fn gain(text: &str) -> Result<GradeGain, String> {
    match text {
        "linear" => Ok(GradeGain::Linear),
        "exponential" => Ok(GradeGain::Exponential),
        other => Err(format!(
            "expected `linear` or `exponential`, but found {other:?}"
        )),
    }
}

/// Say whether a result is held out, where the model keeps that.
fn print_seen(seen: Option<SeenRows>) -> Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let words = print::seen_rows(&seen);
    match seen.is_leak() {
        true => print::fact(
            "WARNING",
            &format!("{words}: this is not a held-out result"),
        ),
        false => print::fact("held out", &words),
    }
}
