//! `POST /v1/search`: the items of an index that are nearest to vectors.

use super::texts::OneOrMore;
use super::{from_json, json};
use crate::index::{Hit, SearchOptions};
use crate::options::usual_k;
use crate::refusal::Refusal;
use crate::rows::{SideName, groups_of};
use crate::service::Service;
use crate::vectors::InputVectors;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use metra::model::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Queries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    /// The model: a name, or `name@version`. Not needed where only one is served.
    model: Option<String>,
    /// Vectors of queries, not yet mapped.
    vectors: InputVectors,
    /// The group (camera, session) of each vector, where the model subtracts the mean of each.
    groups: Option<Vec<String>>,
    /// How many items for each query.
    #[serde(default = "usual_k")]
    k: usize,
    /// Compare with every item, although the index has a graph or codes.
    #[serde(default)]
    exact: bool,
    /// Candidates that a graph keeps on its way, or first answers of codes that are ranked again.
    effort: Option<usize>,
    /// Keep only items that fit.
    filter: Option<SearchFilter>,
}

/// Answers to all queries of a request: some 100 bytes each.
const MOST_ANSWERS: usize = 200_000;

/// Which items are searched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFilter {
    /// Items with one of these labels.
    label: OneOrMore,
}

/// Answers to queries.
#[derive(Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    /// The model and its version.
    model: String,
    /// The items of each query, the nearest first.
    results: Vec<Vec<Hit>>,
}

pub(super) async fn search(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let work = |service: &Service, bytes: &[u8], stop: &_| {
        let request: SearchRequest = from_json(bytes)?;
        let served = service.model(request.model.as_deref())?;
        let index = served.index.as_ref().ok_or_else(|| {
            let id = &served.id;
            Refusal::bad(format!(
                "the model {id} is served without an index to search"
            ))
        })?;
        let count = request.vectors.len();
        service.check_rows(count, "queries")?;
        let most = service.limits().k;
        if !(1..=most).contains(&request.k) {
            let k = request.k;
            return Err(Refusal::bad(format!(
                "expected \"k\" from 1 to {most}, but found {k}"
            )));
        }
        let answers = count.saturating_mul(request.k);
        if answers > MOST_ANSWERS {
            return Err(Refusal::too_large(format!(
                "expected at most {MOST_ANSWERS} answers to all queries of a request, but found {answers}"
            )));
        }
        let rows = request.vectors.into_rows(&served.model, Side::Query)?;
        let groups = groups_of(&served.model, ("groups", request.groups.as_deref()), count)?;
        let labels = request.filter.map(|filter| filter.label.0);
        let options = SearchOptions {
            k: request.k,
            exact: request.exact,
            effort: request.effort,
            labels: labels.as_deref(),
        };
        let mapped = index.map_queries(&rows, groups.as_ref())?;
        served.observe(Some(SideName::Query), &rows, &mapped);
        let results = index.search(mapped, options, stop)?;
        let model = served.id.clone();
        json(service, &SearchAnswer { model, results }, &served.id, count)
    };
    service.answer((&headers, body), work).await
}
