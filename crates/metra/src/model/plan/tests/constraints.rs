//! What is chosen, found again and refused, and with which words.

use super::*;

#[test]
fn the_wish_decides() {
    use Distance::{Cosine, InnerProduct, SquaredL2};
    let of = |space| {
        let map = Map::LowRank(random_map("wish", 3, DIM, true));
        Chain::new(DIM, vec![], map, space).unwrap()
    };
    let chosen = |space, wish: &PlanConstraints| {
        let plan = Plan::choose(&of(space), wish).unwrap();
        (plan.way(), plan.distance(), plan.item_dim())
    };
    let keep = PlanConstraints {
        keep_items: true,
        ..PlanConstraints::default()
    };
    let few = PlanConstraints {
        most_dimensions: Some(3),
        ..PlanConstraints::default()
    };
    for (space, wish, expected) in [
        (
            Space::SquaredL2,
            PlanConstraints::default(),
            (Strategy::Mapped, SquaredL2, 3),
        ),
        (
            Space::SquaredL2,
            few.clone(),
            (Strategy::Mapped, SquaredL2, 3),
        ),
        (
            Space::SquaredL2,
            offering(&[Cosine, InnerProduct]),
            (Strategy::ExtraCoordinate, InnerProduct, 4),
        ),
        (
            Space::InnerProduct,
            PlanConstraints::default(),
            (Strategy::Mapped, InnerProduct, 3),
        ),
        (
            Space::InnerProduct,
            keep.clone(),
            (Strategy::QueryOnly, InnerProduct, 5),
        ),
        (
            Space::Cosine,
            PlanConstraints::default(),
            (Strategy::Mapped, Cosine, 3),
        ),
        (
            Space::Cosine,
            offering(&[SquaredL2, InnerProduct]),
            (Strategy::Mapped, InnerProduct, 3),
        ),
        (
            Space::Cosine,
            offering(&[SquaredL2]),
            (Strategy::Mapped, SquaredL2, 3),
        ),
    ] {
        assert_eq!(chosen(space, &wish), expected, "{space} {wish}");
    }
    // More numbers after the map than before: a limit rules mapped vectors out.
    let wide = Map::LowRank(random_map("wide", 8, DIM, false));
    let chain = Chain::new(DIM, vec![], wide, Space::InnerProduct).unwrap();
    let wish = PlanConstraints {
        most_dimensions: Some(7),
        ..PlanConstraints::default()
    };
    assert_eq!(
        Plan::choose(&chain, &wish).unwrap().way(),
        Strategy::QueryOnly
    );
}

#[test]
fn a_wish_can_name_the_way_and_a_record_finds_it_again() {
    let map = Map::LowRank(random_map("wish", 3, DIM, true));
    let chain = Chain::new(DIM, vec![], map, Space::SquaredL2).unwrap();
    let wish = PlanConstraints {
        way: Some(Strategy::ExtraCoordinate),
        ..PlanConstraints::default()
    };
    assert_eq!(Plan::choose(&chain, &wish).unwrap().item_dim(), 4);
    let wish = PlanConstraints {
        keep_input: true,
        ..PlanConstraints::default()
    };
    let input = Plan::choose(&chain, &wish).unwrap();
    assert_eq!(
        (input.way(), input.item_dim()),
        (Strategy::ExtraCoordinate, DIM + 1)
    );
    let wish = PlanConstraints {
        way: Some(Strategy::Rescaled),
        ..PlanConstraints::default()
    };
    assert!(refused(&chain, &wish).contains("another way was asked for"));
    let model = Model::new(None, chain, Origin::default()).unwrap();
    for plan in Plan::all_for_model(&model).unwrap() {
        let (way, distance, dim) = (plan.way(), plan.distance(), plan.item_dim());
        let found = Plan::find(&model, way, distance, dim).unwrap();
        assert_eq!(found.name(), plan.name());
    }
    let lost = Plan::find(&model, Strategy::Mapped, Distance::SquaredL2, 9).unwrap_err();
    assert!(
        lost.to_string()
            .contains("it has mapped by l2 in 3 dimensions"),
        "{lost}"
    );
}

#[test]
fn candidates_are_near_by_the_metric() {
    let chain = Chain::identity(4, Space::Blocks { size: 2 });
    let wish = PlanConstraints {
        candidates: true,
        ..PlanConstraints::default()
    };
    let plan = Plan::choose(&chain, &wish).unwrap();
    assert_eq!(
        (plan.way(), plan.distance()),
        (Strategy::Candidates, Distance::SquaredL2)
    );
    assert_eq!(plan.ranks_again(), Some(Space::Blocks { size: 2 }));
    assert!(plan.describe().contains("approximate"));
    // The bound that says when candidates are enough: no block distance is below the store's.
    let (queries, items) = (draw("queries", 4 * 4, 0.0), draw("items", 30 * 4, 0.0));
    let batch = |values| Batch::new(Rows::new(values, 4).unwrap());
    let (mut asked, mut stored, mut scores) = (RowBuf::empty(1), RowBuf::empty(1), Vec::new());
    plan.map_queries(0, &batch(&queries), &mut asked).unwrap();
    plan.map_items(0, &batch(&items), &mut stored).unwrap();
    chain
        .dissimilarity(&batch(&queries), &batch(&items), &mut scores)
        .unwrap();
    for (query, scores) in scores.chunks(30).enumerate() {
        for (item, score) in scores.iter().enumerate() {
            let away = reference(Distance::SquaredL2, asked.row(query), stored.row(item)).sqrt();
            assert!(f64::from(*score) >= away - 1e-6, "{score} {away}");
        }
    }
    let share = agreement(&chain, &plan, &batch(&queries), &batch(&items)).unwrap();
    assert!((0.7..1.0).contains(&share), "{share}");
}

#[test]
fn refusals_say_why() {
    use Distance::{Cosine, InnerProduct, SquaredL2};
    let of = |steps, space| {
        let map = Map::LowRank(random_map("refused", 3, DIM, true));
        Chain::new(DIM, steps, map, space).unwrap()
    };
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
    let keep = PlanConstraints {
        keep_items: true,
        ..PlanConstraints::default()
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
    let few = PlanConstraints {
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
    let message = refused(&blocks, &PlanConstraints::default());
    assert!(
        message.contains("rank them again with the metric"),
        "{message}"
    );
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
    let keep = PlanConstraints {
        keep_items: true,
        ..PlanConstraints::default()
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
        Strategy::QueryOnly
    );
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
         cost     4 dimensions, 16 bytes an item as f32 (the input has 5); every item is \
         written, and the index built, again\n\
         order    exact: the metric's own, wherever scores differ by more than 1e-5 of their range\n\
         warning  stored vectors must not be normalised, by you or by a store told `cosine`: the last \
         coordinate holds each item's own part of the distance\n\
         warning  a graph index (HNSW) by inner product links everything to the longest vectors and can \
         miss nearly all neighbours in this form: measure its recall, search exactly, or take mapped by \
         l2"
    );
    let kept = Plan::choose(
        &Chain::identity(DIM, Space::Cosine),
        &PlanConstraints {
            keep_items: true,
            ..PlanConstraints::default()
        },
    );
    assert!(
        kept.unwrap()
            .describe()
            .contains("store    the items as they are")
    );
}
