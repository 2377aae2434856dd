//! `everscan blob cp`, `mv` and `rm`.

use clap::Args;
use model::BlobPath;
use wire::{CopyBlob, MoveBlob};

use super::{Blobs, Place, counted, destination, folder, is_missing, no_folder, path};
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
        let mut missing = None;
        if !names.is_empty() && !self.path.ends_with('/') {
            // One blob is removed without a look at the list, which needs another right.
            match self.remove(&blobs, &names, session).await? {
                None => return Ok(self.report(1, session)),
                missed => missing = missed,
            }
        }
        let found = match (blobs.inside(&names).await, missing) {
            (Ok(found), _) if names.is_empty() || !found.is_empty() => found,
            (Err(error), missing) if self.recursive || missing.is_none() => return Err(error),
            (_, Some(missing)) => return Err(missing.into()),
            (_, None) => return Err(no_folder(&names)),
        };
        if !self.recursive {
            return Err(is_folder(&path(self.path.trim_end_matches('/'))?));
        }
        for blob in &found {
            // Somebody else may have removed it meanwhile.
            let names = path(&blob.path)?;
            self.remove(&blobs, names.names(), session).await?;
        }
        Ok(self.report(found.len(), session))
    }

    /// Removes a blob, or only prints its path. Returns the daemon's error for a missing blob.
    async fn remove(
        &self,
        blobs: &Blobs,
        names: &[String],
        session: &mut Session<'_>,
    ) -> Result<Option<client::Error>, Error> {
        let removed = match self.dry_run {
            true => blobs.one(names).await.map(drop),
            false => blobs.client.delete_blob(blobs.project(), names).await,
        };
        match removed {
            Ok(()) if self.dry_run => {
                let path = crate::untrusted::clean(&model::blob::joined(names));
                session.terminal.line(&path).map(|()| None)
            }
            Ok(()) => Ok(None),
            Err(error) if is_missing(&error) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn report(&self, count: usize, session: &mut Session<'_>) -> Exit {
        let would_be = if self.dry_run { "would be " } else { "" };
        session.report(&format!("{} {would_be}removed", counted(count)));
        Exit::Succeeded
    }
}
