//! A chain: fitted preprocessing, then a map, then the space in which vectors are compared, and perhaps a code
//! in which items are held.

use super::unit_length::normalise;
use super::{Code, Embedding, Int8Scale, KernelMap, LowRank, Map, Side, Space};
use crate::data::{Batch, ElementMap, several_vectors};
use crate::linalg::{RowBuf, block_distance, cross};
use crate::{Error, Result};

/// Numbers of a vector at most, before, between and after the steps: a step such as χ² multiplies them
/// without a byte in the model's file.
const MOST_NUMBERS: usize = 1 << 18;

/// Numbers that are worked on at once between the steps: 256 MiB.
const AT_ONCE: usize = 1 << 26;

/// One step of preprocessing, with what was fitted for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A stateless map.
    Element(ElementMap),
    /// Subtract a mean.
    Centre {
        /// Mean of each column.
        mean: Vec<f32>,
    },
    /// Subtract the mean of the row's group (camera, session).
    CentreGroups {
        /// Names of the groups.
        names: Vec<String>,
        /// Mean of each group.
        means: RowBuf,
    },
    /// Multiply each column.
    Scale {
        /// The factors.
        factors: Vec<f32>,
    },
    /// A linear map: PCA or whitening.
    Project(LowRank),
    /// Coordinates in a kernel's feature space.
    Kernel(KernelMap),
    /// Divide each of several vectors, which stand one behind the other in a row, by its own length. A vector of
    /// zeros stays one, such as that of a title that is missing; a row of nothing but zeros is an error.
    NormaliseEach {
        /// Dimensions of the vectors.
        dims: Vec<usize>,
    },
}

/// Preprocessing, map and space: a metric on the vectors as the user has them. With a code, items are compared
/// as their codes stand for them. Queries of another dimension than items have preprocessing of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    items: Preprocessing,
    /// `None` where queries are prepared as items are.
    queries: Option<Preprocessing>,
    map: Map,
    space: Space,
    code: Option<Code>,
}

/// The dimension of vectors as they come, and what is done to them before the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocessing {
    /// Dimension of the vectors.
    pub input_dim: usize,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Preprocessing {
    /// Names of the groups whose means are subtracted, if some are.
    fn group_names(&self) -> Option<&[String]> {
        self.steps.iter().find_map(|step| match step {
            Step::CentreGroups { names, .. } => Some(names.as_slice()),
            _ => None,
        })
    }

    /// Dimension of a prepared vector.
    fn output_dim(&self) -> Result<usize> {
        self.dimensions().map(|(prepared, _)| prepared)
    }

    /// Dimension of a vector after the steps, and the largest that it has on the way.
    fn dimensions(&self) -> Result<(usize, usize)> {
        let (mut dim, mut widest) = (self.input_dim, self.input_dim);
        for step in &self.steps {
            dim = step.output_dim(dim)?;
            widest = widest.max(dim);
        }
        match widest > MOST_NUMBERS {
            true => Err(Error::shape(
                "dimension of a vector and of what the steps make of it",
                format!("at most {MOST_NUMBERS}"),
                widest,
            )),
            false => Ok((dim, widest)),
        }
    }
}

impl Step {
    /// Numbers in a row after this step, or an error if it cannot take rows of `input` numbers.
    pub fn output_dim(&self, input: usize) -> Result<usize> {
        let (needs, gives) = match self {
            Step::Element(map) => (input, map.output_dim(input)),
            Step::Centre { mean } => (mean.len(), input),
            Step::CentreGroups { names, means } => {
                if names.len() != means.len() {
                    return Err(Error::shape("group means", names.len(), means.len()));
                }
                (means.dim(), input)
            }
            Step::Scale { factors } => (factors.len(), input),
            Step::Project(map) => (map.input_dim(), map.output_dim()),
            Step::Kernel(map) => (map.landmarks().dim(), map.map().output_dim()),
            Step::NormaliseEach { dims } => (several_vectors::row_dim(dims)?, input),
        };
        if needs != input {
            return Err(Error::shape(
                format!("dimension of the vectors before step \"{}\"", self.name()),
                needs,
                input,
            ));
        }
        Ok(gives)
    }

