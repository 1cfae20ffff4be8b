//! Search in a column: exactly, or by its index, with the first answers ranked again where the column holds bits or
//! another one is named for it. What is asked is what the plan says; the plan is found again from the column's
//! record, or from the registry where the column holds untransformed items.

use super::conditions::{Condition, conditions};
use super::connect::Address;
use super::failure::server_error;
use super::stage::{SearchedColumn, Stage};
use super::table::Table;
use super::vectors::{VectorType, decode_vector};
use crate::sql::TableName;
use crate::{Error, Result, rescored_answers};
use metra::data::MemoryCorpus;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Plan, Space};
use metra::search::top_k;
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};
use std::sync::atomic::{AtomicBool, Ordering};

/// An index of HNSW gives no more rows than this setting says, unless it goes on by itself.
const USUAL_SEARCH: usize = 40;
const MOST_SEARCH: usize = 1_000;

/// Candidates for each item that is wanted, to begin with.
const CANDIDATES: usize = 10;

/// The request of a search.
#[derive(Clone)]
pub struct Searching<'a> {
    /// The table.
    pub table: TableName,
    /// Its column of identifiers.
    pub id: String,
    /// Its column of vectors.
    pub column: SearchedColumn<'a>,
    /// The column that ranks the first answers again, if there is one.
    pub rescoring: Option<SearchedColumn<'a>>,
    /// First answers that are ranked again: by the column of rescoring, or where the column holds bits, by the
    /// metric's own distance instead of Hamming's. `None` for four times `k`, and 100 at least.
    pub candidates: Option<usize>,
    /// A column to show beside the items.
    pub label: Option<String>,
    /// Which rows.
    pub conditions: Vec<Condition>,
    /// How many items for a query.
    pub k: usize,
    /// Go past an index.
    pub exact: bool,
    /// Candidates that an index of HNSW keeps (`hnsw.ef_search`).
    pub ef_search: Option<usize>,
}

impl Searching<'_> {
    /// First answers that are ranked again.
    fn rescored(&self) -> usize {
        self.candidates
            .map_or_else(|| rescored_answers(self.k), |count| count.max(self.k))
    }
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its identifier.
    pub id: String,
    /// Its label, where one was asked for.
    pub label: Option<String>,
    /// Smaller is nearer: the squared distance, minus the inner product or minus the cosine, or the
    /// metric's own where candidates were ranked again.
    pub dissimilarity: f32,
}

/// A column that is ready to be searched, with another one from which the first answers are rescored, if there is.
pub struct Search {
    client: Client,
    first: Stage,
    then: Option<Stage>,
    statement: Statement,
    values: Vec<String>,
    k: usize,
}

impl Search {
    /// Connect, find the plans, and prepare the statement.
    pub fn open(address: &Address, what: &Searching<'_>) -> Result<Self> {
        if what.k == 0 {
            return Err(metra::Error::parameter("k", "at least 1", 0).into());
        }
        if let Some(search) = what.ef_search.filter(|n| !(1..=MOST_SEARCH).contains(n)) {
            return Err(metra::Error::parameter("ef-search", "1 to 1000", search).into());
        }
        if what.candidates == Some(0) {
            return Err(metra::Error::parameter("items to rescore", "at least 1", 0).into());
        }
        let mut client = address.connect()?;
        let table = Table::inspect(&mut client, &what.table)?;
        let first = Stage::open(&mut client, &table, &what.column)?;
        let then = match &what.rescoring {
            Some(column) => Some(Stage::open(&mut client, &table, column)?),
            None => None,
        };
        let both = [Some(&first), then.as_ref()];
        let needs_candidates = |stage: &&Stage| stage.plan.ranks_again().is_some();
        if let (Some(stage), true) = (
            both.into_iter().flatten().find(needs_candidates),
            then.is_some(),
        ) {
            let problem = "expected a model that the server can compare by, but this one ranks candidates \
                           again by itself: search it without rescoring";
            return Err(Error::found(stage.place.clone(), problem));
        }
        let text = statement(&table, what, &first, then.as_ref())?;
        let refused = |e: postgres::Error| server_error(&first.place, &e);
        for (setting, value) in settings(&table, what, first.kind) {
            // Settings take no parameters, but this function does.
            let text = "SELECT set_config($1, $2, false)";
            client.execute(text, &[&setting, &value]).map_err(refused)?;
        }
        let statement = client.prepare(&text).map_err(refused)?;
        Ok(Search {
            statement,
            values: what.conditions.iter().map(|c| c.value.clone()).collect(),
            k: what.k,
            first,
            then,
            client,
        })
    }

