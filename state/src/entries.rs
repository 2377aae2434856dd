//! The files in a job's artifact, from the directory of its zip.

use model::JobId;

use crate::blocking::on_volume;
use crate::error::ReadError;
use crate::layout::Layout;
use crate::state::State;
use crate::zip_directory::{Found, LARGE_END_BYTES, TAIL_BYTES, ZipEntry, ZipProblem, find, large};

impl State {
    /// The files in an artifact, in the order of its zip. None if its file has been removed.
    pub async fn artifact_entries(
        &self,
        job: JobId,
        name: &str,
    ) -> Result<Option<Result<Vec<ZipEntry>, ZipProblem>>, ReadError> {
        let key = Layout::artifact(job, name);
        on_volume(self.volume(), move |volume| {
            let fail = |source| ReadError::file(&key, source);
            let Some(file) = volume.open_object(&key).map_err(fail)? else {
                return Ok(None);
            };
            let size = file.size().map_err(fail)?;
            let read = |at, limit| file.read_at(at, limit).map_err(fail);
            let tail = read(size.saturating_sub(TAIL_BYTES as u64), TAIL_BYTES)?;
            let directory = match find(&tail) {
                Ok(Found::Directory(directory)) => Ok(directory),
                Ok(Found::LargeEnd(at)) => large(&read(at, LARGE_END_BYTES)?),
                Err(problem) => Err(problem),
            };
            let entries = match directory {
                Ok(directory) => {
                    let bytes = read(directory.begin, directory.bytes)?;
                    directory.entries(&bytes)
                }
                Err(problem) => Err(problem),
            };
            Ok(Some(entries))
        })
        .await
    }
}
