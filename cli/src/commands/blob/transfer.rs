//! `everscan blob upload`, `download` and `cat`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::Args;
use client::{BlobUpload, Replaces};
use model::BlobPath;
use sha2::{Digest, Sha256};

use super::{Blobs, Place, destination, path};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits::HASHED_PIECE;
use crate::reading::is_stdin;
use crate::receiving::{Target, receive};
use crate::session::Session;
use crate::table::bytes;
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub(crate) struct Upload {
    /// File to store, - for standard input
    #[arg(long, short, env = "SERVICE_SRC", value_name = "FILE")]
    src: PathBuf,
    /// Path of the blob; the name of the file when left out, and in this folder if it ends with a slash
    #[arg(long, short, env = "SERVICE_DST", value_name = "PATH")]
    dst: Option<String>,
    /// Remove the blob after this time, as in 1h or 30d
    #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION")]
    expires_in: Option<String>,
    /// Fail if the blob already exists
    #[arg(long, env = "SERVICE_NO_REPLACE")]
    no_replace: bool,
    /// Fail unless the blob there has this SHA-256, as of the file that was downloaded before
    #[arg(long, env = "SERVICE_IF_MATCH", value_name = "SHA256", value_parser = sha256, conflicts_with = "no_replace")]
    if_match: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Upload {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let name = self.src.file_name().and_then(|name| name.to_str());
        let name = name.filter(|_| !is_stdin(&self.src));
        let to = match (self.dst.as_deref(), name) {
            (Some(to), None) => path(to)?,
            (to, Some(name)) => BlobPath::new(destination(to.unwrap_or(""), name)?)
                .map_err(|problem| no_path(name, problem))?,
            (None, None) => {
                return Err(Error::Usage {
                    what: "the blob has no name".to_owned(),
                    hint: "name its path with --dst",
                });
            }
        };
        let blobs = self.place.blobs(session)?;
        let options = Options {
            expires_in: self.expires_in.as_deref(),
            replaces: match (self.no_replace, self.if_match.as_deref()) {
                (true, _) => Replaces::None,
                (false, Some(sha256)) => Replaces::Content(sha256),
                (false, None) => Replaces::Any,
            },
        };
        let blob = upload(&blobs, &self.src, &to, &options).await?;
        session.show(&blob, |_| String::new())?;
        let message = format!("{} ({})", blob.path, bytes(blob.size));
        session.report(&message);
        Ok(Exit::Succeeded)
    }
}

fn sha256(text: &str) -> Result<String, String> {
    match text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("give the 64 digits that `sha256sum FILE` prints".to_owned()),
    }
}

fn no_path(name: &str, problem: model::BlobPathError) -> Error {
    Error::Usage {
        what: format!("{name:?} is no name of a blob: it {problem}"),
        hint: "name another one with --dst",
    }
}

#[derive(Default)]
pub(super) struct Options<'a> {
    pub(super) expires_in: Option<&'a str>,
    pub(super) replaces: Replaces<'a>,
}

/// Stores a file. A pipe or device can be read only once, so its length and digest are unknown before.
pub(super) async fn upload(
    blobs: &Blobs,
    from: &Path,
    to: &BlobPath,
    options: &Options<'_>,
) -> Result<wire::Blob, Error> {
    let unreadable = Error::reading(from);
    let file = match is_stdin(from) {
        true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(from),
    };
    let mut file = file.map_err(unreadable)?;
    let details = file.metadata().map_err(unreadable)?;
    if details.is_dir() {
        return Err(Error::Usage {
            what: format!("{} is a folder", from.display()),
            hint: "`everscan blob sync` stores all files of a folder",
        });
    }
    let known = (details.is_file() && !is_stdin(from))
        .then(|| digest(&mut file))
        .transpose()
        .map_err(unreadable)?;
    let upload = BlobUpload {
        file,
        size: known.as_ref().map(|(size, _)| *size),
        sha256: known.as_ref().map(|(_, sha256)| sha256.as_str()),
        expires_in: options.expires_in,
        replaces: options.replaces,
    };
    let stored = blobs
        .client
        .upload_blob(blobs.project(), to.names(), upload);
    Ok(stored.await?)
}

/// The length and the SHA-256 of a file.
pub(super) fn digest(file: &mut File) -> io::Result<(u64, String)> {
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut piece = vec![0; HASHED_PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((size, workflow::hex(&digest.finalize()))),
            read => {
                digest.update(&piece[..read]);
                size += read as u64;
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Download {
    /// Path of the blob
    #[arg(long, short, env = "SERVICE_SRC", value_name = "PATH")]
    src: String,
    /// File to write, - for standard output; the name of the blob in this folder when left out
    #[arg(long, short, env = "SERVICE_DST", value_name = "FILE")]
    dst: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

impl Download {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let from = path(&self.src)?;
        let blobs = self.place.blobs(session)?;
        let to = match self.dst {
            Some(to) if is_stdin(&to) => return print(&blobs, &from, session).await,
            Some(to) if to.is_dir() => to.join(file_name(&from)?),
            Some(to) => to,
            None => PathBuf::from(file_name(&from)?),
        };
        let to = Target::named(&to)?;
        let size = download(&blobs, &from, &to, session).await?;
        let message = format!("{} ({})", to.path().display(), bytes(size));
        session.report(&message);
        Ok(Exit::Succeeded)
    }
}

/// The name of a blob as a file name. It must not contain a folder.
pub(super) fn file_name(path: &BlobPath) -> Result<&str, Error> {
    match path.name() {
        name if name.contains('/') => Err(Error::Usage {
            what: format!("{name:?} is no name of a file"),
            hint: "name the file with --dst",
        }),
        name => Ok(name),
    }
}

/// Fetches a blob into a file. The file appears only if it is complete and checked.
pub(super) async fn download(
    blobs: &Blobs,
    from: &BlobPath,
    to: &Target,
    session: &mut Session<'_>,
) -> Result<u64, Error> {
    let failed = Error::writing(to.path());
    let fetched = blobs.client.download_blob(blobs.project(), from.names());
    let mut fetched = fetched.await?;
    let mut file = to.temporary_file()?;
    let write = |_: &mut Terminal, piece: &[u8]| file.write_all(piece).map_err(failed);
    let size = receive(session, &mut fetched, &from.to_string(), write).await?;
    to.persist(file)?;
    Ok(size)
}

#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// Path of the blob
    path: String,
    #[command(flatten)]
    place: Place,
}

impl Cat {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let from = path(&self.path)?;
        let blobs = self.place.blobs(session)?;
        print(&blobs, &from, session).await
    }
}

async fn print(blobs: &Blobs, from: &BlobPath, session: &mut Session<'_>) -> Result<Exit, Error> {
    let fetched = blobs.client.download_blob(blobs.project(), from.names());
    let mut fetched = fetched.await?;
    let write = |terminal: &mut Terminal, piece: &[u8]| terminal.bytes(piece);
    receive(session, &mut fetched, &from.to_string(), write).await?;
    Ok(Exit::Succeeded)
}
