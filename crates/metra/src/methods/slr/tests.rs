//! SLR against slow references that hold the n × n matrices, in f64.

use super::sketch::gaussian;
use super::*;
use crate::data::synthetic::Nuisance;
use crate::data::{Batch, Corpus, Keys, MemoryCorpus};
use crate::model::{Chain, Embedding};
use crate::random::Stream;
use crate::supervision::{Judgement, Judgements, Labels};
use faer::MatRef;
use side::product;

const RIDGE: f64 = 0.05;

fn corpus(len: usize, dim: usize, seed: u64) -> MemoryCorpus {
    let mut stream = Stream::new(seed, "test", 0);
    let values = (0..len * dim)
        .map(|i| (0.3 + (1 + i % dim) as f64 * stream.normal()) as f32)
        .collect();
    MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
}

/// Two corpora with random grades of 1 to 3 between them.
struct Judged {
    queries: MemoryCorpus,
    items: MemoryCorpus,
    supervision: Supervision,
    lines: Vec<Judgement>,
}

fn judged() -> Judged {
    let (queries, items) = (corpus(30, 5, 1), corpus(50, 5, 2));
    let mut stream = Stream::new(3, "test", 0);
    let mut lines = Vec::new();
    for query in 0..30 {
        for item in stream.choose(50, 4) {
            let grade = (1 + stream.below(3)) as f32;
            lines.push(Judgement { query, item, grade });
        }
    }
    let judgements = Judgements::new(30, 50, &lines).unwrap();
    Judged {
        queries,
        items,
        supervision: Supervision::judgements(judgements),
        lines,
    }
}

impl Judged {
    /// The target relative to the mean grade; 0 for what is not judged.
    fn grades(&self) -> Mat<f64> {
        let sum: f64 = self.lines.iter().map(|line| f64::from(line.grade)).sum();
        let mut target = Mat::zeros(30, 50);
        for line in &self.lines {
            let grade = f64::from(line.grade) * self.lines.len() as f64 / sum;
            target[(line.query as usize, line.item as usize)] = grade;
        }
        target
    }
}

fn labelled(classes: i64) -> (MemoryCorpus, Supervision, Mat<f64>) {
    let rows = corpus(60, 5, 4);
    let numbers: Vec<i64> = (0..60).map(|row| (row * row + 3 * row) % classes).collect();
    let labels = Labels::from_numbers(&numbers).unwrap();
    let same = Mat::from_fn(60, 60, |i, j| f64::from(u8::from(numbers[i] == numbers[j])));
    (rows, Supervision::labels(labels), same)
}

/// (XᵀX + ρI)⁻¹ · sums by elimination, without any of the code under test.
fn solve(gram: &Mat<f64>, ridge: f64, sums: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::Solve;
    let ridged = Mat::from_fn(gram.nrows(), gram.ncols(), |i, j| {
        gram[(i, j)] + if i == j { ridge } else { 0.0 }
    });
    ridged.partial_piv_lu().solve(sums)
}

fn gram(rows: &Mat<f64>) -> Mat<f64> {
    product(rows.transpose(), rows.as_ref())
}

/// tr/d of the Gram matrix, the appended constant left out.
fn unit(rows: &Mat<f64>, dim: usize) -> f64 {
    let gram = gram(rows);
    (0..dim).map(|i| gram[(i, i)]).sum::<f64>() / dim as f64
}

/// (G_A + ρI)⁻¹ Aᵀ Y B (G_B + ρI)⁻¹ for rows A and B.
fn closed_form(a: &Mat<f64>, y: &Mat<f64>, b: &Mat<f64>, dim: usize) -> Mat<f64> {
    let sums = product(product(a.transpose(), y.as_ref()).as_ref(), b.as_ref());
    let half = solve(&gram(a), RIDGE * unit(a, dim), &sums);
    let back = solve(&gram(b), RIDGE * unit(b, dim), &half.transpose().to_owned());
    back.transpose().to_owned()
}

/// Similarities of all pairs under a fitted map, by dot.
fn similarities(map: &Map, queries: &MemoryCorpus, items: &MemoryCorpus) -> Mat<f64> {
    let chain = Chain::new(items.dim(), Vec::new(), map.clone(), Space::InnerProduct).unwrap();
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    chain
        .embed_queries(0, &Batch::new(queries.rows()), &mut left)
        .unwrap();
    chain
        .embed_items(0, &Batch::new(items.rows()), &mut right)
        .unwrap();
    Mat::from_fn(left.len(), right.len(), |i, j| {
        let pairs = left.row(i).iter().zip(right.row(j));
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    })
}

