//! `everscan job download`: the older form of a download, which takes whatever the job has left.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use clap::Args;
use client::Client;
use uuid::Uuid;
use wire::Artifact;
use zip::result::ZipResult;
use zip::{ZipArchive, ZipWriter};

use super::artifact::download::{Destination, fetch};
use super::artifact::lines::fetch_file;
use crate::error::Error;
use crate::exit::Exit;
use crate::limits::HASHED_PIECE;
use crate::receiving::Target;
use crate::selected_job::SelectedJob;
use crate::session::Session;
use crate::table::bytes;

#[derive(Debug, Args)]
pub(crate) struct Download {
    #[command(flatten)]
    job: SelectedJob,
    /// File to write, or a folder for the zip; - for standard output; NAME.zip or JOB.zip in this folder when left out
    #[arg(long, short, env = "SERVICE_OUTPUT_FILE", value_name = "PATH")]
    output_file: Option<PathBuf>,
    /// Taken for older scripts, without effect
    #[arg(short, hide = true)]
    project: Option<String>,
    /// Taken for older scripts, without effect
    #[arg(short, hide = true)]
    workflow: Option<String>,
    /// Taken for older scripts, without effect
    #[arg(short, hide = true)]
    revision: Option<String>,
}

impl Download {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let needless = [self.project, self.workflow, self.revision];
        if needless.iter().any(Option::is_some) {
            session.report("warning: -p, -w and -r have no effect: the id of a job is enough");
        }
        let (client, job) = session.client_and_job(&self.job).await?;
        let mut artifacts = Vec::new();
        for artifact in client.artifacts(job).await? {
            match &artifact.removed {
                None => artifacts.push(artifact),
                Some(removed) => session.report(&format!(
                    "warning: artifact {} is not included: {}",
                    artifact.name, removed.message
                )),
            }
        }
        match artifacts.as_slice() {
            [] => Err(no_artifacts(job)),
            [only] => {
                let destination = Destination::choose(self.output_file, &only.name, session)?;
                fetch(session, &client, job, &only.name, destination).await
            }
            all => {
                let name = job.to_string();
                let destination = Destination::choose(self.output_file, &name, session)?;
                fetch_all(session, &client, job, all, destination).await
            }
        }
    }
}

/// Fetches all artifacts into one zip, in which each has a folder.
async fn fetch_all(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    artifacts: &[Artifact],
    destination: Destination,
) -> Result<Exit, Error> {
    let temporary = Target::File(std::env::temp_dir().join("all.zip"));
    let target = match &destination {
        Destination::Stdout => &temporary,
        Destination::File(target) => target,
    };
    let failed = Error::writing(target.path());
    let mut file = target.temporary_file()?;
    let mut all = ZipWriter::new(file.as_file_mut());
    let names: BTreeSet<&str> = artifacts.iter().map(|it| it.name.as_str()).collect();
    let mut count = 0;
    for (name, folder) in &folders(&names) {
        let (fetched, _) = match fetch_file(session, client, job, name).await {
            // Its removal is still to come, so the list has it.
            Err(Error::Client(gone)) if gone.status() == Some(410) => {
                let text = format!("warning: artifact {name} is not included: it has expired");
                session.report(&text);
                continue;
            }
            fetched => fetched?,
        };
        let one = ZipArchive::new(fetched).map_err(|source| Error::NotUnpacked {
            artifact: (*name).to_owned(),
            source,
        })?;
        copy(one, folder, &mut all).map_err(|error| failed(error.into()))?;
        if folder.len() > name.len() {
            session.report(&format!(
                "warning: artifact {name} is in the folder {folder}: where case does not count, another has its name"
            ));
        }
        count += 1;
    }
    if count == 0 {
        return Err(no_artifacts(job));
    }
    let zip = all.finish().map_err(|error| failed(error.into()))?;
    let size = zip.stream_position().map_err(failed)?;
    match &destination {
        Destination::Stdout => {
            zip.rewind().map_err(failed)?;
            print(zip, session, target.path())?;
        }
        Destination::File(target) => {
            target.persist(file)?;
            let s = if count == 1 { "" } else { "s" };
            let (path, size) = (target.path().display(), bytes(size));
            session.report(&format!("{path} ({count} artifact{s}, {size})"));
        }
    }
    Ok(Exit::Succeeded)
}

fn no_artifacts(job: Uuid) -> Error {
    Error::Missing {
        what: format!("job {job} has no artifacts to download"),
        hint: format!(
            "`everscan job show {job}` says how it ended, and what became of its artifacts"
        ),
    }
}

fn print(zip: &mut File, session: &mut Session<'_>, path: &Path) -> Result<(), Error> {
    let mut piece = vec![0; HASHED_PIECE];
    loop {
        match zip.read(&mut piece).map_err(Error::reading(path))? {
            0 => return Ok(()),
            read => session.terminal.bytes(&piece[..read])?,
        }
    }
}

/// The folder of each artifact: its name without `.zip`, unless another has that folder. Names that differ only by case are equal
/// on many systems, so one of them gets a number.
fn folders<'a>(names: &BTreeSet<&'a str>) -> Vec<(&'a str, String)> {
    let mut taken = BTreeSet::new();
    let (zips, others): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| name.ends_with(".zip"));
    let folder = |name: &'a str| {
        let short = name.strip_suffix(".zip");
        let short = short.filter(|short| !matches!(*short, "" | "." | ".."));
        let plain = [short.unwrap_or(name), name].map(str::to_owned);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut all = plain.into_iter().chain(numbered);
        let free = all.find(|folder| taken.insert(folder.to_ascii_lowercase()));
        (name, free.unwrap_or_default())
    };
    others.into_iter().chain(zips).map(folder).collect()
}

/// Copies the entries as they are packed.
fn copy(mut one: ZipArchive<File>, folder: &str, all: &mut ZipWriter<&mut File>) -> ZipResult<()> {
    for at in 0..one.len() {
        let entry = one.by_index_raw(at)?;
        let name = format!("{folder}/{}", entry.name()?);
        all.raw_copy_file_rename(entry, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_artifacts_have_the_same_folder_on_any_system() {
        let names = [
            "A.txt", "a.txt", "a", "A.zip", "b.zip", "B.zip", "a.txt-2", ".zip",
        ];
        let folders: Vec<String> = folders(&names.into())
            .into_iter()
            .map(|(name, folder)| format!("{name}: {folder}"))
            .collect();
        assert_eq!(
            folders,
            [
                "A.txt: A.txt",
                "a: a",
                "a.txt: a.txt-2",
                "a.txt-2: a.txt-2-2",
                ".zip: .zip",
                "A.zip: A.zip",
                "B.zip: B",
                "b.zip: b.zip",
            ]
        );
    }
}
