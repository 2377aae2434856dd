//! The accept loop. It is our own, because it bounds connections, heads and the drain.

use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use reconciler::Handle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower_service::Service;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::limits::{
    ACCEPT_PAUSE, ADDRESS_CONNECTIONS, CONNECTIONS, DRAIN, HANDSHAKE, HEAD, HEAD_BYTES,
};
use crate::peer::{Connection, network};
use crate::rate::Rate;
use crate::service::service;
use crate::tls::{ServerTls, Stream};

/// How the API is offered.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// The addresses of proxies whose word on the caller's address and on TLS is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// How many requests may be made with one token. Requests on this machine are not counted.
    pub requests: Option<Rate>,
    /// TLS, or plain HTTP.
    pub tls: Option<ServerTls>,
    /// The folder of the state, for a page that admins see.
    pub state_folder: Option<PathBuf>,
    /// How many connections there may be, if that is fewer than usual.
    pub connections: Option<usize>,
}

/// Serves the API on `listener` until `stop` resolves, then drains. The caller drains the handle at the same time,
/// which ends held reads and polls.
///
/// The future is boxed here, because the code of an `async fn` is compiled by the package that awaits it, with that package's
/// level of optimisation.
pub fn serve(
    listener: TcpListener,
    handle: Handle,
    front: Front,
    stop: Stop<'_>,
) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    let most = front.connections.unwrap_or(CONNECTIONS);
    let connections = most.min(CONNECTIONS);
    let bounds = Bounds {
        connections,
        of_one_address: ADDRESS_CONNECTIONS.min(connections / 2),
        unbounded: front.trusted_proxies.clone(),
        head: HEAD,
        drain: DRAIN,
    };
    let tls = front.tls.clone();
    Box::pin(accept(listener, tls, service(handle, front), bounds, stop))
}

/// The future that ends the service.
pub type Stop<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The path of requests without one. No route has it.
const NO_PATH: &str = "/-";

/// The bounds of the connections.
struct Bounds {
    connections: usize,
    /// Of one address of another machine.
    of_one_address: usize,
    /// Addresses from which any number may come.
    unbounded: Vec<IpAddr>,
    head: Duration,
    drain: Duration,
}

async fn accept<F>(
    listener: TcpListener,
    tls: Option<ServerTls>,
    routes: F,
    bounds: Bounds,
    mut stop: Stop<'_>,
) where
    F: Filter<Error = Rejection, Extract = (Response,)> + Clone + Send + Sync + 'static,
{
    let permits = Arc::new(Semaphore::new(bounds.connections));
    let addresses = Addresses::default();
    let graceful = GracefulShutdown::new();
    let service = warp::service(routes);
    let mut is_full = false;
    let mut crowded = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let (stream, address) = match accepted {
            Ok((stream, address)) => (stream, address.ip()),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            // Once until there is room again: the next ones come by the thousand.
            if !mem::replace(&mut is_full, true) {
                tracing::warn!(
                    connections = bounds.connections,
                    "connections are refused because there are too many"
                );
            }
            continue;
        };
        is_full = false;
        let Some(place) = addresses.enter(address, &bounds) else {
            if crowded.replace(address) != Some(address) {
                tracing::warn!(
                    %address,
                    connections = bounds.of_one_address,
                    "connections are refused because there are too many of this address"
                );
            }
            continue;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays with delayed sends");
        }
        let guards = (permit, place);
        let head = bounds.head;
        let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
        tokio::spawn(async move {
            converse(stream, address, tls, service, head, watcher).await;
            drop(guards);
        });
    }
    drop(listener);
    if tokio::time::timeout(bounds.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::info!("some requests were still being answered when the daemon stopped");
    }
}

