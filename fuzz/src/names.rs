//! Names of tables, columns and functions in generated SQL and C, read back by a tokenizer.

use crate::{Outcome, Reading, seeds};
use metra::model::{Plan, Side};
use metra_stores::TableName;
use metra_stores::export::{Export, SqlColumns, c_name, write_header, write_sql};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

pub(crate) fn names(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes).into_owned();
    header(&text);
    let written = sql(&text)?;
    let plain = sql("plain").expect("a plain name");
    let (found, expected) = (tokens(&written), tokens(&plain));
    assert_eq!(found.len(), expected.len(), "{written}");
    for (found, expected) in found.iter().zip(&expected) {
        match (found, expected) {
            (Token::Word(found), Token::Word(expected)) if expected.value.starts_with("plain") => {
                let rest = expected.value.replacen("plain", "", 1);
                let name = found
                    .value
                    .strip_suffix(&rest)
                    .expect("the name and what follows it");
                assert_eq!(name, text, "{written}");
            }
            _ => assert_eq!(found, expected, "{written}"),
        }
    }
    let mut reading = Reading::default();
    reading.text(&written);
    reading.done()
}

fn sql(name: &str) -> Option<String> {
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    let columns = SqlColumns {
        table: quoted.parse::<TableName>().ok()?,
        id: name.to_owned(),
        column: name.to_owned(),
    };
    let model = seeds::model();
    let plan = Plan::all_for_model(&model).expect("plans").remove(0);
    let export = Export::queries(&model, &plan).expect("an export");
    let mut out = Vec::new();
    write_sql(&mut out, &export, &plan, &columns, name).ok()?;
    String::from_utf8(out).ok()
}

/// All that is no space and no comment.
fn tokens(sql: &str) -> Vec<Token> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize();
    let tokens = tokens.expect("SQL that can be read").into_iter();
    tokens
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect()
}

fn header(name: &str) {
    let made = c_name(name);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(
        made.chars().all(fits) && !made.starts_with(|c: char| c.is_ascii_digit()),
        "{made}"
    );
    let export = Export::embedding(&seeds::model(), Side::Item).expect("an export");
    let mut out = Vec::new();
    write_header(&mut out, &export, name).expect("a header");
    let text = String::from_utf8(out).expect("a header is text");
    assert_eq!(
        text.matches("/*").count(),
        text.matches("*/").count(),
        "{text}"
    );
    assert!(text.is_ascii(), "{text}");
}
