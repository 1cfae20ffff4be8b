//! Adapter: a linear map W = I + A of queries, learned by a softmax over the items and shrunk towards
//! the identity, so that queries about items that no judgement names keep what the vectors already
//! know.
//!
//! The loss of a query is −Σ_r g_r ln softmax(cos(W q, x) / τ)_r over its relevant items r, whose grades
//! g are divided by their sum (the supervised contrastive loss with items as the batch), plus λ‖A‖². Linear adapters of query
//! embeddings are common practice; the shrinkage is what a low-rank map from PCA, LDA or random
//! directions lacks: without evidence it gives A = 0, which is the baseline.

use super::supcon::SupCon;
use crate::data::{Corpus, RowId};
use crate::dataset::Dataset;
use crate::execute::check_square;
use crate::linalg::{RowBuf, map_rows, transposed_product};
use crate::model::{LowRank, Map, Space};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::{Relevance, SupervisionKind};
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::in_batch::batch::IGNORED;
use crate::training::in_batch::cosines::{Units, pull_anchors, pull_items};
use crate::training::parameters::{Bound, Choice, parameters};
use crate::training::regulariser::Regulariser;
use crate::training::training_space::{TrainingSpace, fetch};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};
use faer::Accum;
use serde::{Deserialize, Serialize};

/// Which vectors are mapped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AdaptedSides {
    /// Queries alone: stored items and their index stay as they are.
    Queries,
    /// Queries and items, by the same map.
    Both,
}

impl Choice for AdaptedSides {
    const ALL: &'static [(&'static str, Self)] = &[
        ("queries", AdaptedSides::Queries),
        ("both", AdaptedSides::Both),
    ];
}

parameters! {
    /// A square map near the identity, for embeddings that already work: it learns from judgements
    /// and loses little on items that none of them names. Compared by cosine. A step costs
    /// O(batch·pool·d), memory O(batch·pool + (batch + pool)·d).
    pub struct Adapter {
        /// Weight of the squared deviation of the map from the identity: less follows the
        /// judgements more, more changes less for items without any. Search .005 to .1.
        lambda: f64 = 0.02 => Bound::AtLeast(0.0),
        /// Temperature τ of the softmax: lower values put more weight on the nearest items.
        temperature: f64 = 0.05 => Bound::Above(0.0),
        /// Vectors that are mapped: queries (the index stays as it is) or both.
        sides: AdaptedSides = AdaptedSides::Queries,
        /// Queries per step.
        batch: usize = 1024 => Bound::AtLeast(1.0),
        /// Items in the softmax of a step: all, or those relevant to its queries and this many
        /// sampled uniformly.
        pool: usize = 8192 => Bound::AtLeast(1.0),
        /// Initial learning rate (Adam); it decays linearly to 0.
        rate: f64 = 0.003 => Bound::Above(0.0),
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(200),
    }
}

impl Method for Adapter {
    const NAME: &'static str = "adapter";
    const SUMMARY: &'static str =
        "Linear map near the identity, of queries alone, by a softmax over the items.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const STARTS_FROM_MODEL: bool = true;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["0.005", "0.01", "0.02", "0.05", "0.1"])];
    // How far a map may go depends on the judgements: how many there are, and of how many items.
    const TRIES_GRID: bool = true;

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        check_square(data.dim())?;
        let relevance = data.relevance(Self::NAME)?;
        check_relevance(relevance)?;
        // Cosines need no scale, but vectors that have none can teach nothing.
        TrainingSpace::new(data)?.pair_scale(relevance, run.seed)?;
        let mut adaptation = Adaptation::new(self, data, relevance);
        let state = match run.start {
            Some(map) => State::of(map, self.sides, data.dim())?,
            None => State::new(data.dim()),
        };
        descend(self.schedule, &mut adaptation, state, run)
    }
}

/// A, with Adam's memory of it.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    deviation: RowBuf,
    adam: Adam,
}

impl State {
    fn new(dim: usize) -> Self {
        State {
            deviation: RowBuf::zeros(dim, dim),
            adam: Adam::new(dim * dim),
        }
    }