    /// The plan by which queries are mapped.
    pub fn plan(&self) -> &Plan {
        &self.first.plan
    }

    /// The plan by which queries are mapped that rescore.
    pub fn rescoring_plan(&self) -> Option<&Plan> {
        self.then.as_ref().map(|stage| &stage.plan)
    }

    /// The nearest items of queries that went through the plan, and through that of rescoring if there is one;
    /// `stop` ends it between two.
    pub fn nearest(
        &mut self,
        queries: Rows<'_>,
        rescoring: Option<Rows<'_>>,
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<Hit>>> {
        let parameters = self.first.parameters(queries)?;
        let again = match (&self.then, rescoring) {
            (Some(stage), Some(rows)) if rows.len() == queries.len() => {
                Some((stage.parameters(rows)?, rows))
            }
            (None, None) => None,
            _ => {
                let expected =
                    "as many queries for rescoring as for the search, if anything is rescored";
                return Err(metra::Error::shape("queries", expected, queries.len()).into());
            }
        };
        let again_each = again.as_ref().map(|(parameters, _)| parameters.each());
        let mut answers = Vec::with_capacity(queries.len());
        for (number, query) in parameters.each().into_iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            let vector = queries.row(number);
            answers.push(match self.first.plan.ranks_again() {
                Some(space) => self.rerank(space, query, vector)?,
                None => {
                    let fine = again_each.as_ref().map(|all| all[number]);
                    let ranked = again.as_ref().map_or(vector, |(_, rows)| rows.row(number));
                    let rows = self.ask(query, fine)?;
                    rows.iter()
                        .map(|row| self.hit(row, ranked))
                        .collect::<Result<_>>()?
                }
            });
        }
        Ok(answers)
    }

    /// The nearest by a metric that no store has, among candidates by l2. The distance by l2 (not squared) is
    /// never above such a metric's, so that the k nearest are found as soon as the k-th is no farther than
    /// the last candidate; until then, more are fetched.
    fn rerank(
        &mut self,
        space: Space,
        query: &(dyn ToSql + Sync),
        vector: &[f32],
    ) -> Result<Vec<Hit>> {
        let dim = self.first.plan.query_dim();
        let own = MemoryCorpus::new(RowBuf::from_values(vector.to_vec(), dim)?)?;
        let mut fetched = (CANDIDATES * self.k).max(USUAL_SEARCH);
        loop {
            let rows = self.ask(query, Some(&(fetched as i64)))?;
            let Some(last) = rows.last() else {
                return Ok(Vec::new());
            };
            let farthest: f64 = last.get(1);
            let mut values = Vec::with_capacity(rows.len() * dim);
            for row in &rows {
                decode_vector(row, 3, self.first.kind, &self.first.place, &mut values)?;
            }
            let candidates = MemoryCorpus::new(RowBuf::from_values(values, dim)?)?;
            let k = self.k.min(rows.len());
            let best = top_k(space, &own, &candidates, k, false)?;
            let worst = best
                .scores_of(0)
                .last()
                .map_or(0.0, |score| f64::from(*score));
            if worst > farthest && rows.len() == fetched {
                fetched = fetched.saturating_mul(4);
                continue;
            }
            let mut hits = Vec::with_capacity(k);
            for (row, score) in best.ids_of(0).iter().zip(best.scores_of(0)) {
                if let Some(row) = usize::try_from(*row).ok().and_then(|row| rows.get(row)) {
                    hits.push(Hit {
                        dissimilarity: *score,
                        ..self.hit(row, vector)?
                    });
                }
            }
            return Ok(hits);
        }
    }

