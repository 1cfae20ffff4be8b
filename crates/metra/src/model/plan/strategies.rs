//! Lists the strategies for serving a metric, chooses one that meets the constraints, and says why
//! the others do not.

use super::{Affine, Distance, Form, Input, Plan, PlanConstraints, PlanReport, Strategy};
use crate::data::Narrowing;
use crate::model::{Chain, Code, Embedding, Map, Signs, Space};
use crate::{Error, Result};
use std::sync::Arc;

/// Beyond 2^±60 (about 1e±18), f32 has no room for the values and for what multiplies them.
const LARGEST_SCALE: f64 = (1_u64 << 60) as f64;

/// A way that this metric does not have, with the reason.
struct Refusal {
    way: Strategy,
    reason: String,
}

/// What [`Plan::all`] gives.
pub(super) fn all(chain: &Chain, narrowing: Option<&Narrowing>) -> Result<Vec<Plan>> {
    Ok(ways(chain, narrowing)?.into_iter().flatten().collect())
}

/// What [`Plan::survey`] gives.
pub(super) fn survey(
    chain: &Chain,
    narrowing: Option<&Narrowing>,
    constraints: &PlanConstraints,
) -> Result<Vec<PlanReport>> {
    if constraints.distances.is_empty() {
        let expected = "at least one of l2, ip and cosine";
        return Err(Error::parameter("the store's distances", expected, "none"));
    }
    let surveyed = ways(chain, narrowing)?.into_iter().map(|way| match way {
        Ok(plan) => PlanReport {
            way: plan.way(),
            refusal: against(&plan, constraints),
            plan: Some(plan),
        },
        Err(Refusal { way, reason }) => PlanReport {
            way,
            plan: None,
            refusal: Some(reason),
        },
    });
    Ok(surveyed.collect())
}

/// What [`Plan::choose`] gives.
pub(super) fn choose(
    chain: &Chain,
    narrowing: Option<&Narrowing>,
    constraints: &PlanConstraints,
) -> Result<Plan> {
    let mut refusals = Vec::new();
    for found in survey(chain, narrowing, constraints)? {
        let name = found.name();
        match (found.plan, found.refusal) {
            (Some(plan), None) => return Ok(plan),
            (_, reason) => refusals.push(format!("{name}: {}", reason.unwrap_or_default())),
        }
    }
    Err(Error::Plan {
        wanted: format!("{} {constraints}", metric_name(chain)),
        refusals,
    })
}

/// Why an exact plan does not fit the wish.
fn against(plan: &Plan, constraints: &PlanConstraints) -> Option<String> {
    if constraints.way.is_some_and(|way| way != plan.way()) {
        return Some("another way was asked for".into());
    }
    if plan.ranks_again().is_some() && !constraints.candidates {
        return Some(
            "it finds candidates only, and an exact plan was asked for: say that candidates will do, \
             fetch more than are wanted and rank them again with the metric"
                .into(),
        );
    }
    if constraints.keep_input && !plan.holds_input() {
        return Some("stored vectors would not begin with the input".into());
    }
    if constraints.keep_items && !plan.items_stay() {
        return Some(match plan.form {
            Form::InputAndNorm(_) => "items keep their numbers, but get one coordinate more".into(),
            _ => "every item would be written again".into(),
        });
    }
    if !constraints.distances.contains(&plan.distance) {
        let offers = |distance| constraints.distances.contains(&distance);
        let mut reason = String::from("the store does not offer it");
        if let Form::Mapped { .. } = plan.form {
            let learned = plan.chain.space();
            if learned == Space::SquaredL2 && offers(Distance::Cosine) {
                reason += ", and cosine drops the lengths of vectors, on which squared distances \
                           depend";
            }
            if learned == Space::InnerProduct && offers(Distance::Cosine) {
                reason +=
                    ", and cosine drops the items' lengths, on which the inner product depends";
            }
            if learned == Space::InnerProduct && offers(Distance::SquaredL2) {
                reason += ", and l2 would need a bound on the lengths of all items, also of those to \
                           come";
            }
        }
        return Some(reason);
    }
    if constraints.signs_only && plan.sign_scale().is_none() {
        return Some(match plan.chain.code() {
            Some(Code::Bits { .. }) => "it stores more than signs".into(),
            _ => "bits hold what a model with a code of bits stores: train with --code bits".into(),
        });
    }
    match constraints.most_dimensions {
        Some(most) if plan.item_dim() > most => Some(format!("more than {most}")),
        _ => None,
    }
}

