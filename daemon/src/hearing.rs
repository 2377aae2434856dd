//! Joins callback servers to the state: keeps the table of known ids, and converts hits for the recorder.

mod rules;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use callback::check::Checks;
use callback::{
    Bound, Callbacks, Hit, Kind, Minted, Served, Server, ServerId, StartError, Table, Tag,
    Transport,
};
use model::callback::{CallbackId, CallbackToken, CallbackTokens, Heard, LiveMints, Request};
use model::{Callback, Clock, ProjectId};
use reconciler::{CallbackHit, Handle, Missed, record_callbacks};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::callback_check::Checker;
use crate::certificate::Certifier;
use crate::limits::{CALLBACK_HITS, SERVED_BYTES};

pub(crate) struct Hearing {
    callbacks: Callbacks,
    following: JoinHandle<()>,
    recording: JoinHandle<()>,
    certifying: Option<JoinHandle<()>>,
    /// Checks of the zones, with the bound addresses.
    pub(crate) checker: Arc<Checker>,
}

/// Starts to answer and to record. HTTPS has the certificate of `certifier`. `resolver` is asked by checks.
pub(crate) fn hear(
    bound: Bound,
    certifier: Option<Certifier>,
    resolver: Option<SocketAddr>,
    handle: &Handle,
    clock: Arc<dyn Clock>,
) -> Result<Hearing, StartError> {
    let mut follower = Follower::new(handle.clone());
    follower.refresh();
    let (hit, hits) = mpsc::channel(CALLBACK_HITS);
    let mut checks = Checks::new(&bound.settings, resolver);
    let wall = clock.clone();
    let now = Arc::new(move || wall.now().into());
    let certifying = certifier.map(|it| it.keep(handle.clone()));
    let callbacks = callback::start(bound, now, follower.table.subscribe(), hit)?;
    (checks.dns, checks.http, checks.https) = (
        callbacks.dns.clone(),
        callbacks.http.clone(),
        callbacks.https.clone(),
    );
    let Callbacks {
        dns, http, https, ..
    } = &callbacks;
    tracing::info!(?dns, ?http, ?https, "callback servers are answered");
    let table = follower.table.subscribe();
    let recording = record_callbacks(handle.clone(), hits, converted, move || missed(&table));
    Ok(Hearing {
        callbacks,
        following: tokio::spawn(follower.follow()),
        recording: tokio::spawn(recording),
        checker: Arc::new(Checker::new(checks, clock)),
        certifying: certifying.map(tokio::spawn),
    })
}

impl Hearing {
    /// Stops answering, and records everything that was heard.
    pub(crate) async fn stop(self) {
        self.callbacks.stop().await;
        if let Err(error) = self.recording.await {
            tracing::error!(%error, "the recorder of callbacks has failed");
        }
        self.following.abort();
        if let Some(certifying) = self.certifying {
            certifying.abort();
        }
    }
}

/// Keeps the table as the published world has it.
struct Follower {
    handle: Handle,
    version: Option<u64>,
    servers: HashMap<CallbackId, Answered>,
    table: watch::Sender<Arc<Table>>,
    /// Bytes of payloads that are answered at once.
    room: Arc<Semaphore>,
}

/// A server in the table, with the records that it was made of.
struct Answered {
    callback: Arc<Callback>,
    tokens: CallbackTokens,
    server: Server,
}

impl Follower {
    fn new(handle: Handle) -> Self {
        Self {
            handle,
            version: None,
            servers: HashMap::new(),
            table: watch::Sender::default(),
            room: Arc::new(Semaphore::new(SERVED_BYTES)),
        }
    }

    async fn follow(mut self) {
        loop {
            let state = self.handle.state();
            let commits = state.subscribe(state.seq());
            // Subscribing fails only if a thousand commits came in between.
            let Ok(mut commits) = commits else { continue };
            self.refresh();
            while commits.next().await.is_ok() {
                self.refresh();
            }
        }
    }