fn assert_near(found: &Mat<f64>, expected: &Mat<f64>, tolerance: f64) {
    let difference = (found - expected).norm_max() / expected.norm_max();
    assert!(difference < tolerance, "{difference}");
}

fn settings() -> Slr {
    Slr {
        rank: 5,
        ridge: Ridges::one(RIDGE),
        bias: false,
        sides: Sides::Two,
        ..Slr::default()
    }
}

fn fit(settings: Slr, data: &Dataset<'_>, run: &mut Run<'_>) -> Map {
    settings.checked().unwrap().fit(data, run).unwrap()
}

fn clip(similar: &Mat<f64>, target: &Mat<f64>, above: f64, below: f64) -> Mat<f64> {
    Mat::from_fn(similar.nrows(), similar.ncols(), |i, j| {
        if target[(i, j)] > 0.0 {
            similar[(i, j)].max(below + (above - below) * target[(i, j)])
        } else {
            similar[(i, j)].min(below)
        }
    })
}

#[test]
fn class_sums_and_closed_form_equal_an_iterative_solve() {
    let (rows, supervision, same) = labelled(7);
    let labels = supervision.as_labels().unwrap();
    let side = Side::new(&rows, true, true).unwrap();
    let x = side.prepared(rows.rows());
    let sums = side
        .sums(Keys::Class(labels.of()), labels.classes())
        .unwrap();
    let dense = product(product(x.transpose(), same.as_ref()).as_ref(), x.as_ref());
    assert_near(&product(sums.as_ref(), sums.transpose()), &dense, 1e-10);
    let ridge = side.ridge(RIDGE);
    let inverse = Inverse::new(side.eigen(), ridge, Inversion::Ridge);
    let half = inverse.factor(inverse.whiten(sums.as_ref()).as_ref());
    let closed = product(half.as_ref(), half.transpose());
    let iterated = conjugate_gradients(&x, &same, ridge);
    assert_near(&closed, &iterated, 1e-8);
}

/// Minimise ‖XMXᵀ − Y‖² + ρ(‖XM‖² + ‖MXᵀ‖²) + ρ²‖M‖² from M = 0.
fn conjugate_gradients(x: &Mat<f64>, y: &Mat<f64>, ridge: f64) -> Mat<f64> {
    let apply = |m: &Mat<f64>| -> Mat<f64> {
        // Half the gradient's linear part, term by term as the objective has them.
        let xm = product(x.as_ref(), m.as_ref());
        let mx = product(m.as_ref(), x.transpose());
        let inner = product(xm.as_ref(), x.transpose());
        let first = product(product(x.transpose(), inner.as_ref()).as_ref(), x.as_ref());
        let second = product(x.transpose(), xm.as_ref());
        let third = product(mx.as_ref(), x.as_ref());
        Mat::from_fn(m.nrows(), m.ncols(), |i, j| {
            first[(i, j)] + ridge * (second[(i, j)] + third[(i, j)]) + ridge * ridge * m[(i, j)]
        })
    };
    let dot = |a: &Mat<f64>, b: &Mat<f64>| -> f64 {
        (0..a.ncols())
            .map(|j| (0..a.nrows()).map(|i| a[(i, j)] * b[(i, j)]).sum::<f64>())
            .sum()
    };
    let mut residual = product(product(x.transpose(), y.as_ref()).as_ref(), x.as_ref());
    let mut solution = Mat::zeros(residual.nrows(), residual.ncols());
    let mut direction = residual.clone();
    let first = dot(&residual, &residual);
    for _ in 0..2000 {
        let squared = dot(&residual, &residual);
        if squared < 1e-26 * first {
            break;
        }
        let image = apply(&direction);
        let step = squared / dot(&direction, &image);
        solution += faer::Scale(step) * &direction;
        residual -= faer::Scale(step) * &image;
        let factor = dot(&residual, &residual) / squared;
        direction = &residual + faer::Scale(factor) * &direction;
    }
    solution
}

