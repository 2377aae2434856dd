//! `everscan blob link`, `links` and `unlink`.

use clap::Args;
use uuid::Uuid;
use wire::{BlobLink, BlobLinkUse, CreateBlobLink, Page};

use super::{Place, path};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Args)]
pub(crate) struct Link {
    /// Path of the blob
    path: String,
    /// Make a link that stores the blob instead of reading it
    #[arg(long, env = "SERVICE_PUT")]
    put: bool,
    /// How long the link is valid, as in 30m or 7d, which is the maximum
    #[arg(
        long,
        env = "SERVICE_EXPIRES_IN",
        value_name = "DURATION",
        default_value = "1h"
    )]
    expires_in: String,
    #[command(flatten)]
    place: Place,
}

impl Link {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let create = CreateBlobLink {
            path: path(&self.path)?.to_string(),
            use_for: match self.put {
                true => BlobLinkUse::Put,
                false => BlobLinkUse::Get,
            },
            expires_in: self.expires_in,
        };
        let blobs = self.place.blobs(session)?;
        let made = blobs.client.create_blob_link(blobs.project(), &create);
        let made = made.await?;
        let url = blobs.client.url_of(&made.url_path);
        session.show(&made, |_| format!("{url}\n"))?;
        let message = format!("{} until {}", made.link.id, time(&made.link.expires_at));
        session.report(&message);
        Ok(Exit::Succeeded)
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let blobs = self.place.blobs(session)?;
        let links = blobs.client.blob_links(blobs.project()).await?;
        session.show(&Page::all(links), table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<BlobLink>) -> String {
    let mut table = Table::new(&["ID", "PATH", "FOR", "EXPIRES"]);
    for link in &page.items {
        let use_for = match link.use_for {
            BlobLinkUse::Get => "get",
            BlobLinkUse::Put => "put",
        };
        table.row([
            link.id.to_string(),
            link.path.clone(),
            use_for.to_owned(),
            time(&link.expires_at),
        ]);
    }
    table.text()
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Id of the link, which `everscan blob links` shows
    id: Uuid,
}

impl Revoke {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        session.client()?.revoke_blob_link(self.id).await?;
        session.report(&format!("link {} is revoked", self.id));
        Ok(Exit::Succeeded)
    }
}
