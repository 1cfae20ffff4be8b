//! A column that is searched: the plan that wrote it, and how near its rows are to a query, in SQL.

use super::registry::Registry;
use super::table::{Column, Table, place};
use super::vectors::{VectorParameters, VectorType, score};
use crate::sql::operator;
use crate::{Error, Result, digest};
use metra::linalg::Rows;
use metra::model::{Distance, Model, Plan, PlanConstraints};
use postgres::Client;

/// A column of vectors, and the model that wrote it.
#[derive(Clone)]
pub struct SearchedColumn<'a> {
    /// Its name.
    pub name: String,
    /// The model.
    pub model: &'a Model,
    /// Whether it holds untransformed items.
    pub keep_items: bool,
}

/// A column that is ready to be searched.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) kind: VectorType,
    pub(super) place: String,
    /// The column, quoted for SQL.
    pub(super) column: String,
}

impl Stage {
    /// Find the plan by which the column was written.
    pub(super) fn open(
        client: &mut Client,
        table: &Table,
        what: &SearchedColumn<'_>,
    ) -> Result<Self> {
        let (column, kind, dim) = table.vectors(&what.name)?;
        let place = place(&table.name, &what.name);
        let plan = plan(client, table, column, what, &place)?;
        if let Some(dim) = dim.filter(|dim| *dim != plan.query_dim()) {
            let (expected, way, distance) = (plan.query_dim(), plan.way(), plan.distance());
            let problem = format!(
                "expected vectors of dimension {expected} ({way} by {distance}), but found {dim}"
            );
            return Err(Error::found(place, problem));
        }
        if kind == VectorType::Bit && plan.sign_scale().is_none() {
            let problem = "expected vector or halfvec, as its record says, but found bits";
            return Err(Error::found(place, problem));
        }
        Ok(Stage {
            plan,
            kind,
            place,
            column: column.quoted.clone(),
        })
    }

    /// What is given for a query: bits are compared with numbers.
    fn parameter_type(&self) -> VectorType {
        match self.kind {
            VectorType::Bit => VectorType::Vector,
            kind => kind,
        }
    }

    pub(super) fn parameters(&self, queries: Rows<'_>) -> Result<VectorParameters> {
        Ok(VectorParameters::new(self.parameter_type(), queries)?)
    }

    /// What an index ranks rows by, for the parameter of this number.
    pub(super) fn indexed_distance(&self, table: &Table, parameter: usize) -> String {
        let (column, extension) = (&self.column, &table.extension);
        let asked = format!("${parameter}::{}", extension.kind(self.parameter_type()));
        match self.kind {
            VectorType::Bit => format!(
                "{column} {} {}.binary_quantize({asked})::{}({})",
                extension.operator("<~>"),
                extension.schema,
                extension.kind(VectorType::Bit),
                self.plan.item_dim()
            ),
            _ => {
                let operator = extension.operator(operator(self.plan.distance()));
                format!("{column} {operator} {asked}")
            }
        }
    }

    /// The distance of the plan, up to what [`Stage::score`] puts right.
    pub(super) fn distance(&self, table: &Table, parameter: usize) -> String {
        if self.kind != VectorType::Bit {
            return self.indexed_distance(table, parameter);
        }
        // Bits become the numbers 0 and 1 by way of their text: there is no shorter way in SQL.
        let vector = table.extension.kind(VectorType::Vector);
        format!(
            "string_to_array({}::text, NULL)::real[]::{vector} {} ${parameter}::{vector}",
            self.column,
            table.extension.operator("<#>")
        )
    }

    /// What [`Stage::distance`] gives, as the plan has it: smaller is nearer.
    pub(super) fn score(&self, given: f64, query: &[f32]) -> f32 {
        let distance = self.plan.distance();
        let scale = match self.kind {
            VectorType::Bit => self.plan.sign_scale().map(f64::from),
            _ => None,
        };
        let Some(scale) = scale else {
            return score(distance, given);
        };
        // Given is minus the sum of the query's numbers where a bit is set; items are scale · (2 bit − 1).
        let query = || query.iter().map(|v| f64::from(*v));
        let sum: f64 = query().sum();
        let own: f64 = query().map(|v| v * v).sum();
        let minus_product = scale * (2.0 * given + sum);
        let length = scale * scale * self.plan.item_dim() as f64;
        (match distance {
            Distance::SquaredL2 => own + length + 2.0 * minus_product,
            Distance::InnerProduct => minus_product,
            Distance::Cosine => minus_product / (own * length).sqrt(),
        }) as f32
    }
}

/// The plan by which the column was written, or that leaves it as it is.
fn plan(
    client: &mut Client,
    table: &Table,
    column: &Column,
    what: &SearchedColumn<'_>,
    place: &str,
) -> Result<Plan> {
    let record = column.record(place)?;
    if let Some(record) = record.as_ref().filter(|record| !record.raw) {
        if what.keep_items {
            let (who, way) = (record.who(), record.way);
            let problem = format!("expected the items as they are, but {who} mapped them ({way})");
            return Err(Error::found(place, problem));
        }
        return record.plan(what.model, place);
    }
    let registry = Registry::beside(table)?;
    let entry = registry.entry(client, table, &what.name, &digest(what.model)?)?;
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
    Ok(Plan::choose_for_model(what.model, &constraints)?)
}
