//! The header `Idempotency-Key`, which requests that make something may carry.

use model::IdempotencyKey;

use crate::failure::Failure;
use crate::limits::IDEMPOTENCY_KEY_BYTES;
use crate::request::Request;
use crate::visible::Visible;

/// The key of the request, if it carries one. It belongs to the caller's token and to `route`, which names what the
/// request is about.
pub(crate) fn key(
    me: &Visible,
    request: &Request,
    route: &str,
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Failure> {
    let Some(value) = request.headers.get("idempotency-key") else {
        return Ok(None);
    };
    // A tab is text to HTTP, but not printable.
    let is_printable = |key: &str| key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match value.to_str() {
        Ok(key) if (1..=IDEMPOTENCY_KEY_BYTES).contains(&key.len()) && is_printable(key) => {
            Ok(Some(IdempotencyKey::new(me.token().id, route, key, body)))
        }
        Ok(_) | Err(_) => Err(Failure::invalid(
            "Idempotency-Key",
            format!("must be 1 to {IDEMPOTENCY_KEY_BYTES} printable characters"),
        )),
    }
}
