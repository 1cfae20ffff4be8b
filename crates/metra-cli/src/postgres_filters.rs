//! Filters of the command as PostgreSQL is asked for them.

use metra_stores::postgres::Condition;

/// Filters as the store knows them.
pub(crate) fn conditions(filters: &[metra_files::Filter]) -> Vec<Condition> {
    let each = filters.iter().map(|filter| Condition {
        column: filter.column.clone(),
        value: filter.value.clone(),
        equal: filter.equal,
    });
    each.collect()
}
