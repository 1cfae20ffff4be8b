//! Weights of the vectors of a row: a title's and a body's, or those of two models.
//!
//! The similarity of a query and an item is Σ w_b ⟨q_b, x_b⟩ over their vectors, with no weight below 0: Qwise's diagonal form
//! with one number for each vector instead of each dimension. Weights minimise ListNet's top-one cross entropy over the first items of
//! every vector, as those of `metra fuse` do over rankings; the problem is convex. The map multiplies vector b by √w_b, so
//! that one inner product is the sum: an index of one vector searches by it exactly.

use crate::data::several_vectors::places;
use crate::data::{ColumnRange, Subset};
use crate::dataset::Dataset;
use crate::execute::spread;
use crate::linalg::{RowBuf, dot};
use crate::model::{Map, Space};
use crate::random::Stream;
use crate::search::{ScoreScale, top_k};
use crate::supervision::{Relevance, SupervisionKind};
use crate::training::fusion_weights::DEPTH;
use crate::training::parameters::{Bound, ParameterValue, parameters};
use crate::training::warp::check_relevance;
use crate::training::{JudgedLists, Method, Run, fit_fusion};
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Dimensions of the vectors of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorDims(pub Vec<usize>);

impl ParameterValue for VectorDims {
    fn expected() -> String {
        "auto, or dimensions such as 384:256".into()
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(VectorDims::default());
        }
        let dims: Option<Vec<usize>> = text.split(':').map(|dim| dim.parse().ok()).collect();
        dims.filter(|dims| !dims.contains(&0)).map(VectorDims)
    }

    fn show(&self) -> String {
        if self.0.is_empty() {
            return "auto".into();
        }
        let dims: Vec<String> = self.0.iter().map(usize::to_string).collect();
        dims.join(":")
    }
}

parameters! {
    /// One weight for each of several vectors of a row, such as a title's and a body's or those of two
    /// models. Learns from class labels or relevance judgements. One exact search of each vector for
    /// each query that is learned from, then a convex problem in as many numbers as there are vectors.
    /// Use it where rows have several vectors, before any method that mixes them.
    pub struct VectorWeights {
        /// Dimensions of the vectors of a row, such as 384:256; what is left of it is one more. auto: as they
        /// were read.
        dims: VectorDims = VectorDims::default(),
        /// Queries to learn from at most, drawn at random.
        queries: usize = 2000 => Bound::AtLeast(1.0),
    }
}

impl Method for VectorWeights {
    const NAME: &'static str = "vector-weights";
    const SUMMARY: &'static str = "One weight for each of several vectors of a row.";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
    ];
    const SEVERAL_VECTORS: bool = true;

    fn spaces(&self) -> &'static [Space] {
        &[Space::InnerProduct, Space::Cosine]
    }

    fn own_spaces(&self) -> &'static [Space] {
        &[Space::InnerProduct]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let relevance = data.relevance(Self::NAME)?;
        check_relevance(relevance)?;
        let places = self.places(data)?;
        check_values(data)?;
        let judged = self.judged(data, relevance, &places, run.seed)?;
        run.check_stop()?;
        let fusion = fit_fusion(&judged, ScoreScale::Raw)?;
        let total: f64 = fusion.weights().iter().sum();
        let mut factors = vec![0.0; data.dim()];
        for (number, (place, weight)) in places.into_iter().zip(fusion.weights()).enumerate() {
            let share = weight / total;
            run.facts.insert(format!("weight_{}", number + 1), share);
            factors[place].fill(share.sqrt() as f32);
        }
        run.facts.insert("queries".into(), judged.len() as f64);
        Ok(Map::Diagonal(factors))
    }
}

