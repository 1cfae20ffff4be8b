//! ONNX: every step as operators of the standard set, so that a program that already runs a model in
//! ONNX maps its vectors there too.
//!
//! The steps are not folded: each does what `metra embed` does, in the same precision, so that results
//! agree to the last digits. Lengths, logarithms and the frequencies of the χ² map are worked out in
//! f64, as they are there. A model that shifts columns before it narrows f64 takes f64 here as well.
//! Where `metra embed` refuses a value (a root of −1, a vector of length 0), ONNX has no errors: what
//! comes out of that row is not finite.
//!
//! The few messages that a model is made of are encoded in `message.rs`: a library for protocol
//! buffers would ask for the same list of fields and bring a code generator with it.

mod graph;
mod message;

pub use graph::OPSET;

use super::map::{Export, write_error};
use crate::{Error, Result};
use graph::{Graph, Number};
use metra::data::ElementMap;
use metra::linalg::{Kernel, Rows};
use metra::model::{KernelMap, LowRank, Side, Signs, Step};
use std::io::Write;

const FORMAT: &str = "an ONNX file";
/// A message of protocol buffers cannot be longer.
const LONGEST: usize = (1 << 31) - 1;

/// Write the model: input `vector` (N × dimension) and, where the mean of each row's group is subtracted,
/// `group` (N numbers of groups, in the order of the metadata `groups`); output `embedding`.
pub fn write_onnx(mut out: impl Write, export: &Export) -> Result<()> {
    let mut graph = Graph::default();
    let mut groups = None;
    let mut at = "vector".to_owned();
    let input = match &export.narrowing {
        None => Number::F32,
        Some(narrowing) => {
            let shift = graph.f64s(&[narrowing.shift.len()], &narrowing.shift);
            let scale = graph.f64s(&[], &[narrowing.scale]);
            at = graph.node("Sub", &[&at, &shift]);
            at = graph.node("Mul", &[&at, &scale]);
            at = graph.cast(&at, Number::F32);
            Number::F64
        }
    };
    for (number, step) in export.steps.iter().enumerate() {
        if let Step::CentreGroups { names, .. } = step {
            groups = Some(names.as_slice());
        }
        at = apply(&mut graph, step, &at);
        if let Some(squares) = export.indefinite
            && squares.after == number + 1
        {
            at = indefinite(&mut graph, export.side, squares.signs, &at);
        }
    }
    graph.rename(&at, "embedding");
    let mut inputs = vec![("vector", input, Some(export.input_dim))];
    if groups.is_some() {
        inputs.push(("group", Number::I64, None));
    }
    let output = ("embedding", Number::F32, Some(export.output_dim));
    let mut about = vec![
        ("compare".to_owned(), export.compare.clone()),
        ("method".to_owned(), export.method.clone()),
        ("side".to_owned(), export.side_name().to_owned()),
    ];
    if let Some(names) = groups {
        // Lines, since a name may have a comma in it.
        about.push(("groups".to_owned(), names.join("\n")));
    }
    let bytes = graph.model(&inputs, output, &export.about(), &about);
    if bytes.len() > LONGEST {
        return Err(Error::unsupported(
            FORMAT,
            format!("{} bytes", bytes.len()),
            "the format ends at 2 GB: use npy or safetensors",
        ));
    }
    out.write_all(&bytes).map_err(|e| write_error(FORMAT, e))
}