#[test]
fn judgements_between_corpora_equal_the_dense_solution() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    for (centre, bias) in [(false, false), (true, false), (false, true)] {
        let fixed = Slr {
            target: Targets::Fixed,
            centre,
            bias,
            ..settings()
        };
        let map = fit(fixed, &data, &mut Run::new(1));
        let a = Side::new(&set.queries, centre, bias)
            .unwrap()
            .prepared(set.queries.rows());
        let b = Side::new(&set.items, centre, bias)
            .unwrap()
            .prepared(set.items.rows());
        let m = closed_form(&a, &set.grades(), &b, 5);
        let expected = product(product(a.as_ref(), m.as_ref()).as_ref(), b.transpose());
        // With a constant M has rank 6 at most, of which 5 are kept: no longer the whole.
        let tolerance = if bias { 0.2 } else { 1e-4 };
        assert_near(
            &similarities(&map, &set.queries, &set.items),
            &expected,
            tolerance,
        );
    }
}

#[test]
fn one_map_for_a_fixed_target_of_labels_is_the_same_similarity() {
    // Σ_c s_c s_cᵀ is positive semi-definite: nothing is lost.
    let (rows, supervision, same) = labelled(4);
    let data = Dataset::new(&rows, &supervision).unwrap();
    let fixed = Slr {
        target: Targets::Fixed,
        sides: Sides::Auto,
        ..settings()
    };
    let map = fit(fixed, &data, &mut Run::new(1));
    assert!(matches!(map, Map::LowRank(_)));
    let x = Side::new(&rows, true, false).unwrap().prepared(rows.rows());
    let m = closed_form(&x, &same, &x, 5);
    let expected = product(product(x.as_ref(), m.as_ref()).as_ref(), x.transpose());
    assert_near(&similarities(&map, &rows, &rows), &expected, 1e-4);
}

#[test]
fn adaptive_whole_equals_the_dense_alternation() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let whole = Slr {
        form: Form::Whole,
        iterations: 3,
        below: 0.1,
        ..settings()
    };
    let map = fit(whole.clone(), &data, &mut Run::new(1));
    let a = Side::new(&set.queries, true, false)
        .unwrap()
        .prepared(set.queries.rows());
    let b = Side::new(&set.items, true, false)
        .unwrap()
        .prepared(set.items.rows());
    let target = set.grades();
    let similar = |m: &Mat<f64>| product(product(a.as_ref(), m.as_ref()).as_ref(), b.transpose());
    let alternated = |mut m: Mat<f64>| {
        for _ in 0..3 {
            m = closed_form(&a, &clip(&similar(&m), &target, 1.0, 0.1), &b, 5);
        }
        similar(&m)
    };
    let expected = alternated(closed_form(&a, &target, &b, 5));
    let found = similarities(&map, &set.queries, &set.items);
    assert_near(&found, &expected, 1e-4);
    // Step 2 of Alg. 1.
    let from_identity = Slr {
        start: SimilarityStart::Identity,
        ..whole.clone()
    };
    let map = fit(from_identity, &data, &mut Run::new(1));
    let expected = alternated(Mat::identity(5, 5));
    let found = similarities(&map, &set.queries, &set.items);
    assert_near(&found, &expected, 1e-4);
    // Step 2 of Alg. 3, with the rows that are drawn.
    let from_rows = Slr {
        start: SimilarityStart::Subset,
        ..whole
    };
    let map = fit(from_rows, &data, &mut Run::new(1));
    let drawn = |x: &Mat<f64>| {
        let rows = Stream::new(1, "slr subset", 0).choose(x.nrows() as u64, 5);
        let rows = Mat::from_fn(5, 5, |i, j| x[(rows[i] as usize, j)]);
        let scale = product(rows.as_ref(), rows.transpose()).norm_l2() / 5.0_f64.sqrt();
        faer::Scale(1.0 / scale) * rows
    };
    let start = product(drawn(&a).transpose(), drawn(&b).as_ref());
    let found = similarities(&map, &set.queries, &set.items);
    assert_near(&found, &alternated(start), 1e-4);
}

#[test]
fn theorem_1_gives_the_number_of_samples() {
    // (5 + 1) ln(48 · 5/0.05)/(1/4 · 1/4) = 813.7
    assert_eq!(sketch::sufficient_samples(5), 814);
    // More than there are rows: all of them.
    let (rows, supervision, _) = labelled(7);
    let data = Dataset::new(&rows, &supervision).unwrap();
    let of = |compression, samples| {
        let settings = Slr {
            compression,
            samples,
            iterations: 2,
            ..settings()
        };
        let mut run = Run::new(1);
        let map = fit(settings, &data, &mut run);
        (
            similarities(&map, &rows, &rows),
            run.facts.get("samples").copied(),
        )
    };
    let (found, samples) = of(Compression::Columns, 0);
    assert_eq!(samples, Some(60.0));
    assert_near(&found, &of(Compression::None, 0).0, 1e-4);
}