impl VectorWeights {
    /// Where each vector lies in a row.
    fn places(&self, data: &Dataset<'_>) -> Result<Vec<Range<usize>>> {
        let mut dims = match self.dims.0.as_slice() {
            [] => data.vector_dims().to_vec(),
            dims => dims.to_vec(),
        };
        let named = dims
            .iter()
            .fold(0_usize, |sum, dim| sum.saturating_add(*dim));
        if !dims.is_empty() && named < data.dim() {
            dims.push(data.dim() - named);
        }
        if named > data.dim() {
            let expected = format!("at most {} in all (the dimension of a row)", data.dim());
            return Err(Error::parameter("dims", expected, self.dims.show()));
        }
        if dims.len() < 2 {
            return Err(Error::Data(format!(
                "{} needs rows of several vectors (--vector title,body), and preparation that does not mix them",
                Self::NAME
            )));
        }
        Ok(places(&dims).collect())
    }

    /// The first items of every vector for the queries to learn from, with the products of all vectors.
    fn judged(
        &self,
        data: &Dataset<'_>,
        relevance: &dyn Relevance,
        places: &[Range<usize>],
        seed: u64,
    ) -> Result<Vec<JudgedLists>> {
        let all = 0..relevance.queries();
        let mut queries: Vec<u64> = all
            .filter(|query| relevance.relevant_count(*query) > 0)
            .collect();
        if queries.len() > self.queries {
            let mut stream = Stream::new(seed, "vector weights", 0);
            let chosen = stream.choose(queries.len() as u64, self.queries);
            queries = (chosen.into_iter())
                .map(|place| queries[place as usize])
                .collect();
            queries.sort_unstable();
        }
        let asking = Subset::new(data.queries(), queries.clone())?;
        // A row of the items is its own nearest one.
        let depth = DEPTH as usize + usize::from(relevance.within());
        let mut first = vec![Vec::new(); queries.len()];
        for place in places {
            let (queries, items) = (
                ColumnRange::new(&asking, place.clone())?,
                ColumnRange::new(data.items(), place.clone())?,
            );
            let found = top_k(Space::InnerProduct, &queries, &items, depth, false)?;
            for (query, items) in first.iter_mut().enumerate() {
                items.extend_from_slice(found.ids_of(query));
            }
        }
        let judged: Vec<Result<JudgedLists>> = (queries.par_iter().zip(first))
            .map(|(query, mut items)| {
                items.sort_unstable();
                items.dedup();
                items.retain(|item| !(relevance.within() && item == query));
                products(data, relevance, places, *query, &items)
            })
            .collect();
        judged.into_iter().collect()
    }
}

/// An error where values are not finite, or so large that their products are not.
fn check_values(data: &Dataset<'_>) -> Result<()> {
    let queries = data.has_separate_queries().then(|| data.queries());
    for corpus in std::iter::once(data.items()).chain(queries) {
        let found = spread(corpus)?;
        let mut squares = found
            .mean
            .iter()
            .chain(&found.deviation)
            .map(|value| value * value);
        if !squares.all(|square| square < f64::from(f32::MAX)) {
            return Err(Error::Data(
                "squares of the vectors are not finite: expected values whose products f32 can hold".into(),
            ));
        }
    }
    Ok(())
}

