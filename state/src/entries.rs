//! Lists the files in a job's artifact from the directory of its zip.

use model::JobId;

use crate::blocking::on_volume;
use crate::error::ReadError;
use crate::layout::Layout;
use crate::state::State;
use crate::zip_directory::{Found, LARGE_END_BYTES, TAIL_BYTES, ZipEntry, ZipProblem, find, large};

impl State {
    /// Calls `visit` for each file in an artifact, in the order of the zip. `None` if the artifact has been removed.
    pub async fn artifact_entries<T: Send + 'static>(
        &self,
        job: JobId,
        name: &str,
        mut collected: T,
        visit: impl Fn(&mut T, ZipEntry) + Send + 'static,
    ) -> Result<Option<Result<T, ZipProblem>>, ReadError> {
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
            let listed = match directory {
                Ok(directory) => directory.each(read, |entry| visit(&mut collected, entry))?,
                Err(problem) => Err(problem),
            };
            Ok(Some(listed.map(|()| collected)))
        })
        .await
    }
}
