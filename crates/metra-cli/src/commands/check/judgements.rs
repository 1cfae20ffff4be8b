//! `metra check` with queries, items and judgements: what fits together, what is missing, and how much
//! there is to gain.

use crate::args::Common;
use crate::inputs::{Columns, ComparisonArgs, Files, QrelsArgs, SupervisionInput};
use crate::print;
use anyhow::{Context, Result};
use metra::Dataset;
use metra::evaluate::Measure;
use metra::experiment::{EvaluationSettings, Protocol};
use metra::internal::Stream;
use metra::model::{Chain, Space};
use metra_files::{NarrowingRule, read_qrels_by_name};
use serde::Serialize;
use std::collections::BTreeMap;

/// Queries from which the headroom is estimated.
const HEADROOM_QUERIES: usize = 2_000;

#[derive(Serialize)]
struct Report {
    items: u64,
    queries: u64,
    dim: usize,
    element_type: String,
    /// Queries in the file of judgements.
    judged_queries: usize,
    /// Of these, those that are in the file of queries.
    known_queries: usize,
    /// Known queries with a relevant item that is in the file of items.
    usable_queries: usize,
    /// Known queries with a relevant item, none of which is in the file of items.
    queries_without_items: usize,
    /// Known queries of whose relevant items some are not in the file of items.
    queries_with_missing_items: usize,
    /// Pairs of a known query and a relevant item that is in the file of items.
    relevant_pairs: usize,
    /// Pairs of a known query and an item of the file that was judged irrelevant (a grade of 0 or less).
    irrelevant_pairs: usize,
    /// Items that are relevant to some query, and to more than one.
    relevant_items: usize,
    shared_items: usize,
    /// Whether queries are vectors of another model than items.
    two_models: bool,
    headroom: Vec<Headroom>,
}

#[derive(Serialize)]
struct Headroom {
    score: String,
    queries: usize,
    measures: BTreeMap<String, f64>,
}

/// Look at queries, items and judgements.
pub(super) fn check(
    qrels: &QrelsArgs,
    columns: &Columns,
    seed: u64,
    common: &Common,
) -> Result<()> {
    let files = Files::apart(qrels, columns, &[], &NarrowingRule::Judge, common)?;
    let files = files.context("name --queries, --items and --qrels")?;
    let report = Report::new(qrels, columns, &files, seed, common)?;
    if common.json {
        return print::json(&report);
    }
    report.show()
}

impl Report {
    fn new(
        qrels: &QrelsArgs,
        columns: &Columns,
        files: &Files,
        seed: u64,
        common: &Common,
    ) -> Result<Self> {
        let id = columns.id.as_deref().context("--id is needed")?;
        let path = qrels.qrels.as_deref().context("--qrels is needed")?;
        let items = &files.items.table;
        let queries = &files.unit_table().table;
        let (item_ids, query_ids) = (items.index(id)?, queries.index(id)?);
        let judged = read_qrels_by_name(path)?;
        let mut report = Report {
            items: items.corpus.len(),
            queries: queries.corpus.len(),
            dim: items.corpus.dim(),
            element_type: items.element_type.to_string(),
            judged_queries: judged.len(),
            known_queries: 0,
            usable_queries: 0,
            queries_without_items: 0,
            queries_with_missing_items: 0,
            relevant_pairs: 0,
            irrelevant_pairs: 0,
            relevant_items: 0,
            shared_items: 0,
            two_models: qrels.two_spaces || queries.corpus.dim() != items.corpus.dim(),
            headroom: Vec::new(),
        };
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for (query, grades) in &judged {
            if !query_ids.contains_key(query) {
                continue;
            }
            report.known_queries += 1;
            let relevant = grades.iter().filter(|(_, grade)| **grade > 0.0);
            let relevant: Vec<&String> = relevant.map(|(item, _)| item).collect();
            let known = relevant.iter().filter(|item| item_ids.contains_key(**item));
            let mut count = 0;
            for item in known {
                *asked.entry(item).or_default() += 1;
                count += 1;
            }
            report.relevant_pairs += count;
            let is_known =
                |(item, grade): &(&String, &f32)| **grade <= 0.0 && item_ids.contains_key(*item);
            report.irrelevant_pairs += grades.iter().filter(is_known).count();
            report.usable_queries += usize::from(count > 0);
            report.queries_without_items += usize::from(count == 0 && !relevant.is_empty());
            report.queries_with_missing_items += usize::from(count < relevant.len());
        }
        report.relevant_items = asked.len();
        report.shared_items = asked.values().filter(|count| **count > 1).count();
        if report.usable_queries > 0 {
            let input = SupervisionInput {
                qrels: Some(path),
                two_spaces: qrels.two_spaces,
                comparisons: &ComparisonArgs::default(),
                orderings: None,
                taxonomy: None,
            };
            let data = input.dataset(files, columns, (None, None), common)?;
            report.headroom = headroom(&data, seed)?;
        }
        Ok(report)
    }

