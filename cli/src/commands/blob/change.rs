//! `everscan blob cp`, `mv` and `rm`.

use clap::Args;
use model::BlobPath;
use wire::{CopyBlob, MoveBlob};

use super::{Blobs, Place, counted, destination, folder, is_missing, path};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// Path of the blob or folder
    from: String,
    /// Path of the copy; a folder to copy into if it ends with a slash
    to: String,
    /// Copy a folder with everything in it
    #[arg(long, short, env = "SERVICE_RECURSIVE")]
    recursive: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Path of the blob or folder
    from: String,
    /// Its new path; a folder to move it into if it ends with a slash
    to: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Path of the blob or folder
    path: String,
    /// Remove a folder with everything in it
    #[arg(long, short, env = "SERVICE_RECURSIVE")]
    recursive: bool,
    /// Remove nothing, only print what would be removed
    #[arg(long, env = "SERVICE_DRY_RUN")]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

impl Copy {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let blobs = self.place.blobs(session)?;
        let from = path(self.from.trim_end_matches('/'))?;
        let to = destination(&self.to, from.name())?;
        let copy = async |from: &BlobPath, to: &BlobPath| {
            let copy = CopyBlob {
                from: from.to_string(),
                to: to.to_string(),
                expires_in: None,
            };
            blobs
                .client
                .copy_blob(blobs.project(), &copy)
                .await
                .map(drop)
        };
        let count = each(&blobs, &from, &to, self.recursive, copy).await?;
        session.report(&format!("{} copied", counted(count)));
        Ok(Exit::Succeeded)
    }
}

impl Move {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let blobs = self.place.blobs(session)?;
        let from = path(self.from.trim_end_matches('/'))?;
        let to = destination(&self.to, from.name())?;
        let rename = async |from: &BlobPath, to: &BlobPath| {
            let rename = MoveBlob {
                from: from.to_string(),
                to: to.to_string(),
            };
            blobs
                .client
                .move_blob(blobs.project(), &rename)
                .await
                .map(drop)
        };
        let count = each(&blobs, &from, &to, true, rename).await?;
        session.report(&format!("{} moved", counted(count)));
        Ok(Exit::Succeeded)
    }
}

/// Calls an action for a blob and its target in `to`, or for each blob of a folder. Returns the number of blobs.
async fn each(
    blobs: &Blobs,
    from: &BlobPath,
    to: &[String],
    is_recursive: bool,
    change: impl AsyncFn(&BlobPath, &BlobPath) -> Result<(), client::Error>,
) -> Result<usize, Error> {
    let too_long = |problem| Error::Usage {
        what: format!("a path there {problem}"),
        hint: "choose a shorter path",
    };
    let place = BlobPath::new(to.to_vec()).map_err(too_long)?;
    let missing = match change(from, &place).await {
        Ok(()) => return Ok(1),
        Err(error) if is_missing(&error) => error,
        Err(error) => return Err(error.into()),
    };
    let inside = blobs.inside(from.names()).await?;
    if inside.is_empty() {
        return Err(missing.into());
    }
    if !is_recursive {
        return Err(is_folder(from));
    }
    if place.is_below(from) {
        return Err(Error::Usage {
            what: format!("{place} is in {from}"),
            hint: "choose a folder beside it",
        });
    }
    for blob in &inside {
        let old = path(&blob.path)?;
        if let Some(new) = old.rebased(from.names(), to) {
            change(&old, &new.map_err(too_long)?).await?;
        }
    }
    Ok(inside.len())
}

fn is_folder(path: &BlobPath) -> Error {
    Error::Usage {
        what: format!("{path} is a folder"),
        hint: "add --recursive for the folder and everything in it",
    }
}

impl Remove {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let names = folder(&self.path)?;
        if names.is_empty() && !self.recursive {
            return Err(Error::Usage {
                what: "this would remove all blobs".to_owned(),
                hint: "remove all blobs of the project with --recursive",
            });
        }
        let blobs = self.place.blobs(session)?;
        let mut found = Vec::new();
        if !names.is_empty() && !self.path.ends_with('/') {
            match blobs.one(&names).await {
                Ok(blob) => found.push(blob),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if found.is_empty() {
            found = blobs.inside(&names).await?;
            if !found.is_empty() && !self.recursive {
                return Err(is_folder(&path(self.path.trim_end_matches('/'))?));
            }
        }
        if found.is_empty() && !names.is_empty() {
            // The daemon's error best describes a missing blob.
            blobs.client.delete_blob(blobs.project(), &names).await?;
        }
        for blob in &found {
            if self.dry_run {
                session
                    .terminal
                    .line(&crate::untrusted::clean(&blob.path))?;
                continue;
            }
            let names = path(&blob.path)?;
            match blobs
                .client
                .delete_blob(blobs.project(), names.names())
                .await
            {
                Ok(()) => {}
                // Somebody else has removed it meanwhile.
                Err(error) if is_missing(&error) && found.len() > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
        let are = if self.dry_run { "would be" } else { "" };
        let message = format!("{} {are} removed", counted(found.len()));
        session.report(&message.replace("  ", " "));
        Ok(Exit::Succeeded)
    }
}
