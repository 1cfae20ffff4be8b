//! SQL for applications on PostgreSQL with pgvector: the query to ask, and, where a query's way is
//! affine, a function that maps it inside the database.
//!
//! The matrix is a table of rows and not a part of the function: a matrix of 64 × 384 is 300 kB of
//! text, which PostgreSQL would parse again in every session. The function is asked in a subquery,
//! (SELECT f($1)), which PostgreSQL works out once; called in ORDER BY itself it may run for every row.

use super::map::{Export, MapPart, bias, weights, write_error};
use crate::sql::{TableName, identifier, operator};
use crate::{Error, Result};
use metra::model::Plan;
use std::fmt::Write as _;
use std::io::Write;

const FORMAT: &str = "a SQL file";
/// Numbers of a map that is worth mapping by in the database: each query reads all of them.
const MOST_NUMBERS: usize = 1 << 20;
/// What pgvector's type `vector` holds.
const MOST_DIMENSIONS: usize = 16_000;

/// Where the vectors lie.
#[derive(Debug, Clone)]
pub struct SqlColumns {
    /// The table.
    pub table: TableName,
    /// Its column of ids.
    pub id: String,
    /// Its column of vectors, as the plan stores them.
    pub column: String,
}

/// Write the query and, where there is one, the function `name`, which maps a query as the plan asks.
/// Whether there is a function.
pub fn write_sql(
    mut out: impl Write,
    export: &Export,
    plan: &Plan,
    columns: &SqlColumns,
    name: &str,
) -> Result<bool> {
    // A name that cannot be one is an error of the caller, not a map that SQL does not have.
    let function_name = identifier(name)?;
    let mut text = format!(
        "-- {}.\n-- Way {}: the column holds {}.\n\n",
        export.about(),
        plan.way(),
        if plan.items_stay() {
            "the items as they are"
        } else {
            "the items as this way stores them"
        }
    );
    let table = identifier(&format!("{name}_map"))?;
    let function = function(export, &function_name, &table);
    let query = match &function {
        Ok(function) => {
            text.push_str(function);
            format!("(SELECT {function_name}($1))")
        }
        Err(reason) => {
            let _ = write!(
                text,
                "-- The query is mapped outside the database, by metra embed --side query or an export \
                 to\n-- ONNX, because {}.\n",
                one_line(reason)
            );
            "$1".to_owned()
        }
    };
    let dim = match &function {
        Ok(_) => export.input_dim(),
        Err(_) => export.output_dim(),
    };
    let operator = operator(plan.distance());
    let search = identifier(&format!("{name}_search"))?;
    let _ = write!(
        text,
        "-- $1 is the query, {}{dim} dimensions; $2 is how many answers.\nPREPARE {} (vector, bigint) \
         AS\n    SELECT {} FROM {}\n    ORDER BY {} {operator} {query} LIMIT $2;\n\n-- EXECUTE {} \
         ('[...]', 10);\n",
        if function.is_ok() {
            "as it is, "
        } else {
            "mapped, "
        },
        search,
        identifier(&columns.id)?,
        columns.table.quoted()?,
        identifier(&columns.column)?,
        // In a comment, which ends with its line.
        one_line(&search),
    );
    out.write_all(text.as_bytes())
        .map_err(|e| write_error(FORMAT, e))?;
    Ok(function.is_ok())
}

