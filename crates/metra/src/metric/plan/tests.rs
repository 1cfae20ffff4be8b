//! Every family of map, preprocessing and space against plain loops in f64; each way by hand; every
//! refusal.

use super::*;
use crate::data::{ElementMap, Narrowing};
use crate::linalg::{Kernel, Rows};
use crate::metric::{KernelMap, LowRank, Map, Metric, Origin, Step};
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
                    seen.insert(format!("{space}: {name}"));
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
    ];
    assert_eq!(seen, expected.iter().map(|s| s.to_string()).collect());
}

/// Vectors of one item and one query by a plan.
fn by(plan: &Plan, item: &[f32], query: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut stored, mut asked) = (RowBuf::empty(1), RowBuf::empty(1));
    let batch = |values| Batch::new(Rows::new(values, 2).unwrap());
    plan.map_items(0, &batch(item), &mut stored).unwrap();
    plan.map_queries(0, &batch(query), &mut asked).unwrap();
    (stored.into_values(), asked.into_values())
}

fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?} is not {expected:?}");
    }
}

fn plan_of(chain: &Chain, way: Way, distance: Distance, dim: usize) -> Plan {
    let fits = |plan: &Plan| (plan.way(), plan.distance(), plan.item_dim()) == (way, distance, dim);
    Plan::all(chain).unwrap().into_iter().find(fits).unwrap()
}

#[test]
fn query_only_by_hand() {
    // z_q = q₀ + 2 q₁, z = 3 x₀ + x₁ − 5. At q = (1, 1): z_q = 3, asked with 3 · (3, 1). The item
    // (2, 4) has z = 5: the metric's 15 is the store's 18 + 12 less 3 · 5, which all items share.
    let map = Map::Bilinear {
        query: low_rank(&[1.0, 2.0], 2, None),
        item: low_rank(&[3.0, 1.0], 2, Some(vec![5.0])),
    };
    let chain = Chain::new(2, vec![], map, Space::InnerProduct).unwrap();
    let plan = plan_of(&chain, Way::QueryOnly, Distance::InnerProduct, 2);
    let (stored, asked) = by(&plan, &[2.0, 4.0], &[1.0, 1.0]);
    assert_eq!((stored, asked), (vec![2.0, 4.0], vec![9.0, 3.0]));
    assert!(plan.items_stay() && plan.holds_input());

    // z = 2 x − (1, 1) against z_q = q. At q = (3, 5): y = 2 · ((3, 5) + (1, 1)) / 4 = (2, 3). The
    // item (1, 1) has z = (1, 1): |z_q − z|² = 4 + 16 = 4 · |y − x|² = 4 · (1 + 4).
    let map = Map::Bilinear {
        query: low_rank(&[1.0, 0.0, 0.0, 1.0], 2, None),
        item: low_rank(&[2.0, 0.0, 0.0, 2.0], 2, Some(vec![1.0, 1.0])),
    };
    let chain = Chain::new(2, vec![], map, Space::SquaredL2).unwrap();
    let plan = plan_of(&chain, Way::QueryOnly, Distance::SquaredL2, 2);
    let (stored, asked) = by(&plan, &[1.0, 1.0], &[3.0, 5.0]);
    assert_eq!((stored, asked), (vec![1.0, 1.0], vec![2.0, 3.0]));

    // Lengths first, then 3 u₀ + u₁: (4, 3) → (.8, .6) → 3, asked by cosine with 3 · (3, 1).
    let map = Map::LowRank(low_rank(&[3.0, 1.0], 2, None));
    let steps = vec![Step::Element(ElementMap::Normalise)];
    let chain = Chain::new(2, steps, map, Space::InnerProduct).unwrap();
    let plan = plan_of(&chain, Way::QueryOnly, Distance::Cosine, 2);
    let (stored, asked) = by(&plan, &[3.0, 4.0], &[4.0, 3.0]);
    assert_eq!(stored, vec![3.0, 4.0]);
    near(&asked, &[9.0, 3.0]);
}

