//! Joins callback servers to the state: keeps the table of known ids, and hands hits to the recorder.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use callback::{Callbacks, Hit, Kind, Server, ServerId, StartError, Table, Tag, Transport};
use model::Clock;
use model::callback::{CallbackId, CallbackToken, CallbackTokens, Heard, Request};
use reconciler::{CallbackHit, Handle, record_callbacks};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::limits::CALLBACK_HITS;

pub(crate) struct Hearing {
    callbacks: Callbacks,
    following: JoinHandle<()>,
    recording: JoinHandle<()>,
}

/// Binds the sockets, and starts to answer and to record.
pub(crate) fn hear(
    settings: callback::Settings,
    handle: &Handle,
    clock: Arc<dyn Clock>,
) -> Result<Hearing, StartError> {
    let mut follower = Follower::new(handle.clone());
    follower.refresh();
    let (hit, hits) = mpsc::channel(CALLBACK_HITS);
    let now = Arc::new(move || clock.now().into());
    let callbacks = callback::start(settings, now, follower.table.subscribe(), hit)?;
    tracing::info!(dns = ?callbacks.dns, http = ?callbacks.http, "callback servers are answered");
    let (recorder, recorded) = mpsc::channel(1);
    let recording = record_callbacks(handle.clone(), recorded);
    Ok(Hearing {
        callbacks,
        following: tokio::spawn(follower.follow()),
        recording: tokio::spawn(async move {
            tokio::join!(hand_on(hits, recorder), recording);
        }),
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
    }
}

/// Keeps the table as the published world has it.
struct Follower {
    handle: Handle,
    version: Option<u64>,
    servers: HashMap<CallbackId, (CallbackTokens, Server)>,
    table: watch::Sender<Arc<Table>>,
}

impl Follower {
    fn new(handle: Handle) -> Self {
        Self {
            handle,
            version: None,
            servers: HashMap::new(),
            table: watch::Sender::default(),
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
        let mut before = std::mem::take(&mut self.servers);
        for (id, tokens) in answered {
            let server = match before.remove(&id) {
                Some((same, server)) if Arc::ptr_eq(&same, &tokens) => server,
                changed => Server {
                    tags: Arc::new(tokens.values().filter_map(|it| tag(it)).collect()),
                    counts: changed.map(|(_, server)| server.counts).unwrap_or_default(),
                },
            };
            self.servers.insert(id, (tokens, server));
        }
        let servers = self.servers.iter();
        let servers = servers.filter_map(|(id, (_, server))| Some((parsed(id)?, server.clone())));
        let table = Table {
            servers: servers.collect::<HashMap<ServerId, _>>(),
        };
        self.table.send_replace(Arc::new(table));
    }
}

/// A tag with the time when it ends.
fn tag(token: &CallbackToken) -> Option<(Tag, Option<SystemTime>)> {
    Some((parsed(&token.tag)?, token.expires_at.map(Into::into)))
}

/// The same id in the types of another package. Both take the same characters, so there is always one.
fn parsed<T: std::str::FromStr>(id: &impl ToString) -> Option<T> {
    id.to_string().parse().ok()
}

async fn hand_on(mut hits: mpsc::Receiver<Hit>, recorder: mpsc::Sender<CallbackHit>) {
    while let Some(hit) = hits.recv().await {
        let Some(hit) = converted(hit) else { continue };
        if recorder.send(hit).await.is_err() {
            return;
        }
    }
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
        },
        raw,
    })
}
