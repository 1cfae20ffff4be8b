//! SVMML: a decision whose threshold depends on where the two vectors lie, by a squared hinge over all
//! pairs. Li, Chang, Liang, Huang, Cao & Smith, "Learning locally-adaptive decision functions for person
//! verification", CVPR 2013.
//!
//! Two vectors are the same where f(q, x) = b + qᵀAq + xᵀAx + qᵀBx is above 0; A and B are symmetric and
//! nothing else, so that a plain distance with one threshold is the case B = −2A. The loss is the mean of
//! max(0, 1 − y f)² over relevant and over irrelevant pairs, half of each, beside λ(|A|² + |B|²).
//!
//! What ranks is −f. With u = q + x and v = q − x it is vᵀPv + uᵀQu, P = B/4 − A/2, Q = −B/4 − A/2: squares
//! of differences and of sums along the eigenvectors of both, which an inner product of slightly longer
//! vectors gives ([`Indefinite`]). Departs from the paper: all pairs and not a drawn part of the
//! irrelevant ones, quasi-Newton steps, a start at Euclid, and no linear term, since vectors are centred.

use crate::dataset::Dataset;
use crate::linalg::{Eigen, Symmetric, rows_from};
use crate::model::{Indefinite, Map, Signs, Space};
use crate::optimize::LimitedMemory;
use crate::supervision::SupervisionKind;
use crate::training::all_pairs::{AllPairs, Pair, QueryLoss};
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::parameters::{Bound, parameters, rank_or_all};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};
use faer::Mat;

parameters! {
    /// Decision with a locally adaptive threshold, by a squared hinge over all pairs. Learns from labels,
    /// relevance judgements or similar pairs. A step costs O(n²·d + n·d²), memory is O(n·d + d²) and never
    /// n². Use it for "same or not" over some thousand rows, after pca above some hundred dimensions; it
    /// has two matrices to fit and wants a strong lambda where rows are few.
    pub struct Svmml {
        /// Directions of differences, and of sums, at most; 0 for all.
        rank: usize = 0,
        /// Weight of |A|² + |B|² beside the mean loss.
        lambda: f64 = 1e-3 => Bound::AtLeast(0.0),
        /// Maximum number of training rows; a random sample is used if there are more.
        rows: usize = 10_000 => Bound::AtLeast(2.0),
        /// Stop when one step decreases the objective by less than this fraction.
        tolerance: f64 = 1e-5 => Bound::BelowOne,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(200),
    }
}

impl Method for Svmml {
    const NAME: &'static str = "svmml";
    const SUMMARY: &'static str =
        "Decision with a locally adaptive threshold, by a squared hinge over all pairs.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["1e-4", "1e-3", "1e-2"])];

    fn spaces(&self) -> &'static [Space] {
        &[Space::InnerProduct]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let rank = rank_or_all(settings.rank, data.dim())?;
        let relevance = data.relevance("svmml")?;
        check_relevance(relevance)?;
        let space = TrainingSpace::new(data)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        let inverse = (1.0 / scale) as f32;
        let pairs = AllPairs::new(data, relevance, &space, inverse, settings.rows, run.seed)?;
        let (relevant, irrelevant) = pairs.counts();
        if relevant == 0 || irrelevant == 0 {
            return Err(Error::Data(format!(
                "svmml needs relevant and irrelevant pairs among the rows taken, found {relevant} \
                 and {irrelevant}"
            )));
        }
        let start = Form::euclid(pairs.dim()).flat();
        let mut training = Training {
            settings,
            rank,
            space: &space,
            inverse,
            shares: [0.5 / relevant as f64, 0.5 / irrelevant as f64],
            pairs,
            steps: None,
        };
        let schedule = settings.schedule;
        let map = descend(schedule, &mut training, start, run)?;
        if let Some(steps) = &training.steps {
            run.facts.insert("objective".into(), steps.value());
        }
        Ok(map)
    }
}

/// A, B and b.
struct Form {
    own: Mat<f64>,
    between: Mat<f64>,
    bias: f64,
}

impl Form {
    /// 1.5 − |q − x|²: relevant pairs are at mean distance 1.
    fn euclid(dim: usize) -> Self {
        Form {
            own: faer::Scale(-1.0) * Mat::<f64>::identity(dim, dim),
            between: faer::Scale(2.0) * Mat::<f64>::identity(dim, dim),
            bias: 1.5,
        }
    }

    fn of(point: &[f64], dim: usize) -> Self {
        let matrix = |part: &[f64]| {
            Mat::from_fn(dim, dim, |i, j| {
                0.5 * (part[i + j * dim] + part[j + i * dim])
            })
        };
        let square = dim * dim;
        Form {
            own: matrix(&point[..square]),
            between: matrix(&point[square..2 * square]),
            bias: point[2 * square],
        }
    }

    /// All numbers, for steps.
    fn flat(&self) -> Vec<f64> {
        let columns = |matrix: &Mat<f64>| -> Vec<f64> {
            let columns = matrix.col_iter();
            columns
                .flat_map(|column| column.iter().copied().collect::<Vec<_>>())
                .collect()
        };
        let mut all = columns(&self.own);
        all.extend(columns(&self.between));
        all.push(self.bias);
        all
    }
}

