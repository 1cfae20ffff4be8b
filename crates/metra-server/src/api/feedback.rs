//! `POST /v1/feedback`: what was shown for a query, and what was clicked.

use super::from_json;
use crate::feedback::Session;
use crate::refusal::Refusal;
use crate::service::Service;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// Characters of an id.
const ID: usize = 256;

/// Ids that a session may show, as `metra clicks` reads them.
const SHOWN: usize = 1_000;

/// Bytes of a session: more than so many ids can have.
const BYTES: usize = 1 << 20;

/// One session of a query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedbackRequest {
    /// The query's id.
    query: String,
    /// The ids that were shown, in their order.
    shown: Vec<String>,
    /// Those that were clicked.
    clicked: Vec<String>,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct FeedbackAnswer {
    /// Whether it was written: a part is, drawn at random.
    recorded: bool,
}

pub(super) async fn feedback(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<FeedbackAnswer>), Refusal> {
    let log = service.feedback.as_ref().ok_or_else(|| {
        Refusal::unknown("this server was started without --feedback, which names a log")
    })?;
    let most = service.limits().body.min(BYTES);
    let held = service.body(&headers, body, most).await?;
    let log = Arc::clone(log);
    // A disk may be slow.
    let written = tokio::task::spawn_blocking(move || {
        let request: FeedbackRequest = from_json(&held.bytes)?;
        request.check()?;
        log.write(&Session {
            query: &request.query,
            shown: &request.shown,
            clicked: &request.clicked,
        })
    });
    let recorded = written
        .await
        .map_err(|e| Refusal::internal(e.to_string()))??;
    Ok((StatusCode::ACCEPTED, Json(FeedbackAnswer { recorded })))
}

impl FeedbackRequest {
    /// What `metra clicks` would refuse must not get into the log.
    fn check(&self) -> Result<(), Refusal> {
        let count = self.shown.len();
        if !(1..=SHOWN).contains(&count) {
            let message = format!("expected 1 to {SHOWN} ids in \"shown\", but found {count}");
            return Err(Refusal::bad(message));
        }
        let mut all = self.shown.iter().chain(&self.clicked).chain([&self.query]);
        if all.any(|id| id.is_empty() || id.len() > ID || id.chars().any(char::is_control)) {
            let message = format!("expected ids of 1 to {ID} bytes without control characters");
            return Err(Refusal::bad(message));
        }
        let shown: HashSet<&String> = self.shown.iter().collect();
        if shown.len() < count {
            return Err(Refusal::bad("expected each id once in \"shown\""));
        }
        match self.clicked.iter().all(|id| shown.contains(id)) {
            true => Ok(()),
            false => Err(Refusal::bad("expected \"clicked\" to be among \"shown\"")),
        }
    }
}
