//! `everscan job artifact download`. A file appears only if it is complete and checked. For standard output, only the exit code
//! reports damage.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use client::{Client, Download as Transfer};
use tempfile::NamedTempFile;
use uuid::Uuid;

use super::ArtifactOption;
use super::unpack::{Unpacked, make_folder, most_bytes, unpack};
use crate::error::Error;
use crate::exit::Exit;
use crate::receiving::{Target, receive};
use crate::selected_job::SelectedJob;
use crate::session::Session;
use crate::table::bytes;
use crate::terminal::Terminal;
use crate::untrusted::clean;

#[derive(Debug, Args)]
pub(crate) struct Download {
    #[command(flatten)]
    job: SelectedJob,
    #[command(flatten)]
    artifact: ArtifactOption,
    /// File to write, or a folder for NAME.zip; - for standard output; NAME.zip in this folder when left out
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

impl Download {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        self.job.name()?;
        let artifact = &self.artifact.artifact;
        let Some(folder) = self.unpack else {
            let destination = Destination::choose(self.output_file, artifact, session)?;
            let (client, id) = session.client_and_job(&self.job).await?;
            return fetch(session, &client, id, artifact, destination).await;
        };
        let (client, id) = session.client_and_job(&self.job).await?;
        let mut transfer = client.download_artifact(id, artifact).await?;
        make_folder(&folder).map_err(Error::writing(&folder))?;
        let target = Target::File(folder.join(artifact));
        let (file, size) = arrive(session, &mut transfer, artifact, &target).await?;
        let limit = self.max_size.unwrap_or_else(|| most_bytes(size));
        let Unpacked { files, left_out } = unpack(file.as_file(), artifact, &folder, limit)?;
        let s = if files == 1 { "" } else { "s" };
        let message = format!("{} ({files} file{s})", folder.display());
        session.report(&message);
        for (name, reason) in &left_out {
            let name = clean(name);
            session.report(&format!("error: {name} is not unpacked: {reason}"));
        }
        if left_out.is_empty() {
            return Ok(Exit::Succeeded);
        }
        session.report("hint: take the zip as it is, with --output-file");
        Ok(Exit::Failed)
    }
}

/// Where a zip file goes.
pub(crate) enum Destination {
    Stdout,
    File(Target),
}

impl Destination {
    /// What the flag or `SERVICE_OUTPUT` names, else NAME.zip in this folder.
    pub(crate) fn choose(
        flag: Option<PathBuf>,
        name: &str,
        session: &mut Session<'_>,
    ) -> Result<Self, Error> {
        let path = match flag.or_else(|| session.output_file.take()) {
            Some(path) if path == Path::new("-") => {
                if session.terminal.is_data_watched() {
                    return Err(Error::Usage {
                        what: "a zip file is nothing for a terminal".to_owned(),
                        hint: "name a file, or let a program read it: -o - | bsdtar -x",
                    });
                }
                return Ok(Self::Stdout);
            }
            Some(path) if path.is_dir() => path.join(file_name(name)?),
            Some(path) => path,
            None => PathBuf::from(file_name(name)?),
        };
        Target::named(&path).map(Self::File)
    }
}

/// Fetches one artifact as it is stored.
pub(crate) async fn fetch(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    artifact: &str,
    destination: Destination,
) -> Result<Exit, Error> {
    let mut transfer = client.download_artifact(job, artifact).await?;
    match destination {
        Destination::Stdout => {
            let write = |terminal: &mut Terminal, piece: &[u8]| terminal.bytes(piece);
            receive(session, &mut transfer, artifact, write).await?;
        }
        Destination::File(target) => {
            let (file, size) = arrive(session, &mut transfer, artifact, &target).await?;
            target.persist(file)?;
            let message = format!("{} ({})", target.path().display(), bytes(size));
            session.report(&message);
        }
    }
    Ok(Exit::Succeeded)
}

/// Receives the whole artifact into a temporary file.
async fn arrive(
    session: &mut Session<'_>,
    transfer: &mut Transfer,
    artifact: &str,
    target: &Target,
) -> Result<(NamedTempFile, u64), Error> {
    let mut file = target.temporary_file()?;
    let failed = Error::writing(target.path());
    let write = |_: &mut Terminal, piece: &[u8]| file.write_all(piece).map_err(failed);
    let size = receive(session, transfer, artifact, write).await?;
    Ok((file, size))
}

/// The default file name. The typed name must not contain a folder.
fn file_name(artifact: &str) -> Result<String, Error> {
    if artifact.contains('/') || matches!(artifact, "" | "." | "..") {
        return Err(Error::Usage {
            what: format!("{artifact:?} is no name of an artifact"),
            hint: "`everscan job artifact list` knows the names",
        });
    }
    Ok(if artifact.ends_with(".zip") {
        artifact.to_owned()
    } else {
        format!("{artifact}.zip")
    })
}
