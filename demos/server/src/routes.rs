//! What is answered to which request: the table of routes that the router, the description and the tests share.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use std::net::IpAddr;
use std::sync::Arc;

use crate::handlers::{self, App};
use crate::problem::{Code, Problem};

/// A route.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Its method.
    pub method: &'static str,
    /// Its path, as OpenAPI writes it.
    pub path: &'static str,
    /// Whether a token is asked for, if the server has one.
    pub has_token: bool,
    /// The status of its answers that are no errors.
    pub answers: &'static [u16],
    /// Its own errors. [`Route::codes`] has those of all routes, too.
    errors: &'static [Code],
}

/// Errors that any request can have.
const OF_ALL: &[Code] = &[Code::Malformed, Code::UriTooLong, Code::HeadTooLarge, Code::Host];
/// Errors of requests without a route.
const OF_NONE: &[Code] = &[Code::NoRoute, Code::Method];

/// All routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: "POST",
        path: "/v1/keys/{name}/proofs",
        has_token: true,
        answers: &[200, 202],
        errors: &[
            Code::BadHeader,
            Code::BadPath,
            Code::BodyIncomplete,
            Code::NoKey,
            Code::BodyTimeout,
            Code::InProgress,
            Code::Stopped,
            Code::TooLarge,
            Code::ContentType,
            Code::WitnessLength,
            Code::WitnessInvalid,
            Code::Unsatisfied,
            Code::KeyReused,
            Code::BudgetTooSmall,
            Code::QueueFull,
            Code::Internal,
            Code::Starting,
            Code::Draining,
            Code::NoRoom,
            Code::Deadline,
            Code::TimeLimit,
            Code::DiskFull,
        ],
    },
    Route {
        method: "GET",
        path: "/v1/keys",
        has_token: true,
        answers: &[200],
        errors: &[Code::Starting],
    },
    Route {
        method: "GET",
        path: "/v1/keys/{name}",
        has_token: true,
        answers: &[200],
        errors: &[Code::BadPath, Code::NoKey, Code::Internal, Code::Starting],
    },
    Route {
        method: "GET",
        path: "/v1/jobs/{id}",
        has_token: true,
        answers: &[200],
        errors: &[Code::BadPath, Code::NoJob],
    },
    Route {
        method: "DELETE",
        path: "/v1/jobs/{id}",
        has_token: true,
        answers: &[202, 204],
        errors: &[Code::BadPath, Code::NoJob],
    },
    Route {
        method: "GET",
        path: "/healthz",
        has_token: false,
        answers: &[200],
        errors: &[],
    },
    Route {
        method: "GET",
        path: "/readyz",
        has_token: false,
        answers: &[200],
        errors: &[Code::Starting, Code::Draining],
    },
    Route {
        method: "GET",
        path: "/metrics",
        has_token: true,
        answers: &[200],
        errors: &[],
    },
    Route {
        method: "GET",
        path: "/openapi.json",
        has_token: true,
        answers: &[200],
        errors: &[],
    },
];

impl Route {
    /// All codes that its errors can have.
    pub fn codes(&self) -> impl Iterator<Item = Code> + use<'_> {
        let of_token = self.has_token.then_some(Code::Unauthorized);
        let codes = self.errors.iter().chain(OF_ALL).copied();
        codes.chain(of_token)
    }

    /// The route of a request. HEAD is GET without a body.
    fn of(method: &Method, path: &str) -> Option<&'static Self> {
        let method = match method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        let is_part =
            |(part, given): (&str, &str)| part == given || (part.starts_with('{') && !given.is_empty());
        ROUTES.iter().find(|route| {
            method.as_str() == route.method
                && route.path.split('/').count() == path.split('/').count()
                && route.path.split('/').zip(path.split('/')).all(is_part)
        })
    }
}

/// The router.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/keys/{name}/proofs", post(handlers::prove))
        .route("/v1/keys", get(handlers::keys))
        .route("/v1/keys/{name}", get(handlers::key))
        .route("/v1/jobs/{id}", get(handlers::job))
        .route("/v1/jobs/{id}", delete(handlers::stop_job))
        .route("/healthz", get(handlers::health))
        .route("/readyz", get(handlers::readiness))
        .route("/metrics", get(handlers::metrics))
        .route("/openapi.json", get(handlers::description))
        .fallback(async || Problem::new(Code::NoRoute, "the routes are in /openapi.json"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::Method, "the methods of each route are in /openapi.json")
        })
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// Lets in what may come in, and counts what goes out.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = Route::of(request.method(), request.uri().path());
    let method = request.method().clone();
    let response = match admission(&app, route, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let mut response = documented(route, response);
    let code = response.extensions().get::<Code>().copied();
    app.jobs.metrics.answered(response.status().as_u16(), code);
    tracing::debug!(
        %method,
        path = route.map_or("-", |route| route.path),
        status = response.status().as_u16(),
        code = code.map_or("-", Code::text),
        "answered"
    );
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

fn admission(app: &App, route: Option<&Route>, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let Some(token) = &app.token else {
        // A name could be one of another site, which leads a browser here.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        return match host.is_none_or(is_address) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::Host,
                "without a token, requests name the server as localhost or by its address",
            )),
        };
    };
    let is_free = route.is_some_and(|route| !route.has_token);
    if is_free || token.is_in(headers.get(header::AUTHORIZATION)) {
        return Ok(());
    }
    Err(Problem::new(
        Code::Unauthorized,
        "send the header Authorization: Bearer, with the server's token",
    ))
}

fn is_address(host: &str) -> bool {
    let end = host.rfind(']').map_or(0, |at| at + 1);
    let name = match host[end..].rfind(':') {
        Some(colon) => &host[..end + colon],
        None => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// In debug builds, an answer that the table does not have is a failure: tests see it.
fn documented(route: Option<&Route>, response: Response) -> Response {
    let (status, code) = (
        response.status().as_u16(),
        response.extensions().get::<Code>().copied(),
    );
    let is_known = match (route, code) {
        (Some(route), None) => route.answers.contains(&status),
        (Some(route), Some(code)) => route.codes().any(|known| known == code),
        (None, Some(code)) => OF_NONE.contains(&code) || OF_ALL.contains(&code) || code == Code::Unauthorized,
        (None, None) => false,
    };
    if is_known || !cfg!(debug_assertions) {
        return response;
    }
    tracing::error!(
        status,
        ?code,
        ?route,
        "an answer that is not in the table of routes"
    );
    Problem::new(
        Code::Internal,
        format!("status {status}, {code:?} is not in the table of routes"),
    )
    .into_response()
}
