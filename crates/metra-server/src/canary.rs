//! Judged queries that are ranked every so often, as any other request would be: whether the model and its index still find what is
//! relevant.

use crate::index::{Hit, SearchOptions, ServedIndex};
use crate::options::CanaryEntry;
use crate::refusal::Refusal;
use crate::rows::VectorRows;
use crate::{Error, Result};
use metra::linalg::RowBuf;
use metra::model::Model;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Queries that are ranked together.
const AT_ONCE: usize = 8;

/// Judged queries of a model.
pub(crate) struct Canary {
    mapped: RowBuf,
    judged: Judged,
    k: usize,
    /// What is found when every item is compared. An index never changes while it is served, so that this is worked out once.
    exact: OnceLock<Vec<Vec<String>>>,
}

/// Which items are relevant for each query.
enum Judged {
    /// Those with the query's label, of which the index has so many.
    Labels(Vec<(String, usize)>),
    /// Those with these ids.
    Ids(Vec<HashSet<String>>),
}

/// What came of ranking the queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CanaryReading {
    pub(crate) queries: usize,
    /// Of the relevant items that the first k answers could hold, the share that they held, in the mean of queries.
    pub(crate) recall: f64,
    /// Of the k nearest items by the full metric, the share that was found.
    pub(crate) agreement: f64,
    /// Seconds since 1970.
    pub(crate) time: f64,
}

impl Canary {
    /// Read queries and judgements.
    pub(crate) fn read(entry: &CanaryEntry, model: &Model, index: &ServedIndex) -> Result<Self> {
        let path = &entry.queries.file;
        let wrong = |problem: String| Error::file(path, problem);
        if entry.k == 0 {
            return Err(wrong("expected k to be at least 1, but found 0".into()));
        }
        let named: Vec<&String> = entry.label.iter().chain(&entry.id).collect();
        let found = VectorRows::read(&entry.queries, &named, model)?;
        let column = |name: &String| found.columns[name].iter().map(|text| text.into_owned());
        let judged = match (&entry.label, &entry.id, &entry.qrels) {
            (Some(label), None, None) => {
                let counted = |label: String| {
                    let count = index.count(&label);
                    (label, count)
                };
                Judged::Labels(column(label).map(counted).collect())
            }
            (None, Some(id), Some(qrels)) => {
                let mut all = metra_files::read_qrels_by_name(qrels)?;
                let relevant = |id: String| {
                    let judged = all.remove(&id).unwrap_or_default().into_iter();
                    judged
                        .filter(|(_, grade)| *grade > 0.0)
                        .map(|(item, _)| item)
                        .collect()
                };
                Judged::Ids(column(id).map(relevant).collect())
            }
            _ => {
                let problem =
                    "expected queries to be judged either by a label, or by an id and qrels";
                return Err(wrong(problem.into()));
            }
        };
        let mapped = index.map_queries(&found.rows, found.groups.as_ref());
        let canary = Canary {
            mapped: mapped.map_err(|e| wrong(e.to_string()))?,
            judged,
            k: entry.k,
            exact: OnceLock::new(),
        };
        match (0..canary.mapped.len()).any(|query| canary.possible(query) > 0) {
            true => Ok(canary),
            false => Err(wrong(
                "expected a query with a relevant item in the index, but found none".into(),
            )),
        }
    }

    /// How many relevant items the first answers of a query could hold.
    fn possible(&self, query: usize) -> usize {
        let relevant = match &self.judged {
            Judged::Labels(labels) => labels[query].1,
            Judged::Ids(ids) => ids[query].len(),
        };
        relevant.min(self.k)
    }

    fn relevant(&self, query: usize, hits: &[Hit]) -> usize {
        let is_relevant = |hit: &&Hit| match &self.judged {
            Judged::Labels(labels) => hit.label.as_ref() == Some(&labels[query].0),
            Judged::Ids(ids) => ids[query].contains(&hit.id),
        };
        hits.iter().filter(is_relevant).count()
    }

    /// Numbers of the queries, so many at once that other requests need not wait long for them.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.mapped.len();
        (0..all)
            .step_by(AT_ONCE)
            .map(move |start| start..all.min(start + AT_ONCE))
    }

    /// What is found for some of the queries.
    pub(crate) fn search(
        &self,
        index: &ServedIndex,
        part: Range<usize>,
        exact: bool,
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<Hit>>, Refusal> {
        let mut queries = RowBuf::empty(self.mapped.dim());
        queries.extend(self.mapped.rows().slice(part.start, part.end));
        let options = SearchOptions {
            k: self.k,
            exact,
            ..SearchOptions::default()
        };
        index.search(queries, options, stop)
    }

    /// Whether it is not known yet what is found when every item is compared.
    pub(crate) fn needs_exact(&self) -> bool {
        self.exact.get().is_none()
    }

    /// Keep what is found when every item is compared.
    pub(crate) fn keep_exact(&self, found: Vec<Vec<Hit>>) {
        let ids = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.id).collect();
        let _ = self.exact.set(found.into_iter().map(ids).collect());
    }

    /// What the answers to all queries are worth; nothing before it is known what every item compared would give.
    pub(crate) fn reading(&self, found: &[Vec<Hit>]) -> Option<CanaryReading> {
        let exact = self.exact.get()?;
        let (mut recall, mut agreement, mut queries) = (0.0, 0.0, 0);
        for (query, hits) in found.iter().enumerate() {
            let ids: HashSet<&String> = hits.iter().map(|hit| &hit.id).collect();
            let same = exact[query].iter().filter(|id| ids.contains(id)).count();
            agreement += same as f64 / exact[query].len().max(1) as f64;
            let possible = self.possible(query);
            if possible > 0 {
                queries += 1;
                recall += self.relevant(query, hits).min(possible) as f64 / possible as f64;
            }
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Some(CanaryReading {
            queries,
            recall: recall / f64::from(u32::try_from(queries.max(1)).unwrap_or(u32::MAX)),
            agreement: agreement / found.len().max(1) as f64,
            time: now.map_or(0.0, |now| now.as_secs_f64()),
        })
    }
}
