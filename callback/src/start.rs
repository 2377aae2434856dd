//! Binds the sockets, and starts and stops the thread.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use listen::{Addresses, Bounds, Cidr, ServerTls};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};

use crate::dns::answer::{Answers, Challenges};
use crate::dns::{self, RateLimit, Responder};
use crate::hit::Hit;
use crate::http::{self, Site};
use crate::limits::{DNS_CONNECTIONS, DRAIN, HEAD, HTTP_CONNECTIONS, PER_ADDRESS};
use crate::report::{Reporter, Totals};
use crate::table::Table;
use crate::zone::Zone;

/// Tells the time of hits.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

#[derive(Debug, Clone)]
pub struct Settings {
    pub zones: Vec<Zone>,
    /// Where DNS is served, over UDP and TCP.
    pub dns: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
    pub https: Vec<SocketAddr>,
    /// The certificate of `https`.
    pub tls: Option<ServerTls>,
    /// What an authority of certificates finds.
    pub challenges: watch::Receiver<Challenges>,
    /// The addresses of all names.
    pub public: Vec<IpAddr>,
    /// Senders to whom any number of answers is sent over UDP.
    pub unlimited: Vec<Cidr>,
    /// Peers that send a PROXY v2 header before each request.
    pub trusted_proxies: Vec<Cidr>,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot listen for {service} of callbacks on {address}")]
    Bind {
        service: &'static str,
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot start the thread of callbacks")]
    Thread(#[source] io::Error),
}

/// The running listeners. They stop when this is dropped, too.
#[derive(Debug)]
pub struct Callbacks {
    /// The bound addresses.
    pub dns: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
    pub https: Vec<SocketAddr>,
    totals: Arc<Totals>,
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
}

/// Resolves when everything is to stop.
#[derive(Clone)]
pub(crate) struct Stopped(pub(crate) watch::Receiver<bool>);

impl Stopped {
    pub(crate) async fn wait(&mut self) {
        // An error says that the handle was dropped.
        let _ = self.0.wait_for(|is_stopped| *is_stopped).await;
    }
}

#[derive(Debug)]
struct Sockets {
    udp: Vec<UdpSocket>,
    dns: Vec<TcpListener>,
    http: Vec<TcpListener>,
    https: Vec<TcpListener>,
}

/// Bound sockets. Nobody is answered yet.
#[derive(Debug)]
pub struct Bound {
    pub settings: Settings,
    sockets: Sockets,
}

/// Binds all sockets.
pub fn bind(settings: Settings) -> Result<Bound, StartError> {
    let sockets = Sockets::bind(&settings)?;
    Ok(Bound { settings, sockets })
}

/// Serves until [`Callbacks::stop`] on a thread of its own. Each hit goes into `hits`, which closes when everything has ended.
pub fn start(
    bound: Bound,
    clock: Clock,
    table: watch::Receiver<Arc<Table>>,
    hits: mpsc::Sender<Hit>,
) -> Result<Callbacks, StartError> {
    let Bound { settings, sockets } = bound;
    let addresses = |listeners: &[TcpListener]| {
        let bound: io::Result<_> = listeners.iter().map(TcpListener::local_addr).collect();
        bound.map_err(StartError::Thread)
    };
    let (dns, http, https) = (
        addresses(&sockets.dns)?,
        addresses(&sockets.http)?,
        addresses(&sockets.https)?,
    );
    let totals = Arc::new(Totals::default());
    let reporter = Arc::new(Reporter::new(table, hits, clock, totals.clone()));
    let responder = Responder::new(
        Answers {
            zones: settings.zones,
            public: settings.public,
            challenges: settings.challenges,
        },
        RateLimit::new(settings.unlimited),
        reporter.clone(),
    );
    let site = Site {
        trusted_proxies: settings.trusted_proxies,
        proxied: Addresses::default(),
        reporter,
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    let (stop, stopped) = watch::channel(false);
    let (ending, ended) = oneshot::channel();
    let serving = serve(
        sockets,
        Arc::new(responder),
        Arc::new(site),
        settings.tls,
        Stopped(stopped),
    );
    std::thread::Builder::new()
        .name("callbacks".to_owned())
        .spawn(move || {
            if let Err(error) = runtime.block_on(serving) {
                tracing::error!(%error, "callbacks cannot be served");
            }
            // With the tasks end the senders of hits.
            drop(runtime);
            let _ = ending.send(());
        })
        .map_err(StartError::Thread)?;
    Ok(Callbacks {
        dns,
        http,
        https,
        totals,
        stop,
        ended,
    })
}

impl Callbacks {
    /// How many queries and requests were answered, with or without a known id.
    pub fn answered(&self) -> u64 {
        self.totals.answered.load(Ordering::Relaxed)
    }

    /// How many of them named no known server.
    pub fn unknown(&self) -> u64 {
        self.totals.unknown.load(Ordering::Relaxed)
    }

    /// Stops listening, gives running requests a second, and waits for the end of the thread.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.ended.await;
    }
}

impl Sockets {
    fn bind(settings: &Settings) -> Result<Self, StartError> {
        let mut sockets = Self {
            udp: Vec::new(),
            dns: Vec::new(),
            http: Vec::new(),
            https: Vec::new(),
        };
        for address in &settings.dns {
            let (listener, socket) = bound("DNS", *address, bind_both)?;
            sockets.dns.push(listener);
            sockets.udp.push(socket);
        }
        for address in &settings.http {
            sockets.http.push(bound("HTTP", *address, bind_tcp)?);
        }
        for address in &settings.https {
            sockets.https.push(bound("HTTPS", *address, bind_tcp)?);
        }
        Ok(sockets)
    }
}

fn bound<T>(
    service: &'static str,
    address: SocketAddr,
    bind: impl FnOnce(SocketAddr) -> io::Result<T>,
) -> Result<T, StartError> {
    bind(address).map_err(|source| StartError::Bind {
        service,
        address,
        source,
    })
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Binds the same port for TCP and UDP.
fn bind_both(address: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let listener = bind_tcp(address)?;
    let socket = UdpSocket::bind(listener.local_addr()?)?;
    socket.set_nonblocking(true)?;
    Ok((listener, socket))
}

async fn serve(
    sockets: Sockets,
    responder: Arc<Responder>,
    site: Arc<Site>,
    tls: Option<ServerTls>,
    mut stopped: Stopped,
) -> io::Result<()> {
    // Closes when no conversation is left.
    let (busy, mut idle) = mpsc::channel::<()>(1);
    for socket in sockets.udp {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        tokio::spawn(dns::serve_udp(socket, responder.clone(), stopped.clone()));
    }
    let connections = DNS_CONNECTIONS / sockets.dns.len().max(1);
    for listener in sockets.dns {
        let (busy, responder, until) = (busy.clone(), responder.clone(), stopped.clone());
        let converse = move |stream, peer| {
            let conversation = dns::converse(stream, peer, responder.clone(), until.clone());
            while_busy(conversation, busy.clone())
        };
        accept(listener, connections, Vec::new(), stopped.clone(), converse)?;
    }
    let connections = HTTP_CONNECTIONS / (sockets.http.len() + sockets.https.len()).max(1);
    let plain = sockets.http.into_iter().map(|listener| (listener, None));
    let secured = sockets.https.into_iter().zip(std::iter::repeat(tls));
    for (listener, tls) in plain.chain(secured) {
        let (busy, site) = (busy.clone(), site.clone());
        let until = stopped.clone();
        let proxies = site.trusted_proxies.clone();
        let converse = move |stream, peer| {
            let (site, tls, until) = (site.clone(), tls.clone(), until.clone());
            let conversation = http::converse(stream, peer, site, tls, until);
            while_busy(conversation, busy.clone())
        };
        accept(listener, connections, proxies, stopped.clone(), converse)?;
    }
    drop(busy);
    stopped.wait().await;
    let _ = tokio::time::timeout(DRAIN, idle.recv()).await;
    Ok(())
}

/// Keeps `busy` until the conversation has ended.
async fn while_busy(conversation: impl Future<Output = ()>, busy: mpsc::Sender<()>) {
    conversation.await;
    drop(busy);
}

fn accept<F>(
    listener: TcpListener,
    connections: usize,
    uncounted: Vec<Cidr>,
    mut stopped: Stopped,
    converse: impl Fn(TcpStream, SocketAddr) -> F + Send + Sync + 'static,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let bounds = Bounds {
        connections,
        per_address: PER_ADDRESS,
        uncounted,
        head: HEAD,
        drain: DRAIN,
    };
    tokio::spawn(async move {
        let stop = Box::pin(async move { stopped.wait().await });
        listen::accept(listener, &bounds, stop, converse).await;
    });
    Ok(())
}