    /// Its name, as a recipe writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Element(ElementMap::Normalise) => "l2",
            Step::Element(ElementMap::SquareRoot) => "sqrt",
            Step::Element(ElementMap::Log { .. }) => "log",
            Step::Element(ElementMap::ChiSquare { .. }) => "chi2",
            Step::Centre { .. } => "centre",
            Step::CentreGroups { .. } => "centre-groups",
            Step::Scale { .. } => "scale",
            Step::Project(_) => "project",
            Step::Kernel(_) => "kernel",
            Step::NormaliseEach { .. } => "l2-each",
        }
    }

    /// Apply to `rows` in place.
    pub(crate) fn apply(
        &self,
        first: u64,
        groups: Option<&[u32]>,
        rows: &mut RowBuf,
    ) -> Result<()> {
        match self {
            Step::Element(map) => map.apply(first, rows)?,
            Step::Centre { mean } => {
                for row in rows.values_mut().chunks_exact_mut(mean.len()) {
                    subtract(row, mean);
                }
            }
            Step::CentreGroups { names, means } => {
                let groups = groups.ok_or_else(|| {
                    Error::Data(format!(
                        "the vectors' groups are needed: the model was trained with means for the \
                         groups {names:?}"
                    ))
                })?;
                let dim = rows.dim();
                for (index, row) in rows.values_mut().chunks_exact_mut(dim).enumerate() {
                    let group = groups.get(index).map_or(usize::MAX, |g| *g as usize);
                    if group >= means.len() {
                        return Err(Error::Row {
                            row: first + index as u64,
                            problem: format!("expected a group among {names:?}, but found none"),
                        });
                    }
                    subtract(row, means.row(group));
                }
            }
            Step::Scale { factors } => {
                for row in rows.values_mut().chunks_exact_mut(factors.len()) {
                    for (value, factor) in row.iter_mut().zip(factors) {
                        *value *= factor;
                    }
                }
            }
            Step::Project(map) => {
                let mut out = RowBuf::empty(map.output_dim());
                map.apply(rows.rows(), &mut out)?;
                *rows = out;
            }
            Step::Kernel(map) => {
                let mut out = RowBuf::empty(map.map().output_dim());
                map.apply(first, rows.rows(), &mut out)?;
                *rows = out;
            }
            Step::NormaliseEach { dims } => several_vectors::normalise_each(first, dims, rows)?,
        }
        Ok(())
    }
}

fn subtract(row: &mut [f32], mean: &[f32]) {
    for (value, mean) in row.iter_mut().zip(mean) {
        *value -= mean;
    }
}

impl Chain {
    /// Put the parts together; their dimensions must fit.
    pub fn new(input_dim: usize, steps: Vec<Step>, map: Map, space: Space) -> Result<Self> {
        Self::between(None, Preprocessing { input_dim, steps }, map, space)
    }

    /// Put the parts together, with preprocessing of queries that is not that of items; the map of each side takes
    /// what its preprocessing gives.
    pub fn between(
        queries: Option<Preprocessing>,
        items: Preprocessing,
        map: Map,
        space: Space,
    ) -> Result<Self> {
        if let Some(queries) = &queries
            && queries.group_names() != items.group_names()
        {
            let what = "groups whose means are subtracted from queries";
            let names = |names: Option<&[String]>| names.map_or("none".into(), |n| n.join(", "));
            let (expected, found) = (names(items.group_names()), names(queries.group_names()));
            return Err(Error::shape(what, expected, found));
        }
        let item_dim = items.output_dim()?;
        let query_dim = match &queries {
            Some(queries) => queries.output_dim()?,
            None => item_dim,
        };
        map.check(query_dim, item_dim)?;
        space.check(map.output_dim(item_dim))?;
        if matches!(map, Map::Indefinite(_)) && space != Space::InnerProduct {
            let expected = "dot: the map of an indefinite metric gives vectors for it alone";
            return Err(Error::parameter("score", expected, space));
        }
        Ok(Chain {
            items,
            queries,
            map,
            space,
            code: None,
        })
    }

    /// Another map or another space behind the same preprocessing; a code is dropped.
    pub(super) fn with_map(&self, map: Map, space: Space) -> Result<Self> {
        Chain::between(self.queries.clone(), self.items.clone(), map, space)
    }

    /// The vectors as they are, compared in `space`.
    pub fn identity(dim: usize, space: Space) -> Self {
        Chain {
            items: Preprocessing {
                input_dim: dim,
                steps: Vec::new(),
            },
            queries: None,
            map: Map::Identity,
            space,
            code: None,
        }
    }