/// The table of the map and the function over it, or the reason why there is none.
fn function(export: &Export, name: &str, table: &str) -> Result<String, String> {
    let parts = export.parts(FORMAT).map_err(|error| match error {
        Error::Unsupported { what, .. } => format!("SQL has no {what}"),
        other => other.to_string(),
    })?;
    let numbers = weights(&parts);
    if numbers > MOST_NUMBERS {
        return Err(format!(
            "its map has {numbers} numbers, all of which every query would read (at most \
             {MOST_NUMBERS} are written)"
        ));
    }
    let (input, output) = (export.input_dim(), export.output_dim());
    if input.max(output) > MOST_DIMENSIONS {
        return Err(format!(
            "pgvector holds at most {MOST_DIMENSIONS} dimensions"
        ));
    }
    let mut text = String::new();
    if numbers > 0 {
        let _ = writeln!(
            text,
            "CREATE TABLE {table} (part int, number int, weights vector, bias real, PRIMARY KEY \
             (part, number));"
        );
    }
    let mut value = "query".to_owned();
    for (number, part) in parts.iter().enumerate() {
        match part {
            MapPart::UnitLength => value = format!("l2_normalize({value})"),
            MapPart::Affine(map) => {
                let _ = writeln!(text, "INSERT INTO {table} VALUES");
                let rank = map.output_dim();
                for (row, (weights, bias)) in map.weights().iter().zip(bias(map)).enumerate() {
                    let weights: Vec<String> = weights.iter().map(|w| format!("{w:?}")).collect();
                    let end = if row + 1 == rank { ";" } else { "," };
                    let _ = writeln!(
                        text,
                        "    ({number}, {row}, '[{}]', {bias:?}){end}",
                        weights.join(",")
                    );
                }
                // <#> is minus the inner product.
                value = format!(
                    "(SELECT array_agg(map.bias - (map.weights <#> before.value) ORDER BY \
                     map.number)::vector\n        FROM {table} map, (SELECT {value} AS value) before \
                     WHERE map.part = {number})"
                );
            }
        }
    }
    // A plain text and no dollars around it, which a name could close.
    let _ = write!(
        text,
        "CREATE FUNCTION {name}(query vector) RETURNS vector LANGUAGE sql STABLE STRICT PARALLEL SAFE \
         AS '\n    SELECT {}\n';\n\n",
        value.replace('\'', "''")
    );
    Ok(text)
}

/// A comment ends with its line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::{model, two_of_three};
    use super::*;
    use metra::data::ElementMap;
    use metra::model::{Model, Space, Step};

    fn written(model: &Model, name: &str) -> (String, bool) {
        let plan = Plan::all_for_model(model).unwrap().remove(0);
        let export = Export::queries(model, &plan).unwrap();
        let columns = SqlColumns {
            table: r#""my ""docs""""#.parse().unwrap(),
            id: "id".into(),
            column: "embedding".into(),
        };
        let mut out = Vec::new();
        let function = write_sql(&mut out, &export, &plan, &columns, name).unwrap();
        (String::from_utf8(out).unwrap(), function)
    }

    #[test]
    fn an_affine_query_is_mapped_in_the_database() {
        let model = model(3, Vec::new(), two_of_three(), Space::SquaredL2);
        let (text, function) = written(&model, "m");
        assert!(function);
        for part in [
            "    (0, 0, '[1.0,2.0,3.0]', 0.5),\n    (0, 1, '[4.0,5.0,6.0]', -1.0);\n",
            "SELECT \"id\" FROM \"my \"\"docs\"\"\"",
            "ORDER BY \"embedding\" <-> (SELECT \"m\"($1)) LIMIT $2;",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // Names end neither an identifier nor the function's text.
        let (text, _) = written(&model, "a\";'$$");
        assert!(text.contains("FUNCTION \"a\"\";'$$\"("), "{text}");
        assert!(text.contains("FROM \"a\"\";''$$_map\" map"), "{text}");
    }

    #[test]
    fn another_query_is_mapped_outside() {
        let root = vec![Step::Element(ElementMap::SquareRoot)];
        let model = model(3, root, two_of_three(), Space::InnerProduct);
        let (text, function) = written(&model, "m");
        assert!(!function && !text.contains("CREATE"));
        assert!(
            text.contains("step \"sqrt\"") && text.contains("<#> $1 LIMIT $2"),
            "{text}"
        );
        assert!(text.contains("mapped, 2 dimensions"), "{text}");
    }
}
