//! `everscan blob ls` and `stat`.

use clap::Args;
use wire::{Blob, BlobList};

use super::{Place, folder, folder_prefix, path};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table, bytes, time, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Folder; everything when left out
    #[arg(default_value = "")]
    path: String,
    /// Also list the content of deeper folders
    #[arg(long, short, env = "SERVICE_RECURSIVE")]
    recursive: bool,
    #[command(flatten)]
    place: Place,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let names = folder(&self.path)?;
        let blobs = self.place.blobs(session)?;
        let prefix = folder_prefix(&names);
        let is_flat = !self.recursive;
        let listed = blobs.client.blobs(blobs.project(), &prefix, is_flat);
        let mut list = listed.await?;
        if !names.is_empty() && list.items.is_empty() && list.folders.is_empty() {
            // The path may be that of a blob.
            list.items.push(blobs.one(&names).await?);
        }
        session.show(&list, table)?;
        if list.items.is_empty() && list.folders.is_empty() {
            session.report("there are no blobs");
        }
        Ok(Exit::Succeeded)
    }
}

fn table(list: &BlobList) -> String {
    if list.items.is_empty() && list.folders.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["PATH", "SIZE", "MODIFIED", "EXPIRES"]);
    for folder in &list.folders {
        table.row([
            folder.clone(),
            "-".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
        ]);
    }
    for blob in &list.items {
        table.row([
            blob.path.clone(),
            bytes(blob.size),
            time(&blob.modified_at),
            time_or_dash(blob.expires_at.as_ref()),
        ]);
    }
    table.text()
}

#[derive(Debug, Args)]
pub(crate) struct Stat {
    /// Path of the blob
    path: String,
    #[command(flatten)]
    place: Place,
}

impl Stat {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let path = path(&self.path)?;
        let blobs = self.place.blobs(session)?;
        let blob = blobs.one(path.names()).await?;
        session.show(&blob, fields)?;
        Ok(Exit::Succeeded)
    }
}

fn fields(blob: &Blob) -> String {
    Fields::new()
        .add("path", &blob.path)
        .add(
            "size",
            format!("{} ({} bytes)", bytes(blob.size), blob.size),
        )
        .add("sha256", &blob.sha256)
        .add("modified", time(&blob.modified_at))
        .add("by", &blob.modified_by)
        .add_some("expires", blob.expires_at.as_ref().map(time))
        .text()
}
