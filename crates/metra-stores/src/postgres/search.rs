//! Search in a column: exactly, or by its index. What is asked is what the plan says; the plan is found again
//! from the column's record, or from the registry where the column's vectors are the items as they are.

use super::conditions::{Condition, conditions};
use super::connect::Address;
use super::failure::failed;
use super::names::TableName;
use super::registry::Registry;
use super::table::{Column, Table, place};
use super::vectors::{Sent, VectorType, operator, score};
use crate::{Error, Result, digest};
use metra::linalg::Rows;
use metra::metric::{Distance, Model, Plan, Wish};
use postgres::types::ToSql;
use postgres::{Client, Statement};
use std::sync::atomic::{AtomicBool, Ordering};

/// An index of HNSW gives no more rows than this setting says, unless it goes on by itself.
const USUAL_SEARCH: usize = 40;
const MOST_SEARCH: usize = 1_000;

/// What to search.
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
    /// The column holds the items as they are.
    pub keep_items: bool,
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its identifier.
    pub id: String,
    /// Its label, where one was asked for.
    pub label: Option<String>,
    /// Smaller is nearer: the squared distance, minus the inner product or minus the cosine.
    pub dissimilarity: f32,
}

/// A column that can be asked.
pub struct Search {
    client: Client,
    plan: Plan,
    kind: VectorType,
    statement: Statement,
    values: Vec<String>,
    place: String,
}

impl Search {
    /// Connect, find the plan, and prepare the question.
    pub fn open(address: &Address, model: &Model, what: &Searching) -> Result<Self> {
        if what.k == 0 {
            return Err(metra::Error::parameter("k", "at least 1", 0).into());
        }
        let mut client = address.connect()?;
        let table = Table::look(&mut client, &what.table)?;
        let (column, kind, dim) = table.vectors(&what.vector)?;
        let place = place(&table.name, &what.vector);
        let plan = plan(&mut client, &table, column, model, what, &place)?;
        if let Some(dim) = dim.filter(|dim| *dim != plan.query_dim()) {
            return Err(Error::Found {
                place,
                problem: format!(
                    "expected vectors of {} numbers ({} by {}), but found {dim}",
                    plan.query_dim(),
                    plan.way(),
                    plan.distance()
                ),
            });
        }
        let refused = |e: postgres::Error| failed(&place, &e);
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
        let away = format!(
            "{} {} $1::{}",
            column.quoted,
            table.extension.operator(operator(plan.distance())),
            table.extension.kind(kind)
        );
        // The number of rows stands in the text: a planner that does not know it reads the whole table.
        let text = format!(
            "SELECT {}::text, ({away})::float8, {label} FROM {} WHERE {} IS NOT NULL{} ORDER BY {away} \
             LIMIT {}",
            id.quoted,
            table.quoted,
            column.quoted,
            conditions(&table, &what.conditions, 2)?,
            what.k
        );
        let statement = client.prepare(&text).map_err(refused)?;
        Ok(Search {
            plan,
            kind,
            statement,
            values: what.conditions.iter().map(|c| c.value.clone()).collect(),
            place: place.clone(),
            client,
        })
    }

    /// By which queries are mapped.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The nearest items of queries that went through the plan; `stop` ends it between two.
    pub fn nearest(&mut self, queries: Rows<'_>, stop: &AtomicBool) -> Result<Vec<Vec<Hit>>> {
        let sent = Sent::new(self.kind, queries)?;
        let mut answers = Vec::with_capacity(queries.len());
        for query in sent.each() {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![query];
            parameters.extend(self.values.iter().map(|value| value as &(dyn ToSql + Sync)));
            let rows = self.client.query(&self.statement, &parameters);
            let rows = rows.map_err(|e| failed(&self.place, &e))?;
            let mut hits = Vec::with_capacity(rows.len());
            for row in &rows {
                let given: f64 = row.get(1);
                if !given.is_finite() {
                    return Err(Error::Found {
                        place: self.place.clone(),
                        problem: format!("expected finite distances, but found {given}"),
                    });
                }
                hits.push(Hit {
                    id: row.get::<_, Option<String>>(0).unwrap_or_default(),
                    label: row.get(2),
                    dissimilarity: score(self.plan.distance(), given),
                });
            }
            answers.push(hits);
        }
        Ok(answers)
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
            return Err(Error::Found {
                place: place.to_owned(),
                problem: format!(
                    "expected the items as they are, but {} mapped them ({})",
                    record.who(),
                    record.way
                ),
            });
        }
        return record.plan(model, place);
    }
    let registry = Registry::beside(table)?;
    let entry = registry.entry(client, table, &what.vector, &digest(model)?)?;
    let distances = match (&entry, what.keep_items) {
        (Some(entry), _) => vec![entry.distance.parse::<Distance>()?],
        (None, true) => Distance::ALL.to_vec(),
        (None, false) => {
            return Err(Error::Found {
                place: place.to_owned(),
                problem:
                    "it has no record of a model that wrote it: push first, or say --keep-items to \
                          search the items as they are"
                        .into(),
            });
        }
    };
    let wish = Wish {
        distances,
        keep_items: true,
        ..Wish::default()
    };
    Ok(Plan::choose_for_model(model, &wish)?)
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