/// Answers the requests of one connection until it ends.
async fn converse<S>(
    stream: TcpStream,
    address: IpAddr,
    tls: Option<ServerTls>,
    service: S,
    head: Duration,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = Response, Error = std::convert::Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let connection = Connection {
        address,
        is_tls: tls.is_some(),
    };
    let stream = match tls {
        None => Stream::Plain(stream),
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.shake_hands(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, %address, "a TLS handshake failed");
                return;
            }
            Err(_) => return,
        },
    };
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection);
        // What is asked of a proxy has no path, and warp takes it for granted that there is one.
        if request.uri().path_and_query().is_none() {
            *request.uri_mut() = Uri::from_static(NO_PATH);
        }
        service.clone().call(request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// How many connections each address has.
#[derive(Clone, Default)]
struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of one connection.
struct Place {
    addresses: Addresses,
    /// `None` if the connections of its address are not counted.
    counted: Option<IpAddr>,
}

impl Addresses {
    /// A place for one more connection, unless its address has too many. Those of this machine are not counted.
    fn enter(&self, address: IpAddr, bounds: &Bounds) -> Option<Place> {
        let address = address.to_canonical();
        let is_counted = !address.is_loopback() && !bounds.unbounded.contains(&address);
        let counted = is_counted.then(|| network(address));
        if let Some(counted) = counted {
            let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = connections.entry(counted).or_default();
            if *count >= bounds.of_one_address {
                return None;
            }
            *count += 1;
        }
        Some(Place {
            addresses: self.clone(),
            counted,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(counted) = self.counted else { return };
        let mut connections = self
            .addresses
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = connections.get_mut(&counted) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&counted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio::sync::oneshot;

    use super::*;

    /// Longer than the busiest machine needs. No test waits this long if the code works.
    const PATIENCE: Duration = Duration::from_secs(180);

    const WHOLE: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Starts a server with room for two connections, which answers everything. It runs until the sender is used or
    /// dropped; then the task returns a socket that keeps the port without listening.
    async fn server() -> (
        SocketAddr,
        oneshot::Sender<()>,
        impl Future<Output = TcpSocket>,
    ) {
        let holder = TcpSocket::new_v4().unwrap();
        holder.set_reuseaddr(true).unwrap();
        holder.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = holder.local_addr().unwrap();
        let listener = TcpListener::bind(address).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let bounds = Bounds {
            connections: 2,
            of_one_address: 1,
            unbounded: Vec::new(),
            head: Duration::from_millis(200),
            drain: Duration::from_millis(200),
        };
        let routes = warp::any().and_then(async || Ok::<_, Rejection>(crate::reply::empty()));
        let task = tokio::spawn(accept(
            listener,
            None,
            routes,
            bounds,
            Box::pin(async {
                drop(stopped.await);
            }),
        ));
        let ended = async {
            task.await.unwrap();
            holder
        };
        (address, stop, ended)
    }

    /// Sends bytes and returns everything the server sends until it closes the connection.
    async fn answer_to(address: SocketAddr, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
        // A reset closes the connection, too.
        drop(read.await.unwrap());
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn silent_half_and_idle_connections_are_closed() {
        let (address, _stop, _) = server().await;
        for bytes in [&b""[..], b"G", b"GET / HTTP/1.1\r\nhost: "] {
            let answer = answer_to(address, bytes).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
                "{answer}"
            );
        }
        let answer = answer_to(address, WHOLE).await;
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }

    #[tokio::test]
    async fn a_head_without_end_is_refused() {
        let (address, _stop, _) = server().await;
        let mut head = b"GET / HTTP/1.1\r\nx: ".to_vec();
        head.resize(HEAD_BYTES + 1, b'a');
        let answer = answer_to(address, &head).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn one_connection_too_many_is_closed_at_once_and_the_place_comes_free_again() {
        let (address, _stop, _) = server().await;
        let first = TcpStream::connect(address).await.unwrap();
        let second = TcpStream::connect(address).await.unwrap();
        assert_eq!(answer_to(address, b"").await, "");
        drop((first, second));
        loop {
            if answer_to(address, WHOLE).await.starts_with("HTTP/1.1 204") {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_does_not_hold_the_drain() {
        let (address, stop, ended) = server().await;
        let _silent = TcpStream::connect(address).await.unwrap();
        stop.send(()).unwrap();
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        let _holder = ended.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[test]
    fn an_address_of_another_machine_has_a_bounded_number_of_connections() {
        let proxy: IpAddr = "192.0.2.1".parse().unwrap();
        let bounds = Bounds {
            connections: 10,
            of_one_address: 2,
            unbounded: vec![proxy],
            head: PATIENCE,
            drain: PATIENCE,
        };
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), &bounds);
        let first = enter("198.51.100.7");
        let second = enter("::ffff:198.51.100.7");
        assert!(first.is_some() && second.is_some());
        assert!(enter("198.51.100.7").is_none());
        assert!(enter("198.51.100.8").is_some());
        drop(first);
        assert!(enter("198.51.100.7").is_some());
        let many: Vec<_> = (0..5)
            .map(|_| (enter("127.0.0.1"), enter("192.0.2.1")))
            .collect();
        assert!(
            many.iter()
                .all(|(local, proxy)| local.is_some() && proxy.is_some())
        );
        drop((second, many));
        assert!(addresses.0.lock().unwrap().is_empty());
    }
}