/// The operators of a step, after the value `at`; the name of what comes out.
fn apply(graph: &mut Graph, step: &Step, at: &str) -> String {
    match step {
        Step::Element(ElementMap::Normalise) => normalise(graph, at),
        Step::Element(ElementMap::SquareRoot) => graph.node("Sqrt", &[at]),
        Step::Element(ElementMap::Log { factor }) => {
            // In f64 because ONNX has no log1p: 1 + a·x in f32 loses the digits of a small x.
            let factor = graph.f32s(&[], &[*factor]);
            let one = graph.f64s(&[], &[1.0]);
            let times = graph.node("Mul", &[at, &factor]);
            let wide = graph.cast(&times, Number::F64);
            let sum = graph.node("Add", &[&wide, &one]);
            let log = graph.node("Log", &[&sum]);
            graph.cast(&log, Number::F32)
        }
        Step::Element(ElementMap::ChiSquare { order }) => chi_square(graph, *order, at),
        Step::Centre { mean } => {
            let mean = graph.f32s(&[mean.len()], mean);
            graph.node("Sub", &[at, &mean])
        }
        Step::CentreGroups { means, .. } => {
            let means = rows(graph, means.rows());
            let own = graph.node("Gather", &[&means, "group"]);
            graph.node("Sub", &[at, &own])
        }
        Step::Scale { factors } => {
            let factors = graph.f32s(&[factors.len()], factors);
            graph.node("Mul", &[at, &factors])
        }
        Step::Project(map) => project(graph, map, at),
        Step::Kernel(map) => {
            let values = kernel(graph, map, at);
            project(graph, map.map(), &values)
        }
        Step::NormaliseEach { dims } => normalise_each(graph, dims, at),
    }
}

fn rows(graph: &mut Graph, rows: Rows<'_>) -> String {
    graph.f32s(&[rows.len(), rows.dim()], rows.values())
}

/// The products of the value with every row.
fn product(graph: &mut Graph, at: &str, others: Rows<'_>) -> String {
    let others = rows(graph, others);
    graph.node_with("Gemm", &[at, &others], &[("transB", 1)])
}

/// What `metra::model::Indefinite` makes of z: (z, zᵀSz, 1) of items, (2Cz, −1, −zᵀSz) of queries.
fn indefinite(graph: &mut Graph, side: Side, signs: Signs, at: &str) -> String {
    let rank = signs.len();
    let own: Vec<f64> = (0..rank).map(|direction| signs.own(direction)).collect();
    let crossed: Vec<f64> = (0..rank)
        .map(|direction| signs.crossed(direction))
        .collect();
    let query = side == Side::Query;
    let own = graph.f64s(&[rank], &own);
    let wide = graph.cast(at, Number::F64);
    let signed = graph.node("Mul", &[&wide, &own]);
    let squares = graph.node("Mul", &[&wide, &signed]);
    let own = graph.sum_last(&squares, true);
    let zero = graph.f64s(&[], &[0.0]);
    // A column of one number that has as many rows as the sums.
    let none = graph.node("Mul", &[&own, &zero]);
    let number = graph.f64s(&[], &[if query { -1.0 } else { 1.0 }]);
    let number = graph.node("Add", &[&none, &number]);
    let all = if query {
        let crossed = graph.f64s(&[rank], &crossed);
        let turned = graph.node("Mul", &[&wide, &crossed]);
        let two = graph.f64s(&[], &[2.0]);
        let twice = graph.node("Mul", &[&turned, &two]);
        let minus = graph.node("Neg", &[&own]);
        graph.node_with("Concat", &[&twice, &number, &minus], &[("axis", 1)])
    } else {
        graph.node_with("Concat", &[&wide, &own, &number], &[("axis", 1)])
    };
    graph.cast(&all, Number::F32)
}

/// W x − b.
fn project(graph: &mut Graph, map: &LowRank, at: &str) -> String {
    let product = product(graph, at, map.weights());
    match map.offset() {
        None => product,
        Some(offset) => {
            let offset = graph.f32s(&[offset.len()], offset);
            graph.node("Sub", &[&product, &offset])
        }
    }
}

fn normalise(graph: &mut Graph, at: &str) -> String {
    let wide = graph.cast(at, Number::F64);
    let squares = graph.node("Mul", &[&wide, &wide]);
    let sum = graph.sum_last(&squares, true);
    let length = graph.node("Sqrt", &[&sum]);
    let divided = graph.node("Div", &[&wide, &length]);
    graph.cast(&divided, Number::F32)
}