    /// The same metric with items held in a code, or in none.
    pub fn with_code(mut self, code: Option<Code>) -> Result<Self> {
        if let Some(code) = &code {
            code.check(self.output_dim())?;
            if matches!(self.space, Space::Blocks { .. }) || matches!(self.map, Map::Indefinite(_))
            {
                let expected = "none for the block distance and for indefinite metrics";
                return Err(Error::parameter("code", expected, code.name()));
            }
            if *code == Code::Int8(Int8Scale::Direction) && self.space != Space::Cosine {
                let expected = "cosine for int8 codes without a scale";
                return Err(Error::parameter("score", expected, self.space));
            }
        }
        self.code = code;
        Ok(self)
    }

    /// The same metric with a rotation after its map; a code is dropped.
    pub(crate) fn rotated(&self, rotation: &LowRank) -> Result<Self> {
        self.with_map(self.map.then(rotation)?, self.space)
    }

    /// The same chain compared in another space; codes are for one.
    pub fn in_space(&self, space: Space) -> Result<Self> {
        if space == self.space {
            return Ok(self.clone());
        }
        if let Some(code) = &self.code {
            let expected = format!("{} (what the {} codes are for)", self.space, code.name());
            return Err(Error::parameter("score", expected, space));
        }
        self.with_map(self.map.clone(), space)
    }

    /// The steps of preprocessing: those of items, where queries have their own.
    pub fn steps(&self) -> &[Step] {
        &self.items.steps
    }

    /// The preprocessing of queries, where it is not that of items.
    pub fn query_preprocessing(&self) -> Option<&Preprocessing> {
        self.queries.as_ref()
    }

    /// The preprocessing of one side.
    fn preprocessing(&self, side: Side) -> &Preprocessing {
        match (side, &self.queries) {
            (Side::Query, Some(queries)) => queries,
            _ => &self.items,
        }
    }

    /// Dimension of the vectors of one side.
    pub fn dim_of(&self, side: Side) -> usize {
        self.preprocessing(side).input_dim
    }

    /// The map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// How items are held, where that is not as f32.
    pub fn code(&self) -> Option<&Code> {
        self.code.as_ref()
    }

    /// Bytes of a stored item.
    pub fn item_bytes(&self) -> usize {
        let dim = self.output_dim();
        match &self.code {
            Some(code) => code.item_bytes(dim),
            None => dim * size_of::<f32>(),
        }
    }

    /// Whether queries are embedded otherwise than items: by another map, or because only items are coded.
    pub fn has_two_sides(&self) -> bool {
        let is_one_sided = |code: &Code| !code.codes_queries();
        self.queries.is_some()
            || self.map.has_two_sides()
            || self.code.as_ref().is_some_and(is_one_sided)
    }

    /// Names of the groups whose means the preprocessing subtracts, if it does.
    pub fn group_names(&self) -> Option<&[String]> {
        self.items.group_names()
    }

    /// An error if the rows of a side have another dimension than the metric was made for.
    pub(super) fn check_dim(&self, side: Side, batch: &Batch<'_>) -> Result<()> {
        let (expected, found) = (self.dim_of(side), batch.rows.dim());
        if found == expected {
            return Ok(());
        }
        let what = match (side, &self.queries) {
            (_, None) => "dimension of the vectors",
            (Side::Query, _) => "dimension of the queries",
            (Side::Item, _) => "dimension of the items",
        };
        let expected = format!("{expected} (what the metric was made for)");
        Err(Error::shape(what, expected, found))
    }

    fn embed(&self, first: u64, side: Side, batch: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.embed_uncoded(first, side, batch, out)?;
        match &self.code {
            Some(code) if side == Side::Item || code.codes_queries() => {
                code.round(first, self.space, out)
            }
            _ => Ok(()),
        }
    }

    /// Append the codes of items, an error where they have none. `first` is the number of the first row, for
    /// error messages.
    pub fn encode_items(&self, first: u64, items: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Some(code) = &self.code else {
            let expected = "one that items are held in";
            return Err(Error::parameter("code", expected, "none"));
        };
        let mut mapped = RowBuf::empty(1);
        self.embed_uncoded(first, Side::Item, items, &mut mapped)?;
        code.encode(first, self.space, mapped.rows(), out)
    }