    /// Ask with the query and one parameter more, behind those of the conditions.
    fn ask(
        &mut self,
        query: &(dyn ToSql + Sync),
        last: Option<&(dyn ToSql + Sync)>,
    ) -> Result<Vec<Row>> {
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![query];
        parameters.extend(self.values.iter().map(|value| value as &(dyn ToSql + Sync)));
        parameters.extend(last);
        let rows = self.client.query(&self.statement, &parameters);
        rows.map_err(|e| server_error(&self.first.place, &e))
    }

    /// A row of the answer to a query, which went through the plan of the last stage.
    fn hit(&self, row: &Row, query: &[f32]) -> Result<Hit> {
        let stage = self.then.as_ref().unwrap_or(&self.first);
        let given: f64 = row.get(1);
        if !given.is_finite() {
            let problem = format!("expected finite distances, but found {given}");
            return Err(Error::found(stage.place.clone(), problem));
        }
        Ok(Hit {
            id: row.get::<_, Option<String>>(0).unwrap_or_default(),
            label: row.get(2),
            dissimilarity: stage.score(given, query),
        })
    }
}

/// The statement: id, distance, label, and the vector where the caller ranks candidates again. $1 is the query, then
/// come the values of conditions, then the query of the second stage or how many candidates are fetched.
fn statement(
    table: &Table,
    what: &Searching<'_>,
    first: &Stage,
    then: Option<&Stage>,
) -> Result<String> {
    let id = &table.ids(&what.id)?.quoted;
    let label = match &what.label {
        Some(label) => format!("{}::text", table.column(label)?.quoted),
        None => "NULL::text".to_owned(),
    };
    let last = what.conditions.len() + 2;
    let mut present = format!("{} IS NOT NULL", first.column);
    if let Some(then) = then {
        present += &format!(" AND {} IS NOT NULL", then.column);
    }
    let filter = format!(
        "{} WHERE {present}{}",
        table.quoted,
        conditions(table, &what.conditions, 2)?
    );
    let distance = match then {
        Some(then) => then.distance(table, last),
        None => first.distance(table, 1),
    };
    let in_order = first.indexed_distance(table, 1);
    // The number of rows stands in the text: a planner that does not know it reads the whole table.
    let k = what.k;
    if first.plan.ranks_again().is_some() {
        // Candidates are fetched with their vectors, as many as it takes.
        let vectors = &first.column;
        return Ok(format!(
            "SELECT {id}::text, ({distance})::float8, {label}, {vectors} FROM {filter} ORDER BY {distance} \
             LIMIT ${last}"
        ));
    }
    if what.exact || distance == in_order {
        // Parameters that nothing uses have no type.
        let unused = match then {
            Some(_) => format!(" AND ({in_order}) IS NOT NULL"),
            None => String::new(),
        };
        return Ok(format!(
            "SELECT {id}::text, ({distance})::float8, {label} FROM {filter}{unused} ORDER BY {distance} LIMIT {k}"
        ));
    }
    // All columns come along, so that the distance can name its own.
    let candidates = what.rescored();
    Ok(format!(
        "SELECT {id}::text, ({distance})::float8, {label} FROM (SELECT * FROM {filter} ORDER BY {in_order} LIMIT \
         {candidates}) AS candidates ORDER BY {distance} LIMIT {k}"
    ))
}

/// Settings of the session for this search.
fn settings(table: &Table, what: &Searching<'_>, kind: VectorType) -> Vec<(&'static str, String)> {
    // A plan for each query: one made for all could leave the index.
    let mut all = vec![("plan_cache_mode", "force_custom_plan".to_owned())];
    if what.exact {
        all.push(("enable_indexscan", "off".into()));
        return all;
    }
    let least = what.ef_search.unwrap_or(USUAL_SEARCH);
    let wanted = match kind == VectorType::Bit || what.rescoring.is_some() {
        true => what.rescored(),
        false => what.k,
    };
    let search = least.max(wanted.min(MOST_SEARCH));
    all.push(("hnsw.ef_search", search.to_string()));
    if table.extension.version >= (0, 8) {
        // Conditions and replaced rows take from what the index gave: let it go on until k are found.
        all.push(("hnsw.iterative_scan", "strict_order".into()));
    }
    all
}