    fn refresh(&mut self) {
        let read = self.handle.state().read(|world| {
            let version = Some(world.callbacks_version());
            let is_new = version != self.version;
            is_new.then(|| (version, world.answered_callbacks().collect::<Vec<_>>()))
        });
        let Some((version, answered)) = read else {
            return;
        };
        self.version = version;
        let mut known = std::mem::take(&mut self.servers);
        for (callback, tokens) in answered {
            let before = known.remove(&callback.id);
            let mut server = before
                .as_ref()
                .map(|it| it.server.clone())
                .unwrap_or_default();
            let is_same = |before: &Answered| Arc::ptr_eq(&before.tokens, &tokens);
            if !before.as_ref().is_some_and(is_same) {
                server.tags = Arc::new(tokens.values().filter_map(|it| tag(it)).collect());
            }
            if before.is_none_or(|before| before.callback.rules != callback.rules) {
                server.rules = Arc::new(rules::converted(&callback.rules));
            }
            let served = server.served.take();
            server.served = Some(served.unwrap_or_else(|| self.serve(callback.project)));
            server.minted = callback
                .minted
                .as_ref()
                .map(|minted| known_to(callback.id, &minted.live));
            let answered = Answered {
                callback,
                tokens,
                server,
            };
            self.servers.insert(answered.callback.id, answered);
        }
        let servers = self.servers.iter();
        let servers = servers.filter_map(|(id, it)| Some((parsed(id)?, it.server.clone())));
        let table = Table {
            servers: servers.collect::<HashMap<ServerId, _>>(),
        };
        self.table.send_replace(Arc::new(table));
    }
}

impl Follower {
    /// The payloads of a project. The thread of the listeners does not wait for the disk.
    fn serve(&self, project: ProjectId) -> Served {
        let (handle, room) = (self.handle.clone(), self.room.clone());
        let runtime = tokio::runtime::Handle::current();
        Served(Arc::new(move |group, payload| {
            let (handle, room) = (handle.clone(), room.clone());
            let found = async move {
                let found = handle.served_payload(project, &group, &payload, &room);
                let found = found.await?;
                Some(callback::Payload {
                    name: format!("{group}/{}", found.name),
                    content_type: found.media_type,
                    body: found.body,
                })
            };
            // Dropping the set ends the search.
            let mut finding = JoinSet::new();
            finding.spawn_on(found, &runtime);
            Box::pin(async move { finding.join_next().await?.ok().flatten() })
        }))
    }
}

/// A tag with the time when it ends.
fn tag(token: &CallbackToken) -> Option<(Tag, Option<SystemTime>)> {
    Some((parsed(&token.tag)?, token.expires_at.map(Into::into)))
}

fn known_to(server: CallbackId, live: &LiveMints) -> Minted {
    let live = live.clone();
    Minted(Arc::new(move |tag| {
        parsed(tag).is_some_and(|tag| live.read(server, tag).is_some())
    }))
}

/// The same id in the types of another package. Both take the same characters, so there is always one.
fn parsed<T: std::str::FromStr>(id: &impl ToString) -> Option<T> {
    id.to_string().parse().ok()
}

fn missed(table: &watch::Receiver<Arc<Table>>) -> Vec<Missed> {
    let of = |(id, server): (&ServerId, &Server)| {
        let (unknown_tags, dropped) = server.counts.take();
        let server = parsed(id).filter(|_| unknown_tags + dropped > 0)?;
        Some(Missed {
            server,
            unknown_tags,
            dropped,
        })
    };
    table.borrow().servers.iter().filter_map(of).collect()
}

fn converted(hit: Hit) -> Option<CallbackHit> {
    let (request, raw) = match hit.kind {
        Kind::Dns(dns) => {
            let transport = match dns.transport {
                Transport::Udp => "udp",
                Transport::Tcp => "tcp",
            };
            let subnet = dns.client_subnet;
            let request = Request::Dns {
                transport: transport.to_owned(),
                name: dns.name,
                qtype: dns.record_type,
                client_subnet: subnet.map(|(address, length)| format!("{address}/{length}")),
            };
            (request, dns.message.to_vec())
        }
        Kind::Http(http) => {
            let request = Request::Http {
                method: http.method,
                target: http.target,
                host: http.host,
                head_bytes: http.head.len() as u64,
                truncated: http.truncated,
                malformed: http.malformed,
                tls: http.is_tls,
                sni: http.sni,
            };
            (request, [&http.head[..], &http.body].concat())
        }
    };
    Some(CallbackHit {
        server: parsed(&hit.server)?,
        heard: Heard {
            at: hit.at.into(),
            peer: hit.peer,
            tag: hit.tag.as_ref().and_then(parsed),
            request,
            answer: hit.answer,
            rule: hit.rule,
        },
        raw,
    })
}
