//! The column that a push writes: absent, empty, begun by the same model, or not to be touched; and the plan
//! that fits it.

use super::failure::server_error;
use super::request::Pushing;
use super::table::{Table, place};
use super::vectors::VectorType;
use crate::provenance::Provenance;
use crate::{Error, Result};
use metra::model::{Model, Plan, PlanConstraints};
use postgres::Client;

/// The state of the target column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushTarget {
    /// The plan writes nothing.
    Stays,
    /// The column is made.
    New,
    /// It is there and empty, and gets the record.
    Adopted,
    /// This model and plan began or finished it.
    Continued,
}

/// Refuse an input column that a model mapped.
pub(super) fn check_input(table: &Table, what: &Pushing, record: Option<Provenance>) -> Result<()> {
    match record {
        Some(record) if !record.raw => {
            let (who, way) = (record.who(), record.way);
            let problem = format!(
                "expected the input vectors, but {who} mapped these ({way}); after a swap the input is \
                 in the column that the swap put aside"
            );
            Err(Error::found(place(&table.name, &what.from), problem))
        }
        _ => Ok(()),
    }
}

pub(super) type ContinuedColumn = Option<(Provenance, VectorType)>;

/// What the target column is, and the record of one that is continued.
pub(super) fn find_target(
    client: &mut Client,
    table: &Table,
    what: &Pushing,
    model: &Model,
) -> Result<(PushTarget, ContinuedColumn)> {
    let Some(to) = &what.to else {
        return Ok((PushTarget::Stays, None));
    };
    if *to == what.from {
        let problem = "expected another column than --from, whose vectors are needed again";
        let place = place(&table.name, to);
        return Err(Error::found(place, problem));
    }
    if !table.columns.contains_key(to) {
        return Ok((PushTarget::New, None));
    }
    let (column, kind, dim) = table.vectors(to)?;
    let place = place(&table.name, to);
    if let Some(record) = column.record(&place)? {
        // Says that the model is another one, if it is.
        record.plan(model, &place)?;
        if let Some(dim) = dim.filter(|dim| *dim != record.dimension) {
            let expected = record.dimension;
            let problem = format!("its record says {expected} dimensions, but found {dim}");
            return Err(Error::found(place, problem));
        }
        return Ok((PushTarget::Continued, Some((record, kind))));
    }
    let text = format!(
        "SELECT EXISTS (SELECT FROM {} WHERE {} IS NOT NULL)",
        table.quoted, column.quoted
    );
    let row = client
        .query_one(&text, &[])
        .map_err(|e| server_error(&place, &e))?;
    if row.get(0) {
        let problem = "expected a new or an empty column, but it holds vectors that no push wrote";
        return Err(Error::found(place, problem));
    }
    Ok((PushTarget::Adopted, None))
}

pub(super) fn existing_type(table: &Table, what: &Pushing) -> Result<(VectorType, Option<usize>)> {
    let (_, kind, dim) = table.vectors(what.to.as_deref().unwrap_or(&what.from))?;
    Ok((kind, dim))
}

/// Check that a recorded plan is the one that is requested now.
pub(super) fn check_plan(plan: &Plan, constraints: &PlanConstraints, place: &str) -> Result<()> {
    let other_way = constraints.way.is_some_and(|way| way != plan.way());
    let other_form = constraints.keep_input && !plan.holds_input();
    if other_way || other_form || !constraints.distances.contains(&plan.distance()) {
        let name = plan.name();
        let problem = format!(
            "it was begun as {name}, and another way or distance was asked for: write to a new column"
        );
        return Err(Error::found(place, problem));
    }
    Ok(())
}

/// The best plan within the constraints.
pub(super) fn choose_plan(model: &Model, what: &Pushing, kind: VectorType) -> Result<Plan> {
    let constraints = PlanConstraints {
        keep_items: what.to.is_none(),
        ..what.constraints.clone()
    };
    let constraints = kind.element().constrain(what.index, constraints);
    Ok(Plan::choose_for_model(model, &constraints)?)
}
