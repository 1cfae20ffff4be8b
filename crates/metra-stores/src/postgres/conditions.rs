//! Conditions on rows, `column = value` and `column != value`. Values go as parameters and are cast to the
//! column's own type by the server, so that an index on the column serves.

use super::table::Table;
use crate::Result;

/// A condition on a column. NULL equals nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// The value as text.
    pub value: String,
    /// Whether rows with the value are kept or dropped.
    pub equal: bool,
}

/// The conditions as ` AND …`, with parameters numbered from `first`.
pub(super) fn conditions(table: &Table, all: &[Condition], first: usize) -> Result<String> {
    let mut text = String::new();
    for (number, condition) in all.iter().enumerate() {
        let column = table.column(&condition.column)?;
        let sign = if condition.equal {
            "="
        } else {
            "IS DISTINCT FROM"
        };
        text += &format!(
            " AND {} {sign} ${}::text::{}",
            column.quoted,
            first + number,
            column.kind
        );
    }
    Ok(text)
}
