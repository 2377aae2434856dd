//! The accept loop. It is our own, because it bounds connections, heads and the drain.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use reconciler::Handle;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::limits::{ACCEPT_PAUSE, CONNECTIONS, DRAIN, HEAD, HEAD_BYTES};
use crate::service::service;

/// Serves the API on `listener` until `stop` resolves, then drains. The caller drains the handle at the same time,
/// which ends held reads and polls.
pub async fn serve(listener: TcpListener, handle: Handle, stop: Stop<'_>) {
    let bounds = Bounds {
        connections: CONNECTIONS,
        head: HEAD,
        drain: DRAIN,
    };
    accept(listener, service(handle), bounds, stop).await;
}

/// The future that ends the service. It has one type, so that the service is compiled once, in this package.
pub type Stop<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The bounds of the connections.
struct Bounds {
    connections: usize,
    head: Duration,
    drain: Duration,
}

async fn accept<F>(listener: TcpListener, routes: F, bounds: Bounds, mut stop: Stop<'_>)
where
    F: Filter<Error = Rejection, Extract = (Response,)> + Clone + Send + Sync + 'static,
{
    let permits = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    let service = warp::service(routes);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            tracing::warn!(
                connections = bounds.connections,
                "a connection is refused because there are too many"
            );
            continue;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays with delayed sends");
        }
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(service.clone()),
            );
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
            drop(permit);
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};
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
            head: Duration::from_millis(200),
            drain: Duration::from_millis(200),
        };
        let routes = warp::any().and_then(async || Ok::<_, Rejection>(crate::reply::empty()));
        let task = tokio::spawn(accept(
            listener,
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
}
