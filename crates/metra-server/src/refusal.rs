//! Answers to requests that are not served. The body has the form of OpenAI's errors, which its clients know how to
//! read.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

const OVERLOADED: &str = "overloaded";

/// Why a request is not served.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// A word for programs, which stays.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Seconds after which another try is worth it.
    retry_after: Option<u32>,
}

/// The body of an error.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

/// What was wrong.
#[derive(Serialize, JsonSchema)]
struct ErrorDetail {
    /// A sentence for people.
    message: String,
    /// `invalid_request_error` where the request must change, `server_error` otherwise.
    #[serde(rename = "type")]
    kind: &'static str,
    /// A word for programs.
    code: &'static str,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Refusal {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The request cannot be understood or does not fit the model.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// No model, index or page of this name.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// More than a request may have.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// A form of body that is not known.
    pub(crate) fn media_type(message: impl Into<String>) -> Self {
        Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            message,
        )
    }

    /// No key, or one that is not known.
    pub(crate) fn unauthorised() -> Self {
        let message = "expected a key of this server as `Authorization: Bearer KEY`";
        Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// A request of a page in a browser.
    pub(crate) fn foreign() -> Self {
        let message = "without keys, requests of pages and by other names than localhost are not served: start with keys";
        Refusal::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Another method than the address takes.
    pub(crate) fn method() -> Self {
        let message = "expected another method at this address: GET /openapi.json lists all";
        Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
        )
    }

    /// A key that may not do this.
    pub(crate) fn forbidden(scope: &str) -> Self {
        let message = format!("expected a key with the scope {scope}");
        Refusal::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The client was too slow with its body.
    pub(crate) fn slow(seconds: f64) -> Self {
        let message = format!("expected the whole body within {seconds} s");
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow_request", message)
    }

    /// There is more work than can be done now.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Refusal {
            retry_after: Some(1),
            ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, message)
        }
    }

    /// Whether it is for overload.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.code == OVERLOADED
    }

    /// The server is about to stop.
    pub(crate) fn draining() -> Self {
        Refusal {
            retry_after: Some(1),
            ..Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "draining",
                "the server is about to stop",
            )
        }
    }

    /// The work took longer than a request may take.
    pub(crate) fn timeout(seconds: f64) -> Self {
        let message = format!("expected an answer within {seconds} s, but the work took longer");
        Refusal {
            retry_after: Some(1),
            ..Refusal::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message)
        }
    }

    /// The upstream server of embeddings failed.
    pub(crate) fn upstream(message: impl Into<String>) -> Self {
        Refusal {
            retry_after: Some(1),
            ..Refusal::new(StatusCode::BAD_GATEWAY, "upstream_failed", message)
        }
    }

    /// A mistake of this server.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl From<metra::Error> for Refusal {
    fn from(error: metra::Error) -> Self {
        match error {
            // The flag is set when nobody waits for the answer any more.
            metra::Error::Interrupted => Refusal::overloaded("the work was given up"),
            // Names of files are not for whoever sends requests.
            metra::Error::Io { .. } => {
                tracing::error!("{error}");
                Refusal::internal("a file could not be read; the server's log says why")
            }
            error => Refusal::bad(error.to_string()),
        }
    }
}

impl From<metra_stores::Error> for Refusal {
    fn from(error: metra_stores::Error) -> Self {
        match error {
            metra_stores::Error::Library(error) => error.into(),
            // Names of files and servers are not for whoever sends requests.
            error => {
                tracing::error!("a store failed: {error}");
                Refusal::internal("the index or table failed; the server's log says why")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = match self.status.is_client_error() {
            true => "invalid_request_error",
            false => "server_error",
        };
        let error = ErrorDetail {
            message: self.message.clone(),
            kind,
            code: self.code,
        };
        let mut response = (self.status, Json(ErrorBody { error })).into_response();
        if let Some(seconds) = self.retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(self);
        response
    }
}
