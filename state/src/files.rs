//! Small objects read and written whole, off the async threads.

use std::io::{self, Read};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use store::objects::Objects;

use crate::alarm::Alarm;
use crate::error::{ReadError, WriteError};
use crate::layout::Layout;

/// Runs blocking file work on the runtime's threads for such work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(ReadError::Interrupted))
}

/// The payload of that digest.
pub(crate) async fn read_object(objects: &Objects, sha256: &str) -> Result<Bytes, ReadError> {
    let (objects, key, wanted) = (objects.clone(), Layout::object(sha256), sha256.to_owned());
    blocking(move || {
        let fail = |source| ReadError::File {
            path: key.to_string(),
            source,
        };
        let opened = objects
            .open(&key)
            .map_err(|error| fail(io::Error::other(error)))?;
        let (mut file, length) = opened.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        file.read_to_end(&mut bytes).map_err(fail)?;
        let found = digest(&bytes);
        if found == wanted {
            Ok(Bytes::from(bytes))
        } else {
            Err(ReadError::Damaged {
                path: key.to_string(),
                problem: format!("its SHA-256 is {found}"),
            })
        }
    })
    .await
}

/// Stores a payload under its digest and answers the digest. Durable when this returns.
pub(crate) async fn write_object(
    objects: &Objects,
    alarm: &Alarm,
    bytes: Bytes,
) -> Result<String, WriteError> {
    let (objects, alarm) = (objects.clone(), alarm.clone());
    let written = tokio::task::spawn_blocking(move || {
        let sha256 = digest(&bytes);
        let key = Layout::object(&sha256);
        let fail = |error| WriteError::watched(&alarm, &key, error);
        let mut writer = objects.create().map_err(fail)?;
        writer.write(&bytes).map_err(fail)?;
        writer.finish(&key).map_err(fail)?;
        Ok(sha256)
    });
    written.await.unwrap_or(Err(WriteError::Interrupted))
}

/// SHA-256, hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
