//! Binds the sockets, and starts and stops the thread.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use listen::Cidr;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use crate::hit::Hit;
use crate::table::Table;
use crate::zone::Zone;

/// Tells the time of hits.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn Fn() -> SystemTime + Send + Sync>);

#[derive(Debug, Clone)]
pub struct Settings {
    /// One to four.
    pub zones: Vec<Zone>,
    /// Where DNS is served, over UDP and TCP.
    pub dns: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
    /// The addresses in answers.
    pub public: Vec<IpAddr>,
    /// Senders whose answers are not limited in number.
    pub unlimited: Vec<Cidr>,
    /// Peers of the HTTP listeners whose PROXY v2 header is believed.
    pub trusted_proxies: Vec<Cidr>,
    pub clock: Clock,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot listen for {what} on {address}: {hint}")]
    Bind {
        what: &'static str,
        address: SocketAddr,
        hint: String,
        source: io::Error,
    },
    #[error("cannot start the thread of callbacks")]
    Thread(#[source] io::Error),
}

/// The running listeners.
#[derive(Debug)]
pub struct Callbacks {
    /// The bound addresses.
    pub dns: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
}

/// Binds all sockets, then serves until [`Callbacks::stop`]. Each hit goes into `hits`, which closes with the last sender when
/// everything has stopped.
pub fn start(
    settings: Settings,
    table: watch::Receiver<Arc<Table>>,
    hits: mpsc::Sender<Hit>,
) -> Result<Callbacks, StartError> {
    todo!()
}

impl Callbacks {
    /// Queries and requests that were answered, and those that named no known server.
    pub fn answered(&self) -> u64 {
        todo!()
    }

    pub fn unknown(&self) -> u64 {
        todo!()
    }

    /// Stops listening, gives running requests a second, and waits for the end of the thread.
    pub async fn stop(self) {
        todo!()
    }
}
