//! The handlers of routes.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::asked::{Asked, body_bytes, check_content_type};
use crate::job::{Cause, Job, Outcome};
use crate::jobs::{Admitted, Jobs, Waiter, draining};
use crate::keys::OpenKey;
use crate::problem::{Answer, Code, Needed, Problem};
use crate::token::Token;
use crate::upload::{self, Uploads};

/// What handlers know.
pub(crate) struct App {
    pub token: Option<Token>,
    /// Once all are open.
    pub keys: OnceLock<Vec<Arc<OpenKey>>>,
    pub jobs: Arc<Jobs>,
    pub uploads: Uploads,
    pub since: Instant,
}

type Part = Result<Path<String>, PathRejection>;

impl App {
    fn keys(&self) -> Result<&[Arc<OpenKey>], Problem> {
        self.keys.get().map(Vec::as_slice).ok_or_else(starting)
    }

    fn key(&self, name: Part) -> Result<&Arc<OpenKey>, Problem> {
        let name = text(name)?;
        let found = self.keys()?.iter().find(|key| key.name == name);
        found.ok_or_else(|| Problem::new(Code::NoKey, "the names of keys are at /v1/keys"))
    }

    fn job(&self, id: Part) -> Result<Arc<Job>, Problem> {
        let found = self.jobs.get(&text(id)?);
        found.ok_or_else(|| Problem::new(Code::NoJob, "there was none, or it is forgotten"))
    }
}

fn text(part: Part) -> Result<String, Problem> {
    part.map(|Path(part)| part)
        .map_err(|_| Problem::new(Code::BadPath, "the path has bytes that are no UTF-8"))
}

fn starting() -> Problem {
    Problem::new(Code::Starting, "the server opens its keys: see /readyz").retry_after(Duration::from_secs(1))
}

fn json_text(status: StatusCode, text: impl Into<axum::body::Body>) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, json)], text.into()).into_response()
}

fn json_value(value: &Value) -> Response {
    json_text(StatusCode::OK, value.to_string())
}

/// `POST /v1/keys/{name}/proofs`
pub(crate) async fn prove(State(app): State<Arc<App>>, name: Part, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let key = app.key(name)?;
    check_content_type(&parts.headers)?;
    let asked = Asked::of(&parts.headers)?;
    asked.check_for(&key.key)?;
    let length = key.key.witness_length();
    match body_bytes(&parts.headers) {
        Some(bytes) if bytes > length.bytes_max => return Err(upload::too_large(length)),
        Some(bytes) if length.is_exact && bytes < length.bytes_max => {
            return Err(upload::wrong_length(bytes, length));
        }
        _ => {}
    }
    let limit_bytes = app.jobs.session().budget().limit_bytes();
    let needed_bytes = app.jobs.needed_bytes(key.need.minimum_bytes);
    if needed_bytes > limit_bytes {
        return Err(Problem::too_small(Needed {
            needed_bytes,
            limit_bytes,
        }));
    }
    let admitted = app.jobs.admit(key, &asked)?;
    let job = match admitted {
        Admitted::New(receiving) => {
            let job = Arc::clone(receiving.job());
            // From here on the job is this request's: when the client goes, so does the job.
            let waiter = Waiter::new(&app.jobs, &job);
            app.uploads.receive(&app.jobs, receiving, body).await?;
            return answer(&job, waiter, &asked).await;
        }
        Admitted::Known(job) => job,
    };
    let waiter = Waiter::new(&app.jobs, &job);
    let Some(digest) = job.inner().digest else {
        let detail =
            "the request that came first with this Idempotency-Key is still being received: send it again";
        return Err(Problem::new(Code::InProgress, detail).retry_after(Duration::from_secs(1)));
    };
    if app.uploads.digest(body, length).await? != digest || job.scheme != asked.scheme {
        let detail = "an Idempotency-Key is for one witness of one key, and one scheme: take another one";
        return Err(Problem::new(Code::KeyReused, detail));
    }
    answer(&job, waiter, &asked).await
}

