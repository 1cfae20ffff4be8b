//! A graph of operators that grows at its end, and the model file around it. Field numbers are those of
//! `onnx.proto` (IR version 8).

use super::message::Message;
use crate::bytes::little_endian;

/// Version of the set of operators, that of ONNX 1.12 (2022).
pub const OPSET: u64 = 17;

/// Version of the format itself, that of 2022; later readers know it.
const IR_VERSION: u64 = 8;

/// Type of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    F32,
    F64,
    I64,
}

/// Operators in order, with the constants that they take.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    constants: Vec<Message>,
}

struct Node {
    operator: &'static str,
    inputs: Vec<String>,
    output: String,
    attributes: Vec<(&'static str, i64)>,
}

/// Name, type and dimension (`None`: one number per row, without an axis for it).
pub(super) type Value<'a> = (&'a str, Number, Option<usize>);

impl Number {
    /// `TensorProto.DataType`.
    fn code(self) -> u64 {
        match self {
            Number::F32 => 1,
            Number::F64 => 11,
            Number::I64 => 7,
        }
    }
}

impl Graph {
    /// An operator; the name of what comes out.
    pub(super) fn node(&mut self, operator: &'static str, inputs: &[&str]) -> String {
        self.node_with(operator, inputs, &[])
    }

    /// An operator with whole numbers as attributes.
    pub(super) fn node_with(
        &mut self,
        operator: &'static str,
        inputs: &[&str],
        attributes: &[(&'static str, i64)],
    ) -> String {
        let output = format!("{}_{}", operator.to_lowercase(), self.nodes.len());
        self.nodes.push(Node {
            operator,
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: output.clone(),
            attributes: attributes.to_vec(),
        });
        output
    }

    /// The same numbers in another type.
    pub(super) fn cast(&mut self, at: &str, to: Number) -> String {
        self.node_with("Cast", &[at], &[("to", to.code().cast_signed())])
    }

    /// Sums over the last axis, which stays with length 1 where `keep` is set.
    pub(super) fn sum_last(&mut self, at: &str, keep: bool) -> String {
        let last = self.i64s(&[1], &[-1]);
        self.node_with("ReduceSum", &[at, &last], &[("keepdims", i64::from(keep))])
    }

    pub(super) fn f32s(&mut self, shape: &[usize], values: &[f32]) -> String {
        self.constant(Number::F32, shape, little_endian(values))
    }

    pub(super) fn f64s(&mut self, shape: &[usize], values: &[f64]) -> String {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(Number::F64, shape, bytes)
    }

    pub(super) fn i64s(&mut self, shape: &[usize], values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(Number::I64, shape, bytes)
    }

    /// `TensorProto`.
    fn constant(&mut self, number: Number, shape: &[usize], bytes: Vec<u8>) -> String {
        let name = format!("constant_{}", self.constants.len());
        let mut tensor = Message::default();
        for size in shape {
            tensor.number(1, *size as u64);
        }
        tensor.number(2, number.code());
        tensor.text(8, &name);
        tensor.bytes(9, &bytes);
        self.constants.push(tensor);
        name
    }

    /// Give the last value another name, by an operator of its own where it is an input.
    pub(super) fn rename(&mut self, at: &str, name: &str) {
        match self.nodes.last_mut() {
            Some(node) if node.output == at => node.output = name.to_owned(),
            _ => {
                self.node("Identity", &[at]);
                if let Some(node) = self.nodes.last_mut() {
                    node.output = name.to_owned();
                }
            }
        }
    }

    /// `ModelProto` around the graph.
    pub(super) fn model(
        self,
        inputs: &[Value<'_>],
        output: Value<'_>,
        about: &str,
        metadata: &[(String, String)],
    ) -> Vec<u8> {
        let mut graph = Message::default();
        for node in &self.nodes {
            graph.message(1, &node.encode());
        }
        graph.text(2, "metra");
        for constant in &self.constants {
            graph.message(5, constant);
        }
        for input in inputs {
            graph.message(11, &value(*input));
        }
        graph.message(12, &value(output));
        let mut opset = Message::default();
        opset.text(1, "");
        opset.number(2, OPSET);
        let mut model = Message::default();
        model.number(1, IR_VERSION);
        model.text(2, "metra");
        model.text(3, env!("CARGO_PKG_VERSION"));
        model.text(6, about);
        model.message(7, &graph);
        model.message(8, &opset);
        for (key, value) in metadata {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value);
            model.message(14, &entry);
        }
        model.into_bytes()
    }
}

impl Node {
    /// `NodeProto`.
    fn encode(&self) -> Message {
        let mut node = Message::default();
        for input in &self.inputs {
            node.text(1, input);
        }
        node.text(2, &self.output);
        node.text(3, &self.output);
        node.text(4, self.operator);
        for (name, number) in &self.attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            attribute.number(3, number.cast_unsigned());
            // AttributeType.INT.
            attribute.number(20, 2);
            node.message(5, &attribute);
        }
        node
    }
}

/// `ValueInfoProto`: so many rows (`N`) of so many numbers.
fn value((name, number, dim): Value<'_>) -> Message {
    let mut shape = Message::default();
    let mut rows = Message::default();
    rows.text(2, "N");
    shape.message(1, &rows);
    if let Some(dim) = dim {
        let mut numbers = Message::default();
        numbers.number(1, dim as u64);
        shape.message(1, &numbers);
    }
    let mut tensor = Message::default();
    tensor.number(1, number.code());
    tensor.message(2, &shape);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut value = Message::default();
    value.text(1, name);
    value.message(2, &kind);
    value
}
