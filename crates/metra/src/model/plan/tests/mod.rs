//! Every family of map, preprocessing and space against plain loops in f64.

mod by_hand;
mod constraints;

use super::*;
use crate::data::{ElementMap, Narrowing};
use crate::linalg::{Kernel, Rows};
use crate::model::{Indefinite, KernelMap, LowRank, Map, Origin, Signs, Step};
use crate::random::Stream;
use std::collections::BTreeSet;

const DIM: usize = 5;

fn buffer(values: &[f32], dim: usize) -> RowBuf {
    RowBuf::from_values(values.to_vec(), dim).unwrap()
}

fn low_rank(values: &[f32], dim: usize, offset: Option<Vec<f32>>) -> LowRank {
    LowRank::new(buffer(values, dim), offset).unwrap()
}

/// Numbers in ±1, or in 0..2 where `above` is 1.
fn draw(purpose: &str, count: usize, above: f64) -> Vec<f32> {
    let mut stream = Stream::new(5, purpose, 0);
    (0..count)
        .map(|_| (2.0 * stream.unit() - 1.0 + above) as f32)
        .collect()
}

fn random_map(purpose: &str, rank: usize, dim: usize, offset: bool) -> LowRank {
    let offset = offset.then(|| draw(&format!("{purpose} offset"), rank, 0.0));
    low_rank(&draw(purpose, rank * dim, 0.0), dim, offset)
}

fn random_kernel(purpose: &str, rank: usize, dim: usize) -> KernelMap {
    let kernel = Kernel::Rbf { gamma: 0.3 };
    let landmarks = buffer(&draw(purpose, 7 * dim, 1.0), dim);
    KernelMap::new(
        kernel,
        landmarks,
        random_map("over kernel values", rank, 7, true),
    )
    .unwrap()
}

/// Every kind of preprocessing that matters to a plan, with the dimension after it.
fn preparations() -> Vec<(Vec<Step>, usize)> {
    let centre = || Step::Centre {
        mean: draw("mean", DIM, 1.0),
    };
    let scale = || Step::Scale {
        factors: draw("factors", DIM, 1.5),
    };
    let unit = || Step::Element(ElementMap::Normalise);
    let project = || Step::Project(random_map("pca", 4, DIM, true));
    let groups = Step::CentreGroups {
        names: vec!["a".into(), "b".into()],
        means: buffer(&draw("groups", 2 * DIM, 0.0), DIM),
    };
    vec![
        (vec![], DIM),
        (vec![centre()], DIM),
        (vec![centre(), scale()], DIM),
        (vec![centre(), scale(), project()], 4),
        (vec![project()], 4),
        (vec![unit()], DIM),
        (vec![unit(), centre(), project()], 4),
        (vec![Step::Element(ElementMap::SquareRoot), scale()], DIM),
        (
            vec![Step::Element(ElementMap::Log { factor: 2.0 }), unit()],
            DIM,
        ),
        (vec![groups, project()], 4),
        (vec![Step::Kernel(random_kernel("step", 4, DIM))], 4),
    ]
}

fn maps(dim: usize) -> Vec<Map> {
    let mut identity = RowBuf::zeros(dim, dim);
    (0..dim).for_each(|at| identity.row_mut(at)[at] = 1.0);
    vec![
        Map::Identity,
        Map::LowRank(random_map("plain", 3, dim, false)),
        Map::LowRank(random_map("with offset", 3, dim, true)),
        Map::Diagonal(draw("diagonal", dim, 0.0)),
        Map::Bilinear {
            query: random_map("queries", 3, dim, true),
            item: random_map("items", 3, dim, true),
        },
        Map::Bilinear {
            query: random_map("adapter", dim, dim, true),
            item: LowRank::new(identity, None).unwrap(),
        },
        Map::Kernel(random_kernel("map", 3, dim)),
        Map::Indefinite(Indefinite::new(random_map("signs", 4, dim, true), 2).unwrap()),
        Map::Indefinite(
            Indefinite::with_signs(random_map("sums", 5, dim, true), Signs::new([2, 1], [1, 1]))
                .unwrap(),
        ),
    ]
}

