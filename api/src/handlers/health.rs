//! Whether the daemon lives and serves.

use serde_json::json;
use warp::reply::Response;

use crate::reply;

/// The process answers.
pub(super) fn alive() -> Response {
    reply::ok(&json!({"status": "ok"}))
}

/// The state is open and commands are taken: the listener exists only then, and a failed commit ends the process.
pub(super) fn ready() -> Response {
    reply::ok(&json!({"status": "ready"}))
}