#[test]
fn extra_coordinate_by_hand() {
    // z = x₀ + x₁ − 1. The item (2, 3) has z = 4 and −½ · 16 = −8; the query (0, 3) has z = 2.
    // −½ (2 − 4)² = −2. The store's 2 · 4 − 8 = 0 is that plus ½ · 2², which all items share.
    let map = Map::LowRank(low_rank(&[1.0, 1.0], 2, Some(vec![1.0])));
    let chain = Chain::new(2, vec![], map, Space::SquaredL2).unwrap();
    let mapped = plan_of(&chain, Way::ExtraCoordinate, Distance::InnerProduct, 2);
    let both = by(&mapped, &[2.0, 3.0], &[0.0, 3.0]);
    assert_eq!(both, (vec![4.0, -8.0], vec![2.0, 1.0]));
    assert!(!mapped.holds_input());
    // Over the input: asked with (2 · (1, 1), 1), 4 + 6 − 8 = 2 is −2 plus ½ · 2² plus 2 · 1.
    let input = plan_of(&chain, Way::ExtraCoordinate, Distance::InnerProduct, 3);
    let both = by(&input, &[2.0, 3.0], &[0.0, 3.0]);
    assert_eq!(both, (vec![2.0, 3.0, -8.0], vec![2.0, 2.0, 1.0]));
    assert!(input.holds_input() && !input.items_stay());
    // With the origin at z = 3: z = 1 and −1, −½ · 1.
    let moved = mapped.with_centre(vec![3.0]).unwrap();
    let both = by(&moved, &[2.0, 3.0], &[0.0, 3.0]);
    assert_eq!(both, (vec![1.0, -0.5], vec![-1.0, 1.0]));
    let moved = input.with_centre(vec![3.0]).unwrap();
    let both = by(&moved, &[2.0, 3.0], &[0.0, 3.0]);
    assert_eq!(both, (vec![2.0, 3.0, -0.5], vec![-1.0, -1.0, 1.0]));
}

#[test]
fn rescaled_by_hand() {
    // z = (2 x₀, x₁): the item (2, 3) has z = (4, 3) of length 5; the query (1.5, 4) has (3, 4)/5.
    // Stored (.4, .6), asked with (1.2, .8): .48 + .48 = .96 = (3 · 4 + 4 · 3)/25, the cosine.
    let map = || Map::Diagonal(vec![2.0, 1.0]);
    let chain = Chain::new(2, vec![], map(), Space::Cosine).unwrap();
    let plan = plan_of(&chain, Way::Rescaled, Distance::InnerProduct, 2);
    let (stored, asked) = by(&plan, &[2.0, 3.0], &[1.5, 4.0]);
    near(&stored, &[0.4, 0.6]);
    near(&asked, &[1.2, 0.8]);
    // Centred at (1, 0) first, so b = (−2, 0): (3, 3) and (2.5, 4) have the same z. One coordinate
    // more, 1/5 and .6 · −2: .72 + .48 − .24 = .96.
    let steps = vec![Step::Centre {
        mean: vec![1.0, 0.0],
    }];
    let chain = Chain::new(2, steps, map(), Space::Cosine).unwrap();
    let plan = plan_of(&chain, Way::Rescaled, Distance::InnerProduct, 3);
    let (stored, asked) = by(&plan, &[3.0, 3.0], &[2.5, 4.0]);
    near(&stored, &[0.6, 0.6, 0.2]);
    near(&asked, &[1.2, 0.8, -1.2]);
}

