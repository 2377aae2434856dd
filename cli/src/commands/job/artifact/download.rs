//! `everscan job artifact download`: the file appears whole and checked, or not at all; standard output is told at the
//! end.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use client::Download as Transfer;
use tempfile::NamedTempFile;

use crate::commands::job::selected::SelectedJob;
use crate::digest::Digest;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::{Progress, bytes};
use crate::session::Session;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub(crate) struct Download {
    #[command(flatten)]
    job: SelectedJob,
    /// Name or id of the artifact
    #[arg(long, short, env = "SERVICE_ARTIFACT", value_name = "NAME")]
    artifact: String,
    /// File to write, - for standard output; NAME.zip in this folder when left out
    #[arg(long, short, env = "SERVICE_OUTPUT_FILE", value_name = "PATH")]
    output_file: Option<PathBuf>,
}

impl Download {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let path = match self.output_file {
            Some(path) => path,
            None => default_path(&self.artifact)?,
        };
        let is_to_stdout = path == Path::new("-");
        if is_to_stdout && session.terminal.is_data_watched() {
            return Err(Error::Usage {
                what: "a zip file is nothing for a terminal".to_owned(),
                hint: "name a file, or let a program read it: -o - | bsdtar -x",
            });
        }
        let mut transfer = session
            .client()?
            .download_artifact(id, &self.artifact)
            .await?;
        if is_to_stdout {
            receive(session, &mut transfer, &self.artifact, |terminal, piece| {
                terminal.bytes(piece)
            })
            .await?;
            return Ok(Exit::Succeeded);
        }
        let mut file = new_file_beside(&path)?;
        let failed = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let size = receive(session, &mut transfer, &self.artifact, |_, piece| {
            file.write_all(piece).map_err(failed)
        })
        .await?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        session
            .terminal
            .say(&format!("{} ({})", path.display(), bytes(size)));
        Ok(Exit::Succeeded)
    }
}

/// An artifact's name is a file's name; anything else that was typed must not choose a folder.
fn default_path(artifact: &str) -> Result<PathBuf, Error> {
    if artifact.contains('/') || matches!(artifact, "" | "." | "..") {
        return Err(Error::Usage {
            what: format!("{artifact:?} is no name of an artifact"),
            hint: "`everscan job artifact list` knows the names",
        });
    }
    Ok(PathBuf::from(if artifact.ends_with(".zip") {
        artifact.to_owned()
    } else {
        format!("{artifact}.zip")
    }))
}

/// An unnamed place in the same folder, from which the finished file can be moved in one step.
fn new_file_beside(path: &Path) -> Result<NamedTempFile, Error> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".everscan-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })
}

/// Gives every piece to `write` and checks the whole.
async fn receive(
    session: &mut Session<'_>,
    transfer: &mut Transfer,
    artifact: &str,
    mut write: impl FnMut(&mut Terminal, &[u8]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut progress = Progress::new(transfer.size());
    let mut digest = Digest::default();
    let mut size = 0_u64;
    while let Some(piece) = transfer.piece().await? {
        write(session.terminal, &piece)?;
        digest.update(&piece);
        size = size.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        progress.add(piece.len(), session.terminal);
    }
    let found = digest.finish();
    match transfer.sha256() {
        Some(expected) if expected != found => Err(Error::Damaged {
            artifact: artifact.to_owned(),
            expected,
            found,
        }),
        Some(_) | None => Ok(size),
    }
}
