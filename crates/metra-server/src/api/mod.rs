//! Addresses of a server, and what every request goes through.

mod embeddings;
mod feedback;
mod listing;
mod map;
mod openapi;
mod operation;
mod search;
mod similar;
mod texts;

use crate::admission::Reserved;
use crate::connections::Accepted;
use crate::keys::Scope;
use crate::refusal::Refusal;
use crate::service::Service;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RELOAD: &str = "/v1/admin/reload";
const MAP: &str = "/v1/map";

/// All addresses.
pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route(MAP, post(map::map))
        .route("/v1/search", post(search::search))
        .route("/v1/similar", post(similar::similar))
        .route("/v1/embeddings", post(embeddings::embeddings))
        .route("/v1/feedback", post(feedback::feedback))
        .route("/v1/models", get(listing::models))
        .route(RELOAD, post(operation::reload))
        .route("/healthz", get(operation::healthy))
        .route("/readyz", get(operation::ready))
        .route("/metrics", get(operation::metrics))
        .route("/openapi.json", get(openapi::document))
        .fallback(|| async {
            Refusal::unknown("there is nothing at this address: GET /openapi.json lists all")
        })
        .method_not_allowed_fallback(|| async { Refusal::method() })
        .layer(from_fn_with_state(Arc::clone(&service), around))
        .with_state(service)
}

/// The scope that an address needs, `None` for those that anybody may look at.
fn scope_of(route: &str) -> Option<Scope> {
    match route {
        "/healthz" | "/readyz" => None,
        RELOAD => Some(Scope::Admin),
        _ => Some(Scope::Read),
    }
}

/// What a handler has to say of a request for the log and the metrics.
#[derive(Clone)]
struct RequestFacts {
    model: String,
    rows: usize,
}

/// A request that is refused for overload is not answered before it is this old. A client that asks again at once would otherwise be
/// refused thousands of times a second, and take half of the processor from requests that are worked on.
const REFUSED_AFTER: Duration = Duration::from_millis(100);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Keys, time, log and metrics of every request.
async fn around(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("other", MatchedPath::as_str).to_owned();
    let id = request_id(request.headers(), &service);
    let (method, version) = (request.method().clone(), request.version());
    let accepted = request.extensions().get::<Accepted>().copied();
    let mut response = match allowed(&service, &route, request.headers()) {
        Err(refusal) => refusal.into_response(),
        // Loading takes as long as it takes.
        Ok(()) if route == RELOAD => next.run(request).await,
        Ok(()) => {
            let time = service.limits().time;
            let answered = tokio::time::timeout(time, next.run(request)).await;
            answered.unwrap_or_else(|_| Refusal::timeout(time.as_secs_f64()).into_response())
        }
    };
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let is_last = service.is_draining() || accepted.is_some_and(Accepted::is_old);
    if is_last && version <= Version::HTTP_11 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let time = began.elapsed();
    service.metrics.count_answer(&route, status, time);
    let refused = response.extensions().get::<Refusal>();
    if let Some(refusal) = refused {
        service.metrics.count_refusal(refusal.code);
    }
    let facts = response.extensions().get::<RequestFacts>();
    // What a model that was exchanged meanwhile has mapped is counted nowhere: nothing would ever take its counter away.
    if let Some(facts) = facts
        && service.catalogue().has(&facts.model)
    {
        service.metrics.count_rows(&facts.model, facts.rows);
    }
    tracing::info!(
        target: "metra::request",
        id,
        method = method.as_str(),
        route,
        status,
        milliseconds = time.as_secs_f64() * 1e3,
        model = facts.map(|facts| facts.model.as_str()),
        rows = facts.map(|facts| facts.rows),
        error = refused.map(|refusal| refusal.code),
    );
    if refused.is_some_and(Refusal::is_overloaded) {
        tokio::time::sleep(REFUSED_AFTER.saturating_sub(time)).await;
    }
    response
}

fn allowed(service: &Service, route: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    match (service.keys().as_ref(), scope_of(route)) {
        (Some(keys), Some(scope)) => keys.check(headers, scope)?,
        (None, Some(_)) if service.options.serves_local_alone() => check_local(headers)?,
        _ => {}
    }
    match media_type(headers) {
        // It knows other forms as well.
        _ if route == MAP => Ok(()),
        None | Some(map::JSON) => Ok(()),
        Some(_) => Err(Refusal::media_type(format!(
            "expected the Content-Type {}",
            map::JSON
        ))),
    }
}

/// Without keys, whoever is on this machine is served, but no page in a browser of this machine: what it shows may be anybody's, who would
/// make requests in its user's name.
fn check_local(headers: &HeaderMap) -> Result<(), Refusal> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let name = host.map(|host| match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    });
    let is_local = |name: &str| {
        let address = name.trim_start_matches('[').trim_end_matches(']');
        let address: Result<IpAddr, _> = address.parse();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    };
    match headers.contains_key(header::ORIGIN) || name.is_some_and(|name| !is_local(name)) {
        true => Err(Refusal::foreign()),
        false => Ok(()),
    }
}

/// The id that the client gave, if it is fit for a log, or a new one.
fn request_id(headers: &HeaderMap, service: &Service) -> String {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    match given {
        Some(id) if (1..=64).contains(&id.len()) && id.chars().all(known) => id.to_owned(),
        _ => format!("{:x}-{:x}", std::process::id(), service.next_request()),
    }
}

/// The media type of a request, without parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(given.split(';').next().unwrap_or(given).trim())
}

/// A body in JSON.
fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::bad(format!("the body: {error}")))
}

/// An answer in JSON, with what the log says of it.
fn json<T: serde::Serialize>(
    service: &Service,
    answer: &T,
    model: &str,
    rows: usize,
) -> Result<Response, Refusal> {
    let text = serde_json::to_vec(answer).map_err(|e| Refusal::internal(e.to_string()))?;
    let kind = [(header::CONTENT_TYPE, map::JSON)];
    let body = held_body(service, text)?;
    Ok(with_facts((kind, body).into_response(), model, rows))
}

/// Bytes of an answer, which count as held until the client has taken them.
fn held_body(service: &Service, bytes: Vec<u8>) -> Result<Body, Refusal> {
    struct Held(Vec<u8>, #[allow(dead_code)] Reserved);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let reserved = service.admission.reserve(bytes.len())?;
    Ok(Body::from(Bytes::from_owner(Held(bytes, reserved))))
}

fn with_facts(mut response: Response, model: &str, rows: usize) -> Response {
    response.extensions_mut().insert(RequestFacts {
        model: model.to_owned(),
        rows,
    });
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_others_are_not_served() {
        let check = |headers: &[(HeaderName, &'static str)]| {
            let values = headers.iter().cloned();
            let values = values.map(|(name, value)| (name, HeaderValue::from_static(value)));
            check_local(&values.collect()).is_ok()
        };
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "127.0.0.7",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(check(&[(header::HOST, host)]), "{host}");
        }
        for host in [
            "example.org",
            "example.org:8080",
            "127.0.0.1.example.org",
            "10.0.0.1",
        ] {
            assert!(!check(&[(header::HOST, host)]), "{host}");
        }
        assert!(check(&[]));
        let page = (header::ORIGIN, "http://localhost:8080");
        assert!(!check(&[(header::HOST, "localhost"), page]));
    }
}
