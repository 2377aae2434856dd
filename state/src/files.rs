//! Small objects read and written whole, off the async threads.

use std::io::{self, Read};

use bytes::Bytes;
use store::objects::Objects;
use workflow::sha256;

use crate::alarm::Alarm;
use crate::error::{Interrupted, ReadError, WriteError};
use crate::layout::Layout;

/// Runs blocking file work on the runtime's threads for such work. A panic of the work is the caller's.
pub(crate) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Interrupted> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Interrupted.into()),
        },
    }
}

/// The payload of that digest.
pub(crate) async fn read_object(objects: &Objects, digest: &str) -> Result<Bytes, ReadError> {
    let (objects, key, wanted) = (objects.clone(), Layout::object(digest), digest.to_owned());
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
        let found = sha256(&bytes);
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
    blocking(move || {
        let digest = sha256(&bytes);
        let key = Layout::object(&digest);
        let fail = |error| WriteError::watched(&alarm, &key, error);
        let mut writer = objects.create().map_err(fail)?;
        writer.write(&bytes).map_err(fail)?;
        writer.finish(&key).map_err(fail)?;
        Ok(digest)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_blocking_work_is_not_told_as_a_stop() {
        let work = async { blocking(|| -> Result<(), ReadError> { panic!("on purpose") }).await };
        assert!(tokio::spawn(work).await.unwrap_err().is_panic());
    }
}
