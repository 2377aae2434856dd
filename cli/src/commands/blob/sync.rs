use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use model::BlobPath;
use model::blob_versions::is_version;
use wire::Blob;

use super::transfer::{Options, digest, download, upload};
use super::{Blobs, Place, folder, no_folder};
use crate::error::Error;
use crate::exit::Exit;
use crate::receiving::Target;
use crate::session::Session;

/// The prefix of a folder of blobs.
const REMOTE: &str = "blob:";

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// Folder to read: a folder of this machine, or blob:FOLDER
    from: String,
    /// Folder to make equal: blob:FOLDER, or a folder of this machine
    to: String,
    /// Remove files that are not in the folder that is read
    #[arg(long, env = "SERVICE_DELETE")]
    delete: bool,
    /// Change nothing, only print the changes
    #[arg(long, env = "SERVICE_DRY_RUN")]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// A pass and its results so far.
struct Pass<'s, 't> {
    blobs: Blobs,
    session: &'s mut Session<'t>,
    delete: bool,
    dry_run: bool,
    sent: usize,
    same: usize,
    removed: usize,
}

impl Sync {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let ends = (self.from.strip_prefix(REMOTE), self.to.strip_prefix(REMOTE));
        let blobs = self.place.blobs(session)?;
        let mut pass = Pass {
            blobs,
            session,
            delete: self.delete,
            dry_run: self.dry_run,
            sent: 0,
            same: 0,
            removed: 0,
        };
        match ends {
            (None, Some(to)) => pass.up(Path::new(&self.from), &folder(to)?).await?,
            (Some(from), None) => pass.down(&folder(from)?, Path::new(&self.to)).await?,
            (None, None) | (Some(_), Some(_)) => {
                return Err(Error::Usage {
                    what: "exactly one of the two must be a folder of blobs".to_owned(),
                    hint: "write blob:FOLDER, as in `everscan blob sync reports blob:reports`",
                });
            }
        }
        let Pass {
            sent,
            same,
            removed,
            dry_run,
            ..
        } = pass;
        let would = if dry_run { "would be " } else { "" };
        session.report(&format!(
            "{sent} {would}sent, {same} the same already, {removed} {would}removed"
        ));
        Ok(Exit::Succeeded)
    }
}

impl Pass<'_, '_> {
    async fn up(&mut self, from: &Path, to: &[String]) -> Result<(), Error> {
        let files = files(from)?;
        let mut there = self.there(to).await?;
        for (names, file) in &files {
            let known = there.remove(names);
            if is_same(file, known.as_ref())? {
                self.same += 1;
                continue;
            }
            let place = BlobPath::new([to, names].concat()).map_err(|problem| Error::Usage {
                what: format!("the path of {} there {problem}", file.display()),
                hint: "give it another name",
            })?;
            if to.is_empty() && is_version(&place) {
                continue;
            }
            self.sent += 1;
            self.report("send", &place.to_string())?;
            if !self.dry_run {
                upload(&self.blobs, file, &place, &Options::default()).await?;
            }
        }
        let delete = self.delete;
        for blob in there.into_values().filter(|_| delete) {
            self.removed += 1;
            self.report("remove", &blob.path)?;
            if !self.dry_run {
                let path = super::path(&blob.path)?;
                let (client, project) = (&self.blobs.client, self.blobs.project());
                client.delete_blob(project, path.names()).await?;
            }
        }
        Ok(())
    }

    async fn down(&mut self, from: &[String], to: &Path) -> Result<(), Error> {
        let there = self.there(from).await?;
        // A folder of blobs is there as long as it has blobs. With a mistyped name, all files here would be removed.
        if there.is_empty() && !from.is_empty() {
            return Err(no_folder(from));
        }
        let mut files = match to.exists() {
            true => files(to)?,
            false => BTreeMap::new(),
        };
        for (names, blob) in &there {
            files.remove(names);
            if let Some(name) = names.iter().find(|name| name.contains('/')) {
                return Err(Error::Usage {
                    what: format!("{name:?} in {} is no name of a file", blob.path),
                    hint: "fetch it alone with `everscan blob download --dst`",
                });
            }
            let file = names
                .iter()
                .fold(to.to_owned(), |path, name| path.join(name));
            if file.is_file() && is_same(&file, Some(blob))? {
                self.same += 1;
                continue;
            }
            self.sent += 1;
            self.report("send", &blob.path)?;
            if !self.dry_run {
                let parent = file.parent().unwrap_or(to);
                std::fs::create_dir_all(parent).map_err(Error::writing(parent))?;
                let path = super::path(&blob.path)?;
                download(&self.blobs, &path, &Target::File(file), self.session).await?;
            }
        }
        let delete = self.delete;
        for file in files.into_values().filter(|_| delete) {
            self.removed += 1;
            self.report("remove", &file.display().to_string())?;
            if !self.dry_run {
                std::fs::remove_file(&file).map_err(Error::writing(&file))?;
            }
        }
        Ok(())
    }

    /// The blobs in a folder, by their names relative to it.
    async fn there(&self, folder: &[String]) -> Result<BTreeMap<Vec<String>, Blob>, Error> {
        let mut there = BTreeMap::new();
        for blob in self.blobs.inside(folder).await? {
            let path = super::path(&blob.path)?;
            // Former contents are left out with their blobs, unless the folder names them.
            if folder.is_empty() && is_version(&path) {
                continue;
            }
            if let Some(names) = path.names().strip_prefix(folder) {
                there.insert(names.to_vec(), blob);
            }
        }
        Ok(there)
    }

    /// Prints each change as a line of data, in a dry run.
    fn report(&mut self, what: &str, path: &str) -> Result<(), Error> {
        if !self.dry_run {
            return Ok(());
        }
        let line = format!("{what} {}", crate::untrusted::clean(path));
        self.session.terminal.line(&line)
    }
}

/// The regular files in a folder and deeper, by their names relative to it. Links are not followed.
fn files(root: &Path) -> Result<BTreeMap<Vec<String>, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![(Vec::new(), root.to_owned())];
    while let Some((names, folder)) = waiting.pop() {
        let unreadable = Error::reading(&folder);
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(Error::Usage {
                    what: format!("the name of {} is not UTF-8", entry.path().display()),
                    hint: "give it another name",
                });
            };
            let names = [names.as_slice(), &[name]].concat();
            if kind.is_dir() {
                waiting.push((names, entry.path()));
            } else if kind.is_file() {
                found.insert(names, entry.path());
            }
        }
    }
    Ok(found)
}

fn is_same(file: &Path, blob: Option<&Blob>) -> Result<bool, Error> {
    let unreadable = Error::reading(file);
    let Some(blob) = blob else { return Ok(false) };
    let mut file = File::open(file).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() != blob.size {
        return Ok(false);
    }
    Ok(digest(&mut file).map_err(unreadable)?.1 == blob.sha256)
}