/// max(0, 1 − y f)² with its slope.
struct Hinge {
    bias: f64,
    /// What a relevant and an irrelevant pair weigh.
    shares: [f64; 2],
}

impl QueryLoss for Hinge {
    fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for (pair, score) in pairs.iter().zip(scores) {
            let (sign, share) = match pair {
                Pair::Relevant => (1.0, self.shares[0]),
                Pair::Irrelevant => (-1.0, self.shares[1]),
                Pair::Itself => {
                    *score = 0.0;
                    continue;
                }
            };
            let missing = (1.0 - sign * (f64::from(*score) + self.bias)).max(0.0);
            loss += share * missing * missing;
            *score = (-2.0 * share * sign * missing) as f32;
        }
        loss
    }
}

struct Training<'a> {
    settings: &'a Svmml,
    /// Directions of each kind at most.
    rank: usize,
    space: &'a TrainingSpace<'a>,
    inverse: f32,
    pairs: AllPairs<'a>,
    shares: [f64; 2],
    steps: Option<LimitedMemory>,
}

/// Moves that shape a step.
const REMEMBERED: usize = 10;

impl Descent for Training<'_> {
    /// A, B and b.
    type State = Vec<f64>;
    // What the steps before it found shapes the next one.
    const RESUMES: bool = false;

    fn step(&mut self, point: &mut Vec<f64>, step: u64, _: f64, _: u64) -> Result<Outcome> {
        let (pairs, shares, lambda) = (&self.pairs, self.shares, self.settings.lambda);
        let mut function =
            |point: &[f64], gradient: &mut [f64]| evaluate(pairs, shares, lambda, point, gradient);
        let mut steps = match self.steps.take() {
            Some(steps) => steps,
            None => LimitedMemory::begin(point, REMEMBERED, &mut function)?,
        };
        let stepped = steps.step(point, &mut function)?;
        let value = steps.value();
        self.steps = Some(steps);
        check_finite(&[], value, step)?;
        let tolerance = self.settings.tolerance;
        Ok(Outcome {
            loss: value,
            finished: stepped.is_none_or(|s| s.fall <= tolerance * s.value.abs()),
            ..Outcome::default()
        })
    }

    fn map(&self, point: &Vec<f64>) -> Result<Map> {
        let dim = self.pairs.dim();
        let form = Form::of(point, dim);
        let half = faer::Scale(0.5) * &form.own;
        let quarter = faer::Scale(0.25) * &form.between;
        let differences = directions(&quarter - &half, self.rank)?;
        let sums = directions(faer::Scale(-1.0) * (&quarter + &half), self.rank)?;
        let rows: Vec<&[f64]> = (differences.rows.iter().chain(&sums.rows))
            .map(Vec::as_slice)
            .collect();
        if rows.is_empty() {
            return Err(Error::Data(
                "the decision is the same for all pairs: nothing could be learned".into(),
            ));
        }
        let weights = Mat::from_fn(rows.len(), dim, |row, column| rows[row][column]);
        let signs = Signs::new(differences.counts, sums.counts);
        match (self.space).carry_back(&rows_from(weights.as_ref()), self.inverse, true)? {
            Map::LowRank(map) => Ok(Map::Indefinite(Indefinite::with_signs(map, signs)?)),
            other => Ok(other),
        }
    }
}

/// λ(|A|² + |B|²) plus the loss; its gradient replaces what is in `gradient`.
fn evaluate(
    pairs: &AllPairs<'_>,
    shares: [f64; 2],
    lambda: f64,
    point: &[f64],
    gradient: &mut [f64],
) -> Result<f64> {
    let dim = pairs.dim();
    let form = Form::of(point, dim);
    let hinge = Hinge {
        bias: form.bias,
        shares,
    };
    let judged = pairs.judge(form.own.as_ref(), form.between.as_ref(), &hinge)?;
    let square = dim * dim;
    let mut value = judged.loss;
    for j in 0..dim {
        for i in 0..dim {
            let (own, between) = (form.own[(i, j)], form.between[(i, j)]);
            value += lambda * (own * own + between * between);
            let crossed = 0.5 * (judged.cross[(i, j)] + judged.cross[(j, i)]);
            gradient[i + j * dim] = judged.own[(i, j)] + 2.0 * lambda * own;
            gradient[square + i + j * dim] = crossed + 2.0 * lambda * between;
        }
    }
    gradient[2 * square] = judged.total;
    Ok(value)
}

/// Rows whose signed squares make a quadratic form, those for it first.
struct Directions {
    rows: Vec<Vec<f64>>,
    counts: [usize; 2],
}