    /// A of the map of an earlier model.
    fn of(map: &Map, sides: AdaptedSides, dim: usize) -> Result<Self> {
        let is_plain = |map: &LowRank| map.offset().is_none();
        let is_identity = |map: &LowRank| {
            let identity = State::new(map.input_dim()).matrix();
            is_plain(map) && map.weights().values() == identity.values()
        };
        let matrix = match (map, sides) {
            (Map::Bilinear { query, item }, AdaptedSides::Queries) if is_identity(item) => query,
            (Map::LowRank(map), AdaptedSides::Both) => map,
            _ => {
                let expected = "a model of the adapter with the same `sides`";
                return Err(Error::parameter("from", expected, "another map"));
            }
        };
        if !is_plain(matrix) {
            let expected = "a model whose map is not centred";
            return Err(Error::parameter("from", expected, "a centred one"));
        }
        let mut state = State::new(dim);
        if (matrix.output_dim(), matrix.input_dim()) != (dim, dim) {
            let found = format!(
                "a map of {} dimensions to {}",
                matrix.input_dim(),
                matrix.output_dim()
            );
            return Err(Error::parameter(
                "from",
                format!("a map of {dim} dimensions to {dim}"),
                found,
            ));
        }
        let values = state.deviation.values_mut();
        values.copy_from_slice(matrix.weights().values());
        values
            .iter_mut()
            .step_by(dim + 1)
            .for_each(|diagonal| *diagonal -= 1.0);
        Ok(state)
    }

    /// I + A.
    fn matrix(&self) -> RowBuf {
        let mut matrix = self.deviation.clone();
        for index in 0..matrix.dim() {
            matrix.row_mut(index)[index] += 1.0;
        }
        matrix
    }
}

struct Adaptation<'a> {
    settings: &'a Adapter,
    loss: SupCon,
    relevance: &'a dyn Relevance,
    queries: &'a dyn Corpus,
    items: &'a dyn Corpus,
    /// Queries with a relevant item.
    usable: Vec<RowId>,
    drawn: Drawn,
    /// Derivatives by all cosines.
    slopes: Vec<f32>,
    gradient: RowBuf,
}

/// Queries and items of a step, as unit vectors, and how they stand to each other.
struct Drawn {
    /// Whether it serves every step.
    fixed: bool,
    queries: RowBuf,
    items: RowBuf,
    /// Of every query the grade of every item, query after query.
    grades: Vec<f32>,
}

impl<'a> Adaptation<'a> {
    fn new(settings: &'a Adapter, data: &'a Dataset<'_>, relevance: &'a dyn Relevance) -> Self {
        let dim = data.dim();
        Adaptation {
            settings,
            loss: SupCon {
                temperature: settings.temperature,
                ..SupCon::default()
            },
            relevance,
            queries: data.queries(),
            items: data.items(),
            usable: (0..relevance.queries())
                .filter(|query| relevance.relevant_count(*query) > 0)
                .collect(),
            drawn: Drawn {
                fixed: false,
                queries: RowBuf::empty(dim),
                items: RowBuf::empty(dim),
                grades: Vec::new(),
            },
            slopes: Vec::new(),
            gradient: RowBuf::empty(dim),
        }
    }

    /// Draw the rows of a step.
    fn draw(&mut self, step: u64, seed: u64) -> Result<()> {
        if self.drawn.fixed {
            return Ok(());
        }
        let (batch, pool) = (self.settings.batch, self.settings.pool);
        let mut random = Stream::new(seed, "adapter rows", step);
        let all_queries = self.usable.len() <= batch;
        let queries = match all_queries {
            true => self.usable.clone(),
            false => (random.choose(self.usable.len() as u64, batch).iter())
                .map(|place| self.usable[*place as usize])
                .collect(),
        };
        let count = self.items.len();
        let all_items = count <= pool as u64;
        let items = match all_items {
            true => (0..count).collect(),
            false => {
                let mut relevant = Vec::new();
                for query in &queries {
                    self.relevance.relevant(*query, &mut relevant);
                }
                let mut items = random.choose(count, pool);
                items.extend(relevant.iter().map(|(item, _)| *item));
                items.sort_unstable();
                items.dedup();
                items
            }
        };
        self.drawn.queries = units(self.queries, &queries)?;
        self.drawn.items = units(self.items, &items)?;
        self.drawn.grades = grades(self.relevance, &queries, &items);
        self.drawn.fixed = all_queries && all_items;
        Ok(())
    }
}

