//! The map that is exported, as every format takes it: a list of steps, or its affine maps and divisions by
//! the length.

use crate::{Error, Result};
use metra::data::{ElementMap, Narrowing};
use metra::model::{Code, Embedding, LowRank, Map, Model, Plan, Side, Signs, Step, fold};
use std::fmt::Display;

/// Numbers of an exported matrix at most: 1 GiB.
const MOST_WEIGHTS: usize = 1 << 28;

/// What is exported: the way of queries or of items, from vectors as a user has them.
#[derive(Debug, Clone)]
pub struct Export {
    pub(super) input_dim: usize,
    pub(super) output_dim: usize,
    pub(super) narrowing: Option<Narrowing>,
    pub(super) steps: Vec<Step>,
    pub(super) indefinite: Option<Squares>,
    pub(super) compare: String,
    pub(super) method: String,
    pub(super) side: Side,
}

/// The coordinates of an indefinite metric's own: see `metra::model::Indefinite`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Squares {
    /// After so many steps.
    pub(super) after: usize,
    /// How coordinates count.
    pub(super) signs: Signs,
}

/// A part of the map after neighbouring affine steps are folded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MapPart {
    /// z = W x − b.
    Affine(LowRank),
    /// z = x/|x|.
    UnitLength,
}

impl Export {
    /// What `metra embed` does to vectors of one side.
    pub fn embedding(model: &Model, side: Side) -> Result<Self> {
        let is_coded = |code: &Code| side == Side::Item || code.codes_queries();
        if let Some(code) = model.chain.code().filter(|code| is_coded(code)) {
            return Err(Error::unsupported(
                "a map",
                format!("items that are held as {} codes", code.name()),
                "write them with metra embed --side item, and export the queries' side",
            ));
        }
        let (steps, space) = (model.chain.steps_of(side), model.chain.space().to_string());
        let mut export = Self::new(model, side, steps, space)?;
        if let Map::Indefinite(map) = model.chain.map() {
            export.indefinite = Some(Squares {
                after: export.steps.len(),
                signs: map.signs(),
            });
            export.output_dim = map.output_dim();
        }
        Ok(export)
    }

    /// What a plan asks its store with.
    pub fn queries(model: &Model, plan: &Plan) -> Result<Self> {
        let compare = plan.distance().to_string();
        Self::new(model, Side::Query, plan.query_steps()?, compare)
    }

    /// What a plan stores, for items that are mapped on their way in.
    pub fn items(model: &Model, plan: &Plan) -> Result<Self> {
        let steps = plan.item_steps().ok_or_else(|| {
            Error::unsupported(
                "a map of items",
                format!("what the way {} stores", plan.way()),
                "stored items are not a map of the input there: write them with the plan, and \
                      export the queries' side",
            )
        })?;
        Self::new(model, Side::Item, steps, plan.distance().to_string())
    }

    fn new(model: &Model, side: Side, steps: Vec<Step>, compare: String) -> Result<Self> {
        let input_dim = model.chain.dim_of(side);
        let output_dim = (steps.iter()).try_fold(input_dim, |dim, step| step.output_dim(dim))?;
        // Even a map that changes nothing becomes a matrix, which its model's file need not hold.
        if input_dim.saturating_mul(output_dim) > MOST_WEIGHTS {
            return Err(Error::unsupported(
                "an exported file",
                format!("a map of {input_dim} to {output_dim} dimensions"),
                "map vectors with metra embed",
            ));
        }
        Ok(Export {
            input_dim,
            output_dim,
            narrowing: model.narrowing.clone(),
            steps,
            indefinite: None,
            compare,
            method: one_word(&model.origin.method),
            side,
        })
    }

    /// The same, and then a division by the length.
    pub fn at_unit_length(mut self) -> Self {
        let unit = Step::Element(ElementMap::Normalise);
        if self.steps.last() != Some(&unit) {
            self.steps.push(unit);
        }
        self
    }

