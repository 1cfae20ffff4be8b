//! Items and queries that both models have embedded, and what is right.

use super::Migrate;
use crate::args::Common;
use crate::inputs::{Columns, Loaded, in_file, load, need_labels};
use anyhow::{Context, Result, ensure};
use metra::data::Subset;
use metra::experiment::QueryTruth;
use metra::internal::Stream;
use metra::model::Space;
use metra::supervision::Labels;
use metra_files::{NarrowingRule, read_qrels_by_name};
use std::collections::HashMap;
use std::path::Path;

/// Right answers of all queries together: each takes some 30 bytes.
const MOST_ANSWERS: usize = 20_000_000;

/// Rows of two files that are the same thing.
pub(super) struct Matched {
    pub(super) old: Loaded,
    pub(super) new: Loaded,
    /// Rows of the old file, and those of the new one that belong to them.
    rows: (Vec<u64>, Vec<u64>),
}

/// Everything that is read.
pub(super) struct BothSpaces {
    pub(super) items: Matched,
    /// Queries of other files.
    pub(super) asked: Option<Matched>,
    /// Without such, the items that are queries, by their place among those that both files have.
    pub(super) rows: Vec<u64>,
    pub(super) truth: Option<Vec<QueryTruth>>,
    /// Queries that have nothing right among the items of both files.
    pub(super) unanswered: usize,
    /// Judgements of items that are not in both files.
    pub(super) judged_elsewhere: usize,
}

impl Matched {
    fn new(old: Loaded, new: Loaded, id: Option<&str>) -> Result<Self> {
        let lengths = (old.table.corpus.len(), new.table.corpus.len());
        let rows: (Vec<u64>, Vec<u64>) = match id {
            None => {
                // Rows left out of one file alone would shift all behind them.
                let is_whole = !old.table.filtered && !new.table.filtered;
                ensure!(
                    is_whole,
                    "rows with missing values were left out: name a column of ids with --id, by which the others are matched"
                );
                ensure!(
                    lengths.0 == lengths.1,
                    "{} has {} rows and {} has {}: name a column of ids with --id",
                    old.table.path.display(),
                    lengths.0,
                    new.table.path.display(),
                    lengths.1
                );
                ((0..lengths.0).collect(), (0..lengths.1).collect())
            }
            Some(id) => {
                let places = new.table.index(id)?;
                let own = old.table.column(id)?.iter().zip(0..);
                own.filter_map(|(id, row)| places.get(id.as_ref()).map(|place| (row, *place)))
                    .unzip()
            }
        };
        ensure!(
            !rows.0.is_empty(),
            "{} and {}: expected rows with the same ids, but found none",
            old.table.path.display(),
            new.table.path.display()
        );
        Ok(Matched { old, new, rows })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.0.len()
    }

    /// Rows of the two files that the other one does not have.
    pub(super) fn unmatched(&self) -> u64 {
        let all = self.old.table.corpus.len() + self.new.table.corpus.len();
        all - 2 * self.len() as u64
    }

    /// The vectors, in the same order.
    pub(super) fn corpora(&self) -> Result<(Subset<'_>, Subset<'_>)> {
        let (old, new) = (&self.old.table.corpus, &self.new.table.corpus);
        Ok((
            Subset::new(old.as_ref(), self.rows.0.clone())?,
            Subset::new(new.as_ref(), self.rows.1.clone())?,
        ))
    }

    /// What judgements say of these queries, as places among the matched items, and how many are of other items.
    fn judged(
        &self,
        verb: &Migrate,
        qrels: &Path,
        asked: &Matched,
    ) -> Result<(Vec<QueryTruth>, usize)> {
        let id = verb.id.as_deref();
        let id = id.context("--id must name the column of ids that the judgements speak of")?;
        let judgements = read_qrels_by_name(qrels)?;
        let names = self.old.table.column(id)?;
        let rows = self.rows.0.iter().zip(0..);
        let places: HashMap<_, u32> = rows
            .map(|(row, place)| (names.get(*row as usize).into_owned(), place))
            .collect();
        let queries = asked.old.table.column(id)?;
        let mut elsewhere = 0;
        let mut truth = Vec::with_capacity(asked.len());
        for row in &asked.rows.0 {
            let mut of_query = QueryTruth {
                cluster: *row,
                ..QueryTruth::default()
            };
            let judged = judgements.get(queries.get(*row as usize).as_ref());
            for (item, grade) in judged
                .into_iter()
                .flatten()
                .filter(|(_, grade)| **grade > 0.0)
            {
                match places.get(item) {
                    Some(place) => drop(of_query.grades.insert(*place, *grade)),
                    None => elsewhere += 1,
                }
            }
            truth.push(of_query);
        }
        Ok((truth, elsewhere))
    }

    /// Only these, by place.
    fn keep(&mut self, places: &[usize]) {
        let (old, new) = &self.rows;
        self.rows = places
            .iter()
            .map(|place| (old[*place], new[*place]))
            .unzip();
    }
}