/// Rows divided by their lengths; one of length 0 has no direction and stays.
fn units(corpus: &dyn Corpus, ids: &[RowId]) -> Result<RowBuf> {
    let mut rows = RowBuf::zeros(ids.len(), corpus.dim());
    fetch(corpus, ids, None, 1.0, rows.values_mut())?;
    let dim = rows.dim();
    for row in rows.values_mut().chunks_exact_mut(dim) {
        // Squares of f32 can leave its range.
        let squares = row.iter().map(|v| f64::from(*v).powi(2));
        let length = squares.sum::<f64>().sqrt();
        if length > 0.0 {
            for value in row {
                *value = (f64::from(*value) / length) as f32;
            }
        }
    }
    Ok(rows)
}

/// Of every query the grade of every item, both in increasing order: 0 where it is irrelevant.
fn grades(relevance: &dyn Relevance, queries: &[RowId], items: &[RowId]) -> Vec<f32> {
    let mut grades = vec![0.0; queries.len() * items.len()];
    let mut relevant = Vec::new();
    for (query, grades) in queries.iter().zip(grades.chunks_exact_mut(items.len())) {
        relevant.clear();
        relevance.relevant(*query, &mut relevant);
        let own = relevance.within().then_some((*query, IGNORED));
        for (item, grade) in relevant.iter().copied().chain(own) {
            if let Ok(place) = items.binary_search(&item) {
                grades[place] = grade;
            }
        }
    }
    grades
}

impl Adaptation<'_> {
    /// The loss of the drawn rows under a matrix without the shrinkage; the gradient is kept.
    fn differentiate(&mut self, matrix: &RowBuf) -> Result<f64> {
        let drawn = &self.drawn;
        let mut mapped = RowBuf::empty(matrix.len());
        map_rows(drawn.queries.rows(), matrix.rows(), &mut mapped)?;
        let queries = Units::new(mapped.rows());
        let mut by_row = RowBuf::zeros(queries.rows().len(), matrix.len());
        let (loss, grades, slopes) = (&self.loss, &drawn.grades, &mut self.slopes);
        match self.settings.sides {
            AdaptedSides::Queries => {
                let rows = (queries.rows(), drawn.items.rows());
                let loss = pull_anchors(loss, rows, grades, slopes, by_row.values_mut());
                queries.carry_back(&mut by_row);
                transposed_product(by_row.rows(), drawn.queries.rows(), &mut self.gradient)?;
                Ok(loss)
            }
            AdaptedSides::Both => {
                map_rows(drawn.items.rows(), matrix.rows(), &mut mapped)?;
                let items = Units::new(mapped.rows());
                let rows = (queries.rows(), items.rows());
                let loss = pull_anchors(loss, rows, grades, slopes, by_row.values_mut());
                let mut by_item = RowBuf::zeros(items.rows().len(), matrix.len());
                pull_items(slopes, queries.rows(), Accum::Replace, by_item.values_mut());
                queries.carry_back(&mut by_row);
                items.carry_back(&mut by_item);
                by_row.extend(by_item.rows());
                let mut rows = drawn.queries.clone();
                rows.extend(drawn.items.rows());
                transposed_product(by_row.rows(), rows.rows(), &mut self.gradient)?;
                Ok(loss)
            }
        }
    }
}