/// Step 6 of Alg. 3 with explicit inverses: L = (G + ρI)⁻¹XᵀY(XR)·(RᵀGR + ρRᵀR)⁻¹.
fn dense_step(a: &Mat<f64>, y: &Mat<f64>, b: &Mat<f64>, right: &Mat<f64>) -> Mat<f64> {
    let embedded = product(b.as_ref(), right.as_ref());
    let sums = product(
        product(a.transpose(), y.as_ref()).as_ref(),
        embedded.as_ref(),
    );
    let half = solve(&gram(a), RIDGE * unit(a, 5), &sums);
    let mut core = gram(&embedded);
    core += faer::Scale(RIDGE * unit(b, 5)) * gram(right);
    let back = solve(&core, 0.0, &half.transpose().to_owned());
    back.transpose().to_owned()
}

fn truncated(matrix: MatRef<'_, f64>, rank: usize) -> (Mat<f64>, Mat<f64>) {
    let factors = Factors::of(matrix, rank).unwrap();
    (factors.left, factors.right.unwrap())
}

#[test]
fn adaptive_factors_equal_the_dense_alternation() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let factors = Slr {
        rank: 2,
        iterations: 3,
        ..settings()
    };
    let map = fit(factors, &data, &mut Run::new(1));
    let (left, right) = (
        Side::new(&set.queries, true, false).unwrap(),
        Side::new(&set.items, true, false).unwrap(),
    );
    let (a, b) = (
        left.prepared(set.queries.rows()),
        right.prepared(set.items.rows()),
    );
    let target = set.grades();
    let inverse = |side: &'_ Side<'_>| side.ridge(RIDGE);
    let of_left = Inverse::new(left.eigen(), inverse(&left), Inversion::Ridge);
    let of_right = Inverse::new(right.eigen(), inverse(&right), Inversion::Ridge);
    // The start: the best of rank 2, cut in whitened coordinates.
    let m = closed_form(&a, &target, &b, 5);
    let whitened = of_right.coordinates(of_left.coordinates(m.as_ref()).transpose());
    let (l, r) = truncated(whitened.transpose(), 2);
    let (mut l, mut r) = (of_left.factor(l.as_ref()), of_right.factor(r.as_ref()));
    let similar = |l: &Mat<f64>, r: &Mat<f64>| {
        let (a, b) = (
            product(a.as_ref(), l.as_ref()),
            product(b.as_ref(), r.as_ref()),
        );
        product(a.as_ref(), b.transpose())
    };
    for _ in 0..3 {
        l = dense_step(&a, &clip(&similar(&l, &r), &target, 1.0, 0.0), &b, &r);
        let y = clip(&similar(&l, &r), &target, 1.0, 0.0);
        r = dense_step(&b, &y.transpose().to_owned(), &a, &l);
    }
    assert_near(
        &similarities(&map, &set.queries, &set.items),
        &similar(&l, &r),
        1e-4,
    );
}

#[test]
fn a_grid_of_ridges_equals_separate_fits() {
    let (rows, supervision, _) = labelled(7);
    let data = Dataset::new(&rows, &supervision).unwrap();
    let of = |ridges: Vec<f64>, last_step| {
        let settings = Slr {
            ridge: Ridges(ridges),
            iterations: 2,
            ..settings()
        };
        let mut run = Run::new(1);
        run.last_step = last_step;
        let map = fit(settings, &data, &mut run);
        (map, run.facts["ridge"])
    };
    for (number, ridge) in [0.01, 0.1, 1.0].into_iter().enumerate() {
        // Step 3·number + 2 is ridge `number` after its two iterations.
        let listed = of(vec![0.01, 0.1, 1.0], Some(3 * number as u64 + 2));
        assert!(listed == of(vec![ridge], None), "{ridge}");
    }
}

/// Rows of SSᵀ for the sketch that a fit draws with this counter.
fn sketch_square(compression: Compression, rows: usize, samples: usize, counter: u64) -> Mat<f64> {
    let draw = Draw {
        compression,
        samples,
        seed: 9,
        counter,
    };
    if compression == Compression::Gaussian {
        let s = gaussian(draw, 0, rows);
        return product(s.as_ref(), s.transpose());
    }
    let chosen = Stream::new(9, "slr columns", counter).choose(rows as u64, samples);
    let mut square = Mat::zeros(rows, rows);
    for row in chosen {
        square[(row as usize, row as usize)] = rows as f64 / samples as f64;
    }
    square
}

