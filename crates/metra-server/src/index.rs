//! Indexes that are served: opened with their model, and searched among all items or those with some labels.

use crate::Result;
use crate::options::ModelEntry;
use crate::refusal::Refusal;
use crate::rows::embed;
use metra::data::{Corpus, Groups, MemoryCorpus};
use metra::internal::Interruptible;
use metra::linalg::RowBuf;
use metra::model::{Model, Side};
use metra_stores::index::{Ask, LocalIndex, Verify};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// An index with what its filters need.
pub(crate) struct ServedIndex {
    pub(crate) index: LocalIndex,
    /// What maps queries.
    query_model: Model,
    labels: Option<ItemLabels>,
}

/// The labels of all items, which are in memory: filters ask for all items of a label, and answers for the label of each item.
struct ItemLabels {
    names: Vec<String>,
    of: Vec<u32>,
    numbers: HashMap<String, u32>,
    /// The items of each label.
    items: Vec<Vec<u64>>,
}

/// Candidates that a request may ask for: the memory of a search grows with them.
const MOST_EFFORT: usize = 10_000;

/// How a request wants to search.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SearchOptions<'a> {
    pub(crate) k: usize,
    pub(crate) exact: bool,
    pub(crate) effort: Option<usize>,
    pub(crate) labels: Option<&'a [String]>,
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Hit {
    /// Its id, or its number in the index where items have no ids.
    pub(crate) id: String,
    /// Its label, where items have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// Smaller is nearer.
    pub(crate) dissimilarity: f32,
}

impl ServedIndex {
    pub(crate) fn open(
        folder: &Path,
        entry: &ModelEntry,
        model: &Model,
        verify: Verify,
    ) -> Result<Self> {
        let index = LocalIndex::open(folder, verify, &mut |_, _, _| Ok(()))?;
        let query_model = index.query_model(&entry.file.display().to_string(), model)?;
        index.prepare()?;
        let labels = index.labels()?.map(ItemLabels::new);
        Ok(ServedIndex {
            index,
            query_model,
            labels,
        })
    }

    /// Map queries for `search`.
    pub(crate) fn map_queries(
        &self,
        rows: &RowBuf,
        groups: Option<&Groups>,
    ) -> metra::Result<RowBuf> {
        embed(&self.query_model.chain, Side::Query, rows, groups)
    }

    /// The nearest items of mapped queries.
    pub(crate) fn search(
        &self,
        mapped: RowBuf,
        request: SearchOptions<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<Hit>>, Refusal> {
        let count = mapped.len();
        let queries = MemoryCorpus::new(mapped)?;
        let queries = Interruptible::new(&queries as &dyn Corpus, stop);
        let found = match request.labels {
            Some(labels) => {
                let items = self.items_of(labels)?;
                if items.is_empty() {
                    return Ok(vec![Vec::new(); count]);
                }
                self.index.search_among(&queries, request.k, &items)?
            }
            None => self.index.search(&queries, request.k, self.ask(request)?)?,
        };
        let mut answers = Vec::with_capacity(found.queries());
        for number in 0..found.queries() {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            let pairs = found.ids_of(number).iter().zip(found.scores_of(number));
            let hits = pairs.map(|(item, score)| {
                Ok(Hit {
                    id: self.index.id(*item)?,
                    label: (self.labels.as_ref()).map(|labels| labels.label(*item).to_owned()),
                    dissimilarity: *score,
                })
            });
            answers.push(hits.collect::<Result<_, metra_stores::Error>>()?);
        }
        Ok(answers)
    }

    fn ask(&self, request: SearchOptions<'_>) -> Result<Ask, Refusal> {
        let usual = self.index.usual(request.k);
        match (request.exact, request.effort, usual) {
            (true, None, _) => Ok(Ask::Exact),
            (true, Some(_), _) => Err(Refusal::bad(
                "expected \"exact\" or \"effort\", but found both",
            )),
            (false, Some(0), _) => Err(Refusal::bad(
                "expected \"effort\" to be at least 1, but found 0",
            )),
            (false, Some(effort), _) if effort > MOST_EFFORT => Err(Refusal::bad(format!(
                "expected \"effort\" up to {MOST_EFFORT}, but found {effort}"
            ))),
            (false, Some(effort), Ask::Approximate { .. }) => Ok(Ask::Approximate { effort }),
            (false, Some(_), Ask::Exact) => Err(Refusal::bad(
                "\"effort\" is for an index with a graph or codes, and this one compares every item",
            )),
            (false, None, usual) => Ok(usual),
        }
    }

    /// The items with one of these labels, in their order.
    fn items_of(&self, labels: &[String]) -> Result<Vec<u64>, Refusal> {
        let known = self
            .labels
            .as_ref()
            .ok_or_else(|| Refusal::bad("the items of this index have no labels to filter by"))?;
        // Each item has one label: without repeated labels there are no repeated items.
        let numbers: HashSet<u32> = (labels.iter())
            .filter_map(|label| known.numbers.get(label).copied())
            .collect();
        let items = numbers
            .into_iter()
            .flat_map(|number| &known.items[number as usize]);
        let mut items: Vec<u64> = items.copied().collect();
        items.sort_unstable();
        Ok(items)
    }

    /// How many items have a label.
    pub(crate) fn count(&self, label: &str) -> usize {
        let of =
            |labels: &ItemLabels| Some(labels.items[*labels.numbers.get(label)? as usize].len());
        self.labels.as_ref().and_then(of).unwrap_or(0)
    }
}

impl ItemLabels {
    fn new((names, of): (Vec<String>, Vec<u32>)) -> Self {
        let mut items = vec![Vec::new(); names.len()];
        for (item, number) in (0..).zip(&of) {
            items[*number as usize].push(item);
        }
        ItemLabels {
            numbers: names.iter().cloned().zip(0..).collect(),
            names,
            of,
            items,
        }
    }

    fn label(&self, item: u64) -> &str {
        &self.names[self.of[item as usize] as usize]
    }
}
