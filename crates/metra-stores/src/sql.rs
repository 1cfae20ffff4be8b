//! What goes into SQL for PostgreSQL with pgvector: names, texts and operators. A name never goes into a
//! statement but quoted by [`identifier`], and values go as parameters; the one place that takes no
//! parameter (a comment) has [`literal`].

use crate::{Error, Result};
use metra::model::Distance;
use std::fmt;
use std::str::FromStr;

/// PostgreSQL cuts longer names short, so that two of them could mean one column.
pub(crate) const LONGEST: usize = 63;

/// A table, with its schema where one was given.
///
/// `docs`, `app.docs`; names with a dot in them stand in double quotes, as in SQL: `"my.docs"`. Capitals
/// mean capitals, quoted or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema; without it the connection's search path decides.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

impl TableName {
    /// As it stands in SQL.
    pub(crate) fn quoted(&self) -> Result<String> {
        let table = identifier(&self.table)?;
        match &self.schema {
            Some(schema) => Ok(format!("{}.{table}", identifier(schema)?)),
            None => Ok(table),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

impl FromStr for TableName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            let problem = "expected table, schema.table or the same in double quotes";
            Error::found(format!("the table {text}"), problem)
        };
        let (first, rest) = part(text).ok_or_else(bad)?;
        let name = match rest {
            None => TableName {
                schema: None,
                table: first,
            },
            Some(rest) => match part(rest) {
                Some((table, None)) => TableName {
                    schema: Some(first),
                    table,
                },
                _ => return Err(bad()),
            },
        };
        name.quoted()?;
        Ok(name)
    }
}

/// The first name, and what is after the dot that follows it.
fn part(text: &str) -> Option<(String, Option<&str>)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        return Some(match text.split_once('.') {
            Some((name, rest)) => (name.to_owned(), Some(rest)),
            None => (text.to_owned(), None),
        });
    };
    let mut name = String::new();
    loop {
        let (before, after) = rest.split_once('"')?;
        name += before;
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None if after.is_empty() => return Some((name, None)),
            None => return Some((name, Some(after.strip_prefix('.')?))),
        }
    }
}

/// A name in double quotes, or an error for what PostgreSQL would not take as it is.
pub(crate) fn identifier(name: &str) -> Result<String> {
    let expected = if name.is_empty() {
        "a name"
    } else if name.contains('\0') {
        "a name without the character 0"
    } else if name.len() > LONGEST {
        "a name of at most 63 bytes"
    } else {
        return Ok(format!("\"{}\"", name.replace('"', "\"\"")));
    };
    let problem = format!("expected {expected}, but found {} bytes", name.len());
    Err(Error::found(format!("the name {name:?}"), problem))
}

/// The operator by which pgvector orders.
pub(crate) fn operator(distance: Distance) -> &'static str {
    match distance {
        Distance::SquaredL2 => "<->",
        Distance::InnerProduct => "<#>",
        Distance::Cosine => "<=>",
    }
}

/// A text in single quotes, whatever the server makes of backslashes elsewhere.
#[cfg(feature = "postgres")]
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\\', "\\\\").replace('\'', "''");
    format!("E'{doubled}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<TableName>().map(|name| name.quoted().unwrap());
        assert_eq!(read("docs").unwrap(), r#""docs""#);
        assert_eq!(read("App.Docs").unwrap(), r#""App"."Docs""#);
        assert_eq!(read(r#""my.docs""#).unwrap(), r#""my.docs""#);
        assert_eq!(read(r#"a."b""c""#).unwrap(), r#""a"."b""c""#);
        assert_eq!(
            read(r#"x"; DROP TABLE y; --"#).unwrap(),
            r#""x""; DROP TABLE y; --""#
        );
        for wrong in [
            "",
            "a.b.c",
            r#""a"#,
            r#""a"b"#,
            "a.",
            "a\0b",
            &"x".repeat(64),
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn texts_cannot_end_their_quotes() {
        assert_eq!(literal(r"it's \'; --"), r"E'it''s \\''; --'");
    }
}
