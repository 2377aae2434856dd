//! Downloads the files of the repository into the folder of a job, before its first step.

use std::io::{self, SeekFrom};
use std::path::Path;

use model::error_chain;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::task::spawn_blocking;
use wire::Checkout;

use crate::limits;
use crate::link::{Link, Verdict};
use crate::source_cache::{Digest, Key, SourceCache, TAR_END};
use crate::source_files::{self, FOLDER, Written};
use crate::workdir;

struct Problem(String);

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self(format!(
            "cannot keep the files in the folder `sources` of the runner: {error}"
        ))
    }
}

/// Puts the files into a new folder in `folder`. Returns the lines for the log of the job.
/// Fails also if the job was stopped. Afterwards nothing writes into the folder any more.
pub(crate) async fn bring(
    sources: &SourceCache,
    link: &Link,
    checkout: &Checkout,
    folder: &Path,
) -> Result<String, String> {
    let key = Key::of(checkout).map_err(|error| error.to_string())?;
    let folder = folder.join(FOLDER);
    loop {
        let download = async |file| download(link, file).await;
        let tar = tokio::select! {
            biased;
            tar = sources.get(&key, download) => tar.map_err(|Problem(message)| message)?,
            reason = link.stop.requested() => return Err(reason.explanation().to_owned()),
        };
        let file = tar.file().map_err(|error| Problem::from(error).0)?;
        let (digest, to, link) = (tar.digest(), folder.clone(), link.clone());
        let writing = spawn_blocking(move || {
            source_files::write(file, digest, &to, || {
                link.progress.heard();
                link.stop.reason().is_some()
            })
        });
        match writing.await {
            Ok(Ok(written)) => return Ok(lines(checkout, &written)),
            Ok(Err(error)) => {
                if error.is_of_tar() && tar.discard() {
                    tracing::warn!(
                        commit = checkout.commit,
                        error = error_chain(&error),
                        "cached files of a repository are downloaded again"
                    );
                    workdir::remove(&folder);
                    continue;
                }
                return Err(format!(
                    "commit {}: {}",
                    checkout.commit,
                    error_chain(&error)
                ));
            }
            Err(error) => return Err(format!("writing the files panicked: {error}")),
        }
    }
}

fn lines(checkout: &Checkout, written: &Written) -> String {
    let Checkout {
        commit, reference, ..
    } = checkout;
    let noun = if written.files == 1 { "file" } else { "files" };
    let mut lines = format!(
        "{} {noun} of commit {commit} ({reference}) in {FOLDER}",
        written.files
    );
    let further = [
        (&written.submodules, "submodules are empty folders"),
        (&written.pointers, "files of Git LFS are pointers"),
    ];
    for (names, what) in further {
        if let Some(names) = names.line() {
            lines.push_str(&format!("\n{what}: {names}"));
        }
    }
    lines
}

/// Downloads the tar, from its start each time.
async fn download(link: &Link, file: std::fs::File) -> Result<Digest, Problem> {
    let mut file = File::from_std(file);
    let mut backoff = limits::backoff();
    loop {
        file.set_len(0).await?;
        file.rewind().await?;
        let failure = match link.judge(receive(link, &mut file).await?) {
            Ok(digest) => return Ok(digest),
            Err(failure) => failure,
        };
        match failure.verdict {
            Verdict::Again => link.pause(&mut backoff, &failure).await,
            Verdict::LogFrom(_) | Verdict::Over | Verdict::Refused => {
                // Show the daemon's explanation, but not the address of the request.
                let detail = failure
                    .error
                    .problem()
                    .map(|problem| problem.detail.clone());
                return Err(Problem(
                    detail.unwrap_or_else(|| error_chain(&failure.error)),
                ));
            }
        }
    }
}

/// One attempt. The outer error is an error of this machine.
async fn receive(link: &Link, file: &mut File) -> Result<Result<Digest, client::Error>, Problem> {
    let mut download = match link.client.source_files(link.job).await {
        Ok(download) => download,
        Err(error) => return Ok(Err(error)),
    };
    let mut hasher = Sha256::new();
    loop {
        match download.piece().await {
            Ok(Some(piece)) => {
                link.heard();
                hasher.update(&piece);
                file.write_all(&piece).await?;
            }
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    file.flush().await?;
    if is_whole(file).await? {
        Ok(Ok(hasher.finalize().into()))
    } else {
        Err(Problem(
            "the daemon has sent a part of the files".to_owned(),
        ))
    }
}

async fn is_whole(file: &mut File) -> io::Result<bool> {
    let length = file.stream_position().await?;
    if length < TAR_END as u64 {
        return Ok(false);
    }
    let mut end = [1; TAR_END];
    file.seek(SeekFrom::End(-(TAR_END as i64))).await?;
    file.read_exact(&mut end).await?;
    Ok(end == [0; TAR_END])
}
