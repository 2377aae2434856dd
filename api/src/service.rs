//! The parts that all requests share. They do not depend on routes, handlers and pages.

use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use identity::Passwords;
use listen::{Cidr, ServerTls};
use model::Share;
use reconciler::Handle;
use wire::ErrorCode;

use crate::base::BasePath;
use crate::events::Hub;
use crate::failure::Failure;
use crate::limits::REFUSALS;
use crate::metrics::Metrics;
use crate::pages::renewals::Renewals;
use crate::peer::Peer;
use crate::rate::{Rate, Rates};
use crate::request::Arrival;

/// How the API is offered.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// Proxies whose headers about the caller's address, TLS and the path are trusted.
    pub trusted_proxies: Vec<Cidr>,
    /// Other addresses that count as this machine.
    pub local_from: Vec<Cidr>,
    /// The path below which browsers find the daemon, unless a trusted proxy names another.
    pub base_path: BasePath,
    /// The allowed rate of requests with one token. Requests from this machine are not counted.
    pub requests: Option<Rate>,
    /// TLS, or plain HTTP.
    pub tls: Option<ServerTls>,
    /// The state folder, for a page that admins see.
    pub state_folder: Option<PathBuf>,
    /// The largest number of connections, if it is below the default.
    pub connections: Option<usize>,
    /// How test messages are sent.
    pub delivery: Arc<delivery::Settings>,
    /// How the zones of callback servers are checked, if there are any.
    pub callback_check: Option<Arc<dyn CallbackChecker>>,
}

/// Checks what the daemon sees of the zones of callback servers.
pub trait CallbackChecker: std::fmt::Debug + Send + Sync {
    fn check(&self) -> Pin<Box<dyn Future<Output = wire::CallbackCheck> + Send + '_>>;
}

pub(crate) struct Service {
    pub(crate) handle: Handle,
    pub(crate) events: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) renewals: Renewals,
    /// The state folder, if the daemon names it.
    pub(crate) state_folder: Option<String>,
    pub(crate) trusted_proxies: Vec<Cidr>,
    pub(crate) local_from: Vec<Cidr>,
    pub(crate) base_path: BasePath,
    pub(crate) delivery: Arc<delivery::Settings>,
    pub(crate) callback_check: Option<Arc<dyn CallbackChecker>>,
    pub(crate) passwords: Passwords,
    /// Refused credentials, by network.
    refusals: Rates<IpAddr>,
    /// Requests of users from other machines.
    requests: Option<Rates<Share>>,
}

pub(crate) struct Head {
    pub(crate) arrival: Arc<Arrival>,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Service {
    pub(crate) fn new(handle: Handle, front: Front) -> Self {
        let metrics = Arc::new(Metrics::new());
        metrics.follow(&handle);
        let folder = front.state_folder;
        Self {
            passwords: Passwords::new(handle.sign_ins().random()),
            handle,
            metrics,
            renewals: Renewals::default(),
            events: Arc::default(),
            state_folder: folder.map(|folder| folder.display().to_string()),
            trusted_proxies: front.trusted_proxies,
            local_from: front.local_from,
            base_path: front.base_path,
            delivery: front.delivery,
            callback_check: front.callback_check,
            refusals: Rates::new(REFUSALS),
            requests: front.requests.map(Rates::new),
        }
    }

    /// Counts refused credentials. After too many from one network, the answer is to wait, without the reason of the refusal.
    pub(crate) fn slow_down(&self, peer: Peer, failure: Failure) -> Failure {
        if failure.code != ErrorCode::Unauthorized || peer.is_local {
            return failure;
        }
        match self.refusals.take(peer.network(), Instant::now()) {
            Ok(()) => failure,
            Err(wait) => Failure::rate_limited("too many refused credentials", wait),
        }
    }

    pub(crate) fn count_request(&self, share: Share, peer: Peer) -> Result<(), Failure> {
        match &self.requests {
            Some(requests) if !peer.is_local => requests
                .take(share, Instant::now())
                .map_err(|wait| Failure::rate_limited("too many requests with this token", wait)),
            Some(_) | None => Ok(()),
        }
    }
}
