//! Ids on the command line.

use uuid::Uuid;

/// Reads the id of a job.
///
/// # Errors
/// A sentence for the person who wrote it.
pub(crate) fn job(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        "a job's id looks like 0192f0c1-2d3e-7a4b-8c5d-000000000001; `everscan scan dispatch` prints it, and \
         `everscan job list` shows those of all jobs"
            .to_owned()
    })
}
