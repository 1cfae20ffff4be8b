//! `POST /v1/embeddings`: the form of OpenAI's API. Texts go to the upstream server, and what it answers is mapped, so that an
//! application changes one address.

use super::texts::OneOrMore;
use super::{from_json, json};
use crate::refusal::Refusal;
use crate::rows::{SideName, embed};
use crate::service::Service;
use crate::upstream::Usage;
use crate::vectors::OutputVectors;
use crate::work;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metra::linalg::Rows;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Texts to be embedded.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EmbeddingsRequest {
    /// The model: `name` or `name@version`, and `:query` or `:item` behind it for applications that cannot send `side`.
    model: Option<String>,
    /// One text or several.
    input: OneOrMore,
    /// Whether the texts are queries or items. Not needed where the model maps both alike.
    side: Option<SideName>,
    /// `float` for numbers, `base64` for little-endian f32.
    #[serde(default)]
    encoding_format: Encoding,
    /// The dimension that is expected; only that of the model can be had.
    dimensions: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    Base64,
}

/// Embeddings in OpenAI's form.
#[derive(Serialize, JsonSchema)]
pub(super) struct EmbeddingsAnswer {
    object: &'static str,
    data: Vec<EmbeddingItem>,
    /// The model and its version.
    model: String,
    usage: Usage,
}

#[derive(Serialize, JsonSchema)]
struct EmbeddingItem {
    object: &'static str,
    index: usize,
    embedding: EmbeddingValues,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum EmbeddingValues {
    Float(Vec<f32>),
    Base64(String),
}

pub(super) async fn embeddings(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let upstream = service.upstream.as_ref().ok_or_else(|| {
        Refusal::unknown("this server was started without --upstream, which embeds texts")
    })?;
    let mut held = service.body(&headers, body, service.limits().body).await?;
    let parsed = tokio::task::spawn_blocking(move || {
        let request: Result<EmbeddingsRequest, Refusal> = from_json(&held.bytes);
        // The texts were copied out of it.
        held.bytes = Vec::new();
        (request, held)
    });
    let (request, mut held) = parsed.await.map_err(|e| Refusal::internal(e.to_string()))?;
    let request = request?;
    let (name, side_named) = named_side(request.model.as_deref(), request.side)?;
    let served = service.model(name)?;
    let side = served.side(side_named)?;
    if served.model.chain.group_names().is_some() {
        return Err(Refusal::bad(
            "texts have no groups, whose means this model subtracts",
        ));
    }
    let dim = served.model.output_dim();
    if let Some(expected) = request.dimensions.filter(|expected| *expected != dim) {
        return Err(Refusal::bad(format!(
            "expected \"dimensions\" to be {dim}, which the model has, but found {expected}"
        )));
    }
    let OneOrMore(texts) = request.input;
    let count = texts.len();
    service.check_rows(count, "texts")?;
    if count == 0 {
        return Err(Refusal::bad("expected at least one text, but found none"));
    }
    // The turn is waited for after the upstream server has answered: while it works, this one has nothing to do. Texts and vectors are in
    // memory until then.
    let from = served.model.chain.dim_of(side);
    let vectors = count.saturating_mul(from).saturating_mul(size_of::<f64>());
    let texts_bytes: usize = texts.iter().map(String::len).sum();
    service
        .admission
        .reserve_more(&mut held.reserved, vectors.saturating_add(texts_bytes))?;
    let (vectors, usage) = upstream.embed(&texts, from, &service.metrics).await?;
    let permit = service.admission.permit_for_paid().await?;
    let own = Arc::clone(&service);
    work::run(&service.pool, move |_| {
        let (_held, _permit) = (held, permit);
        let rows = vectors.into_rows(&served.model, side)?;
        let mapped = embed(&served.model.chain, side, &rows, None)?;
        served.observe(side_named, &rows, &mapped);
        let item = |(index, row): (usize, &[f32])| EmbeddingItem {
            object: "embedding",
            index,
            embedding: encoded(row, request.encoding_format),
        };
        let answer = EmbeddingsAnswer {
            object: "list",
            data: mapped.rows().iter().enumerate().map(item).collect(),
            model: served.id.clone(),
            usage,
        };
        json(&own, &answer, &served.id, count)
    })
    .await
}

fn encoded(row: &[f32], encoding: Encoding) -> EmbeddingValues {
    match encoding {
        Encoding::Float => EmbeddingValues::Float(row.to_vec()),
        Encoding::Base64 => {
            let bytes = Rows::new(row, row.len().max(1)).map(OutputVectors::to_f32_bytes);
            EmbeddingValues::Base64(STANDARD.encode(bytes.unwrap_or_default()))
        }
    }
}

/// The model's name without a side behind it, and the side.
fn named_side(
    model: Option<&str>,
    side: Option<SideName>,
) -> Result<(Option<&str>, Option<SideName>), Refusal> {
    let Some((name, suffix)) = model.and_then(|model| model.rsplit_once(':')) else {
        return Ok((model, side));
    };
    let named = match suffix {
        "query" => SideName::Query,
        "item" => SideName::Item,
        _ => {
            return Err(Refusal::bad(
                "expected :query or :item behind the model's name",
            ));
        }
    };
    match side {
        Some(side) if side != named => Err(Refusal::bad(
            "\"side\" says otherwise than the model's name",
        )),
        _ => Ok((Some(name), Some(named))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_may_stand_behind_the_name() {
        use SideName::{Item, Query};
        assert_eq!(
            named_side(Some("a:item"), None).unwrap(),
            (Some("a"), Some(Item))
        );
        assert_eq!(
            named_side(Some("a@1"), Some(Query)).unwrap(),
            (Some("a@1"), Some(Query))
        );
        assert_eq!(named_side(None, None).unwrap(), (None, None));
        assert!(named_side(Some("a:item"), Some(Query)).is_err());
        assert!(named_side(Some("a:other"), None).is_err());
    }
}
