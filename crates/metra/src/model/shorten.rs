//! The first dimensions of a map alone: for maps whose first dimensions serve by themselves, as principal directions and
//! nested training make them.

use super::{Chain, Code, Embedding, Int8Scale, LowRank, Map, Model};
use crate::linalg::RowBuf;
use crate::{Error, Result};

impl Chain {
    /// The same metric over the first `dim` dimensions of mapped vectors.
    pub fn shortened(&self, dim: usize) -> Result<Self> {
        let whole = self.output_dim();
        if dim == 0 || dim > whole {
            return Err(Error::parameter("dimensions", format!("1 to {whole}"), dim));
        }
        self.space().check(dim)?;
        if matches!(self.map(), Map::Indefinite(_)) {
            let expected = "a linear map: distances of an indefinite one need all dimensions";
            return Err(Error::parameter("the map", expected, "indefinite"));
        }
        let code = match self.code() {
            Some(Code::Product(_)) => {
                let expected = "none, f16, int8 or bits: blocks of pq belong together";
                return Err(Error::parameter("code", expected, "pq"));
            }
            Some(Code::Int8(Int8Scale::PerDimension(scales))) => {
                let first = scales[..dim].to_vec();
                Some(Code::Int8(Int8Scale::PerDimension(first)))
            }
            code => code.cloned(),
        };
        let mut first = RowBuf::zeros(dim, whole);
        for place in 0..dim {
            first.row_mut(place)[place] = 1.0;
        }
        self.rotated(&LowRank::new(first, None)?)?.with_code(code)
    }
}

impl Model {
    /// The same model over the first `dim` dimensions of mapped vectors. What was measured of it on held-out rows, and
    /// a threshold, are not those of the whole and are left out.
    pub fn shortened(&self, dim: usize) -> Result<Self> {
        if !self.outputs.is_empty() {
            let expected = "without names: each is one dimension";
            return Err(Error::parameter(
                "the outputs of the model",
                expected,
                "named",
            ));
        }
        let mut origin = self.origin.clone();
        // Signs of methods that do not train for them are those of a rotated map; those that do may be nested.
        let code = origin.parameters.get("code").map_or("none", String::as_str);
        let is_signs = matches!(code, "bits" | "hamming");
        if code == "itq" || (is_signs && !origin.parameters.contains_key("nested")) {
            let expected = "one without a rotation, which mixes dimensions";
            return Err(Error::parameter("code", expected, code));
        }
        origin.held_out = None;
        if let Some(rank) = origin.parameters.get_mut("rank") {
            *rank = dim.to_string();
        }
        Ok(Model {
            chain: self.chain.shortened(dim)?,
            origin,
            decision: None,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::model::{Origin, Space, Step};
    use crate::random::Stream;

    fn drawn(rows: usize, dim: usize) -> RowBuf {
        let mut stream = Stream::new(1, "test", 0);
        let values = (0..rows * dim).map(|_| stream.normal() as f32).collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    fn chain(space: Space) -> Chain {
        let map = LowRank::new(drawn(6, 9), Some(vec![0.5; 6])).unwrap();
        let centre = Step::Centre {
            mean: vec![0.25; 9],
        };
        Chain::new(9, vec![centre], Map::LowRank(map), space).unwrap()
    }

    #[test]
    fn the_first_dimensions_are_those_of_the_whole() {
        let rows = drawn(5, 9);
        let embedded = |chain: &Chain| {
            let mut out = RowBuf::empty(1);
            chain
                .embed_items(0, &Batch::new(rows.rows()), &mut out)
                .unwrap();
            out
        };
        let bits = Code::Bits {
            scale: 0.5,
            queries: false,
        };
        let columns = Code::Int8(Int8Scale::PerDimension(vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]));
        for code in [None, Some(bits), Some(columns)] {
            for whole in [
                chain(Space::SquaredL2),
                Chain::identity(9, Space::SquaredL2),
            ] {
                if whole.output_dim() != 6 && code.as_ref().is_some_and(|c| c.name() != "bits") {
                    continue;
                }
                let whole = whole.with_code(code.clone()).unwrap();
                let short = whole.shortened(4).unwrap();
                assert_eq!(
                    (short.output_dim(), short.code().is_some()),
                    (4, code.is_some())
                );
                let (all, first) = (embedded(&whole), embedded(&short));
                for (all, first) in all.rows().iter().zip(first.rows().iter()) {
                    assert_eq!(&all[..4], first);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let whole = chain(Space::Cosine);
        assert!(whole.shortened(0).is_err() && whole.shortened(7).is_err());
        assert!(whole.shortened(6).is_ok());
        let model = Model::new(None, whole, Origin::default()).unwrap();
        assert_eq!(model.shortened(2).unwrap().chain.output_dim(), 2);
        let mut rotated = model;
        for (code, nested) in [("itq", true), ("bits", false), ("hamming", false)] {
            let parameters = &mut rotated.origin.parameters;
            parameters.insert("code".into(), code.into());
            if nested {
                parameters.insert("nested".into(), "0".into());
            } else {
                parameters.remove("nested");
            }
            let message = rotated.shortened(2).unwrap_err().to_string();
            assert!(message.contains("mixes dimensions"), "{message}");
        }
    }
}
