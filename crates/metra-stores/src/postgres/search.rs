//! Search in a column: exactly, or by its index. What is asked is what the plan says; the plan is found again
//! from the column's record, or from the registry where the column holds untransformed items.

use super::conditions::{Condition, conditions};
use super::connect::Address;
use super::failure::server_error;
use super::registry::Registry;
use super::table::{Column, Table, place};
use super::vectors::{VectorParameters, VectorType, decode_vector, score};
use crate::sql::{TableName, operator};
use crate::{Error, Result, digest};
use metra::data::MemoryCorpus;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Distance, Model, Plan, PlanConstraints, Space};
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
#[derive(Debug, Clone)]
pub struct Searching {
    /// The table.
    pub table: TableName,
    /// Its column of identifiers.
    pub id: String,
    /// Its column of vectors.
    pub vector: String,
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
    /// Whether the column holds untransformed items.
    pub keep_items: bool,
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

/// A column that is ready to be searched.
pub struct Search {
    client: Client,
    plan: Plan,
    kind: VectorType,
    statement: Statement,
    values: Vec<String>,
    place: String,
    k: usize,
}

impl Search {
    /// Connect, find the plan, and prepare the statement.
    pub fn open(address: &Address, model: &Model, what: &Searching) -> Result<Self> {
        if what.k == 0 {
            return Err(metra::Error::parameter("k", "at least 1", 0).into());
        }
        if let Some(search) = what.ef_search.filter(|n| !(1..=MOST_SEARCH).contains(n)) {
            return Err(metra::Error::parameter("ef-search", "1 to 1000", search).into());
        }
        let mut client = address.connect()?;
        let table = Table::inspect(&mut client, &what.table)?;
        let (column, kind, dim) = table.vectors(&what.vector)?;
        let place = place(&table.name, &what.vector);
        let plan = plan(&mut client, &table, column, model, what, &place)?;
        if let Some(dim) = dim.filter(|dim| *dim != plan.query_dim()) {
            let (expected, way, distance) = (plan.query_dim(), plan.way(), plan.distance());
            let problem = format!(
                "expected vectors of {expected} numbers ({way} by {distance}), but found {dim}"
            );
            return Err(Error::found(place, problem));
        }
        let refused = |e: postgres::Error| server_error(&place, &e);
        for (setting, value) in settings(&table, what) {
            // Settings take no parameters, but this function does.
            let text = "SELECT set_config($1, $2, false)";
            client.execute(text, &[&setting, &value]).map_err(refused)?;
        }
        let id = table.ids(&what.id)?;
        let label = match &what.label {
            Some(label) => format!("{}::text", table.column(label)?.quoted),
            None => "NULL::text".to_owned(),
        };
        let distance = format!(
            "{} {} $1::{}",
            column.quoted,
            table.extension.operator(operator(plan.distance())),
            table.extension.kind(kind)
        );
        // The number of rows stands in the text: a planner that does not know it reads the whole table.
        // Candidates are fetched with their vectors, as many as it takes.
        let (limit, vectors) = match plan.ranks_again() {
            None => (what.k.to_string(), String::new()),
            Some(_) => {
                let parameter = format!("${}", what.conditions.len() + 2);
                (parameter, format!(", {}", column.quoted))
            }
        };
        let text = format!(
            "SELECT {}::text, ({distance})::float8, {label}{vectors} FROM {} WHERE {} IS NOT NULL{} ORDER BY \
             {distance} LIMIT {limit}",
            id.quoted,
            table.quoted,
            column.quoted,
            conditions(&table, &what.conditions, 2)?,
        );
        let statement = client.prepare(&text).map_err(refused)?;
        Ok(Search {
            plan,
            kind,
            statement,
            values: what.conditions.iter().map(|c| c.value.clone()).collect(),
            place: place.clone(),
            k: what.k,
            client,
        })
    }