/// These items of a query with the product of each vector, and the grades of those that are relevant.
fn products(
    data: &Dataset<'_>,
    relevance: &dyn Relevance,
    places: &[Range<usize>],
    query: u64,
    items: &[u64],
) -> Result<JudgedLists> {
    let (mut asking, mut rows) = (RowBuf::empty(data.dim()), RowBuf::empty(data.dim()));
    data.queries().gather(&[query], &mut asking)?;
    data.items().gather(items, &mut rows)?;
    let mut relevant = Vec::new();
    relevance.relevant(query, &mut relevant);
    let mut grades = BTreeMap::new();
    // Lists speak of items by their places among these.
    for (number, item) in (0_u32..).zip(items) {
        if let Ok(at) = relevant.binary_search_by_key(item, |(item, _)| *item) {
            grades.insert(number, relevant[at].1);
        }
    }
    let list = |place: &Range<usize>| {
        let product =
            |row: &[f32]| f64::from(dot(&asking.row(0)[place.clone()], &row[place.clone()]));
        (0..).zip(rows.rows().iter().map(product)).collect()
    };
    Ok(JudgedLists {
        lists: places.iter().map(list).collect(),
        grades,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::model::Embedding;
    use crate::pipeline::Pipeline;
    use crate::supervision::Labels;

    /// Rows of 20 classes: a vector of 4 dimensions that tells the class with some noise, one of 6 that is noise alone.
    fn rows(count: usize) -> (MemoryCorpus, Labels) {
        let mut stream = Stream::new(11, "vector weights test", 0);
        let centres: Vec<f64> = (0..20 * 4).map(|_| stream.normal()).collect();
        let (mut values, mut classes) = (Vec::new(), Vec::new());
        for row in 0..count {
            let class = row % 20;
            classes.push(class as i64);
            for at in 0..4 {
                values.push((centres[4 * class + at] + 0.4 * stream.normal()) as f32);
            }
            values.extend((0..6).map(|_| 50.0 * stream.normal() as f32));
        }
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 10).unwrap()).unwrap();
        (corpus, Labels::from_numbers(&classes).unwrap())
    }

    #[test]
    fn noise_gets_next_to_nothing() {
        let (corpus, labels) = rows(400);
        let data = Dataset::builder(&corpus).labels(labels);
        let data = data.vector_dims(&[4, 6]).build().unwrap();
        let pipeline = Pipeline::new(VectorWeights::default())
            .prepare("l2-each")
            .unwrap();
        let model = pipeline.fit(&data).unwrap();
        let facts = &model.origin.facts;
        assert!(facts["weight_1"] > 0.95, "{facts:?}");
        assert!((facts["weight_1"] + facts["weight_2"] - 1.0).abs() < 1e-12);
        let mut row =
            RowBuf::from_values(vec![3.0, 0.0, 0.0, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], 10)
                .unwrap();
        let batch = crate::data::Batch {
            rows: row.rows(),
            groups: None,
        };
        let mut out = RowBuf::empty(10);
        model.chain.embed_items(0, &batch, &mut out).unwrap();
        let root = facts["weight_1"].sqrt() as f32;
        assert!((out.row(0)[3] - 0.8 * root).abs() < 1e-6, "{out:?}");
        row.row_mut(0).fill(0.0);
        let batch = crate::data::Batch {
            rows: row.rows(),
            groups: None,
        };
        assert!(model.chain.embed_items(0, &batch, &mut out).is_err());
    }

    #[test]
    fn rows_of_one_vector_and_mixed_ones_are_refused() {
        let (corpus, labels) = rows(60);
        let one = Dataset::builder(&corpus)
            .labels(labels.clone())
            .build()
            .unwrap();
        let two = Dataset::builder(&corpus).labels(labels.clone());
        let two = two.vector_dims(&[4, 6]).build().unwrap();
        let message = |data: &Dataset<'_>, recipe: &str| {
            let pipeline = Pipeline::new(VectorWeights::default())
                .prepare(recipe)
                .unwrap();
            pipeline.fit(data).unwrap_err().to_string()
        };
        assert!(message(&one, "none").contains("rows of several vectors"));
        assert!(message(&one, "l2-each").contains("a row is one vector"));
        assert!(message(&two, "pca:5").contains("does not mix"));
        assert!(message(&two, "centre+pca:5+l2-each").contains("an earlier step mixes"));
        let wrong = Dataset::builder(&corpus)
            .labels(labels)
            .vector_dims(&[4, 5])
            .build();
        assert!(wrong.err().unwrap().to_string().contains("added up"));
    }

    #[test]
    fn dimensions_are_read_as_they_are_shown() {
        for text in ["auto", "384:256", "1:2:3"] {
            assert_eq!(VectorDims::parse(text).unwrap().show(), text);
        }
        for text in ["", "4:", "0:3", "4,3", "-1:5"] {
            assert_eq!(VectorDims::parse(text), None, "{text}");
        }
    }
}