fn directions(matrix: Mat<f64>, most: usize) -> Result<Directions> {
    let dim = matrix.nrows();
    let Eigen { values, vectors } = Symmetric::new(matrix)?.eigen()?;
    let largest = values
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let mut places: Vec<usize> = (0..dim)
        .filter(|place| values[*place].abs() > 1e-7 * largest)
        .collect();
    places.sort_by(|a, b| values[*b].abs().total_cmp(&values[*a].abs()));
    places.truncate(most);
    let (positive, negative): (Vec<usize>, Vec<usize>) =
        places.into_iter().partition(|place| values[*place] > 0.0);
    let counts = [positive.len(), negative.len()];
    let rows = (positive.into_iter().chain(negative))
        .map(|place| {
            let length = values[place].abs().sqrt();
            (0..dim).map(|row| length * vectors[(row, place)]).collect()
        })
        .collect();
    Ok(Directions { rows, counts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::Rows;
    use crate::model::Chain;
    use crate::random::Stream;
    use crate::supervision::{Labels, Supervision};

    const SET: Nuisance = Nuisance {
        classes: 4,
        signal: 2,
        noise: 2,
        seed: 8,
    };

    /// The map gives −f, pair by pair, up to the constant b and the scale.
    #[test]
    fn what_ranks_is_the_decision() {
        let set = SET.rows(40);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        let relevance = data.relevance("svmml").unwrap();
        let training = Training {
            settings: &Svmml::default(),
            rank: usize::MAX,
            inverse: 0.5,
            shares: [0.1, 0.1],
            pairs: AllPairs::new(&data, relevance, &space, 0.5, 100, 1).unwrap(),
            space: &space,
            steps: None,
        };
        let mut random = Stream::new(2, "test", 0);
        let point: Vec<f64> = (0..33).map(|_| random.normal()).collect();
        let form = Form::of(&point, 4);
        let map = training.map(&point).unwrap();
        let chain = Chain::new(4, Vec::new(), map, Space::InnerProduct).unwrap();
        let centre = space.centre().unwrap();
        let values = set.corpus.rows().values();
        let vector = |row: usize| {
            Mat::from_fn(4, 1, |i, _| {
                0.5 * f64::from(values[4 * row + i] - centre[i])
            })
        };
        let batch = |row: usize| Batch::new(Rows::new(&values[4 * row..4 * row + 4], 4).unwrap());
        let mut found = Vec::new();
        for (a, b) in [(0, 1), (7, 7), (39, 12)] {
            chain
                .dissimilarity(&batch(a), &batch(b), &mut found)
                .unwrap();
            let (q, x) = (vector(a), vector(b));
            let expected = -(q.transpose() * &form.own * &q)[(0, 0)]
                - (x.transpose() * &form.own * &x)[(0, 0)]
                - (q.transpose() * &form.between * &x)[(0, 0)];
            let found = f64::from(found[0]);
            assert!(
                (found - expected).abs() < 1e-3 * expected.abs().max(1.0),
                "{found} {expected}"
            );
        }
    }

    /// The problem is smooth and convex: at its minimum a dense reference has no slope.
    #[test]
    fn the_end_is_the_minimum_of_the_definition() {
        let set = SET.rows(40);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        let relevance = data.relevance("svmml").unwrap();
        let pairs = AllPairs::new(&data, relevance, &space, 0.5, 100, 1).unwrap();
        let (relevant, irrelevant) = pairs.counts();
        let shares = [0.5 / relevant as f64, 0.5 / irrelevant as f64];
        let mut point = Form::euclid(4).flat();
        let mut function =
            |point: &[f64], gradient: &mut [f64]| evaluate(&pairs, shares, 0.01, point, gradient);
        let mut steps = LimitedMemory::begin(&point, 10, &mut function).unwrap();
        for _ in 0..300 {
            if steps.step(&mut point, &mut function).unwrap().is_none() {
                break;
            }
        }
        let centre = space.centre().unwrap();
        let rows: Vec<Mat<f64>> = (set.corpus.rows().iter())
            .map(|row| Mat::from_fn(4, 1, |i, _| 0.5 * f64::from(row[i] - centre[i])))
            .collect();
        let dense = |point: &[f64]| {
            let form = Form::of(point, 4);
            let mut value = 0.01 * (form.own.squared_norm_l2() + form.between.squared_norm_l2());
            for (a, q) in rows.iter().enumerate() {
                for (b, x) in rows.iter().enumerate().filter(|(b, _)| *b != a) {
                    let f = form.bias
                        + (q.transpose() * &form.own * q)[(0, 0)]
                        + (x.transpose() * &form.own * x)[(0, 0)]
                        + (q.transpose() * &form.between * x)[(0, 0)];
                    let same = set.classes[a] == set.classes[b];
                    let (sign, share) = if same {
                        (1.0, shares[0])
                    } else {
                        (-1.0, shares[1])
                    };
                    value += share * (1.0 - sign * f).max(0.0).powi(2);
                }
            }
            value
        };
        let least = dense(&point);
        assert!(
            (steps.value() / least - 1.0).abs() < 1e-4,
            "{} {least}",
            steps.value()
        );
        for place in [0, 5, 17, 20, 32] {
            let at = |by: f64| {
                let mut moved = point.clone();
                moved[place] += by;
                dense(&moved)
            };
            let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
            assert!(slope.abs() < 2e-4, "{place}: {slope}");
        }
    }
}
