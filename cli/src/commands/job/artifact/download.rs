//! `everscan job artifact download`. A file appears only if it is complete and checked. For standard output, only the exit code
//! reports damage.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use client::Download as Transfer;
use tempfile::NamedTempFile;

use super::unpack::{make_folder, most_bytes, unpack};
use crate::error::Error;
use crate::exit::Exit;
use crate::receiving::{receive, temporary_file_for};
use crate::selected_job::SelectedJob;
use crate::session::Session;
use crate::table::bytes;
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
    /// Unpack it into this folder instead; a missing folder is made, and existing files are replaced
    #[arg(
        long,
        env = "SERVICE_UNPACK",
        value_name = "DIR",
        conflicts_with = "output_file"
    )]
    unpack: Option<PathBuf>,
    /// Unpack at most this many bytes, as in 500MiB; the larger of 1 GiB and 100 times the zip when left out
    #[arg(
        long,
        env = "SERVICE_MAX_SIZE",
        value_name = "SIZE",
        value_parser = workflow::parse_size
    )]
    max_size: Option<u64>,
}

enum Destination {
    Stdout,
    File(PathBuf),
    Folder(PathBuf),
}

impl Download {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        self.job.name()?;
        let artifact = &self.artifact;
        let destination = match (self.output_file, self.unpack) {
            (Some(path), _) if path == Path::new("-") => Destination::Stdout,
            (Some(path), _) => Destination::File(path),
            (None, Some(folder)) => Destination::Folder(folder),
            (None, None) => Destination::File(default_path(artifact)?),
        };
        if matches!(destination, Destination::Stdout) && session.terminal.is_data_watched() {
            return Err(Error::Usage {
                what: "a zip file is nothing for a terminal".to_owned(),
                hint: "name a file, or let a program read it: -o - | bsdtar -x",
            });
        }
        let (client, id) = session.client_and_job(&self.job).await?;
        let mut transfer = client.download_artifact(id, artifact).await?;
        match destination {
            Destination::Stdout => {
                let write = |terminal: &mut Terminal, piece: &[u8]| terminal.bytes(piece);
                receive(session, &mut transfer, artifact, write).await?;
            }
            Destination::File(path) => {
                let (file, size) = arrive(session, &mut transfer, artifact, &path).await?;
                file.persist(&path).map_err(|error| Error::Write {
                    path: path.clone(),
                    source: error.error,
                })?;
                let message = format!("{} ({})", path.display(), bytes(size));
                session.report(&message);
            }
            Destination::Folder(folder) => {
                make_folder(&folder).map_err(Error::writing(&folder))?;
                let path = folder.join(artifact);
                let (file, size) = arrive(session, &mut transfer, artifact, &path).await?;
                let limit = self.max_size.unwrap_or_else(|| most_bytes(size));
                let files = unpack(file.as_file(), artifact, &folder, limit)?;
                let s = if files == 1 { "" } else { "s" };
                let message = format!("{} ({files} file{s})", folder.display());
                session.report(&message);
            }
        }
        Ok(Exit::Succeeded)
    }
}

/// Receives the whole artifact into a temporary file beside `path`.
async fn arrive(
    session: &mut Session<'_>,
    transfer: &mut Transfer,
    artifact: &str,
    path: &Path,
) -> Result<(NamedTempFile, u64), Error> {
    let mut file = temporary_file_for(path)?;
    let write =
        |_: &mut Terminal, piece: &[u8]| file.write_all(piece).map_err(Error::writing(path));
    let size = receive(session, transfer, artifact, write).await?;
    Ok((file, size))
}

/// The default file name. The typed name must not contain a folder.
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