/// Every way in the order of preference: mapped vectors are small and any store's index takes them;
/// then what leaves items alone; then what writes them in other forms, the smaller first.
fn ways(chain: &Chain, narrowing: Option<&Narrowing>) -> Result<Vec<Result<Plan, Refusal>>> {
    let (chain, signs) = inside(chain)?;
    let input = input(&chain, narrowing).map(Arc::new);
    let untouched = narrowing.is_none() && input.as_ref().is_ok_and(|i| i.affine.is_identity());
    let plan = |form: Form, distance: Distance| Plan {
        chain: Arc::clone(&chain),
        distance,
        form,
        centre: None,
        signs,
    };
    let over_input = |way: Strategy, form: fn(Arc<Input>) -> Form| {
        let input = whole(&input).map_err(|reason| Refusal { way, reason })?;
        Ok(plan(form(input), Distance::InnerProduct))
    };
    let query_only = || {
        let found = query_only(chain.space(), &input).map_err(|reason| Refusal {
            way: Strategy::QueryOnly,
            reason,
        })?;
        Ok(plan(Form::Input(found.0), found.1))
    };
    let refuse = |way: Strategy, reason: &str| {
        Err(Refusal {
            way,
            reason: reason.into(),
        })
    };
    let mapped = Form::Mapped { untouched };
    let not_cosine = refuse(Strategy::Rescaled, "serves metrics compared by cosine");
    let not_squared = refuse(
        Strategy::ExtraCoordinate,
        "serves metrics compared by euclid",
    );
    let indefinite = !signs.is_definite();
    Ok(match chain.space() {
        Space::SquaredL2 if indefinite => vec![
            refuse(
                Strategy::Mapped,
                "no store has directions that count against a distance: one more coordinate holds \
                 their part (extra-coordinate)",
            ),
            refuse(
                Strategy::QueryOnly,
                "every item's own part of the distance counts, and a query cannot know it: one more \
                 coordinate of the items can (extra-coordinate)",
            ),
            Ok(plan(Form::MappedAndNorm, Distance::InnerProduct)),
            over_input(Strategy::ExtraCoordinate, Form::InputAndNorm),
            not_cosine,
        ],
        Space::SquaredL2 => vec![
            Ok(plan(mapped, Distance::SquaredL2)),
            query_only(),
            Ok(plan(Form::MappedAndNorm, Distance::InnerProduct)),
            over_input(Strategy::ExtraCoordinate, Form::InputAndNorm),
            not_cosine,
        ],
        Space::InnerProduct => vec![
            Ok(plan(mapped, Distance::InnerProduct)),
            query_only(),
            not_squared,
            not_cosine,
        ],
        Space::Cosine => vec![
            Ok(plan(mapped, Distance::Cosine)),
            Ok(plan(Form::UnitLength, Distance::InnerProduct)),
            Ok(plan(Form::UnitLength, Distance::SquaredL2)),
            query_only(),
            over_input(Strategy::Rescaled, Form::Rescaled),
            not_squared,
        ],
        Space::Blocks { .. } => vec![Ok(plan(Form::Candidates, Distance::SquaredL2))],
    })
}

/// The chain whose vectors plans speak of, and how their numbers count: an indefinite metric is a squared
/// distance of signs over the map inside it.
fn inside(chain: &Chain) -> Result<(Arc<Chain>, Signs)> {
    let Map::Indefinite(map) = chain.map() else {
        let signs = Signs::definite(chain.output_dim());
        return Ok((Arc::new(chain.clone()), signs));
    };
    let mapped = Map::LowRank(map.map().clone());
    let inner = chain.with_map(mapped, Space::SquaredL2)?;
    Ok((Arc::new(inner), map.signs()))
}

fn metric_name(chain: &Chain) -> String {
    match chain.map() {
        Map::Indefinite(_) => "an indefinite metric".into(),
        _ => format!("a metric compared by {}", chain.space()),
    }
}

/// The affine map from the vectors in the store, or the reason why there is none.
fn input(chain: &Chain, narrowing: Option<&Narrowing>) -> Result<Input, String> {
    let affine = Affine::of_items(chain).map_err(|what| {
        format!("{what} is not affine, so that no query can carry it to the items")
    })?;
    let Some(narrowing) = narrowing else {
        return Ok(Input { affine, scale: 1.0 });
    };
    let shifted = narrowing.shift.iter().filter(|s| **s != 0.0).count();
    if shifted > 0 {
        return Err(format!(
            "the model shifts {shifted} columns in f64 before all else, because f32 loses what \
             varies in them: vectors that stay unshifted in a store have lost it"
        ));
    }
    let scale = narrowing.scale;
    if !(1.0 / LARGEST_SCALE..=LARGEST_SCALE).contains(&scale) {
        return Err(format!(
            "the model multiplies vectors by {scale:e} in f64 before all else: as they are in a \
             store, f32 cannot keep them"
        ));
    }
    // Directions do not depend on the scale.
    let factor = if affine.directions { 1.0 } else { scale };
    Ok(Input {
        affine: affine.times(factor),
        scale,
    })
}

/// The same, where it is affine in the vectors themselves and not only in their directions.
fn whole(input: &Result<Arc<Input>, String>) -> Result<Arc<Input>, String> {
    let input = input.as_ref().map_err(String::clone)?;
    if input.affine.directions {
        return Err("step \"l2\" is not affine, so that no query can carry it to the items".into());
    }
    Ok(Arc::clone(input))
}

/// The distance by which items that stay as they are can be asked, or the reason why there is none.
fn query_only(
    space: Space,
    input: &Result<Arc<Input>, String>,
) -> Result<(Arc<Input>, Distance), String> {
    let input = input.as_ref().map_err(String::clone)?;
    let affine = &input.affine;
    match space {
        Space::SquaredL2 if affine.isometry().is_none() => {
            return Err(
                "every item's own length after the map counts in this distance, and a query cannot \
                 know it: one more coordinate of the items can (extra-coordinate)"
                    .into(),
            );
        }
        Space::Cosine if affine.isometry().is_none() || !affine.is_linear() => {
            return Err(
                "every score is divided by the item's length after the map, and a query cannot \
                 know it: items divided by it beforehand can be asked (rescaled)"
                    .into(),
            );
        }
        _ => {}
    }
    let distance = match space {
        // What is affine in directions is an inner product with them.
        _ if affine.directions => Distance::Cosine,
        Space::SquaredL2 => Distance::SquaredL2,
        Space::Cosine => Distance::Cosine,
        Space::InnerProduct | Space::Blocks { .. } => Distance::InnerProduct,
    };
    if input.scale != 1.0 && distance != Distance::InnerProduct {
        return Err(format!(
            "the model multiplies vectors by {:e} before all else, because squares of them as they \
             are leave f32, and {distance} squares them",
            input.scale
        ));
    }
    Ok((Arc::clone(input), distance))
}
