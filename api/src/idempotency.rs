//! Idempotency keys. A command that is sent again with its key is not executed again.

use bytes::Bytes;
use model::IdempotencyKey;
use serde::Serialize;

use crate::failure::Failure;
use crate::limits::IDEMPOTENCY_KEY_BYTES;
use crate::request::Request;
use crate::visible::Visible;

/// A command as it was sent: the client's key, if there is one, and the body. A repeat must have the same body.
pub(crate) struct Attempt {
    key: Option<String>,
    pub(crate) body: Bytes,
}

impl Attempt {
    /// Reads the header `Idempotency-Key` and the body.
    pub(crate) async fn of(request: &mut Request) -> Result<Self, Failure> {
        let key = request.headers.get("idempotency-key");
        // A key that is not text becomes an empty one, which is refused.
        let key = key.map(|key| key.to_str().unwrap_or_default().to_owned());
        let body = request.body.bytes().await?;
        Ok(Self { key, body })
    }

    pub(crate) fn of_form<T: Serialize>(key: Option<&str>, command: &T) -> Result<Self, Failure> {
        let body = serde_json::to_vec(command).map_err(|error| Failure::internal(&error))?;
        Ok(Self {
            key: key.map(str::to_owned),
            body: Bytes::from(body),
        })
    }

    /// The key, if there is one. It belongs to the caller and to `command`, which names the command and its object.
    pub(crate) fn key(
        &self,
        user: &Visible,
        command: &str,
    ) -> Result<Option<IdempotencyKey>, Failure> {
        let Some(key) = &self.key else {
            return Ok(None);
        };
        // HTTP allows tabs in header values, but a tab is not printable.
        let is_printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if is_printable && (1..=IDEMPOTENCY_KEY_BYTES).contains(&key.len()) {
            let caller = user.principal().caller();
            return Ok(Some(IdempotencyKey::new(caller, command, key, &self.body)));
        }
        Err(Failure::invalid(
            "Idempotency-Key",
            format!("must be 1 to {IDEMPOTENCY_KEY_BYTES} printable characters"),
        ))
    }
}