/// What a store compares, in f64, smaller is nearer.
fn reference(distance: Distance, query: &[f32], item: &[f32]) -> f64 {
    let (mut squared, mut dot, mut left, mut right) = (0.0, 0.0, 0.0, 0.0);
    for (a, b) in query.iter().zip(item) {
        let (a, b) = (f64::from(*a), f64::from(*b));
        squared += (a - b) * (a - b);
        dot += a * b;
        left += a * a;
        right += b * b;
    }
    match distance {
        Distance::SquaredL2 => squared,
        Distance::InnerProduct => -dot,
        Distance::Cosine => -dot / (left.sqrt() * right.sqrt()),
    }
}

/// Pairs in which the order over `asked` and `stored` is not that of the metric, and pairs counted.
fn wrong_pairs(
    chain: &Chain,
    distance: Distance,
    (queries, items): (&Batch<'_>, &Batch<'_>),
    (asked, stored): (&RowBuf, &RowBuf),
) -> (usize, usize) {
    let mut scores = Vec::new();
    chain.dissimilarity(queries, items, &mut scores).unwrap();
    let (mut wrong, mut counted) = (0, 0);
    for (query, scores) in scores.chunks(items.rows.len()).enumerate() {
        let range = scores.iter().fold(f32::MIN, |a, b| a.max(*b))
            - scores.iter().fold(f32::MAX, |a, b| a.min(*b));
        let served = |item| reference(distance, asked.row(query), stored.row(item));
        for one in 0..scores.len() {
            for other in 0..scores.len() {
                if f64::from(scores[one]) + 1e-5 * f64::from(range) < f64::from(scores[other]) {
                    counted += 1;
                    wrong += usize::from(served(one) >= served(other));
                }
            }
        }
    }
    (wrong, counted)
}

fn offering(distances: &[Distance]) -> PlanConstraints {
    PlanConstraints {
        distances: distances.to_vec(),
        ..PlanConstraints::default()
    }
}

/// Why no plan of the chain fits the wish.
fn refused(chain: &Chain, wish: &PlanConstraints) -> String {
    Plan::choose(chain, wish).unwrap_err().to_string()
}

#[test]
fn every_plan_of_every_family_keeps_the_order() {
    let (queries, items) = (
        draw("query rows", 6 * DIM, 1.0),
        draw("item rows", 40 * DIM, 1.0),
    );
    let groups: Vec<u32> = (0..40).map(|row| row % 2).collect();
    let queries = Batch::with_groups(Rows::new(&queries, DIM).unwrap(), &groups[..6]).unwrap();
    let items = Batch::with_groups(Rows::new(&items, DIM).unwrap(), &groups).unwrap();
    let mut seen = BTreeSet::new();
    for (steps, dim) in preparations() {
        for map in maps(dim) {
            for space in Space::ALL {
                let indefinite = matches!(map, Map::Indefinite(_));
                if indefinite && space != Space::InnerProduct {
                    continue;
                }
                let chain = Chain::new(DIM, steps.clone(), map.clone(), space).unwrap();
                for plan in Plan::all(&chain).unwrap() {
                    let name = format!("{} by {}", plan.way(), plan.distance());
                    let (mut asked, mut stored) = (RowBuf::empty(1), RowBuf::empty(1));
                    let centred = plan.clone().centred_on(&items).unwrap();
                    for plan in [&plan, &centred] {
                        plan.map_queries(0, &queries, &mut asked).unwrap();
                        plan.map_items(0, &items, &mut stored).unwrap();
                        assert_eq!((asked.dim(), asked.len()), (plan.query_dim(), 6));
                        assert_eq!((stored.dim(), stored.len()), (plan.item_dim(), 40));
                        if plan.items_stay() {
                            assert_eq!(stored.values(), items.rows.values());
                        }
                        let (wrong, counted) = wrong_pairs(
                            &chain,
                            plan.distance(),
                            (&queries, &items),
                            (&asked, &stored),
                        );
                        assert!(
                            wrong == 0 && counted > 4_000,
                            "{name}: {wrong} of {counted} for {chain:?}"
                        );
                        let share = agreement(&chain, plan, &queries, &items).unwrap();
                        assert!(share > 0.9999, "{name}: {share} for {chain:?}");
                    }
                    let metric = if indefinite {
                        "signs"
                    } else {
                        &space.to_string()
                    };
                    seen.insert(format!("{metric}: {name}"));
                }
            }
        }
    }
    let expected = [
        "cosine: mapped by cosine",
        "cosine: mapped by ip",
        "cosine: mapped by l2",
        "cosine: query-only by cosine",
        "cosine: rescaled by ip",
        "dot: mapped by ip",
        "dot: query-only by cosine",
        "dot: query-only by ip",
        "euclid: extra-coordinate by ip",
        "euclid: mapped by l2",
        "euclid: query-only by cosine",
        "euclid: query-only by l2",
        "signs: extra-coordinate by ip",
    ];
    assert_eq!(seen, expected.iter().map(|s| s.to_string()).collect());
}

