//! Errors of the server as errors of this crate: they name the place and, where users meet them often, the
//! remedy.

use crate::Error;
use postgres::error::SqlState;
use std::error::Error as _;

/// The error of the server about a place: a server, a table, a column.
pub(super) fn server_error(place: &str, error: &postgres::Error) -> Error {
    let refused = |problem: String| Error::Refused {
        place: place.to_owned(),
        problem,
    };
    let Some(report) = error.as_db_error() else {
        // Messages of the client are a chain, whose first part says little.
        let mut problem = error.to_string();
        let mut inner = error.source();
        while let Some(cause) = inner {
            let cause_text = cause.to_string();
            if !problem.contains(&cause_text) {
                problem = format!("{problem}: {cause_text}");
            }
            inner = cause.source();
        }
        return refused(problem);
    };
    let mut problem = report.message().to_owned();
    for more in [report.detail(), report.hint()].into_iter().flatten() {
        problem += &format!("; {more}");
    }
    let advice = match *report.code() {
        SqlState::INVALID_PASSWORD => {
            "give the password in the address (postgres://user:password@host/database) or in the \
             environment variable PGPASSWORD"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "a push needs to own the table and to create tables in its schema; search and pull need \
             SELECT"
        }
        SqlState::LOCK_NOT_AVAILABLE => {
            "another transaction holds the table or its rows: repeat the command, which continues \
             where it was"
        }
        _ => return refused(problem),
    };
    refused(format!("{problem}; {advice}"))
}

/// Whether the same statement may succeed later: a lock was not given, or two transactions conflicted.
pub(super) fn is_transient(error: &postgres::Error) -> bool {
    let passing = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    error.code().is_some_and(|code| passing.contains(code))
}
