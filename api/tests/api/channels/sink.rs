//! A receiver of messages.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A receiver that gives each request the next of these statuses.
pub(crate) async fn sink(
    statuses: &'static [u16],
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, request) = next(&listener).await;
            seen.send(request).unwrap();
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, requests)
}

/// The next request. Connections that end without one are left out.
async fn next(listener: &TcpListener) -> (TcpStream, String) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while stream.read_buf(&mut read).await.is_ok_and(|it| it > 0) {
            if ended(&read) {
                return (stream, String::from_utf8(read).unwrap());
            }
        }
    }
}

fn ended(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_lowercase();
    request.split_once("\r\n\r\n").is_some_and(|(head, body)| {
        let (_, rest) = head.split_once("content-length: ").unwrap();
        body.len() >= rest.lines().next().unwrap().parse().unwrap()
    })
}
