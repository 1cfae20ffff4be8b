//! `GET /v1/models`: what is served.

use crate::models::ServedModel;
use crate::service::Service;
use axum::Json;
use axum::extract::State;
use metra::model::Embedding;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// All models, in the form of OpenAI's list.
#[derive(Serialize, JsonSchema)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelFacts>,
}

#[derive(Serialize, JsonSchema)]
struct ModelFacts {
    /// `name@version`, by which requests can name it.
    id: String,
    object: &'static str,
    owned_by: &'static str,
    /// The name, which stands for its last version.
    name: String,
    /// The beginning of the BLAKE3 digest of the model file.
    digest: String,
    /// The method that learned it.
    method: String,
    /// Dimension of the vectors that it takes: of items, where queries have another one.
    input_dim: usize,
    /// Dimension of the queries that it takes, where it is not that of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_input_dim: Option<usize>,
    /// Dimension of mapped vectors.
    output_dim: usize,
    /// How mapped vectors are compared.
    space: String,
    /// Whether queries and items are mapped otherwise, so that requests must say which they send.
    has_two_sides: bool,
    /// The code that items can be had in.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Groups whose means it subtracts, so that requests must name the group of each vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<String>>,
    /// Up to this dissimilarity a pair is taken for the same, where the model is calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// The index that can be searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexFacts>,
}

#[derive(Serialize, JsonSchema)]
struct IndexFacts {
    /// Its items.
    items: u64,
    /// Whether it is searched by a graph.
    has_graph: bool,
}

pub(super) async fn models(State(service): State<Arc<Service>>) -> Json<ModelList> {
    let catalogue = service.catalogue();
    Json(ModelList {
        object: "list",
        data: catalogue.all().map(|served| facts(served)).collect(),
    })
}

fn facts(served: &ServedModel) -> ModelFacts {
    let chain = &served.model.chain;
    ModelFacts {
        id: served.id.clone(),
        object: "model",
        owned_by: "metra",
        name: served.entry.name.clone(),
        digest: served.digest.clone(),
        method: served.model.origin.method.clone(),
        input_dim: served.model.input_dim(),
        query_input_dim: chain.query_preprocessing().map(|own| own.input_dim),
        output_dim: served.model.output_dim(),
        space: chain.space().to_string(),
        has_two_sides: chain.has_two_sides(),
        code: chain.code().map(|code| code.name()),
        groups: chain.group_names().map(<[String]>::to_vec),
        threshold: served
            .model
            .decision
            .as_ref()
            .map(|decision| decision.threshold),
        index: served.index.as_ref().map(|served| IndexFacts {
            items: served.index.manifest().rows,
            has_graph: served.index.manifest().graph.is_some(),
        }),
    }
}
