//! Proofs over HTTP, all inside one budget of memory: Groth16, and circuits of halo2-axiom from saved keys.
//!
//! Keys are opened once. A request brings a witness, which goes to sealed scratch as it comes; its job waits in a
//! queue, and proves when the budget has room for its plan. Nothing that grows with a circuit is held
//! outside of the budget: what witnesses take on their way, and what proofs take until they are forgotten, is
//! leased when the server starts.
//!
//! | module | content |
//! |---|---|
//! | `settings` | what a server is told, and what it cannot start with |
//! | `token` | the bearer token |
//! | `keys` | key files, their names, and the keys that are open |
//! | `system`, `halo2`, `parameters` | what keys of all proof systems do; saved halo2 keys, and their SRS |
//! | `problem` | the errors that a client gets |
//! | `queue` | the order of jobs that wait |
//! | `state`, `job`, `jobs` | how far a job is; one job; all of them, and the threads that prove |
//! | `upload` | a body on its way to sealed scratch |
//! | `asked` | what headers of a request ask for |
//! | `metrics` | counters, as Prometheus reads them |
//! | `routes`, `handlers` | what is answered to which request |
//! | `connection` | connections: limits on headers, on slow clients, on their number |
//! | `server` | all of it, from the first key to the end of the last job |
//!
//! ```no_run
//! use std::sync::Arc;
//! use spillproof_engine::Session;
//! use spillproof_server::{Server, Settings};
//!
//! let session = Arc::new(Session::builder().memory("256MiB").dir("/nvme").build()?);
//! let server = Server::bind(session, Settings::new(vec!["keys".into()]))?;
//! println!("http://{}", server.address());
//! server.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod asked;
mod connection;
mod halo2;
mod handlers;
mod job;
mod jobs;
mod keys;
mod metrics;
mod parameters;
mod problem;
mod queue;
mod routes;
mod server;
mod settings;
mod state;
mod system;
mod token;
mod upload;

pub use problem::{CODES, Code};
pub use routes::{ROUTES, Route};
pub use server::{Handle, Server};
pub use settings::{Error, Result, Settings};

/// The description of the routes, as OpenAPI 3.1; it is served at `/openapi.json`.
pub const OPENAPI: &str = include_str!("../openapi.json");
