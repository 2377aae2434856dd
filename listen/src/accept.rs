//! The accept loop.

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::addresses::{Addresses, Cidr};
use crate::limits::{ACCEPT_PAUSE, HANDSHAKE, HEAD_BYTES, WARNING_PAUSE};
use crate::tls::ServerTls;

/// The future that ends the service.
pub type Stop<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The limits of a listener's connections.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub connections: usize,
    /// Connections of one address of another machine.
    pub per_address: usize,
    /// Addresses whose connections are not counted.
    pub uncounted: Vec<Cidr>,
    /// Time from the end of one request to the end of the next request's head. Idle connections are kept this long.
    pub head: Duration,
    /// How long running requests may continue after the stop.
    pub drain: Duration,
}

/// The connection of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The address at the other end, of the caller or of a proxy.
    pub address: IpAddr,
    pub is_tls: bool,
}

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Serves on `listener` until `stop` resolves, then drains.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: Option<ServerTls>,
    service: S,
    bounds: Bounds,
    stop: Stop<'_>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    accept(listener, &bounds, stop, |stream, address| {
        let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
        converse(stream, address.ip(), tls, service, bounds.head, watcher)
    })
    .await;
    if tokio::time::timeout(bounds.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::info!("some requests were not yet answered when the listener stopped");
    }
}

/// Accepts connections on `listener` until `stop` resolves. What `converse` returns for a connection runs as a task.
pub async fn accept<F>(
    listener: TcpListener,
    bounds: &Bounds,
    mut stop: Stop<'_>,
    converse: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(bounds.connections));
    let addresses = Addresses::default();
    let mut warned: Option<Instant> = None;
    // Strangers decide how often connections are refused, and with how many addresses.
    let mut may_warn = || {
        let is_time = warned.is_none_or(|last| last.elapsed() >= WARNING_PAUSE);
        warned = if is_time {
            Some(Instant::now())
        } else {
            warned
        };
        is_time
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            if may_warn() {
                tracing::warn!(
                    connections = bounds.connections,
                    "connections are refused because there are too many"
                );
            }
            continue;
        };
        let address = peer.ip();
        let Some(place) = addresses.enter(address, bounds.per_address, &bounds.uncounted) else {
            if may_warn() {
                tracing::warn!(
                    %address,
                    connections = bounds.per_address,
                    "connections are refused because this address has too many"
                );
            }
            continue;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        let guards = (permit, place);
        let conversation = converse(stream, peer);
        tokio::spawn(async move {
            conversation.await;
            drop(guards);
        });
    }
}

/// Answers the requests of one connection until it ends.
async fn converse<S, B>(
    stream: TcpStream,
    address: IpAddr,
    tls: Option<ServerTls>,
    service: S,
    head: Duration,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let connection = Connection {
        address,
        is_tls: tls.is_some(),
    };
    let stream: Box<dyn Transport> = match tls {
        None => Box::new(stream),
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.shake_hands(stream)).await {
            Ok(Ok(stream)) => Box::new(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, %address, "a TLS handshake failed");
                return;
            }
            Err(_) => return,
        },
    };
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection);
        service.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection broke off");
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio::sync::oneshot;

    use super::*;

    /// Longer than the busiest machine needs. Tests wait this long only if the code is broken.
    const PATIENCE: Duration = Duration::from_secs(180);

    const WHOLE: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Starts a server with room for two connections, which answers every request. It runs until the sender is used or dropped;
    /// then the task returns a socket that keeps the port without listening.
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
            per_address: 1,
            uncounted: Vec::new(),
            head: Duration::from_millis(200),
            drain: Duration::from_millis(200),
        };
        let service = service_fn(async |_| {
            let mut response = Response::new(String::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        });
        let task = tokio::spawn(serve(
            listener,
            None,
            service,
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

    /// Sends bytes, and returns everything that the server sends before it closes the connection.
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
    async fn silent_incomplete_and_idle_connections_are_closed() {
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
    async fn a_request_head_that_is_too_long_is_refused() {
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
    async fn a_connection_above_the_limit_is_closed_at_once() {
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
    async fn a_silent_connection_does_not_delay_the_drain() {
        let (address, stop, ended) = server().await;
        let _silent = TcpStream::connect(address).await.unwrap();
        stop.send(()).unwrap();
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        let _holder = ended.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