#[test]
fn mapped_by_hand() {
    let chain = Chain::identity(2, Space::Cosine);
    let unit = plan_of(&chain, Way::Mapped, Distance::SquaredL2, 2);
    let (stored, asked) = by(&unit, &[3.0, 4.0], &[0.0, -2.0]);
    near(&stored, &[0.6, 0.8]);
    near(&asked, &[0.0, -1.0]);
    assert!(!unit.items_stay());
    let plain = plan_of(&chain, Way::Mapped, Distance::Cosine, 2);
    assert!(plain.items_stay());
    let euclid = Plan::choose(&Chain::identity(2, Space::SquaredL2), &Wish::default()).unwrap();
    assert!(euclid.items_stay());
    let moved = euclid.with_centre(vec![1.0, 1.0]).unwrap();
    assert!(!moved.items_stay());
    assert_eq!(
        by(&moved, &[3.0, 4.0], &[1.0, 1.0]),
        (vec![2.0, 3.0], vec![0.0, 0.0])
    );
}

fn offering(distances: &[Distance]) -> Wish {
    Wish {
        distances: distances.to_vec(),
        ..Wish::default()
    }
}

#[test]
fn the_wish_decides() {
    use Distance::{Cosine, InnerProduct, SquaredL2};
    let of = |space| {
        let map = Map::LowRank(random_map("wish", 3, DIM, true));
        Chain::new(DIM, vec![], map, space).unwrap()
    };
    let chosen = |space, wish: &Wish| {
        let plan = Plan::choose(&of(space), wish).unwrap();
        (plan.way(), plan.distance(), plan.item_dim())
    };
    let keep = Wish {
        keep_items: true,
        ..Wish::default()
    };
    let few = Wish {
        most_dimensions: Some(3),
        ..Wish::default()
    };
    for (space, wish, expected) in [
        (
            Space::SquaredL2,
            Wish::default(),
            (Way::Mapped, SquaredL2, 3),
        ),
        (Space::SquaredL2, few.clone(), (Way::Mapped, SquaredL2, 3)),
        (
            Space::SquaredL2,
            offering(&[Cosine, InnerProduct]),
            (Way::ExtraCoordinate, InnerProduct, 4),
        ),
        (
            Space::InnerProduct,
            Wish::default(),
            (Way::Mapped, InnerProduct, 3),
        ),
        (
            Space::InnerProduct,
            keep.clone(),
            (Way::QueryOnly, InnerProduct, 5),
        ),
        (Space::Cosine, Wish::default(), (Way::Mapped, Cosine, 3)),
        (
            Space::Cosine,
            offering(&[SquaredL2, InnerProduct]),
            (Way::Mapped, InnerProduct, 3),
        ),
        (
            Space::Cosine,
            offering(&[SquaredL2]),
            (Way::Mapped, SquaredL2, 3),
        ),
    ] {
        assert_eq!(chosen(space, &wish), expected, "{space} {wish}");
    }
    // More numbers after the map than before: a limit rules mapped vectors out.
    let wide = Map::LowRank(random_map("wide", 8, DIM, false));
    let chain = Chain::new(DIM, vec![], wide, Space::InnerProduct).unwrap();
    let wish = Wish {
        most_dimensions: Some(7),
        ..Wish::default()
    };
    assert_eq!(Plan::choose(&chain, &wish).unwrap().way(), Way::QueryOnly);
}

