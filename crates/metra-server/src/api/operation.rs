//! Addresses for those who run the server.

use crate::refusal::Refusal;
use crate::service::{ReloadError, Service};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use std::sync::Arc;

/// `GET /healthz`: the process answers.
pub(super) async fn healthy() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: requests should be sent here.
pub(super) async fn ready(State(service): State<Arc<Service>>) -> Result<&'static str, Refusal> {
    match service.is_draining() {
        true => Err(Refusal::draining()),
        false => Ok("ready\n"),
    }
}

/// `GET /metrics`, in Prometheus' form.
pub(super) async fn metrics(
    State(service): State<Arc<Service>>,
) -> Result<impl IntoResponse, Refusal> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = (service.metrics).text(&service.catalogue(), service.admission.load());
    let text = text.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

/// `POST /v1/admin/reload`: load models, keys and certificates again.
pub(super) async fn reload(State(service): State<Arc<Service>>) -> Result<&'static str, Refusal> {
    let loading = tokio::task::spawn_blocking(move || crate::reload::reload(&service));
    match loading.await {
        Ok(Ok(())) => Ok("reloaded\n"),
        Ok(Err(error @ ReloadError::UnderWay)) => Err(Refusal::overloaded(error.to_string())),
        Ok(Err(error)) => Err(Refusal::internal(error.to_string())),
        Err(error) => Err(Refusal::internal(error.to_string())),
    }
}
