//! A text or a list of texts, as OpenAI's API takes them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Texts of a list: more than any limit on rows, and so many are in no answer.
const MOST: usize = 100_000;

/// One text or several. Read by hand: serde's untagged enums keep a copy of everything before they know what it is, which makes
/// sixteen times as much of a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OneOrMore(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Texts).map(OneOrMore)
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
        })
    }
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            if texts.len() == MOST {
                return Err(A::Error::custom(format!("expected at most {MOST} texts")));
            }
            texts.push(text);
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_several_and_what_is_neither() {
        let read = |text: &str| serde_json::from_str(text).map(|OneOrMore(texts)| texts);
        assert_eq!(read("\"a\"").unwrap(), ["a"]);
        assert_eq!(read("[\"a\", \"b\"]").unwrap(), ["a", "b"]);
        for (wrong, problem) in [
            ("7", "a text or a list of texts"),
            ("[0, 0]", "expected a string"),
            ("[[1]]", "expected a string"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        let many = serde_json::to_string(&vec![""; MOST + 1]).unwrap();
        assert!(read(&many).unwrap_err().to_string().contains("at most"));
    }
}