impl Descent for Adaptation<'_> {
    type State = State;

    fn step(&mut self, state: &mut State, step: u64, remaining: f64, seed: u64) -> Result<Outcome> {
        self.draw(step, seed)?;
        let loss = self.differentiate(&state.matrix())?;
        let shrinkage = 2.0 * self.settings.lambda as f32;
        Regulariser::Frobenius.pull(&state.deviation, None, shrinkage, &mut self.gradient);
        let rate = (self.settings.rate * remaining) as f32;
        let gradient = self.gradient.values();
        (state.adam).step(state.deviation.values_mut(), gradient, rate);
        check_finite(state.deviation.values(), loss, step)?;
        Ok(Outcome {
            loss,
            ..Outcome::default()
        })
    }

    fn map(&self, state: &State) -> Result<Map> {
        let matrix = LowRank::new(state.matrix(), None)?;
        Ok(match self.settings.sides {
            AdaptedSides::Both => Map::LowRank(matrix),
            AdaptedSides::Queries => Map::Bilinear {
                query: matrix,
                item: LowRank::new(State::new(self.items.dim()).matrix(), None)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Judgement, Labels};

    fn corpus(values: &[f32], dim: usize) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values.to_vec(), dim).unwrap()).unwrap()
    }

    /// Rows of six dimensions, half of which are noise.
    fn labelled() -> (MemoryCorpus, Labels) {
        let set = Nuisance {
            classes: 4,
            signal: 3,
            noise: 3,
            seed: 3,
        };
        let set = set.rows(60);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        (set.corpus, labels)
    }

    #[test]
    fn the_loss_is_the_softmax_over_items() {
        // One query along the first axis; items at cosines .6 (grade 3), .8 and 0 (grade 1).
        let queries = corpus(&[2.0, 0.0], 2);
        let items = corpus(&[0.6, 0.8, 1.6, 1.2, 0.0, 3.0], 2);
        let judged = [(0, 3.0), (2, 1.0)].map(|(item, grade)| Judgement {
            query: 0,
            item,
            grade,
        });
        let data = Dataset::builder(&items)
            .queries(&queries)
            .qrels(judged.to_vec())
            .build()
            .unwrap();
        let settings = Adapter {
            temperature: 0.5,
            ..Adapter::default()
        };
        let relevance = data.relevance("adapter").unwrap();
        let mut adaptation = Adaptation::new(&settings, &data, relevance);
        adaptation.draw(0, 1).unwrap();
        let loss = adaptation.differentiate(&State::new(2).matrix()).unwrap();
        let exp = |cosine: f64| (cosine / 0.5_f64).exp();
        let total = exp(0.6) + exp(0.8) + exp(0.0);
        let expected = -(0.75 * (exp(0.6) / total).ln() + 0.25 * (exp(0.0) / total).ln());
        assert!((loss - expected).abs() < 1e-5, "{loss} {expected}");
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let (rows, labels) = labelled();
        let data = Dataset::builder(&rows).labels(labels).build().unwrap();
        for sides in [AdaptedSides::Queries, AdaptedSides::Both] {
            let settings = Adapter {
                sides,
                temperature: 0.3,
                ..Adapter::default()
            };
            let relevance = data.relevance("adapter").unwrap();
            let mut adaptation = Adaptation::new(&settings, &data, relevance);
            adaptation.draw(0, 1).unwrap();
            let mut matrix = State::new(6).matrix();
            let mut random = Stream::new(1, "test", 0);
            for value in matrix.values_mut() {
                *value += 0.2 * random.normal() as f32;
            }
            adaptation.differentiate(&matrix).unwrap();
            let gradient = adaptation.gradient.values().to_vec();
            for place in [0, 7, 20, 35] {
                let mut loss = |by: f32| {
                    let mut moved = matrix.clone();
                    moved.values_mut()[place] += by;
                    adaptation.differentiate(&moved).unwrap()
                };
                let slope = (loss(1e-2) - loss(-1e-2)) / 2e-2;
                let found = f64::from(gradient[place]);
                assert!(
                    (found - slope).abs() < 2e-3,
                    "{sides:?} {place}: {found} {slope}"
                );
            }
        }
    }

    #[test]
    fn shrinkage_decides_how_far_the_map_goes() {
        let (rows, labels) = labelled();
        let data = Dataset::builder(&rows).labels(labels).build().unwrap();
        let deviation = |lambda: f64| {
            let settings = Adapter {
                lambda,
                ..Adapter::default()
            };
            let map = Method::fit(&settings, &data, &mut Run::new(1)).unwrap();
            let Map::Bilinear { query, item } = map else {
                panic!("expected a map of queries and one of items")
            };
            assert_eq!(item.weights().values(), State::new(6).matrix().values());
            let differences = query.weights().values().iter().zip(item.weights().values());
            differences.map(|(a, b)| (a - b).powi(2)).sum::<f32>()
        };
        let (free, held) = (deviation(0.0), deviation(100.0));
        assert!(free > 1.0, "{free}");
        assert!(held < 1e-3 * free, "{held} {free}");
    }

    #[test]
    fn a_sampled_pool_keeps_what_is_relevant() {
        let (rows, labels) = labelled();
        let data = Dataset::builder(&rows).labels(labels).build().unwrap();
        let settings = Adapter {
            batch: 8,
            pool: 5,
            ..Adapter::default()
        };
        let relevance = data.relevance("adapter").unwrap();
        let mut adaptation = Adaptation::new(&settings, &data, relevance);
        adaptation.draw(3, 1).unwrap();
        let drawn = &adaptation.drawn;
        assert!(!drawn.fixed && drawn.queries.len() == 8);
        let width = drawn.items.len();
        for grades in drawn.grades.chunks_exact(width) {
            // Every row of its class is in the pool of those drawn, the query itself at most once.
            assert!(grades.contains(&1.0) && grades.contains(&0.0));
            assert!(grades.iter().filter(|grade| **grade == IGNORED).count() <= 1);
        }
    }
}