/// Waits for the job as long as was asked for, and answers with what became of it.
async fn answer(job: &Arc<Job>, waiter: Waiter, asked: &Asked) -> Answer {
    let wait = match (asked.is_async, asked.wait) {
        (true, None) => Some(Duration::ZERO),
        (_, wait) => wait,
    };
    if asked.is_async || wait.is_some() {
        waiter.detach();
    }
    match wait {
        None => waiter.ended().await,
        Some(wait) => {
            let _either_way = tokio::time::timeout(wait, waiter.ended()).await;
        }
    }
    let place = format!("/v1/jobs/{}", job.id);
    let place = HeaderValue::from_str(&place).map_err(|error| Problem::internal(&error))?;
    let (outcome, applied) = (job.outcome(), HeaderValue::from_static("respond-async"));
    match outcome {
        Some(Outcome::Proof(proof)) if !asked.is_async || asked.wait.is_some() => {
            let mut response = json_text(StatusCode::OK, proof);
            response.headers_mut().insert(header::CONTENT_LOCATION, place);
            Ok(response)
        }
        Some(Outcome::Problem(problem)) if !asked.is_async || asked.wait.is_some() => Err(problem),
        _ => {
            let mut response = json_text(StatusCode::ACCEPTED, job.text());
            response.headers_mut().insert(header::LOCATION, place);
            response.headers_mut().insert("preference-applied", applied);
            Ok(response)
        }
    }
}

/// `GET /v1/keys`
pub(crate) async fn keys(State(app): State<Arc<App>>) -> Answer {
    let keys: Vec<_> = app
        .keys()?
        .iter()
        .map(|key| key.summary(app.jobs.needed_bytes(key.need.minimum_bytes)))
        .collect();
    Ok(json_value(&json!({ "keys": keys })))
}

/// `GET /v1/keys/{name}`
pub(crate) async fn key(State(app): State<Arc<App>>, name: Part) -> Answer {
    let key = app.key(name)?;
    let description = key.description(app.jobs.needed_bytes(key.need.minimum_bytes));
    Ok(json_value(
        &description.map_err(|error| Problem::internal(&error))?,
    ))
}

/// `GET /v1/jobs/{id}`
pub(crate) async fn job(State(app): State<Arc<App>>, id: Part) -> Answer {
    Ok(json_text(StatusCode::OK, app.job(id)?.text()))
}

/// `DELETE /v1/jobs/{id}`
pub(crate) async fn stop_job(State(app): State<Arc<App>>, id: Part) -> Answer {
    let job = app.job(id)?;
    if app.jobs.forget(&job) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    app.jobs.stop(&job, Cause::Deleted);
    Ok(json_text(StatusCode::ACCEPTED, job.text()))
}

/// `GET /healthz`
pub(crate) async fn health() -> Response {
    json_value(&json!({"status": "ok"}))
}

/// `GET /readyz`
pub(crate) async fn readiness(State(app): State<Arc<App>>) -> Answer {
    if app.jobs.is_closed() {
        return Err(draining());
    }
    let (keys, counts, budget) = (app.keys()?, app.jobs.counts(), app.jobs.session().budget());
    Ok(json_value(&json!({
        "status": "ready",
        "keys": keys.len(),
        "queue": {"length": counts.receiving + counts.waiting, "limit": counts.queue_limit},
        "running": counts.running,
        "budget": {"limitBytes": budget.limit_bytes(), "heldBytes": budget.held_bytes()},
    })))
}

/// `GET /metrics`
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let jobs = &app.jobs;
    let text = jobs.metrics.text(jobs.session(), &jobs.counts(), app.since);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
}

/// `GET /openapi.json`
pub(crate) async fn description() -> Response {
    json_text(StatusCode::OK, crate::OPENAPI)
}
