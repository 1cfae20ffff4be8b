//! `POST /v1/map`: vectors become mapped vectors, or the codes of items.

use super::{from_json, held_body, json, media_type, with_facts};
use crate::models::ServedModel;
use crate::refusal::Refusal;
use crate::rows::{SideName, embed, groups_of};
use crate::service::Service;
use crate::vectors::{Element, InputVectors, OutputVectors};
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metra::data::{Batch, Groups};
use metra::model::Side;
use metra_files::{VectorLayout, WrittenElement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows of little-endian numbers after each other.
pub(super) const BINARY: &str = "application/octet-stream";
/// Arrow's format for streams.
pub(super) const ARROW: &str = "application/vnd.apache.arrow.stream";
pub(super) const JSON: &str = "application/json";

/// Vectors to be mapped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MapRequest {
    /// The model: a name, or `name@version`. Not needed where only one is served.
    model: Option<String>,
    /// Whether the vectors are queries or items. Not needed where the model maps both alike.
    side: Option<SideName>,
    /// The vectors.
    vectors: InputVectors,
    /// The group (camera, session) of each vector, where the model subtracts the mean of each.
    groups: Option<Vec<String>>,
    /// What to answer with.
    #[serde(default)]
    output: Output,
}

/// What mapped vectors are given as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    /// Numbers.
    #[default]
    Vectors,
    /// The codes of items, for a model that has a code.
    Codes,
}

/// What is said in the address where a body holds vectors alone.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MapParameters {
    /// The model: a name, or `name@version`.
    model: Option<String>,
    /// Whether the vectors are queries or items.
    side: Option<SideName>,
    /// Arrow's column of vectors.
    column: Option<String>,
    /// The numbers of an octet stream. Answers have float32.
    #[serde(default)]
    element: Element,
    /// What to answer with.
    #[serde(default)]
    output: Output,
}

/// Mapped vectors.
#[derive(Serialize, JsonSchema)]
pub(super) struct MapAnswer {
    /// The model and its version.
    model: String,
    /// Dimension of a mapped vector.
    dim: usize,
    /// The mapped vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<OutputVectors>,
    /// The codes of items in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<Vec<String>>,
}

pub(super) async fn map(
    State(service): State<Arc<Service>>,
    parameters: Result<Query<MapParameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let Query(parameters) =
        parameters.map_err(|e| Refusal::bad(format!("the address: {}", e.body_text())))?;
    let form = match media_type(&headers) {
        Some(BINARY) => Form::Binary,
        Some(ARROW) => Form::Arrow,
        Some(JSON) | None => Form::Json,
        Some(_) => {
            return Err(Refusal::media_type(format!(
                "expected the Content-Type {JSON}, {BINARY} or {ARROW}"
            )));
        }
    };
    let work = move |service: &Service, bytes: &[u8], _: &_| match form {
        Form::Json => {
            let request: MapRequest = from_json(bytes)?;
            let served = service.model(request.model.as_deref())?;
            if parameters != MapParameters::default() {
                return Err(Refusal::bad(
                    "expected an address without parameters: with JSON they are in the body",
                ));
            }
            mapped(service, &served, request)?.json(service, &served)
        }
        Form::Binary | Form::Arrow => {
            let served = service.model(parameters.model.as_deref())?;
            let vectors = match form {
                Form::Arrow => {
                    let column = parameters.column.as_deref();
                    let read = metra_files::read_vector_stream(bytes, column);
                    let (values, dim) = read.map_err(|e| Refusal::bad(e.to_string()))?;
                    InputVectors::new(values, dim)
                }
                _ => {
                    let dim = served.model.chain.dim_of(side_of(
                        &served,
                        parameters.side,
                        parameters.output,
                    )?);
                    InputVectors::from_bytes(bytes, dim, parameters.element)?
                }
            };
            let request = MapRequest {
                model: None,
                side: parameters.side,
                vectors,
                groups: None,
                output: parameters.output,
            };
            mapped(service, &served, request)?.bytes(service, &served, form)
        }
    };
    service.answer((&headers, body), work).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Binary,
    Arrow,
}

/// What a model made of vectors.
enum Mapped {
    Vectors(metra::linalg::RowBuf),
    Codes(Vec<u8>, usize),
}

/// Whose vectors a request sends; codes are of items.
fn side_of(served: &ServedModel, side: Option<SideName>, output: Output) -> Result<Side, Refusal> {
    match output {
        Output::Vectors => served.side(side),
        Output::Codes => Ok(Side::Item),
    }
}

fn mapped(service: &Service, served: &ServedModel, request: MapRequest) -> Result<Mapped, Refusal> {
    let count = request.vectors.len();
    service.check_rows(count, "vectors")?;
    let side = side_of(served, request.side, request.output)?;
    let rows = request.vectors.into_rows(&served.model, side)?;
    let groups = groups_of(&served.model, ("groups", request.groups.as_deref()), count)?;
    let chain = &served.model.chain;
    if request.output == Output::Vectors {
        let mapped = embed(chain, side, &rows, groups.as_ref())?;
        served.observe(request.side, &rows, &mapped);
        return Ok(Mapped::Vectors(mapped));
    }
    if request.side == Some(SideName::Query) {
        return Err(Refusal::bad(
            "codes are of items: expected \"side\" to be \"item\"",
        ));
    }
    let batch = Batch {
        rows: rows.rows(),
        groups: groups.as_ref().map(Groups::of),
    };
    let mut codes = Vec::new();
    chain.encode_items(0, &batch, &mut codes)?;
    Ok(Mapped::Codes(codes, chain.item_bytes()))
}

impl Mapped {
    fn json(self, service: &Service, served: &ServedModel) -> Result<Response, Refusal> {
        let mut answer = MapAnswer {
            model: served.id.clone(),
            dim: served.model.output_dim(),
            vectors: None,
            codes: None,
        };
        let rows = match self {
            Mapped::Vectors(rows) => {
                let count = rows.len();
                answer.vectors = Some(OutputVectors(rows));
                count
            }
            Mapped::Codes(codes, size) => {
                let codes: Vec<String> = codes.chunks(size).map(|c| STANDARD.encode(c)).collect();
                let count = codes.len();
                answer.codes = Some(codes);
                count
            }
        };
        json(service, &answer, &served.id, rows)
    }

    /// Rows after each other, or a stream of Arrow.
    fn bytes(
        self,
        service: &Service,
        served: &ServedModel,
        form: Form,
    ) -> Result<Response, Refusal> {
        let (dim, element, bytes) = match self {
            Mapped::Vectors(rows) => {
                let bytes = OutputVectors::to_f32_bytes(rows.rows());
                (rows.dim(), WrittenElement::Float32, bytes)
            }
            Mapped::Codes(codes, size) => (size, WrittenElement::UInt8, codes),
        };
        let layout = VectorLayout {
            dim,
            element,
            scale: false,
        };
        let count = bytes.len() / (dim * element.bytes());
        let bytes = match form {
            Form::Arrow => metra_files::write_vector_stream(layout, &bytes)
                .map_err(|e| Refusal::internal(e.to_string()))?,
            _ => bytes,
        };
        let kind = match form {
            Form::Arrow => ARROW,
            _ => BINARY,
        };
        let headers = [
            (header::CONTENT_TYPE.as_str(), kind.to_owned()),
            ("metra-model", served.id.clone()),
            ("metra-rows", count.to_string()),
        ];
        let body = held_body(service, bytes)?;
        Ok(with_facts(
            (headers, body).into_response(),
            &served.id,
            count,
        ))
    }
}