#[test]
fn refusals_say_why() {
    use Distance::{Cosine, InnerProduct, SquaredL2};
    let of = |steps, space| {
        let map = Map::LowRank(random_map("refused", 3, DIM, true));
        Chain::new(DIM, steps, map, space).unwrap()
    };
    let refused = |chain: &Chain, wish: &Wish| Plan::choose(chain, wish).unwrap_err().to_string();
    assert_eq!(
        refused(&of(vec![], Space::SquaredL2), &offering(&[Cosine])),
        "no exact plan for a metric compared by euclid in a store that offers cosine: \
         mapped by l2 in 3 dimensions: the store does not offer it, and cosine drops the lengths of \
         vectors, on which squared distances depend; \
         query-only: every item's own length after the map counts in this distance, and a query \
         cannot know it: one more coordinate of the items can (extra-coordinate); \
         extra-coordinate by ip in 4 dimensions: the store does not offer it; \
         extra-coordinate by ip in 6 dimensions: the store does not offer it; \
         rescaled: serves metrics compared by cosine"
    );
    let keep = Wish {
        keep_items: true,
        ..Wish::default()
    };
    let message = refused(&of(vec![], Space::SquaredL2), &keep);
    assert!(
        message.contains("items keep their numbers, but get one coordinate more"),
        "{message}"
    );
    let message = refused(&of(vec![], Space::Cosine), &keep);
    assert!(
        message.contains("query-only: every score is divided by the item's length"),
        "{message}"
    );
    let message = refused(&of(vec![], Space::InnerProduct), &offering(&[SquaredL2]));
    assert!(
        message.contains("a bound on the lengths of all items"),
        "{message}"
    );
    let message = refused(&of(vec![], Space::InnerProduct), &offering(&[Cosine]));
    assert!(
        message.contains("cosine drops the items' lengths"),
        "{message}"
    );
    let few = Wish {
        most_dimensions: Some(2),
        ..offering(&[InnerProduct])
    };
    let message = refused(&of(vec![], Space::InnerProduct), &few);
    assert!(message.contains("in at most 2 dimensions"), "{message}");
    assert!(
        message.contains("mapped by ip in 3 dimensions: more than 2"),
        "{message}"
    );
    let root = vec![Step::Element(ElementMap::SquareRoot)];
    let message = refused(&of(root, Space::InnerProduct), &keep);
    assert!(
        message.contains("query-only: step \"sqrt\" is not affine"),
        "{message}"
    );
    let blocks = Chain::identity(4, Space::Blocks { size: 2 });
    let message = refused(&blocks, &Wish::default());
    assert!(
        message.contains("re-rank them with the metric"),
        "{message}"
    );
    assert!(matches!(Plan::all(&blocks), Err(Error::Plan { .. })));
    let message = refused(&blocks, &offering(&[]));
    assert!(
        message.contains("at least one of l2, ip and cosine"),
        "{message}"
    );
}

#[test]
fn rows_that_cannot_be_served_are_named() {
    let rows = [1.0, 1.0, 0.0, 0.0];
    let batch = Batch::new(Rows::new(&rows, 2).unwrap());
    let mut out = RowBuf::empty(1);
    let chain = Chain::new(2, vec![], Map::Diagonal(vec![2.0, 1.0]), Space::Cosine).unwrap();
    for plan in Plan::all(&chain).unwrap() {
        for error in [
            plan.map_items(7, &batch, &mut out).unwrap_err(),
            plan.map_queries(7, &batch, &mut out).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(message.starts_with("row 8: has length 0"), "{message}");
        }
    }
    let bad = [1.0, f32::NAN];
    let narrow = [1.0];
    for space in Space::ALL {
        for plan in Plan::all(&Chain::identity(2, space)).unwrap() {
            let batch = Batch::new(Rows::new(&bad, 2).unwrap());
            assert!(plan.map_items(0, &batch, &mut out).is_err());
            assert!(plan.map_queries(0, &batch, &mut out).is_err());
            let batch = Batch::new(Rows::new(&narrow, 1).unwrap());
            let message = plan.map_items(0, &batch, &mut out).unwrap_err().to_string();
            assert!(
                message.contains("expected 2 (what the metric was made for)"),
                "{message}"
            );
            assert!(plan.map_queries(0, &batch, &mut out).is_err());
        }
    }
}