impl BothSpaces {
    pub(super) fn read(verb: &Migrate, common: &Common) -> Result<Self> {
        let columns = |vector: &Option<String>, label: Option<&String>| Columns {
            vector: vector.clone(),
            label: label.cloned(),
            id: verb.id.clone(),
            missing: verb.missing,
            ..Columns::default()
        };
        let new_vector = verb.new_vector.clone().or_else(|| verb.vector.clone());
        let read = |path: &Path, is_new: bool, label: Option<&String>, like: Option<&Loaded>| {
            let vector = if is_new { &new_vector } else { &verb.vector };
            let rule = match like {
                Some(items) => NarrowingRule::of(items.table.narrowing.as_ref()),
                None => NarrowingRule::Judge,
            };
            load(path, &columns(vector, label), &[], &[], rule, common)
        };
        let id = verb.id.as_deref();
        let old = read(&verb.old, false, verb.label.as_ref(), None)?;
        let items = Matched::new(old, read(&verb.new, true, None, None)?, id)?;
        let asked = match verb.old_queries.as_ref().zip(verb.new_queries.as_ref()) {
            Some((old, new)) => {
                let old = read(old, false, None, Some(&items.old))?;
                let new = read(new, true, None, Some(&items.new))?;
                Some(Matched::new(old, new, id)?)
            }
            None => None,
        };
        let mut both = BothSpaces {
            rows: Vec::new(),
            truth: None,
            unanswered: 0,
            judged_elsewhere: 0,
            items,
            asked,
        };
        if verb.score == Space::Cosine {
            for file in [Some(&both.items), both.asked.as_ref()]
                .into_iter()
                .flatten()
            {
                check_directions(&file.old)?;
                check_directions(&file.new)?;
            }
        }
        both.find_truth(verb)?;
        Ok(both)
    }

    /// Decide what is looked for, and what is right.
    fn find_truth(&mut self, verb: &Migrate) -> Result<()> {
        let queries = self.asked.as_ref().unwrap_or(&self.items).len();
        let (mut judged, mut labels) = (None, None);
        match (&verb.qrels, &self.asked) {
            (Some(qrels), Some(asked)) => {
                let (truth, elsewhere) = self.items.judged(verb, qrels, asked)?;
                (judged, self.judged_elsewhere) = (Some(truth), elsewhere);
            }
            (_, None) if verb.label.is_some() => {
                labels = Some(need_labels(&self.items.old)?.select(&self.items.rows.0)?);
            }
            _ => {}
        }
        let is_answered = |query: &usize| match (&judged, &labels) {
            (Some(judged), _) => !judged[*query].grades.is_empty(),
            (_, Some(labels)) => labels.members(labels.of()[*query]).len() > 1,
            _ => true,
        };
        let answered: Vec<usize> = (0..queries).filter(is_answered).collect();
        ensure!(
            !answered.is_empty(),
            "expected right answers among the items of both files, but found none: are the ids the same?"
        );
        self.unanswered = queries - answered.len();
        let mut draw = Stream::new(verb.seed, "queries of a migration", 0);
        let chosen = sampled(answered, verb.sample, &mut draw);
        if let Some(labels) = &labels {
            let of = |query: &usize| labels.members(labels.of()[*query]).len();
            let answers: usize = chosen.iter().map(of).sum();
            ensure!(
                answers <= MOST_ANSWERS,
                "expected at most {MOST_ANSWERS} right answers to all queries, but found {answers}: a lower --sample, or files                  with a sample of the items, will do"
            );
        }
        let truth = |query: &usize| match (&judged, &labels) {
            (Some(judged), _) => judged.get(*query).cloned(),
            (_, Some(labels)) => Some(classmates(labels, *query)),
            _ => None,
        };
        self.truth = chosen.iter().map(truth).collect();
        match &mut self.asked {
            Some(asked) => asked.keep(&chosen),
            None => self.rows = chosen.into_iter().map(|row| row as u64).collect(),
        }
        Ok(())
    }
}

/// The items of a row's class, but for itself.
fn classmates(labels: &Labels, row: usize) -> QueryTruth {
    let class = labels.of()[row];
    let others = labels.members(class).iter();
    QueryTruth {
        grades: others
            .filter(|other| **other as usize != row)
            .map(|other| (*other, 1.0))
            .collect(),
        cluster: class.into(),
    }
}

/// Vectors without a length have no cosine.
fn check_directions(loaded: &Loaded) -> Result<()> {
    let corpus = loaded.table.corpus.as_ref();
    let checked = corpus.scan(0..corpus.len(), &mut |first, rows| {
        match (first..).zip(rows.iter()).find(|(_, row)| row.iter().all(|value| *value == 0.0)) {
            Some((row, _)) => Err(metra::Error::Row {
                row,
                problem: "expected a vector of non-zero length to take the cosine of, but all its values are 0".into(),
            }),
            None => Ok(()),
        }
    });
    checked.map_err(|error| in_file(error, loaded))
}

/// At most so many, drawn at random and in their order.
fn sampled(all: Vec<usize>, most: usize, draw: &mut Stream) -> Vec<usize> {
    if all.len() <= most {
        return all;
    }
    let places = draw.choose(all.len() as u64, most).into_iter();
    places.map(|place| all[place as usize]).collect()
}
