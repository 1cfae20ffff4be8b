//! `POST /v1/similar`: how dissimilar pairs of vectors are, and whether they match.

use super::{from_json, json};
use crate::refusal::Refusal;
use crate::rows::groups_of;
use crate::service::Service;
use crate::vectors::InputVectors;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use metra::data::MemoryCorpus;
use metra::evaluate::dissimilarities_between;
use metra::model::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pairs of vectors: the first of `queries` with the first of `items`, and so on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SimilarRequest {
    /// The model: a name, or `name@version`. Not needed where only one is served.
    model: Option<String>,
    /// One vector of each pair, mapped as a query.
    queries: InputVectors,
    /// The other one, mapped as an item.
    items: InputVectors,
    /// The groups of queries, where the model subtracts the mean of each.
    query_groups: Option<Vec<String>>,
    /// The groups of items.
    item_groups: Option<Vec<String>>,
}

/// What the model says of pairs.
#[derive(Serialize, JsonSchema)]
pub(super) struct SimilarAnswer {
    /// The model and its version.
    model: String,
    /// Up to this dissimilarity a pair is taken for the same, where the model is calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// One for each pair.
    results: Vec<PairScore>,
}

#[derive(Serialize, JsonSchema)]
struct PairScore {
    /// Smaller is nearer.
    dissimilarity: f64,
    /// Whether both are the same, where the model is calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<bool>,
}

pub(super) async fn similar(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let work = |service: &Service, bytes: &[u8], _: &_| {
        let request: SimilarRequest = from_json(bytes)?;
        let served = service.model(request.model.as_deref())?;
        let (pairs, items) = (request.queries.len(), request.items.len());
        if pairs != items {
            return Err(Refusal::bad(format!(
                "expected as many queries as items, but found {pairs} and {items}"
            )));
        }
        service.check_rows(pairs, "pairs")?;
        let model = &served.model;
        let queries = MemoryCorpus::new(request.queries.into_rows(model, Side::Query)?)?;
        let items = MemoryCorpus::new(request.items.into_rows(model, Side::Item)?)?;
        let named = ("query_groups", request.query_groups.as_deref());
        let query_groups = groups_of(model, named, pairs)?;
        let named = ("item_groups", request.item_groups.as_deref());
        let item_groups = groups_of(model, named, pairs)?;
        let numbers: Vec<[u64; 2]> = (0..pairs as u64).map(|pair| [pair, pair]).collect();
        let found = dissimilarities_between(
            &model.chain,
            (&queries, query_groups.as_ref()),
            (&items, item_groups.as_ref()),
            &numbers,
        )?;
        let decision = served.model.decision.as_ref();
        let score = |dissimilarity| PairScore {
            dissimilarity,
            same: decision.map(|decision| decision.is_same(dissimilarity)),
        };
        let answer = SimilarAnswer {
            model: served.id.clone(),
            threshold: decision.map(|decision| decision.threshold),
            results: found.into_iter().map(score).collect(),
        };
        json(service, &answer, &served.id, pairs)
    };
    service.answer((&headers, body), work).await
}