#[test]
fn narrowed_models() {
    let chain = |space| {
        let map = Map::LowRank(random_map("narrowed", 3, DIM, true));
        Chain::new(DIM, vec![], map, space).unwrap()
    };
    let model = |shift: f64, scale: f64, chain: Chain| {
        let narrowing = Narrowing {
            shift: vec![shift; DIM],
            scale,
        };
        Model::new(Some(narrowing), chain, Origin::default()).unwrap()
    };
    let keep = Wish {
        keep_items: true,
        ..Wish::default()
    };
    let shifted = Plan::choose_for_model(&model(1e8, 1.0, chain(Space::InnerProduct)), &keep);
    let message = shifted.unwrap_err().to_string();
    assert!(
        message.contains("query-only: the model shifts 5 columns in f64"),
        "{message}"
    );
    let huge = Plan::choose_for_model(&model(0.0, 1e30, chain(Space::InnerProduct)), &keep);
    assert!(
        huge.unwrap_err()
            .to_string()
            .contains("f32 cannot keep them")
    );
    // An identity does not leave items as they are in the store: narrowing comes before it.
    let identity = model(0.0, 0.5, Chain::identity(DIM, Space::SquaredL2));
    let message = Plan::choose_for_model(&identity, &keep)
        .unwrap_err()
        .to_string();
    assert!(message.contains("l2 squares them"), "{message}");

    // A power of two alone folds in: what is stored is what the store had, 2^54 times as large.
    let scale = 2.0_f64.powi(-54);
    let (queries, items) = (
        draw("n queries", 4 * DIM, 0.0),
        draw("n items", 30 * DIM, 0.0),
    );
    let raw: Vec<f32> = items
        .iter()
        .map(|v| (f64::from(*v) / scale) as f32)
        .collect();
    let queries = Batch::new(Rows::new(&queries, DIM).unwrap());
    let items = Batch::new(Rows::new(&items, DIM).unwrap());
    let mut seen = BTreeSet::new();
    for space in Space::ALL {
        let chain = chain(space);
        for plan in Plan::all_for_model(&model(0.0, scale, chain.clone())).unwrap() {
            seen.insert(plan.way().to_string());
            let (mut asked, mut stored) = (RowBuf::empty(1), RowBuf::empty(1));
            plan.map_queries(0, &queries, &mut asked).unwrap();
            plan.map_items(0, &items, &mut stored).unwrap();
            if plan.holds_input() {
                for (stored, raw) in stored.rows().iter().zip(raw.chunks(DIM)) {
                    assert_eq!(&stored[..DIM], raw);
                }
            }
            let both = (&queries, &items);
            let (wrong, _) = wrong_pairs(&chain, plan.distance(), both, (&asked, &stored));
            assert_eq!(wrong, 0, "{} in {space}", plan.way());
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    // Without narrowing a model is its chain.
    let plain = Model::new(None, chain(Space::InnerProduct), Origin::default()).unwrap();
    assert_eq!(
        Plan::choose_for_model(&plain, &keep).unwrap().way(),
        Way::QueryOnly
    );
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
    let plan = Plan::choose(&other, &Wish::default()).unwrap();
    let share = agreement(&metric, &plan, &query, &items).unwrap();
    assert!((share - 1.0 / 3.0).abs() < 1e-12, "{share}");
    // All scores equal: nothing to disagree about.
    let same = [2.0, 2.0];
    let same = Batch::new(Rows::new(&same, 1).unwrap());
    assert_eq!(agreement(&metric, &plan, &query, &same).unwrap(), 1.0);
    assert!(agreement(&metric, &plan, &query, &query).is_err());
}

#[test]
fn a_plan_says_what_to_do() {
    let map = Map::LowRank(random_map("told", 3, DIM, true));
    let chain = Chain::new(DIM, vec![], map, Space::SquaredL2).unwrap();
    let plan = Plan::choose(&chain, &offering(&[Distance::InnerProduct])).unwrap();
    assert_eq!(
        plan.describe(),
        "way      extra-coordinate\n\
         store    mapped items and one coordinate, (z, -|z|^2/2)\n\
         ask      the mapped query and a 1\n\
         compare  ip (inner product); larger is nearer\n\
         cost     4 numbers, 16 bytes an item as f32 (the input has 5); every item is written, and \
         the index built, again\n\
         order    the metric's own, wherever scores differ by more than 1e-5 of their range"
    );
    let kept = Plan::choose(
        &Chain::identity(DIM, Space::Cosine),
        &Wish {
            keep_items: true,
            ..Wish::default()
        },
    );
    assert!(
        kept.unwrap()
            .describe()
            .contains("store    the items as they are")
    );
}