    /// Dimension of a vector before the map.
    pub fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// Dimension of a vector after the map.
    pub fn output_dim(&self) -> usize {
        self.output_dim
    }

    /// How vectors that were mapped so are compared: the metric's score or the plan's distance.
    pub fn compare(&self) -> &str {
        &self.compare
    }

    /// Whose vectors are mapped so, in a word.
    pub fn side_name(&self) -> &'static str {
        match self.side {
            Side::Query => "query",
            Side::Item => "item",
        }
    }

    /// Matrix and offset (z = W x − b) as npy and safetensors hold them, where one of each says all.
    pub fn matrix(&self, format: &str) -> Result<LowRank> {
        let mut parts = self.parts(format)?;
        match (parts.pop(), parts.is_empty()) {
            (Some(MapPart::Affine(map)), true) => Ok(map),
            (None, _) => Ok(identity(self.input_dim)?),
            _ => Err(Error::unsupported(
                format,
                "the division by the length (step \"l2\")",
                "a file of one matrix has no place for it: use onnx, faiss, a C header or sql",
            )),
        }
    }

    /// The affine maps and divisions by the length that the steps come to.
    pub(crate) fn parts(&self, format: &str) -> Result<Vec<MapPart>> {
        if self.indefinite.is_some() {
            let instead = "export what a plan asks with (--way extra-coordinate), or use onnx";
            let what = "the squares in vectors of an indefinite metric";
            return Err(Error::unsupported(format, what, instead));
        }
        let mut steps = Vec::new();
        if let Some(narrowing) = &self.narrowing {
            let shifted = narrowing.shift.iter().filter(|s| **s != 0.0).count();
            let scale = narrowing.scale as f32;
            if shifted > 0 || !scale.is_normal() {
                let what = format!(
                    "the shift of {shifted} columns and the factor {:e}, in f64, before all else",
                    narrowing.scale
                );
                let instead = "f32 loses what varies in such columns: use onnx, which takes f64, or \
                               map vectors with metra embed";
                return Err(Error::unsupported(format, what, instead));
            }
            let factors = vec![scale; self.input_dim];
            steps.push(Step::Scale { factors });
        }
        steps.extend(self.steps.iter().cloned());
        let folded = fold(self.input_dim, &steps)?;
        let part = |step| match step {
            Step::Project(map) => Ok(MapPart::Affine(map)),
            Step::Element(ElementMap::Normalise) => Ok(MapPart::UnitLength),
            other => Err(Error::unsupported(
                format,
                format!("step \"{}\", which is not affine", other.name()),
                "use onnx, or map vectors with metra embed and index what it writes",
            )),
        };
        folded.into_iter().map(part).collect()
    }

    /// One line that says what the file does, for comments and metadata.
    pub(crate) fn about(&self) -> String {
        format!(
            "metra {}: {} vectors of dimension {} become {}, compared by {}",
            self.method,
            self.side_name(),
            self.input_dim,
            self.output_dim,
            self.compare
        )
    }
}

/// A text for generated code: with letters, digits and `-` alone it ends no comment, in any language.
fn one_word(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.chars().take(64).map(fit).collect()
}

/// What is added after the matrix: other programs add their offset, the map takes it away.
pub(super) fn bias(map: &LowRank) -> Vec<f32> {
    match map.offset() {
        Some(offset) => offset.iter().map(|b| -b).collect(),
        None => vec![0.0; map.output_dim()],
    }
}

fn identity(dim: usize) -> Result<LowRank> {
    let mut weights = metra::linalg::RowBuf::zeros(dim, dim);
    for at in 0..dim {
        weights.row_mut(at)[at] = 1.0;
    }
    Ok(LowRank::new(weights, None)?)
}

/// How many weights the affine maps have.
pub(super) fn weights(parts: &[MapPart]) -> usize {
    (parts.iter())
        .map(|part| match part {
            MapPart::Affine(map) => map.weights().values().len(),
            MapPart::UnitLength => 0,
        })
        .sum()
}