#[test]
fn a_far_origin_is_moved() {
    // Items about 3,000 from the origin and 1 apart: ½ |z|² is near 1e7, where f32 has steps of 1.
    let items: Vec<f32> = draw("far", 60 * DIM, 0.0)
        .iter()
        .map(|v| v + 1500.0)
        .collect();
    let batch = Batch::new(Rows::new(&items, DIM).unwrap());
    let chain = Chain::identity(DIM, Space::SquaredL2);
    let wish = offering(&[Distance::InnerProduct]);
    let plan = Plan::choose(&chain, &wish).unwrap();
    let lost = agreement(&chain, &plan, &batch, &batch).unwrap();
    assert!(lost < 0.95, "{lost}");
    let centred = plan.clone().centred_on(&batch).unwrap();
    let share = agreement(&chain, &centred, &batch, &batch).unwrap();
    assert!(share > 0.9999, "{share}");
    // Where it is needed it is taken, and not where it is not.
    let needed = plan.clone().centred_where_needed(&chain, &batch).unwrap();
    assert_eq!(needed.centre(), centred.centre());
    let near = draw("near", 60 * DIM, 0.0);
    let near = Batch::new(Rows::new(&near, DIM).unwrap());
    let plain = plan.clone().centred_where_needed(&chain, &near).unwrap();
    assert_eq!(plain.centre(), None);
    // The centre makes the same plan again; a plan without a free origin takes none.
    let again = plan
        .clone()
        .with_centre(centred.centre().unwrap().to_vec())
        .unwrap();
    assert_eq!(agreement(&chain, &again, &batch, &batch).unwrap(), share);
    assert!(plan.clone().with_centre(vec![0.0]).is_err());
    assert!(plan.clone().with_centre(vec![f32::NAN; DIM]).is_err());
    let none = Batch::new(Rows::new(&[], DIM).unwrap());
    assert!(plan.centred_on(&none).is_err());
    let dot = Plan::choose(&Chain::identity(DIM, Space::InnerProduct), &wish).unwrap();
    assert!(dot.clone().with_centre(vec![0.0; DIM]).is_err());
    assert!(dot.centred_on(&batch).unwrap().centre().is_none());
}

#[test]
fn agreement_counts_pairs() {
    // Scores of the query 0 by |x|²: 1, 4, 9. Another metric that turns the axis, by inner product
    // with 1, orders (1, −2, 3) as 3, 1, −2: of the pairs (1, −2), (1, 3), (−2, 3) the first alone
    // is as by |x|².
    let (query, items) = ([0.0], [1.0, -2.0, 3.0]);
    let query = Batch::new(Rows::new(&query, 1).unwrap());
    let items = Batch::new(Rows::new(&items, 1).unwrap());
    let metric = Chain::identity(1, Space::SquaredL2);
    let one = || low_rank(&[1.0], 1, None);
    let other = Map::Bilinear {
        query: low_rank(&[1.0], 1, Some(vec![-1.0])),
        item: one(),
    };
    let other = Chain::new(1, vec![], other, Space::InnerProduct).unwrap();
    let plan = Plan::choose(&other, &PlanConstraints::default()).unwrap();
    let share = agreement(&metric, &plan, &query, &items).unwrap();
    assert!((share - 1.0 / 3.0).abs() < 1e-12, "{share}");
    // All scores equal: nothing to disagree about.
    let same = [2.0, 2.0];
    let same = Batch::new(Rows::new(&same, 1).unwrap());
    assert_eq!(agreement(&metric, &plan, &query, &same).unwrap(), 1.0);
    assert!(agreement(&metric, &plan, &query, &query).is_err());
}