/// (XᵀSSᵀX + ρI)⁻¹ Xᵀ SSᵀ.
fn sketched(x: &Mat<f64>, square: &Mat<f64>) -> Mat<f64> {
    let left = product(x.transpose(), square.as_ref());
    let gram = product(left.as_ref(), x.as_ref());
    solve(&gram, RIDGE * unit(x, 5), &left)
}

#[test]
fn compression_equals_the_dense_solution_with_the_same_sketch() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let a = Side::new(&set.queries, true, false)
        .unwrap()
        .prepared(set.queries.rows());
    let b = Side::new(&set.items, true, false)
        .unwrap()
        .prepared(set.items.rows());
    let target = set.grades();
    for compression in [Compression::Columns, Compression::Gaussian] {
        let compressed = Slr {
            form: Form::Whole,
            iterations: 1,
            compression,
            samples: 20,
            ..settings()
        };
        let map = fit(compressed, &data, &mut Run::new(9));
        let m = closed_form(&a, &target, &b, 5);
        let similar = product(product(a.as_ref(), m.as_ref()).as_ref(), b.transpose());
        let y = clip(&similar, &target, 1.0, 0.0);
        // The first iteration draws with the counters 2 and 3.
        let left = sketched(&a, &sketch_square(compression, 30, 20, 2));
        let right = sketched(&b, &sketch_square(compression, 50, 20, 3));
        let m = product(
            product(left.as_ref(), y.as_ref()).as_ref(),
            right.transpose(),
        );
        let expected = product(product(a.as_ref(), m.as_ref()).as_ref(), b.transpose());
        assert_near(
            &similarities(&map, &set.queries, &set.items),
            &expected,
            1e-3,
        );
    }
}

#[test]
fn as_many_samples_as_rows_are_exact() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    for form in [Form::Factors, Form::Whole] {
        let of = |compression| {
            let settings = Slr {
                rank: 3,
                form,
                iterations: 2,
                compression,
                samples: 50,
                ..settings()
            };
            let map = fit(settings, &data, &mut Run::new(9));
            similarities(&map, &set.queries, &set.items)
        };
        assert_near(&of(Compression::Columns), &of(Compression::None), 1e-4);
        // Nothing but that it works: fifty Gaussian directions are no more than a sketch.
        assert!(of(Compression::Gaussian).norm_max() > 0.0);
    }
}

#[test]
fn an_adaptive_target_may_have_more_directions_than_classes() {
    let (rows, supervision, _) = labelled(5);
    let data = Dataset::new(&rows, &supervision).unwrap();
    let of = |target| {
        let settings = Slr {
            target,
            ..settings()
        };
        let map = fit(settings, &data, &mut Run::new(1));
        map.output_dim(5)
    };
    // row·(row + 3) mod 5 is 0, 3 or 4: centred, the sums of three classes span two directions.
    assert_eq!((of(Targets::Fixed), of(Targets::Adaptive)), (2, 5));
}

#[test]
fn adaptive_targets_lower_the_loss() {
    let set = Nuisance {
        classes: 10,
        signal: 4,
        noise: 8,
        seed: 2,
    }
    .rows(400);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    for form in [Form::Factors, Form::Whole] {
        let settings = Slr {
            rank: 6,
            ridge: Ridges::one(1e-6),
            form,
            bias: true,
            ..settings()
        };
        let left = Side::new(&set.corpus, true, true).unwrap();
        let target = Target::new(&supervision, true).unwrap();
        let regression = Regression {
            settings: &settings,
            left: &left,
            right: &left,
            sums: Sums::new(&supervision, &left, &left, &target).unwrap(),
            transposed: (form == Form::Factors).then(|| target.transposed()),
            target,
            one: false,
            seed: 1,
        };
        let mut state = regression.begin(1e-6).unwrap();
        let mut losses = Vec::new();
        for iteration in 1..6 {
            losses.push(regression.advance(1e-6, &mut state, iteration, 1).unwrap());
        }
        assert!(
            losses.windows(2).all(|pair| pair[1] < pair[0]),
            "{losses:?}"
        );
        assert!(losses[4] < 0.9 * losses[0], "{losses:?}");
    }
}

fn adapter(ridge: f64, iterations: u64) -> SlrAdapter {
    let settings = SlrAdapter {
        ridge: Ridges::one(ridge),
        iterations,
        ..SlrAdapter::default()
    };
    settings.checked().unwrap()
}

