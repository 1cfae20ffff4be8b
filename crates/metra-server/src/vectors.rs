//! Vectors in bodies: how they come in and how they go out.

use crate::refusal::Refusal;
use metra::data::Narrowing;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Model, Side};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// What the numbers of a body without a header are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Element {
    /// Four bytes each.
    #[default]
    Float32,
    /// Eight bytes each, for models that shift columns before they round them.
    Float64,
}

/// Vectors of a request, not yet compared with a model.
#[derive(Debug, PartialEq)]
pub(crate) struct InputVectors {
    values: Values,
    dim: usize,
    rows: usize,
}

/// Numbers of vectors after each other. Those in double precision stay so, because a model may shift them before they become f32.
#[derive(Debug, PartialEq)]
enum Values {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl InputVectors {
    /// Numbers after each other.
    pub(crate) fn new(values: Vec<f64>, dim: usize) -> Self {
        InputVectors {
            rows: values.len().checked_div(dim).unwrap_or(0),
            values: Values::Double(values),
            dim,
        }
    }

    /// Little-endian numbers, row after row, without a header.
    pub(crate) fn from_bytes(bytes: &[u8], dim: usize, element: Element) -> Result<Self, Refusal> {
        let (name, size) = match element {
            Element::Float32 => ("float32", size_of::<f32>()),
            Element::Float64 => ("float64", size_of::<f64>()),
        };
        let row = dim * size;
        if row == 0 || !bytes.len().is_multiple_of(row) {
            return Err(Refusal::bad(format!(
                "expected rows of {dim} little-endian {name} ({row} bytes each), but found {} bytes",
                bytes.len()
            )));
        }
        let values = match element {
            Element::Float32 => {
                let numbers = bytes.as_chunks().0.iter().copied();
                Values::Single(numbers.map(f32::from_le_bytes).collect())
            }
            Element::Float64 => {
                let numbers = bytes.as_chunks().0.iter().copied();
                Values::Double(numbers.map(f64::from_le_bytes).collect())
            }
        };
        Ok(InputVectors {
            values,
            dim,
            rows: bytes.len() / row,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The rows as the model takes them.
    pub(crate) fn into_rows(self, model: &Model, side: Side) -> Result<RowBuf, Refusal> {
        let dim = model.chain.dim_of(side);
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
        match self.values {
            Values::Single(values) => {
                let are_finite = values
                    .iter()
                    .fold(true, |all, value| all & value.is_finite());
                let mut rows = RowBuf::from_values(values, dim)?;
                // Numbers that stay as they are need no second look.
                if model.narrowing.is_some() || !are_finite {
                    narrowing.apply_rows(0, &mut rows)?;
                }
                Ok(rows)
            }
            Values::Double(values) => {
                let mut rows = RowBuf::zeros(self.rows, dim);
                for (row, values) in values.chunks_exact(dim).enumerate() {
                    narrowing.apply(row as u64, values, rows.row_mut(row))?;
                }
                Ok(rows)
            }
        }
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
        let (mut values, mut dim, mut count) = (Vec::new(), 0, 0);
        while let Some(()) = rows.next_element_seed(OneRow(&mut values))? {
            count += 1;
            if count == 1 {
                dim = values.len();
            }
            if values.len() != count * dim {
                let (number, found) = (count - 1, values.len() - (count - 1) * dim);
                return Err(A::Error::custom(format!(
                    "expected vectors of equal dimension, but the first has {dim} and number {number} has {found}"
                )));
            }
        }
        Ok(InputVectors {
            values: Values::Double(values),
            dim,
            rows: count,
        })
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
        let mut bytes = vec![0; size_of_val(rows.values())];
        for (four, value) in bytes.as_chunks_mut().0.iter_mut().zip(rows.values()) {
            *four = value.to_le_bytes();
        }
        bytes
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
        let rows = read(&text)
            .unwrap()
            .into_rows(&model(Some(narrowing)), Side::Query);
        assert_eq!(rows.unwrap().values(), [0.25, 1.0, -0.5, 2.0]);
        let plain = read("[[1e39, 1]]")
            .unwrap()
            .into_rows(&model(None), Side::Query);
        assert!(plain.unwrap_err().message.contains("row 0, column 0"));
        let wide = read("[[1, 2, 3]]")
            .unwrap()
            .into_rows(&model(None), Side::Query);
        assert!(wide.unwrap_err().message.contains("2 dimensions"));
    }

    #[test]
    fn bytes_there_and_back() {
        let rows = RowBuf::from_values(vec![0.1, -3.0, 4.5, 0.0], 2).unwrap();
        let bytes = OutputVectors::to_f32_bytes(rows.rows());
        let back = InputVectors::from_bytes(&bytes, 2, Element::Float32).unwrap();
        assert_eq!(back.into_rows(&model(None), Side::Query).unwrap(), rows);
        let doubles = [1e9 + 0.25, 1.0, 1e9 - 0.5, 2.0]
            .map(f64::to_le_bytes)
            .concat();
        let shifted = Narrowing {
            shift: vec![1e9, 0.0],
            scale: 1.0,
        };
        let double = |model: &Model| {
            let vectors = InputVectors::from_bytes(&doubles, 2, Element::Float64).unwrap();
            vectors.into_rows(model, Side::Query).unwrap()
        };
        assert_eq!(
            double(&model(Some(shifted.clone()))).values(),
            [0.25, 1.0, -0.5, 2.0]
        );
        assert_eq!(double(&model(None)).values(), [1e9, 1.0, 1e9, 2.0]);
        let single = [1e9_f32, 1.0, 2e9, 2.0].map(f32::to_le_bytes).concat();
        let single = InputVectors::from_bytes(&single, 2, Element::Float32).unwrap();
        let rows = single
            .into_rows(&model(Some(shifted)), Side::Query)
            .unwrap();
        assert_eq!(rows.values(), [0.0, 1.0, 1e9, 2.0]);
        let nan = [0.0, 1.0, f32::INFINITY, 2.0]
            .map(f32::to_le_bytes)
            .concat();
        let nan = InputVectors::from_bytes(&nan, 2, Element::Float32).unwrap();
        let refused = nan.into_rows(&model(None), Side::Query).unwrap_err();
        assert!(
            refused.message.contains("row 1, column 0"),
            "{}",
            refused.message
        );
        assert!(InputVectors::from_bytes(&bytes[1..], 2, Element::Float32).is_err());
        assert!(InputVectors::from_bytes(&bytes, 0, Element::Float32).is_err());
    }
}
