//! Each way by hand, the arithmetic in comments.

use super::*;

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

fn plan_of(chain: &Chain, way: Strategy, distance: Distance, dim: usize) -> Plan {
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
    let plan = plan_of(&chain, Strategy::QueryOnly, Distance::InnerProduct, 2);
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
    let plan = plan_of(&chain, Strategy::QueryOnly, Distance::SquaredL2, 2);
    let (stored, asked) = by(&plan, &[1.0, 1.0], &[3.0, 5.0]);
    assert_eq!((stored, asked), (vec![1.0, 1.0], vec![2.0, 3.0]));

    // Lengths first, then 3 u₀ + u₁: (4, 3) → (.8, .6) → 3, asked by cosine with 3 · (3, 1).
    let map = Map::LowRank(low_rank(&[3.0, 1.0], 2, None));
    let steps = vec![Step::Element(ElementMap::Normalise)];
    let chain = Chain::new(2, steps, map, Space::InnerProduct).unwrap();
    let plan = plan_of(&chain, Strategy::QueryOnly, Distance::Cosine, 2);
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
    let mapped = plan_of(&chain, Strategy::ExtraCoordinate, Distance::InnerProduct, 2);
    let both = by(&mapped, &[2.0, 3.0], &[0.0, 3.0]);
    assert_eq!(both, (vec![4.0, -8.0], vec![2.0, 1.0]));
    assert!(!mapped.holds_input());
    // Over the input: asked with (2 · (1, 1), 1), 4 + 6 − 8 = 2 is −2 plus ½ · 2² plus 2 · 1.
    let input = plan_of(&chain, Strategy::ExtraCoordinate, Distance::InnerProduct, 3);
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
fn indefinite_by_hand() {
    // z = (x₀, x₁ − 1), squares of the second against. The item (2, 3) has z = (2, 2) and
    // −½ (4 − 4) = 0, the item (1, 4) z = (1, 3) and −½ (1 − 9) = 4; the query (3, 2) z = (3, 1),
    // asked with (3, −1, 1): 4 and 4, and indeed 1 − 1 = 0 = 4 − 4.
    let map = low_rank(&[1.0, 0.0, 0.0, 1.0], 2, Some(vec![0.0, 1.0]));
    let map = Map::Indefinite(Indefinite::new(map, 1).unwrap());
    let chain = Chain::new(2, vec![], map, Space::InnerProduct).unwrap();
    let (mapped, input) = match Plan::all(&chain).unwrap().as_slice() {
        [mapped, input] => (mapped.clone(), input.clone()),
        other => panic!("{other:?}"),
    };
    let both = by(&mapped, &[2.0, 3.0], &[3.0, 2.0]);
    assert_eq!(both, (vec![2.0, 2.0, 0.0], vec![3.0, -1.0, 1.0]));
    assert_eq!(by(&mapped, &[1.0, 4.0], &[3.0, 2.0]).0, vec![1.0, 3.0, 4.0]);
    let both = by(&input, &[1.0, 4.0], &[3.0, 2.0]);
    assert_eq!(both, (vec![1.0, 4.0, 4.0], vec![3.0, -1.0, 1.0]));
    assert!(input.holds_input() && !mapped.holds_input());
    // With the origin at z = (1, 1): the item (1, 4) has (0, 2) and 2, the query (2, 0).
    let moved = input.with_centre(vec![1.0, 1.0]).unwrap();
    let both = by(&moved, &[1.0, 4.0], &[3.0, 2.0]);
    assert_eq!(both, (vec![1.0, 4.0, 2.0], vec![2.0, -0.0, 1.0]));
    let message = refused(&chain, &offering(&[Distance::SquaredL2]));
    assert!(
        message.starts_with("no exact plan for an indefinite metric"),
        "{message}"
    );
    assert!(
        message.contains("mapped: no store has directions that count against"),
        "{message}"
    );
}

#[test]
fn rescaled_by_hand() {
    // z = (2 x₀, x₁): the item (2, 3) has z = (4, 3) of length 5; the query (1.5, 4) has (3, 4)/5.
    // Stored (.4, .6), asked with (1.2, .8): .48 + .48 = .96 = (3 · 4 + 4 · 3)/25, the cosine.
    let map = || Map::Diagonal(vec![2.0, 1.0]);
    let chain = Chain::new(2, vec![], map(), Space::Cosine).unwrap();
    let plan = plan_of(&chain, Strategy::Rescaled, Distance::InnerProduct, 2);
    let (stored, asked) = by(&plan, &[2.0, 3.0], &[1.5, 4.0]);
    near(&stored, &[0.4, 0.6]);
    near(&asked, &[1.2, 0.8]);
    // Centred at (1, 0) first, so b = (−2, 0): (3, 3) and (2.5, 4) have the same z. One coordinate
    // more, 1/5 and .6 · −2: .72 + .48 − .24 = .96.
    let steps = vec![Step::Centre {
        mean: vec![1.0, 0.0],
    }];
    let chain = Chain::new(2, steps, map(), Space::Cosine).unwrap();
    let plan = plan_of(&chain, Strategy::Rescaled, Distance::InnerProduct, 3);
    let (stored, asked) = by(&plan, &[3.0, 3.0], &[2.5, 4.0]);
    near(&stored, &[0.6, 0.6, 0.2]);
    near(&asked, &[1.2, 0.8, -1.2]);
}

#[test]
fn mapped_by_hand() {
    let chain = Chain::identity(2, Space::Cosine);
    let unit = plan_of(&chain, Strategy::Mapped, Distance::SquaredL2, 2);
    let (stored, asked) = by(&unit, &[3.0, 4.0], &[0.0, -2.0]);
    near(&stored, &[0.6, 0.8]);
    near(&asked, &[0.0, -1.0]);
    assert!(!unit.items_stay());
    let plain = plan_of(&chain, Strategy::Mapped, Distance::Cosine, 2);
    assert!(plain.items_stay());
    let euclid = Plan::choose(
        &Chain::identity(2, Space::SquaredL2),
        &PlanConstraints::default(),
    )
    .unwrap();
    assert!(euclid.items_stay());
    let moved = euclid.with_centre(vec![1.0, 1.0]).unwrap();
    assert!(!moved.items_stay());
    assert_eq!(
        by(&moved, &[3.0, 4.0], &[1.0, 1.0]),
        (vec![2.0, 3.0], vec![0.0, 0.0])
    );
}