/// Queries near the items that are relevant to them, so that there is something to adapt.
fn retrieval() -> Judged {
    let mut set = judged();
    let mut queries = RowBuf::zeros(30, 5);
    for line in &set.lines {
        let row = queries.row_mut(line.query as usize);
        for (value, item) in row.iter_mut().zip(set.items.rows().row(line.item as usize)) {
            *value += 0.5 * item;
        }
    }
    set.queries = MemoryCorpus::new(queries).unwrap();
    set
}

#[test]
fn the_adapter_equals_its_formula_and_is_the_identity_without_evidence() {
    let set = retrieval();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let mut run = Run::new(1);
    let map = adapter(0.5, 3).fit(&data, &mut run).unwrap();
    let wide = |corpus: &MemoryCorpus| {
        Side::new(corpus, false, false)
            .unwrap()
            .prepared(corpus.rows())
    };
    let (q, x) = (wide(&set.queries), wide(&set.items));
    let target = set.grades();
    let base = product(q.as_ref(), x.transpose());
    let (mut all, mut relevant, mut weight) = (0.0, 0.0, 0.0);
    for i in 0..30 {
        for j in 0..50 {
            all += base[(i, j)] / 1500.0;
            relevant += target[(i, j)] * base[(i, j)];
            weight += target[(i, j)];
        }
    }
    relevant /= weight;
    assert!((run.facts["mean_similarity"] - all).abs() < 1e-6 * relevant);
    assert!((run.facts["relevant_similarity"] - relevant).abs() < 1e-6 * relevant);
    let at = |position: f64| all + position * (relevant - all);
    let (of_queries, of_items) = (0.5 * unit(&q, 5), 0.05 * unit(&x, 5));
    let mut m = Mat::<f64>::identity(5, 5);
    for _ in 0..3 {
        let similar = product(product(q.as_ref(), m.as_ref()).as_ref(), x.transpose());
        let left_over = clip(&similar, &target, at(1.7), at(0.3)) - &base;
        let sums = product(
            product(q.transpose(), left_over.as_ref()).as_ref(),
            x.as_ref(),
        );
        let half = solve(&gram(&q), of_queries, &sums);
        let d = solve(&gram(&x), of_items, &half.transpose().to_owned());
        m = Mat::<f64>::identity(5, 5) + d.transpose();
    }
    let expected = product(product(q.as_ref(), m.as_ref()).as_ref(), x.transpose());
    assert_near(
        &similarities(&map, &set.queries, &set.items),
        &expected,
        1e-4,
    );

    let Map::Bilinear { query, item } = adapter(1e9, 3).fit(&data, &mut Run::new(1)).unwrap()
    else {
        panic!("an adapter has two sides");
    };
    for (place, value) in query.weights().values().iter().enumerate() {
        let expected = if place % 6 == 0 { 1.0 } else { 0.0 };
        assert!((value - expected).abs() < 1e-6, "{value}");
        assert_eq!(item.weights().values()[place], expected);
    }
    // No iteration: the identity to the last bit.
    let Map::Bilinear { query, item } = adapter(0.5, 0).fit(&data, &mut Run::new(1)).unwrap()
    else {
        panic!("an adapter has two sides");
    };
    assert_eq!(query, item);
}

#[test]
fn an_adapter_of_vectors_that_do_not_work_is_finite() {
    // Relevant pairs are the least similar of all: the scale has no unit of its own.
    let mut set = retrieval();
    let mut opposite = RowBuf::zeros(30, 5);
    for row in 0..30 {
        let query = set.queries.rows().row(row);
        for (value, query) in opposite.row_mut(row).iter_mut().zip(query) {
            *value = -query;
        }
    }
    set.queries = MemoryCorpus::new(opposite).unwrap();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let map = adapter(0.5, 3).fit(&data, &mut Run::new(1)).unwrap();
    let found = similarities(&map, &set.queries, &set.items);
    assert!(found.norm_max().is_finite() && found.norm_max() > 0.0);
}

#[test]
fn one_map_for_two_corpora_is_refused() {
    let set = judged();
    let data = Dataset::between(&set.queries, &set.items, &set.supervision).unwrap();
    let settings = Slr {
        sides: Sides::One,
        ..settings()
    };
    let error = settings.checked().unwrap().fit(&data, &mut Run::new(1));
    let expected = "sides must be auto or two where queries and items are two corpora, but is one";
    assert_eq!(error.unwrap_err().to_string(), expected);
}
