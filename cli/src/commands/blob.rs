mod change;
mod link;
mod list;
mod sync;
mod transfer;

use clap::{Args, Subcommand};
use client::Client;
use model::BlobPath;

use crate::commands::named::ProjectOption;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store a file as a blob; an existing blob is replaced
    Upload(transfer::Upload),
    /// Fetch a blob into a file
    ///
    /// The file appears once it is complete and undamaged; an older file of that name is replaced. For standard output, only the
    /// exit code reports damage.
    Download(transfer::Download),
    /// Print the content of a blob
    Cat(transfer::Cat),
    /// List the blobs and folders in a folder
    #[command(visible_alias = "list")]
    Ls(list::List),
    /// Show what is recorded of a blob
    Stat(list::Stat),
    /// Copy a blob, or a folder with everything in it
    Cp(change::Copy),
    /// Move a blob, or a folder with everything in it
    Mv(change::Move),
    /// Remove a blob, or a folder with everything in it
    #[command(visible_alias = "delete")]
    Rm(change::Remove),
    /// Print a link with which anybody can read a blob, or store it
    ///
    /// The link ends with the token that makes it.
    Link(link::Link),
    /// List the valid links
    Links(link::List),
    /// Revoke a link
    Unlink(link::Revoke),
    /// Make a folder of blobs equal to a folder of this machine, or the other way round
    ///
    /// One of the two is `blob:` and the folder of blobs, as in `everscan blob sync reports blob:reports/2026`. Equal files are
    /// not sent again.
    Sync(sync::Sync),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Upload(command) => command.run(session).await,
            Self::Download(command) => command.run(session).await,
            Self::Cat(command) => command.run(session).await,
            Self::Ls(command) => command.run(session).await,
            Self::Stat(command) => command.run(session).await,
            Self::Cp(command) => command.run(session).await,
            Self::Mv(command) => command.run(session).await,
            Self::Rm(command) => command.run(session).await,
            Self::Link(command) => command.run(session).await,
            Self::Links(command) => command.run(session).await,
            Self::Unlink(command) => command.run(session).await,
            Self::Sync(command) => command.run(session).await,
        }
    }
}

/// The project of the blobs. Without it, the daemon takes the only project of the token.
#[derive(Debug, Args)]
struct Place {
    #[command(flatten)]
    project: ProjectOption,
}

struct Blobs {
    client: Client,
    project: Option<String>,
}

impl Place {
    fn blobs(&self, session: &Session<'_>) -> Result<Blobs, Error> {
        Ok(Blobs {
            client: session.client()?,
            project: self.project.clone().named(),
        })
    }
}

impl Blobs {
    fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    async fn one(&self, names: &[String]) -> Result<wire::Blob, client::Error> {
        let path = model::blob::joined(names);
        self.client.blob(self.project(), &path, names).await
    }

    /// All blobs in a folder and deeper. An empty folder name means all blobs.
    async fn inside(&self, folder: &[String]) -> Result<Vec<wire::Blob>, Error> {
        let prefix = folder_prefix(folder);
        let list = self.client.blobs(self.project(), &prefix, false).await?;
        Ok(list.items)
    }
}

/// The prefix of the paths of all blobs in a folder.
fn folder_prefix(folder: &[String]) -> String {
    match folder {
        [] => String::new(),
        names => format!("{}/", model::blob::joined(names)),
    }
}

/// Parses the path of a blob.
fn path(text: &str) -> Result<BlobPath, Error> {
    text.parse()
        .map_err(|problem: model::BlobPathError| Error::Usage {
            what: format!("{text:?} is no path of a blob: it {problem}"),
            hint: "a path is names with slashes between them, as in reports/2026/june.pdf",
        })
}

/// Parses a folder, with or without a slash at its end. An empty text is the folder of everything.
fn folder(text: &str) -> Result<Vec<String>, Error> {
    match text.trim_end_matches('/') {
        "" => Ok(Vec::new()),
        text => Ok(path(text)?.names().to_vec()),
    }
}

/// The target path of an object called `name` that is sent to `to`: inside `to` if `to` ends with a slash.
fn destination(to: &str, name: &str) -> Result<Vec<String>, Error> {
    let mut names = folder(to)?;
    if to.is_empty() || to.ends_with('/') {
        names.push(name.to_owned());
    }
    Ok(names)
}

fn no_folder(names: &[String]) -> Error {
    Error::Missing {
        what: format!("there are no blobs in {}", folder_prefix(names)),
        hint: "`everscan blob ls` lists the folders".to_owned(),
    }
}

fn counted(count: usize) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} blob{s}")
}

fn is_missing(error: &client::Error) -> bool {
    error.code() == Some(wire::ErrorCode::NotFound)
}