/// A file that could not be written.
pub(super) fn write_error(format: &str, error: impl Display) -> Error {
    Error::found(format, format!("it could not be written: {error}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use metra::linalg::RowBuf;
    use metra::model::{Chain, Map, Origin, Space};

    /// A model of these parts.
    pub(crate) fn model(dim: usize, steps: Vec<Step>, map: Map, space: Space) -> Model {
        let chain = Chain::new(dim, steps, map, space).unwrap();
        let origin = Origin {
            method: "by-hand".into(),
            ..Origin::default()
        };
        Model::new(None, chain, origin).unwrap()
    }

    /// The map [1 2 3; 4 5 6] x − (−½, 1): what the files of FAISS in tests were made with.
    pub(crate) fn two_of_three() -> Map {
        let weights = RowBuf::from_values(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3).unwrap();
        Map::LowRank(LowRank::new(weights, Some(vec![-0.5, 1.0])).unwrap())
    }

    fn refusal(export: &Export, format: &str) -> String {
        export.matrix(format).unwrap_err().to_string()
    }

    #[test]
    fn what_a_matrix_cannot_hold_is_refused_by_name() {
        let root = Step::Element(ElementMap::SquareRoot);
        let unit = Step::Element(ElementMap::Normalise);
        let of = |steps| {
            let model = model(3, steps, two_of_three(), Space::SquaredL2);
            Export::embedding(&model, Side::Item).unwrap()
        };
        assert_eq!(
            refusal(&of(vec![root]), "npy"),
            "npy cannot hold step \"sqrt\", which is not affine: use onnx, or map vectors with metra \
             embed and index what it writes"
        );
        assert!(refusal(&of(vec![unit]), "npy").contains("step \"l2\""));
        let plain = of(Vec::new());
        assert!(plain.matrix("npy").is_ok());
        assert!(plain.at_unit_length().matrix("npy").is_err());
    }

    #[test]
    fn a_factor_before_all_folds_and_a_shift_does_not() {
        let mut model = model(3, Vec::new(), two_of_three(), Space::SquaredL2);
        let narrowing = |shift| Narrowing {
            shift: vec![0.0, shift, 0.0],
            scale: 0.5,
        };
        model.narrowing = Some(narrowing(0.0));
        let map = Export::embedding(&model, Side::Item).unwrap().matrix("npy");
        assert_eq!(map.unwrap().weights().row(1), &[2.0, 2.5, 3.0]);
        model.narrowing = Some(narrowing(1e9));
        let text = refusal(&Export::embedding(&model, Side::Item).unwrap(), "npy");
        assert!(text.contains("the shift of 1 columns"), "{text}");
    }

    #[test]
    fn sides_and_plans_have_their_own_steps() {
        let row = |values: &[f32]| {
            LowRank::new(RowBuf::from_values(values.to_vec(), 2).unwrap(), None).unwrap()
        };
        let map = Map::Bilinear {
            query: row(&[1.0, 2.0]),
            item: row(&[3.0, 4.0]),
        };
        let model = model(2, Vec::new(), map, Space::InnerProduct);
        let of = |side| Export::embedding(&model, side).unwrap().matrix("npy");
        assert_eq!(of(Side::Query).unwrap().weights().values(), &[1.0, 2.0]);
        assert_eq!(of(Side::Item).unwrap().weights().values(), &[3.0, 4.0]);
        // Items as they are, asked with (3, 4)ᵀ (1, 2) q.
        let plans = Plan::all_for_model(&model).unwrap();
        let only = plans.iter().find(|p| p.items_stay()).unwrap();
        let queries = Export::queries(&model, only).unwrap().matrix("npy");
        assert_eq!(queries.unwrap().weights().values(), &[3.0, 6.0, 4.0, 8.0]);
        assert!(Export::items(&model, only).is_err());
    }
}
