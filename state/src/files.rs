//! Work on files, off the async threads.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Interrupted, ReadError};

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

/// The names in a folder of the state; none when there is no such folder. Blocks.
pub(crate) fn names(root: &Path, folder: &str) -> Result<Vec<String>, ReadError> {
    let read = || -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(root.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    };
    read().map_err(|source| ReadError::File {
        path: folder.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ReadError;

    #[tokio::test]
    async fn a_panic_of_blocking_work_is_not_told_as_a_stop() {
        let work = async { blocking(|| -> Result<(), ReadError> { panic!("on purpose") }).await };
        assert!(tokio::spawn(work).await.unwrap_err().is_panic());
    }
}