/// Each of several vectors of a row divided by its length, where it has one. A row of zeros alone is not finite.
fn normalise_each(graph: &mut Graph, dims: &[usize], at: &str) -> String {
    let wide = graph.cast(at, Number::F64);
    let (zero, one) = (graph.f64s(&[], &[0.0]), graph.f64s(&[], &[1.0]));
    let axis = graph.i64s(&[1], &[1]);
    let mut parts = Vec::new();
    let mut first = 0;
    for dim in dims {
        let bound = |graph: &mut Graph, at: usize| graph.i64s(&[1], &[at as i64]);
        let (from, to) = (bound(graph, first), bound(graph, first + dim));
        first += dim;
        let part = graph.node("Slice", &[&wide, &from, &to, &axis]);
        let squares = graph.node("Mul", &[&part, &part]);
        let sum = graph.sum_last(&squares, true);
        // By a comparison that NaN fails, so that it stays NaN.
        let none = graph.node("Equal", &[&sum, &zero]);
        let divisor = graph.node("Where", &[&none, &one, &sum]);
        let length = graph.node("Sqrt", &[&divisor]);
        parts.push(graph.node("Div", &[&part, &length]));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let all = graph.node_with("Concat", &parts, &[("axis", 1)]);
    let squares = graph.node("Mul", &[&all, &all]);
    let sum = graph.sum_last(&squares, true);
    let is_there = graph.node("Div", &[&sum, &sum]);
    let all = graph.node("Mul", &[&all, &is_there]);
    graph.cast(&all, Number::F32)
}

/// Features of the additive χ² kernel, as `metra::data::ElementMap` has them: √(x·L·κ(0)), then
/// √(2x·L·κ(jL)) times cosine and sine of jL·log x, all values' first features first. A 0 gives zeros.
fn chi_square(graph: &mut Graph, order: u32, at: &str) -> String {
    let period = ElementMap::chi_square_period(order);
    let wide = graph.cast(at, Number::F64);
    let (zero, one) = (graph.f64s(&[], &[0.0]), graph.f64s(&[], &[1.0]));
    let root = graph.node("Sqrt", &[&wide]);
    let above = graph.node("Greater", &[&wide, &zero]);
    let safe = graph.node("Where", &[&above, &wide, &one]);
    let log = graph.node("Log", &[&safe]);
    let times = |graph: &mut Graph, a: &str, factor: f64| {
        let factor = graph.f64s(&[], &[factor]);
        graph.node("Mul", &[a, &factor])
    };
    let mut features = vec![times(graph, &root, period.sqrt())];
    for j in 1..=order {
        let frequency = f64::from(j) * period;
        let spectrum = 1.0 / (std::f64::consts::PI * frequency).cosh();
        let length = times(graph, &root, (2.0 * period * spectrum).sqrt());
        let angle = times(graph, &log, frequency);
        // The runtime has no cosine of f64.
        let quarter = graph.f64s(&[], &[std::f64::consts::FRAC_PI_2]);
        let turned = graph.node("Add", &[&angle, &quarter]);
        for angle in [turned, angle] {
            let sine = graph.node("Sin", &[&angle]);
            features.push(graph.node("Mul", &[&length, &sine]));
        }
    }
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    let all = graph.node_with("Concat", &features, &[("axis", 1)]);
    graph.cast(&all, Number::F32)
}

/// Kernel values with the landmarks, N × landmarks.
fn kernel(graph: &mut Graph, map: &KernelMap, at: &str) -> String {
    let landmarks = map.landmarks();
    match map.kernel() {
        Kernel::Linear => product(graph, at, landmarks),
        Kernel::Polynomial {
            scale,
            offset,
            degree,
        } => {
            let product = product(graph, at, landmarks);
            let (scale, offset) = (graph.f32s(&[], &[scale]), graph.f32s(&[], &[offset]));
            let degree = graph.f32s(&[], &[degree as f32]);
            let scaled = graph.node("Mul", &[&product, &scale]);
            let sum = graph.node("Add", &[&scaled, &offset]);
            graph.node("Pow", &[&sum, &degree])
        }
        Kernel::Rbf { gamma } => {
            let product = product(graph, at, landmarks);
            let minus_two = graph.f32s(&[], &[-2.0]);
            let norms: Vec<f32> = landmarks
                .iter()
                .map(|row| row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() as f32)
                .collect();
            let norms = graph.f32s(&[norms.len()], &norms);
            let squares = graph.node("Mul", &[at, at]);
            let own = graph.sum_last(&squares, true);
            let between = graph.node("Mul", &[&product, &minus_two]);
            let sum = graph.node("Add", &[&between, &own]);
            let sum = graph.node("Add", &[&sum, &norms]);
            // By a comparison: the operator Max may prefer the other number to NaN.
            let zero = graph.f32s(&[], &[0.0]);
            let below = graph.node("Less", &[&sum, &zero]);
            let sum = graph.node("Where", &[&below, &zero, &sum]);
            exponential(graph, gamma, &sum)
        }
        histograms => {
            // Every row against every landmark, entry by entry: N × landmarks × numbers at once.
            let zero = graph.f32s(&[], &[0.0]);
            let none = graph.f32s(&[], &[f32::NAN]);
            let fit = graph.node("GreaterOrEqual", &[at, &zero]);
            let fit = graph.node("Where", &[&fit, at, &none]);
            let axis = graph.i64s(&[1], &[1]);
            let own = graph.node("Unsqueeze", &[&fit, &axis]);
            let shape = [1, landmarks.len(), landmarks.dim()];
            let others = graph.f32s(&shape, landmarks.values());
            if histograms == Kernel::Intersection {
                // By a comparison that NaN fails: the operator Min may prefer the other number.
                let less = graph.node("Less", &[&others, &own]);
                let least = graph.node("Where", &[&less, &others, &own]);
                return graph.sum_last(&least, false);
            }
            let sum = graph.node("Add", &[&own, &others]);
            // A pair of zeros counts 0; NaN stays NaN in the product above.
            let one = graph.f32s(&[], &[1.0]);
            let above = graph.node("Greater", &[&sum, &zero]);
            let below = graph.node("Where", &[&above, &sum, &one]);
            let product = if histograms == Kernel::ChiSquare {
                let two = graph.f32s(&[], &[2.0]);
                let twice = graph.node("Mul", &[&own, &two]);
                graph.node("Mul", &[&twice, &others])
            } else {
                let difference = graph.node("Sub", &[&own, &others]);
                graph.node("Mul", &[&difference, &difference])
            };
            let terms = graph.node("Div", &[&product, &below]);
            let sum = graph.sum_last(&terms, false);
            match histograms {
                Kernel::ExponentialChiSquare { gamma } => exponential(graph, gamma, &sum),
                _ => sum,
            }
        }
    }
}

/// exp(−gamma · distance).
fn exponential(graph: &mut Graph, gamma: f32, at: &str) -> String {
    let gamma = graph.f32s(&[], &[-gamma]);
    let times = graph.node("Mul", &[at, &gamma]);
    graph.node("Exp", &[&times])
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::{model, two_of_three};
    use super::*;
    use metra::model::{Map, Side, Space};

    fn written(steps: Vec<Step>, map: Map) -> Vec<u8> {
        let model = model(3, steps, map, Space::SquaredL2);
        let export = Export::embedding(&model, Side::Item).unwrap();
        let mut bytes = Vec::new();
        write_onnx(&mut bytes, &export).unwrap();
        bytes
    }

    fn holds(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn operators_and_numbers_are_in_the_file() {
        let bytes = written(Vec::new(), two_of_three());
        // ir_version (field 1) 8, and the first letters of the producer (field 2).
        assert!(bytes.starts_with(b"\x08\x08\x12\x05metra"));
        for part in ["Gemm", "Sub", "vector", "embedding", "euclid", "by-hand"] {
            assert!(holds(&bytes, part.as_bytes()), "{part}");
        }
        assert!(holds(
            &bytes,
            &crate::bytes::little_endian(&[4.0, 5.0, 6.0])
        ));
        assert!(!holds(&bytes, b"group"));
        assert_eq!(bytes, written(Vec::new(), two_of_three()), "the same bytes");
    }

    #[test]
    fn nothing_to_do_is_an_identity() {
        assert!(holds(&written(Vec::new(), Map::Identity), b"Identity"));
    }
}