    fn embed_uncoded(
        &self,
        first: u64,
        side: Side,
        batch: &Batch<'_>,
        out: &mut RowBuf,
    ) -> Result<()> {
        self.check_dim(side, batch)?;
        let preprocessing = self.preprocessing(side);
        if preprocessing.steps.is_empty() {
            return self.map.apply(first, side, batch.rows, out);
        }
        let (rows, (_, widest)) = (batch.rows, preprocessing.dimensions()?);
        let block = (AT_ONCE / widest.max(1)).max(1);
        if rows.len() <= block {
            return self.embed_block(first, side, batch, out);
        }
        let mut mapped = RowBuf::empty(1);
        for start in (0..rows.len()).step_by(block) {
            let end = rows.len().min(start + block);
            let part = Batch {
                rows: rows.slice(start, end),
                groups: batch.groups.map(|groups| &groups[start..end]),
            };
            self.embed_block(first + start as u64, side, &part, &mut mapped)?;
            if start == 0 {
                out.clear(mapped.dim());
            }
            out.extend(mapped.rows());
        }
        Ok(())
    }

    fn embed_block(
        &self,
        first: u64,
        side: Side,
        batch: &Batch<'_>,
        out: &mut RowBuf,
    ) -> Result<()> {
        let Preprocessing { input_dim, steps } = self.preprocessing(side);
        out.clear(*input_dim);
        out.extend(batch.rows);
        for step in steps {
            step.apply(first, batch.groups, out)?;
        }
        if self.map != Map::Identity {
            let mut mapped = RowBuf::empty(1);
            self.map.apply(first, side, out.rows(), &mut mapped)?;
            *out = mapped;
        }
        Ok(())
    }
}

impl Embedding for Chain {
    fn space(&self) -> Space {
        self.space
    }

    fn input_dim(&self) -> usize {
        self.dim_of(Side::Item)
    }

    fn query_input_dim(&self) -> usize {
        self.dim_of(Side::Query)
    }

    fn output_dim(&self) -> usize {
        let prepared = self.items.output_dim().unwrap_or(self.items.input_dim);
        self.map.output_dim(prepared)
    }

    fn embed_queries(&self, first: u64, queries: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.embed(first, Side::Query, queries, out)
    }

    fn embed_items(&self, first: u64, items: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.embed(first, Side::Item, items, out)
    }
}

