//! The HTTP API under `/v0`.
//!
//! One table has everything about each route but its handler. A request is matched, authenticated and bounded before its
//! body is read. Then an exhaustive match calls its handler. Handlers are plain async functions over domain
//! types. This package does not know how the state is stored.
//!
//! The pages of the web UI are routes of the same table. They load the same data as `/v0`, and the package `ui` renders it.

mod access;
mod base;
mod body;
mod convert;
mod events;
mod failure;
mod handlers;
mod idempotency;
mod limits;
mod metrics;
mod openapi;
mod page;
mod pages;
mod peer;
mod precondition;
mod rate;
mod reply;
mod request;
mod respond;
mod routes;
mod serve;
mod service;
mod session;
mod turns;
mod visible;

pub use base::BasePath;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use handlers::fuzzing;
pub use handlers::sign_in::{sign_in_path, user_link_path};
pub use openapi::DOCUMENT as OPENAPI;
pub use rate::Rate;
pub use routes::{
    Access, ActionRoute, LocalRoute, PageRoute, PublicRoute, ROUTES, Route, RunnerRoute,
    SessionRoute, UserRoute, WorkerRoute,
};
pub use serve::serve;
pub use service::{CallbackChecker, Front};
