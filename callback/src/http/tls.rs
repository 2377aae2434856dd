//! TLS: which name a client asks for, and the connection if it accepts the certificate.

use listen::ServerTls;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use crate::limits::HANDSHAKE;

/// A client's greeting.
#[derive(Default)]
pub(crate) struct Greeted {
    /// The name that it asks for (SNI). Only names of hosts are read.
    pub(crate) name: Option<String>,
    /// `None` if the handshake fails: often the client does not accept the certificate.
    pub(crate) stream: Option<TlsStream<TcpStream>>,
}

/// `None` if the client does not begin with TLS.
pub(crate) async fn greet(stream: TcpStream, tls: &ServerTls) -> Option<Greeted> {
    let acceptor = LazyConfigAcceptor::new(Acceptor::default(), stream);
    let start = tokio::time::timeout(HANDSHAKE, acceptor).await.ok()?.ok()?;
    let name = start.client_hello().server_name().map(str::to_owned);
    let Some(certificate) = tls.certificate() else {
        return Some(Greeted { name, stream: None });
    };
    let accepted = tokio::time::timeout(HANDSHAKE, start.into_stream(certificate.settings()));
    let stream = accepted.await.ok().and_then(Result::ok);
    Some(Greeted { name, stream })
}