impl Chain {
    /// Dissimilarity of every query to every item, row-major (queries × items): smaller is nearer, always.
    ///
    /// Law: its order equals the order by the [`Space`] over embedded vectors, wherever scores differ by
    /// more than 1e-5 of their range.
    pub fn dissimilarity(
        &self,
        queries: &Batch<'_>,
        items: &Batch<'_>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
        self.embed_queries(0, queries, &mut left)?;
        self.embed_items(0, items, &mut right)?;
        out.clear();
        out.resize(left.len() * right.len(), 0.0);
        if right.is_empty() {
            return Ok(());
        }
        match self.space {
            Space::SquaredL2 => {
                // Differences first: the expanded form loses all digits between near points far
                // from the origin, and this is the form that others are measured against.
                for (query, out) in left.rows().iter().zip(out.chunks_exact_mut(right.len())) {
                    for (item, out) in right.rows().iter().zip(out) {
                        *out = query.iter().zip(item).map(|(a, b)| (a - b) * (a - b)).sum();
                    }
                }
            }
            Space::InnerProduct => cross(left.rows(), right.rows(), -1.0, out),
            Space::Cosine => {
                normalise(0, &mut left)?;
                normalise(0, &mut right)?;
                cross(left.rows(), right.rows(), -1.0, out);
            }
            Space::Blocks { size } => {
                for (query, out) in left.rows().iter().zip(out.chunks_exact_mut(right.len())) {
                    for (item, out) in right.rows().iter().zip(out) {
                        *out = block_distance(query, item, size as usize);
                    }
                }
            }
        }
        match out.iter().position(|score| !score.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::Score {
                query: (at / right.len()) as u64,
                item: (at % right.len()) as u64,
                score: out[at],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Rows;

    #[test]
    fn steps_that_multiply_are_bounded_and_worked_off_in_blocks() {
        let one = Step::Element(ElementMap::ChiSquare { order: 3 });
        let chi = |count: usize| vec![one.clone(); count];
        let chain = |steps, map| Chain::new(4, steps, map, Space::SquaredL2);
        // 4 × 7^10 numbers.
        let error = chain(chi(10), Map::Identity).unwrap_err().to_string();
        assert!(error.contains("at most 262144"), "{error}");
        // 30,000 × 7 numbers in between: 400 rows are more than are worked on at once.
        let (dim, width) = (30_000, 210_000);
        let map = LowRank::new(RowBuf::from_values(vec![0.01; width], width).unwrap(), None);
        let wide = Chain::new(dim, chi(1), Map::LowRank(map.unwrap()), Space::SquaredL2).unwrap();
        let values: Vec<f32> = (0..400 * dim)
            .map(|at| (at / dim % 17) as f32 / 17.0)
            .collect();
        let all = Rows::new(&values, dim).unwrap();
        let mut out = RowBuf::empty(1);
        wide.embed_items(0, &Batch::new(all), &mut out).unwrap();
        assert_eq!((out.len(), out.dim()), (400, 1));
        // 17 rows are as many kinds as there are.
        assert!((17..400).all(|row| (out.row(row)[0] - out.row(row - 17)[0]).abs() < 0.1));
    }

    #[test]
    fn steps_and_map_by_hand() {
        // (4, 9) → sqrt → (2, 3) → centre (1, 1) → (1, 2) → scale (2, 1) → (2, 2)
        // → W = [1 1] − 1 → 3.
        let map = LowRank::new(
            RowBuf::from_values(vec![1.0, 1.0], 2).unwrap(),
            Some(vec![1.0]),
        );
        let steps = vec![
            Step::Element(ElementMap::SquareRoot),
            Step::Centre {
                mean: vec![1.0, 1.0],
            },
            Step::Scale {
                factors: vec![2.0, 1.0],
            },
        ];
        let chain = Chain::new(2, steps, Map::LowRank(map.unwrap()), Space::SquaredL2).unwrap();
        let mut out = RowBuf::empty(1);
        let values = [4.0, 9.0];
        chain
            .embed_items(0, &Batch::new(Rows::new(&values, 2).unwrap()), &mut out)
            .unwrap();
        assert_eq!(out.values(), &[3.0]);
        assert_eq!(chain.output_dim(), 1);
    }

    #[test]
    fn group_means_need_groups() {
        let step = Step::CentreGroups {
            names: vec!["a".into(), "b".into()],
            means: RowBuf::from_values(vec![1.0, 10.0], 1).unwrap(),
        };
        let chain = Chain::new(1, vec![step], Map::Identity, Space::SquaredL2).unwrap();
        let values = [20.0, 20.0];
        let rows = Rows::new(&values, 1).unwrap();
        let mut out = RowBuf::empty(1);
        chain
            .embed_items(0, &Batch::with_groups(rows, &[0, 1]).unwrap(), &mut out)
            .unwrap();
        assert_eq!(out.values(), &[19.0, 10.0]);
        assert!(chain.embed_items(0, &Batch::new(rows), &mut out).is_err());
        assert!(
            chain
                .embed_items(0, &Batch::with_groups(rows, &[0, 2]).unwrap(), &mut out)
                .is_err()
        );
    }

    #[test]
    fn dissimilarity_by_hand() {
        let chain = |space| Chain::identity(2, space);
        let (q, x) = ([3.0, 4.0], [3.0, 0.0, 0.0, 8.0]);
        let queries = Batch::new(Rows::new(&q, 2).unwrap());
        let items = Batch::new(Rows::new(&x, 2).unwrap());
        let mut out = Vec::new();
        chain(Space::SquaredL2)
            .dissimilarity(&queries, &items, &mut out)
            .unwrap();
        assert_eq!(out, vec![16.0, 25.0]);
        chain(Space::InnerProduct)
            .dissimilarity(&queries, &items, &mut out)
            .unwrap();
        assert_eq!(out, vec![-9.0, -32.0]);
        chain(Space::Cosine)
            .dissimilarity(&queries, &items, &mut out)
            .unwrap();
        assert!((out[0] + 0.6).abs() < 1e-6 && (out[1] + 0.8).abs() < 1e-6);
        // Blocks of one number: |3 − 3| + |4 − 0| and |3 − 0| + |4 − 8|.
        chain(Space::Blocks { size: 1 })
            .dissimilarity(&queries, &items, &mut out)
            .unwrap();
        assert_eq!(out, vec![4.0, 7.0]);
        // One block of both: the Euclidean distance, not squared.
        let whole = chain(Space::Blocks { size: 2 });
        whole.dissimilarity(&queries, &items, &mut out).unwrap();
        assert_eq!(out, vec![4.0, 5.0]);
        let zero = [0.0, 0.0];
        let zeros = Batch::new(Rows::new(&zero, 2).unwrap());
        assert!(
            chain(Space::Cosine)
                .dissimilarity(&zeros, &items, &mut out)
                .is_err()
        );
    }

    #[test]
    fn items_are_compared_as_their_codes_stand_for_them() {
        let values = [3.0, -4.0, 0.5, 0.1];
        let batch = Batch::new(Rows::new(&values, 2).unwrap());
        for (space, queries) in [(Space::Cosine, false), (Space::SquaredL2, true)] {
            let code = Code::Bits {
                scale: 2.0,
                queries,
            };
            let chain = Chain::identity(2, space)
                .with_code(Some(code.clone()))
                .unwrap();
            assert_eq!((chain.item_bytes(), chain.has_two_sides()), (1, !queries));
            let (mut items, mut asked) = (RowBuf::empty(1), RowBuf::empty(1));
            chain.embed_items(0, &batch, &mut items).unwrap();
            chain.embed_queries(0, &batch, &mut asked).unwrap();
            assert_eq!(items.values(), [2.0, -2.0, 2.0, 2.0]);
            match queries {
                true => assert_eq!(asked, items),
                false => assert_eq!(asked.values(), values),
            }
            let mut bytes = Vec::new();
            chain.encode_items(0, &batch, &mut bytes).unwrap();
            assert_eq!(bytes, [0b1000_0000, 0b1100_0000]);
            let mut back = RowBuf::empty(1);
            code.decode(2, &bytes, &mut back).unwrap();
            assert_eq!(back, items);
            // What a code is for is not compared otherwise.
            assert!(chain.in_space(Space::InnerProduct).is_err());
            assert_eq!(chain.in_space(space).unwrap(), chain);
        }
        let blocks = Chain::identity(2, Space::Blocks { size: 1 });
        assert!(blocks.with_code(Some(Code::Float16)).is_err());
    }

    #[test]
    fn a_rotation_after_the_map_keeps_distances() {
        let (sin, cos) = (0.6_f32, 0.8_f32);
        let rotation = RowBuf::from_values(vec![cos, -sin, sin, cos], 2).unwrap();
        let rotation = LowRank::new(rotation, None).unwrap();
        let low_rank = |values: &[f32], offset: Option<Vec<f32>>| {
            LowRank::new(RowBuf::from_values(values.to_vec(), 2).unwrap(), offset).unwrap()
        };
        let first = low_rank(&[1.0, 2.0, -1.0, 0.5], Some(vec![0.5, -1.0]));
        let maps = [
            (Map::Identity, Space::SquaredL2),
            (Map::Diagonal(vec![2.0, 3.0]), Space::SquaredL2),
            (Map::LowRank(first.clone()), Space::Cosine),
            (
                Map::Bilinear {
                    query: first,
                    item: low_rank(&[0.0, 1.0, 1.0, 1.0], None),
                },
                Space::InnerProduct,
            ),
        ];
        let (q, x) = ([3.0, 4.0], [1.0, -2.0, 5.0, 0.5]);
        let queries = Batch::new(Rows::new(&q, 2).unwrap());
        let items = Batch::new(Rows::new(&x, 2).unwrap());
        for (map, space) in maps {
            let chain = Chain::new(2, Vec::new(), map, space).unwrap();
            let (mut before, mut after) = (Vec::new(), Vec::new());
            chain.dissimilarity(&queries, &items, &mut before).unwrap();
            let rotated = chain.rotated(&rotation).unwrap();
            rotated.dissimilarity(&queries, &items, &mut after).unwrap();
            for (before, after) in before.iter().zip(&after) {
                assert!((before - after).abs() < 1e-4, "{before} {after}");
            }
        }
    }

    #[test]
    fn parts_must_fit() {
        let steps = vec![Step::Centre { mean: vec![0.0; 3] }];
        let error = Chain::new(2, steps, Map::Identity, Space::SquaredL2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "dimension of the vectors before step \"centre\": expected 3, but found 2"
        );
        let uneven = Chain::new(3, Vec::new(), Map::Identity, Space::Blocks { size: 2 });
        assert!(uneven.unwrap_err().to_string().contains("size of blocks"));
    }
}
