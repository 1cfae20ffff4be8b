//! Vectors in bodies: how they come in and how they go out.

use crate::refusal::Refusal;
use metra::data::Narrowing;
use metra::linalg::{RowBuf, Rows};
use metra::model::Model;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Vectors of a request, not yet compared with a model. Read as f64, because a model may take a shift from them before they become f32.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InputVectors {
    values: Vec<f64>,
    dim: usize,
    rows: usize,
}

impl InputVectors {
    /// Numbers after each other.
    pub(crate) fn new(values: Vec<f64>, dim: usize) -> Self {
        let rows = values.len().checked_div(dim).unwrap_or(0);
        InputVectors { values, dim, rows }
    }

    /// Little-endian f32, row after row, without a header.
    pub(crate) fn from_f32_bytes(bytes: &[u8], dim: usize) -> Result<Self, Refusal> {
        let row = dim * size_of::<f32>();
        if row == 0 || !bytes.len().is_multiple_of(row) {
            return Err(Refusal::bad(format!(
                "expected rows of {dim} little-endian f32 ({row} bytes each), but found {} bytes",
                bytes.len()
            )));
        }
        let number = |four: &[u8; 4]| f64::from(f32::from_le_bytes(*four));
        let values = bytes.as_chunks::<4>().0.iter().map(number).collect();
        Ok(InputVectors::new(values, dim))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The rows as the model takes them.
    pub(crate) fn rows_for(&self, model: &Model) -> Result<RowBuf, Refusal> {
        let dim = model.input_dim();
        if self.rows == 0 {
            return Err(Refusal::bad("expected at least one vector, but found none"));
        }
        if self.dim != dim {
            return Err(Refusal::bad(format!(
                "expected vectors of {dim} dimensions, which the model takes, but found {}",
                self.dim
            )));
        }
        let plain;
        let narrowing = match &model.narrowing {
            Some(narrowing) => narrowing,
            None => {
                plain = Narrowing {
                    shift: vec![0.0; dim],
                    scale: 1.0,
                };
                &plain
            }
        };
        let mut rows = RowBuf::zeros(self.rows, dim);
        for (row, values) in self.values.chunks_exact(dim).enumerate() {
            narrowing.apply(row as u64, values, rows.row_mut(row))?;
        }
        Ok(rows)
    }
}

impl<'de> Deserialize<'de> for InputVectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AllRows)
    }
}

impl JsonSchema for InputVectors {
    fn schema_name() -> Cow<'static, str> {
        "Vectors".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Vec<f64>>>::json_schema(generator)
    }
}

/// Reads an array of arrays into one list.
struct AllRows;

impl<'de> Visitor<'de> for AllRows {
    type Value = InputVectors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of vectors, each an array of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<InputVectors, A::Error> {
        let mut all = InputVectors::default();
        while let Some(()) = rows.next_element_seed(OneRow(&mut all.values))? {
            all.rows += 1;
            if all.rows == 1 {
                all.dim = all.values.len();
            }
            if all.values.len() != all.rows * all.dim {
                let found = all.values.len() - (all.rows - 1) * all.dim;
                return Err(A::Error::custom(format!(
                    "expected vectors of equal dimension, but the first has {} and number {} has {found}",
                    all.dim,
                    all.rows - 1
                )));
            }
        }
        Ok(all)
    }
}

/// Appends one array of numbers.
struct OneRow<'a>(&'a mut Vec<f64>);

impl<'de> DeserializeSeed<'de> for OneRow<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneRow<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector, which is an array of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<(), A::Error> {
        while let Some(number) = numbers.next_element()? {
            self.0.push(number);
        }
        Ok(())
    }
}

/// Rows as an array of arrays.
pub(crate) struct OutputVectors(pub(crate) RowBuf);

impl OutputVectors {
    /// Little-endian f32, row after row.
    pub(crate) fn to_f32_bytes(rows: Rows<'_>) -> Vec<u8> {
        rows.values().iter().flat_map(|v| v.to_le_bytes()).collect()
    }
}

impl Serialize for OutputVectors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.len()))?;
        for row in self.0.rows().iter() {
            rows.serialize_element(row)?;
        }
        rows.end()
    }
}

impl JsonSchema for OutputVectors {
    fn schema_name() -> Cow<'static, str> {
        InputVectors::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        InputVectors::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::model::{Chain, Origin, Space};

    fn model(narrowing: Option<Narrowing>) -> Model {
        Model::new(
            narrowing,
            Chain::identity(2, Space::SquaredL2),
            Origin::default(),
        )
        .unwrap()
    }

    fn read(text: &str) -> Result<InputVectors, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_come_flat_and_of_one_dimension() {
        let vectors = read("[[1, 2.5], [3, -4]]").unwrap();
        assert_eq!(vectors, InputVectors::new(vec![1.0, 2.5, 3.0, -4.0], 2));
        assert_eq!(read("[]").unwrap().len(), 0);
        for (text, problem) in [
            ("[[1, 2], [3]]", "the first has 2 and number 1 has 1"),
            ("[1, 2]", "an array of numbers"),
            ("[[1, \"a\"]]", "expected f64"),
            ("[[1e999, 0]]", "out of range"),
            ("{}", "an array of vectors"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_model_takes_its_shift_before_f32() {
        let far = 1e9;
        let text = format!("[[{}, 1], [{}, 2]]", far + 0.25, far - 0.5);
        let narrowing = Narrowing {
            shift: vec![far, 0.0],
            scale: 1.0,
        };
        let rows = read(&text).unwrap().rows_for(&model(Some(narrowing)));
        assert_eq!(rows.unwrap().values(), [0.25, 1.0, -0.5, 2.0]);
        let plain = read("[[1e39, 1]]").unwrap().rows_for(&model(None));
        assert!(plain.unwrap_err().message.contains("row 0, column 0"));
        let wide = read("[[1, 2, 3]]").unwrap().rows_for(&model(None));
        assert!(wide.unwrap_err().message.contains("2 dimensions"));
    }

    #[test]
    fn bytes_there_and_back() {
        let rows = RowBuf::from_values(vec![0.1, -3.0, 4.5, 0.0], 2).unwrap();
        let bytes = OutputVectors::to_f32_bytes(rows.rows());
        let back = InputVectors::from_f32_bytes(&bytes, 2).unwrap();
        assert_eq!(back.rows_for(&model(None)).unwrap().values(), rows.values());
        assert!(InputVectors::from_f32_bytes(&bytes[1..], 2).is_err());
        assert!(InputVectors::from_f32_bytes(&bytes, 0).is_err());
    }
}
