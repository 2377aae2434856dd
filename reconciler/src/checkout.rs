//! Sends files of the repository to a worker. They are found in the mirror of the source and read piece by piece.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use bytes::Bytes;
use model::{Job, error_chain};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use crate::error::WorkerError;
use crate::git::{CommitId, FetchError, FileLimits, Files, FilesError, Mirror};
use crate::handle::Handle;
use crate::limits::{FILES_PAUSE, FILES_PIECE, FILES_PIECES};
use crate::source::SourceHandle;
use crate::worker::Worker;

/// Files of a commit that passed all checks and can be read as a tar.
pub struct SourceFiles {
    files: Files,
    mirror: Mirror,
    permit: OwnedSemaphorePermit,
}

/// A piece of the stream of files. A stream that does not end with [`Piece::End`] is incomplete.
pub enum Piece {
    Bytes(Bytes),
    End,
    /// The remaining files cannot be read, for this reason.
    Broken(String),
}

impl Handle {
    /// Finds the files for the worker's job. If the mirror lacks the commit, the source is polled, and then this commit
    /// is fetched.
    pub async fn source_files(&self, worker: &Worker) -> Result<SourceFiles, WorkerError> {
        worker.executing()?;
        let job = worker.job();
        let (commit, paths) = self.wanted(job)?;
        let name = &job.workflow.source;
        let refused = |message: String| WorkerError::Checkout { message };
        let source = self.sources().get(name).ok_or_else(|| {
            refused(format!(
                "commit {commit} cannot be read: source `{name}` is not configured any more"
            ))
        })?;
        if let Ok(files) = self.files_in_mirror(source, commit, &paths).await? {
            return Ok(files);
        }
        // A poll rebuilds a missing or damaged mirror.
        let request = source.request();
        tokio::select! {
            () = source.handled(request) => {}
            () = self.stopping() => return Err(WorkerError::Stopping),
        }
        // One job fetches at a time. The other jobs then find the commit in the mirror.
        let turn = tokio::select! {
            turn = source.turn_to_fetch() => turn,
            () = self.stopping() => return Err(WorkerError::Stopping),
        };
        if let Ok(files) = self.files_in_mirror(source, commit, &paths).await? {
            return Ok(files);
        }
        let fetched = fetch(source, commit, turn).await;
        // A signal that stops the daemon may also stop its `git` process.
        fetched.map_err(|error| {
            if self.is_stopping() {
                WorkerError::Stopping
            } else {
                error
            }
        })?;
        let files = self.files_in_mirror(source, commit, &paths).await?;
        files.map_err(|error| refused(missing_commit(source, commit, &error_chain(&error))))
    }

    /// Returns the files, or the reason why the mirror lacks the commit or cannot be read. The permit covers only
    /// reading, so a slow fetch of another source delays nobody.
    async fn files_in_mirror(
        &self,
        source: &SourceHandle,
        commit: CommitId,
        paths: &[String],
    ) -> Result<Result<SourceFiles, FilesError>, WorkerError> {
        let permit = tokio::select! {
            permit = self.sources().file_streams.clone().acquire_owned() => permit,
            () = self.stopping() => return Err(WorkerError::Stopping),
        };
        let permit = permit.map_err(|_| WorkerError::Stopping)?;
        match list(source, commit, paths).await {
            Ok(files) => Ok(Ok(SourceFiles {
                files,
                mirror: source.mirror().clone(),
                permit,
            })),
            Err(error @ (FilesError::Missing { .. } | FilesError::Damaged(_))) => Ok(Err(error)),
            Err(error) => Err(WorkerError::Checkout {
                message: error_chain(&error),
            }),
        }
    }

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
        let checkout = checkout.ok_or_else(|| {
            refused("the revision of the job, which says what the job gets, cannot be read")
        })?;
        Ok((commit, checkout.paths().to_vec()))
    }
}

/// Fetches this commit. The turn lasts until the fetch ends, even if the caller stops waiting.
async fn fetch(
    source: &SourceHandle,
    commit: CommitId,
    turn: OwnedMutexGuard<()>,
) -> Result<(), WorkerError> {
    let (mirror, location) = (source.mirror().clone(), source.location().clone());
    let fetched = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        mirror.fetch_commit(&location, commit)
    })
    .await;
    let why = match fetched {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(FetchError::Stopped { .. })) => return Err(WorkerError::Stopping),
        Ok(Err(error)) => error_chain(&error),
        Err(_) => "the fetch ended unexpectedly".to_owned(),
    };
    Err(WorkerError::Checkout {
        message: missing_commit(source, commit, &why),
    })
}

fn missing_commit(source: &SourceHandle, commit: CommitId, why: &str) -> String {
    let name = source.name();
    format!(
        "commit {commit} of source `{name}` is gone from the mirror and cannot be fetched again: {why}"
    )
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
    /// Reads the tar, a few pieces ahead of the receiver. Reading ends early if the receiver is dropped or takes no
    /// piece for too long.
    pub fn read(self) -> mpsc::Receiver<Piece> {
        let (sender, pieces) = mpsc::channel(FILES_PIECES);
        let runtime = Runtime::current();
        tokio::task::spawn_blocking(move || {
            let Self {
                files,
                mirror,
                permit,
            } = self;
            let pieces = Pieces {
                sender: &sender,
                runtime: &runtime,
                pause: FILES_PAUSE,
                has_failed: false,
            };
            send_all(pieces, |writer| mirror.write_files(&files, writer));
            drop(permit);
        });
        pieces
    }
}

/// Sends the output of `write`, and then its end or its error. A receiver that is gone or stuck gets no end, so that it knows
/// that the stream is incomplete.
fn send_all<'a>(
    pieces: Pieces<'a>,
    write: impl FnOnce(&mut BufWriter<Pieces<'a>>) -> Result<(), FilesError>,
) {
    let mut writer = BufWriter::with_capacity(FILES_PIECE, pieces);
    let written = write(&mut writer).and_then(|()| writer.flush().map_err(FilesError::Unsent));
    let end = match written {
        Ok(()) => Piece::End,
        Err(FilesError::Unsent(_)) => return,
        Err(error) => Piece::Broken(error_chain(&error)),
    };
    // After an error, the rest of the buffer is dropped.
    let (mut pieces, _unsent) = writer.into_parts();
    let _unread = pieces.send(end);
}

struct Pieces<'a> {
    sender: &'a mpsc::Sender<Piece>,
    runtime: &'a Runtime,
    pause: Duration,
    /// After one piece was not delivered, no other piece is sent: buffers and archives write their rest when they are
    /// dropped, and it would look like a regular end.
    has_failed: bool,
}

impl Pieces<'_> {
    fn send(&mut self, piece: Piece) -> io::Result<()> {
        if self.has_failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sending = self.sender.send(piece);
        let sent = async { timeout(self.pause, sending).await };
        let failure = match self.runtime.block_on(sent) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => io::ErrorKind::BrokenPipe,
            Err(_) => io::ErrorKind::TimedOut,
        };
        self.has_failed = true;
        Err(failure.into())
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // A file that is larger than the buffer arrives in one call.
        let piece = &piece[..piece.len().min(FILES_PIECE)];
        self.send(Piece::Bytes(Bytes::copy_from_slice(piece)))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