    /// The plan by which queries are mapped.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The nearest items of queries that went through the plan; `stop` ends it between two.
    pub fn nearest(&mut self, queries: Rows<'_>, stop: &AtomicBool) -> Result<Vec<Vec<Hit>>> {
        let parameters = VectorParameters::new(self.kind, queries)?;
        let mut answers = Vec::with_capacity(queries.len());
        for (query, vector) in parameters.each().into_iter().zip(queries.iter()) {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            answers.push(match self.plan.ranks_again() {
                Some(space) => self.rerank(space, query, vector)?,
                None => {
                    let rows = self.ask(query, None)?;
                    rows.iter()
                        .map(|row| self.hit(row))
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
        let dim = self.plan.query_dim();
        let own = MemoryCorpus::new(RowBuf::from_values(vector.to_vec(), dim)?)?;
        let mut fetched = (CANDIDATES * self.k).max(USUAL_SEARCH);
        loop {
            let rows = self.ask(query, Some(fetched as i64))?;
            let Some(last) = rows.last() else {
                return Ok(Vec::new());
            };
            let farthest: f64 = last.get(1);
            let mut values = Vec::with_capacity(rows.len() * dim);
            for row in &rows {
                decode_vector(row, 3, self.kind, &self.place, &mut values)?;
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
                        ..self.hit(row)?
                    });
                }
            }
            return Ok(hits);
        }
    }

    fn ask(&mut self, query: &(dyn ToSql + Sync), limit: Option<i64>) -> Result<Vec<Row>> {
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![query];
        parameters.extend(self.values.iter().map(|value| value as &(dyn ToSql + Sync)));
        if let Some(limit) = &limit {
            parameters.push(limit);
        }
        let rows = self.client.query(&self.statement, &parameters);
        rows.map_err(|e| server_error(&self.place, &e))
    }

    fn hit(&self, row: &Row) -> Result<Hit> {
        let given: f64 = row.get(1);
        if !given.is_finite() {
            let problem = format!("expected finite distances, but found {given}");
            return Err(Error::found(self.place.clone(), problem));
        }
        Ok(Hit {
            id: row.get::<_, Option<String>>(0).unwrap_or_default(),
            label: row.get(2),
            dissimilarity: score(self.plan.distance(), given),
        })
    }
}

/// The plan by which the column was written, or that leaves it as it is.
fn plan(
    client: &mut Client,
    table: &Table,
    column: &Column,
    model: &Model,
    what: &Searching,
    place: &str,
) -> Result<Plan> {
    let record = column.record(place)?;
    if let Some(record) = record.as_ref().filter(|record| !record.raw) {
        if what.keep_items {
            let (who, way) = (record.who(), record.way);
            let problem = format!("expected the items as they are, but {who} mapped them ({way})");
            return Err(Error::found(place, problem));
        }
        return record.plan(model, place);
    }
    let registry = Registry::beside(table)?;
    let entry = registry.entry(client, table, &what.vector, &digest(model)?)?;
    let distances = match (&entry, what.keep_items) {
        (Some(entry), _) => vec![entry.distance.parse::<Distance>()?],
        (None, true) => Distance::ALL.to_vec(),
        (None, false) => {
            let problem = "it has no record of a model that wrote it: push first, or say --keep-items \
                           to search the items as they are";
            return Err(Error::found(place, problem));
        }
    };
    let constraints = PlanConstraints {
        distances,
        keep_items: true,
        ..PlanConstraints::default()
    };
    Ok(Plan::choose_for_model(model, &constraints)?)
}

/// Settings of the session for this search.
fn settings(table: &Table, what: &Searching) -> Vec<(&'static str, String)> {
    // A plan for each query: one made for all could leave the index.
    let mut all = vec![("plan_cache_mode", "force_custom_plan".to_owned())];
    if what.exact {
        all.push(("enable_indexscan", "off".into()));
        return all;
    }
    let least = what.ef_search.unwrap_or(USUAL_SEARCH);
    let search = least.max(what.k.min(MOST_SEARCH));
    all.push(("hnsw.ef_search", search.to_string()));
    if table.extension.version >= (0, 8) {
        // Conditions and replaced rows take from what the index gave: let it go on until k are found.
        all.push(("hnsw.iterative_scan", "strict_order".into()));
    }
    all
}
