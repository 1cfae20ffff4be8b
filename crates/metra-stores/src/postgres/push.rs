//! A push before it writes: what is there, which plan, which record. The statements that follow are in
//! `run.rs`, the exchange of columns in `swap.rs`.

use super::connect::Address;
use super::failure::server_error;
use super::lock_retry::retry;
use super::registry::Registry;
use super::request::Pushing;
use super::rows::RowStatements;
use super::table::{Table, place};
use super::target::{PushTarget, check_input, check_plan, choose_plan, existing_type, find_target};
use super::vectors::VectorType;
use crate::provenance::Provenance;
use crate::{Error, Result};
use metra::model::{Model, Plan, agreement};
use postgres::Client;
use std::sync::atomic::AtomicBool;

/// Rows on which a plan is centred and its order is checked.
const SAMPLE: usize = 1_000;

/// Of the sample, queries and items of the check: it costs queries × items².
const ASKING: usize = 20;
const ASKED: usize = 400;

/// A push that is planned and has written nothing.
pub struct Push<'a> {
    pub(super) client: Client,
    pub(super) address: &'a Address,
    pub(super) model: &'a Model,
    pub(super) what: &'a Pushing,
    pub(super) table: Table,
    pub(super) registry: Registry,
    pub(super) plan: Plan,
    pub(super) record: Provenance,
    pub(super) target: PushTarget,
    /// The column that holds what the plan stores.
    pub(super) column: String,
    /// Its type.
    pub(super) kind: VectorType,
    agreement: Option<f64>,
}

impl<'a> Push<'a> {
    /// Connect, inspect the table and plan. With `stop`, the push is run afterwards: it waits for other pushes
    /// before the inspection, so that what it finds still holds when the work begins.
    pub fn prepare(
        address: &'a Address,
        model: &'a Model,
        what: &'a Pushing,
        stop: Option<&AtomicBool>,
    ) -> Result<Self> {
        if what.batch == 0 {
            return Err(metra::Error::parameter("batch", "at least 1", 0).into());
        }
        let mut client = address.connect()?;
        let mut table = Table::inspect(&mut client, &what.table)?;
        if let Some(stop) = stop {
            take_push_lock(&mut client, &table, stop)?;
            table = Table::inspect(&mut client, &what.table)?;
        }
        let registry = Registry::beside(&table)?;
        let (from, ..) = table.numbers(&what.from)?;
        check_input(&table, what, from.record(&place(&table.name, &what.from))?)?;
        let ids = table.ids(&what.id)?;
        if !ids.unique {
            let problem = "expected ids that a primary key or a unique index keeps different, but there \
                           is none: rows could not be told apart";
            return Err(Error::found(place(&table.name, &what.id), problem));
        }
        let sample = RowStatements::new(&table, what, model)?.sample(&mut client, SAMPLE)?;
        let (target, found) = find_target(&mut client, &table, what, model)?;
        let (plan, record, kind) = match found {
            Some((record, kind)) => {
                let place = place(&table.name, what.to.as_deref().unwrap_or(&what.from));
                let plan = record.plan(model, &place)?;
                check_plan(&plan, &what.constraints, &place)?;
                (plan, record, kind)
            }
            None => {
                let kind = match &target {
                    PushTarget::Adopted => existing_type(&table, what)?.0,
                    PushTarget::Stays => table.numbers(&what.from)?.1,
                    _ => what.kind,
                };
                let mut plan = choose_plan(model, what, kind)?;
                let rows = sample.first(SAMPLE);
                plan = match kind {
                    VectorType::Vector => plan.centred_where_needed(&model.chain, &rows)?,
                    // Halves have three digits, which an origin far away would take.
                    VectorType::Halfvec if plan.items_stay() || sample.is_empty() => plan,
                    VectorType::Halfvec => plan.centred_on(&rows)?,
                    VectorType::Bit => plan,
                };
                let record = Provenance::new(model, &plan, ids.is_whole())?;
                (plan, record, kind)
            }
        };
        let target = if plan.items_stay() {
            PushTarget::Stays
        } else {
            target
        };
        let (column, kind) = match (&target, &what.to) {
            (PushTarget::Stays, _) => (what.from.clone(), table.numbers(&what.from)?.1),
            (_, Some(to)) => (to.clone(), kind),
            (_, None) => {
                return Err(
                    metra::Error::parameter("to", "the column to write", "not given").into(),
                );
            }
        };
        if target == PushTarget::Adopted {
            let (_, dim) = existing_type(&table, what)?;
            let expected = plan.item_dim();
            if let Some(dim) = dim.filter(|dim| *dim != expected) {
                let problem =
                    format!("expected {expected} dimensions, as the plan has, but found {dim}");
                return Err(Error::found(place(&table.name, &column), problem));
            }
        }
        let agreement = match sample.len() {
            0 | 1 => None,
            // Items cannot ask where queries are vectors of another model.
            _ if model.chain.query_preprocessing().is_some() => None,
            _ => {
                let (asking, items) = (sample.first(ASKING), sample.first(ASKED));
                Some(agreement(&model.chain, &plan, &asking, &items)?)
            }
        };
        Ok(Push {
            client,
            address,
            model,
            what,
            table,
            registry,
            plan,
            record,
            target,
            column,
            kind,
            agreement,
        })
    }

    /// The plan that will be carried out.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The record that the column gets.
    pub fn record(&self) -> &Provenance {
        &self.record
    }

    /// How the target was found.
    pub fn target(&self) -> &PushTarget {
        &self.target
    }

    /// The column that holds what the plan stores.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The type of that column.
    pub fn kind(&self) -> VectorType {
        self.kind
    }

    /// The share of pairs of a sample that plan and metric order alike; none of an empty table.
    pub fn agreement(&self) -> Option<f64> {
        self.agreement
    }

    /// All rows, and those with an input vector: a scan of the table.
    pub fn count(&mut self) -> Result<(u64, u64)> {
        let from = &self.table.column(&self.what.from)?.quoted;
        let text = format!("SELECT count(*), count({from}) FROM {}", self.table.quoted);
        let row = self.client.query_one(&text, &[]);
        let row = row.map_err(|e| server_error(&self.table.place(), &e))?;
        let (all, with): (i64, i64) = (row.get(0), row.get(1));
        Ok((all.unsigned_abs(), with.unsigned_abs()))
    }
}

/// Take the advisory lock that allows one push per table at a time. The lock of a client that was killed ends
/// within seconds, and a session that has the lock gets it again.
pub(super) fn take_push_lock(client: &mut Client, table: &Table, stop: &AtomicBool) -> Result<()> {
    let got = retry(stop, || {
        let text = "SELECT pg_try_advisory_lock(hashtextextended('metra push', $1))";
        let got = client.query_one(text, &[&i64::from(table.oid)]);
        let got = got.map_err(|e| server_error(&table.place(), &e))?;
        Ok(got.get::<_, bool>(0).then_some(()))
    })?;
    got.ok_or_else(|| Error::Refused {
        place: table.place(),
        problem: "another push works on it: let it end, and repeat the command".into(),
    })
}
