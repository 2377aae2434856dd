//! The files of the repository on their way to a worker: found in the mirror of the source, and read piece by piece.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use bytes::Bytes;
use model::{Job, error_chain};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use workflow::Checkout;

use crate::error::WorkerError;
use crate::git::{CommitId, FileLimits, Files, FilesError, Mirror};
use crate::handle::Handle;
use crate::limits::{FILES_PAUSE, FILES_PIECE, FILES_PIECES};
use crate::source::SourceHandle;
use crate::worker::Worker;

/// Files that were found and fit, as a tar.
pub struct SourceFiles {
    files: Files,
    mirror: Mirror,
    permit: OwnedSemaphorePermit,
}

/// A piece of the tar; an error, which is a message, ends it.
pub type Piece = Result<Bytes, String>;

impl Handle {
    /// Finds the files that the worker's job gets. If the mirror does not have the commit, the source is looked at, and
    /// then the repository is asked for this one commit.
    pub async fn source_files(&self, worker: &Worker) -> Result<SourceFiles, WorkerError> {
        worker.executing()?;
        let job = worker.job();
        let (commit, paths) = self.wanted(job)?;
        let name = &job.workflow.source;
        let refused = |message: String| WorkerError::Checkout { message };
        let source = self.source(name).ok_or_else(|| {
            refused(format!(
                "commit {commit} cannot be read: source `{name}` is not configured any more"
            ))
        })?;
        let permit = tokio::select! {
            permit = self.file_streams().acquire_owned() => permit,
            () = self.stopping() => return Err(WorkerError::Stopping),
        };
        let permit = permit.map_err(|_| WorkerError::Stopping)?;
        let files = match list(source, commit, &paths).await {
            Err(FilesError::Missing { .. } | FilesError::Damaged(_)) => {
                // A look makes a mirror that is gone or damaged anew.
                let request = source.request();
                tokio::select! {
                    () = source.honoured(request) => {}
                    () = self.stopping() => return Err(WorkerError::Stopping),
                }
                self.list_or_fetch(source, commit, &paths).await?
            }
            files => files.map_err(|error| refused(error_chain(&error)))?,
        };
        Ok(SourceFiles {
            files,
            mirror: source.mirror().clone(),
            permit,
        })
    }

    /// The commit and the paths that a job asks for.
    fn wanted(&self, job: &Job) -> Result<(CommitId, Vec<String>), WorkerError> {
        let refused = |message: &str| WorkerError::Checkout {
            message: message.to_owned(),
        };
        let source = job.source.as_ref();
        let source = source.ok_or_else(|| refused("the job gets no files of the repository"))?;
        let commit = source
            .commit
            .parse()
            .map_err(|_| refused(&format!("`{}` is no commit of a repository", source.commit)))?;
        let checkout = self.state().read(|world| {
            let revision = world.revision(job.revision.id)?;
            revision
                .definition
                .scan(job.scan.as_str())?
                .checkout
                .clone()
        });
        let paths = checkout.as_ref().map(Checkout::paths);
        Ok((commit, paths.unwrap_or_default().to_vec()))
    }

    async fn list_or_fetch(
        &self,
        source: &SourceHandle,
        commit: CommitId,
        paths: &[String],
    ) -> Result<Files, WorkerError> {
        let refused = |message: String| WorkerError::Checkout { message };
        match list(source, commit, paths).await {
            Err(FilesError::Missing { .. } | FilesError::Damaged(_)) => {}
            files => return files.map_err(|error| refused(error_chain(&error))),
        }
        let (mirror, location) = (source.mirror().clone(), source.location().clone());
        let fetch = move || mirror.fetch_commit(&location, commit);
        let gone = |why: String| {
            let name = source.name();
            refused(format!("commit {commit} of source `{name}` is gone: {why}"))
        };
        match tokio::task::spawn_blocking(fetch).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(gone(error_chain(&error))),
            Err(_) => return Err(gone("the fetch ended unexpectedly".to_owned())),
        }
        let files = list(source, commit, paths).await;
        files.map_err(|error| refused(error_chain(&error)))
    }
}

async fn list(
    source: &SourceHandle,
    commit: CommitId,
    paths: &[String],
) -> Result<Files, FilesError> {
    let (mirror, paths) = (source.mirror().clone(), paths.to_vec());
    let listing = move || mirror.files(commit, &paths, &FileLimits::default());
    let listed = tokio::task::spawn_blocking(listing).await;
    listed.unwrap_or_else(|_| {
        Err(FilesError::Unsent(io::Error::other(
            "reading them panicked",
        )))
    })
}

impl SourceFiles {
    /// Reads the tar, a few pieces ahead of the reader. It ends early when the reader drops the receiver, or takes nothing
    /// for too long. The worker knows a whole tar by its end.
    pub fn read(self) -> mpsc::Receiver<Piece> {
        let (sender, pieces) = mpsc::channel(FILES_PIECES);
        let runtime = Runtime::current();
        tokio::task::spawn_blocking(move || {
            let Self {
                files,
                mirror,
                permit,
            } = self;
            let sending = Pieces {
                sender: &sender,
                runtime: &runtime,
                pause: FILES_PAUSE,
            };
            let mut writer = BufWriter::with_capacity(FILES_PIECE, sending);
            let written = mirror
                .write_files(&files, &mut writer)
                .and_then(|()| writer.flush().map_err(FilesError::Unsent));
            if let Err(error) = written {
                // If the reader has gone or is stuck, nobody needs it.
                drop(writer.into_parts());
                let _unread = sender.try_send(Err(error_chain(&error)));
            }
            drop(permit);
        });
        pieces
    }
}

/// Sends what is written.
struct Pieces<'a> {
    sender: &'a mpsc::Sender<Piece>,
    runtime: &'a Runtime,
    /// How long the reader may take for a piece.
    pause: Duration,
}

impl Write for Pieces<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // A file that is larger than the buffer comes whole.
        let piece = &piece[..piece.len().min(FILES_PIECE)];
        let sending = self.sender.send(Ok(Bytes::copy_from_slice(piece)));
        let sent = async { timeout(self.pause, sending).await };
        match self.runtime.block_on(sent) {
            Ok(Ok(())) => Ok(piece.len()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_does_not_hold_the_stream() {
        let (sender, kept) = mpsc::channel(FILES_PIECES);
        let runtime = Runtime::current();
        let writing = tokio::task::spawn_blocking(move || {
            let mut pieces = Pieces {
                sender: &sender,
                runtime: &runtime,
                pause: Duration::from_millis(10),
            };
            let content = vec![0; (FILES_PIECES + 1) * FILES_PIECE];
            pieces.write_all(&content).map_err(|error| error.kind())
        });
        assert_eq!(writing.await.unwrap(), Err(io::ErrorKind::TimedOut));
        drop(kept);
    }
}