    fn show(&self) -> Result<()> {
        let count = |number: usize| print::count(number as u64);
        let (items, dim) = (print::count(self.items), self.dim);
        print::fact("items", &format!("{items} × {dim} {}", self.element_type))?;
        print::fact("queries", &print::count(self.queries))?;
        let share = |part: usize| 100.0 * part as f64 / self.known_queries.max(1) as f64;
        let unknown = match self.judged_queries - self.known_queries {
            0 => String::new(),
            unknown => format!("; {} judged queries are not in the file", count(unknown)),
        };
        print::fact(
            "judged",
            &format!(
                "{} queries, with {} pairs of a query and a relevant item{unknown}",
                count(self.usable_queries),
                count(self.relevant_pairs)
            ),
        )?;
        if self.queries_with_missing_items > 0 {
            print::fact(
                "missing",
                &format!(
                    "{} queries ({:.1} %) lack relevant items, {} of them ({:.1} %) all of theirs: what is \
                     relevant to these cannot be found",
                    count(self.queries_with_missing_items),
                    share(self.queries_with_missing_items),
                    count(self.queries_without_items),
                    share(self.queries_without_items)
                ),
            )?;
        }
        print::fact(
            "relevant",
            &format!(
                "{} items ({:.1} % of all), {} of them to more than one query; judgements teach nothing of \
                 the others",
                count(self.relevant_items),
                100.0 * self.relevant_items as f64 / self.items.max(1) as f64,
                count(self.shared_items)
            ),
        )?;
        let judged = match self.irrelevant_pairs {
            0 => "no pair was judged irrelevant: all that is not relevant counts as irrelevant"
                .to_owned(),
            some => format!(
                "{} pairs were judged irrelevant; what nobody judged counts as irrelevant, too, unless \
                 --set irrelevant=judged counts these alone",
                count(some)
            ),
        };
        print::fact("irrelevant", &judged)?;
        for base in &self.headroom {
            let values = base.measures.iter();
            let values: Vec<String> = values.map(|(name, v)| format!("{name} {v:.4}")).collect();
            let queries = count(base.queries);
            let text = format!("{} as they are ({queries} queries)", values.join(", "));
            print::fact(&base.score, &text)?;
        }
        if self.usable_queries == 0 {
            let text =
                "no judgement names a query and an item of the files: do the ids fit (--id)?";
            return print::fact("WARNING", text);
        }
        print::fact(
            "hint",
            match self.two_models {
                true => "metra train with the same arguments learns a map for each side",
                false => {
                    "metra train with the same arguments maps queries alone and leaves the index as it is"
                }
            },
        )
    }
}

/// How well the vectors rank as they are, on a sample of the queries.
fn headroom(data: &Dataset<'_>, seed: u64) -> Result<Vec<Headroom>> {
    let units = data.units();
    let chosen = Stream::new(seed, "headroom", 0).choose(units.len() as u64, HEADROOM_QUERIES);
    let units: Vec<u64> = chosen.iter().map(|place| units[*place as usize]).collect();
    let (settings, _) = EvaluationSettings::new(data, Protocol::Judged, Vec::new(), None, seed)?;
    // Vectors of two models have no neighbours before something is learned.
    if data.has_two_spaces() {
        return Ok(Vec::new());
    }
    let chain = Chain::identity(data.dim(), Space::SquaredL2);
    let spaces = [Space::SquaredL2, Space::Cosine];
    let scores = data.evaluate_part(&chain, &spaces, &units, &[], &settings)?;
    // A zero vector rules cosine out.
    let scores = spaces.iter().zip(scores).filter_map(|(space, scores)| {
        let scores = scores.ok()?;
        let mean = |measure: &Measure| (measure.to_string(), scores.mean(*measure));
        Some(Headroom {
            score: space.to_string(),
            queries: scores.queries().len(),
            measures: scores.measures().iter().map(mean).collect(),
        })
    });
    Ok(scores.collect())
}
