//! `GET /openapi.json`: the addresses in OpenAPI's form, made from the types that requests and answers have.

use super::embeddings::{EmbeddingsAnswer, EmbeddingsRequest};
use super::feedback::{FeedbackAnswer, FeedbackRequest};
use super::listing::ModelList;
use super::map::{ARROW, BINARY, MapAnswer, MapParameters, MapRequest};
use super::search::{SearchAnswer, SearchRequest};
use super::similar::{SimilarAnswer, SimilarRequest};
use crate::refusal::ErrorBody;
use axum::Json;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

pub(super) async fn document() -> Json<Value> {
    Json(openapi())
}

/// An address that takes and gives JSON.
struct Operation {
    path: &'static str,
    summary: &'static str,
    request: Option<Schema>,
    answer: Schema,
}

/// The document.
pub(crate) fn openapi() -> Value {
    let definitions = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
    };
    let mut requests = SchemaSettings::draft2020_12()
        .with(definitions)
        .into_generator();
    let answers = SchemaSettings::draft2020_12()
        .with(definitions)
        .for_serialize();
    let mut responses = answers.into_generator();
    let error = of::<ErrorBody>(&mut responses);
    let operations = operations(&mut requests, &mut responses);
    let mut paths = Map::new();
    for operation in operations {
        let mut described = json!({
            "summary": operation.summary,
            "responses": {
                "200": { "description": "The answer", "content": content(&operation.answer) },
                "default": { "description": "Why it was not served", "content": content(&error) },
            },
        });
        let method = match &operation.request {
            Some(schema) => {
                described["requestBody"] = json!({ "required": true, "content": content(schema) });
                "post"
            }
            None => "get",
        };
        paths.insert(operation.path.into(), json!({ method: described }));
    }
    for (path, method, summary) in [
        ("/healthz", "get", "Whether the process answers"),
        ("/readyz", "get", "Whether requests should be sent here"),
        ("/metrics", "get", "Counters in Prometheus' form"),
        (
            "/v1/admin/reload",
            "post",
            "Load models and keys again (scope admin)",
        ),
    ] {
        let described =
            json!({ "summary": summary, "responses": { "200": { "description": "Text" } } });
        paths.insert(path.into(), json!({ method: described }));
    }
    bodies_of_bytes(&mut paths, &mut requests);
    let mut schemas = requests.take_definitions(true);
    schemas.extend(responses.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Metra",
            "description": "Learned metrics over HTTP: map vectors, search an index, compare pairs, embed texts.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "security": [{ "key": [] }, {}],
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
        "paths": paths,
    })
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn content(schema: &Schema) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn operations(requests: &mut SchemaGenerator, responses: &mut SchemaGenerator) -> Vec<Operation> {
    vec![
        Operation {
            path: "/v1/map",
            summary: "Map vectors, or encode items",
            request: Some(of::<MapRequest>(requests)),
            answer: of::<MapAnswer>(responses),
        },
        Operation {
            path: "/v1/search",
            summary: "Find the nearest items of an index",
            request: Some(of::<SearchRequest>(requests)),
            answer: of::<SearchAnswer>(responses),
        },
        Operation {
            path: "/v1/similar",
            summary: "Compare pairs of vectors",
            request: Some(of::<SimilarRequest>(requests)),
            answer: of::<SimilarAnswer>(responses),
        },
        Operation {
            path: "/v1/embeddings",
            summary: "Embed texts by the upstream server and map the vectors, in OpenAI's form",
            request: Some(of::<EmbeddingsRequest>(requests)),
            answer: of::<EmbeddingsAnswer>(responses),
        },
        Operation {
            path: "/v1/feedback",
            summary: "Say what was shown and clicked (answered with 202)",
            request: Some(of::<FeedbackRequest>(requests)),
            answer: of::<FeedbackAnswer>(responses),
        },
        Operation {
            path: "/v1/models",
            summary: "What is served",
            request: None,
            answer: of::<ModelList>(responses),
        },
    ]
}

/// Vectors can be sent as bytes, too; what JSON says in the body then stands in the address.
fn bodies_of_bytes(paths: &mut Map<String, Value>, requests: &mut SchemaGenerator) {
    let map = &mut paths["/v1/map"]["post"];
    let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
    for kind in [BINARY, ARROW] {
        map["requestBody"]["content"][kind] = bytes.clone();
        map["responses"]["200"]["content"][kind] = bytes.clone();
    }
    let parameters = MapParameters::json_schema(requests);
    let properties = parameters.get("properties").and_then(Value::as_object);
    let parameters = properties.into_iter().flatten().map(|(name, schema)| {
        json!({
            "name": name,
            "in": "query",
            "description": schema["description"],
            "schema": schema,
        })
    });
    map["parameters"] = parameters.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi();
        let text = document.to_string();
        let mut count = 0;
        for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            let found = &document["components"]["schemas"][name];
            assert!(found.is_object(), "{name}");
            count += 1;
        }
        assert!(count > 10, "{count}");
        let map = &document["components"]["schemas"]["MapRequest"];
        assert!(map["properties"]["vectors"].is_object(), "{map}");
        assert_eq!(map["required"], json!(["vectors"]));
        let parameters = document["paths"]["/v1/map"]["post"]["parameters"].as_array();
        let names = parameters.unwrap().iter().map(|parameter| {
            assert!(parameter["description"].is_string(), "{parameter}");
            parameter["name"].as_str().unwrap()
        });
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names, ["column", "element", "model", "output", "side"]);
    }
}
