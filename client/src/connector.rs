//! The connection pool: how connections are made and how long they are kept. The machine's certificates are read only for
//! `https`, so that a client of a daemon on the same machine starts fast and stays small.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Uri;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::{legacy, proxy};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::base_url::BaseUrl;
use crate::error::{ProxyFailed, Source, find_in_chain};
use crate::{Error, limits};

/// The body of a request. It may be produced while it is sent.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, io::Error>;

/// Connections to one daemon. Clones share them. Redirects are not followed: the contract has no redirects, and the token must
/// not be sent to other hosts.
pub(crate) type Pool = legacy::Client<Connector, RequestBody>;

/// A pool that uses the proxy that the environment sets for this address, if any.
///
/// TLS trusts the certificates in the PEM file `ca_file`, if given, instead of the machine's.
pub(crate) fn connect(base: &BaseUrl, ca_file: Option<&Path>) -> Result<Pool, Error> {
    connect_through(&proxy::matcher::Matcher::from_env(), base, ca_file)
}

fn connect_through(
    proxies: &proxy::matcher::Matcher,
    base: &BaseUrl,
    ca_file: Option<&Path>,
) -> Result<Pool, Error> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(limits::KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(limits::KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(limits::KEEP_ALIVE_QUESTIONS));
    let tls = HttpsConnectorBuilder::new().with_tls_config(trust(base, ca_file)?);
    let tls = if base.is_https() {
        tls.https_only()
    } else {
        tls.https_or_http()
    };
    let tls = tls.enable_http1();
    let proxy = if base.is_this_machine() {
        None
    } else {
        proxies.intercept(base.uri())
    };
    let connector = match proxy {
        Some(proxy) => {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
            if let Some(credentials) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            Connector::Tunnelled(tls.wrap_connector(tunnel), proxy.uri().to_string().into())
        }
        None => {
            // The TLS layer above requests plain connections.
            tcp.enforce_http(false);
            Connector::Direct(tls.wrap_connector(tcp))
        }
    };
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits::IDLE_CONNECTION)
        .build(connector))
}

/// The certificates that TLS trusts: the certificates of the file, or of the machine. None without TLS.
fn trust(base: &BaseUrl, ca_file: Option<&Path>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(no_tls)?;
    let builder = match (base.is_https(), ca_file) {
        (true, None) => builder.with_native_roots().map_err(no_tls)?,
        (true, Some(path)) => builder.with_root_certificates(roots(path)?),
        (false, _) => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let unusable = |reason: String| Error::CaFile {
        path: path.to_owned(),
        reason,
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it holds no certificate in PEM form".to_owned()));
    }
    Ok(roots)
}

fn no_tls(source: impl Into<Source>) -> Error {
    Error::Connector {
        source: source.into(),
    }
}

/// Makes connections, directly or through a proxy's tunnel.
#[derive(Debug, Clone)]
pub(crate) enum Connector {
    Direct(HttpsConnector<HttpConnector>),
    /// With the proxy's address, which has no credentials.
    Tunnelled(HttpsConnector<Tunnel<HttpConnector>>, Arc<str>),
}

type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;

/// Names the proxy, if it is at fault.
fn of_proxy(error: Source, proxy: Arc<str>) -> Source {
    let Some(tunnel) = find_in_chain::<TunnelError>(error.as_ref()) else {
        return error;
    };
    let (reason, is_permanent) = match tunnel {
        TunnelError::ConnectFailed(_) => ("cannot be reached", false),
        TunnelError::ProxyAuthRequired => ("wants a user and a password", true),
        TunnelError::TunnelUnsuccessful => ("refuses a connection to the daemon", false),
        _ => ("does not answer as a proxy", false),
    };
    Box::new(ProxyFailed {
        proxy,
        reason,
        is_permanent,
    })
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Source;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Source>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Source>> {
        match self {
            Self::Direct(connector) => connector.poll_ready(context),
            Self::Tunnelled(connector, _) => connector.poll_ready(context),
        }
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let (connecting, proxy) = match self {
            Self::Direct(connector) => (connector.call(address), None),
            Self::Tunnelled(connector, proxy) => {
                (connector.call(with_port(address)), Some(proxy.clone()))
            }
        };
        Box::pin(async move {
            match timeout(limits::CONNECT, connecting).await {
                Ok(connection) => connection.map_err(|error| match proxy {
                    Some(proxy) => of_proxy(error, proxy),
                    None => error,
                }),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}

/// The address with the default port of its scheme. Without a port, a tunnel would lead to the port of `https`.
fn with_port(address: Uri) -> Uri {
    match (address.scheme_str(), address.host(), address.port()) {
        (Some("http"), Some(host), None) => {
            let complete = Uri::builder()
                .scheme("http")
                .authority(format!("{host}:80"))
                .path_and_query("/")
                .build();
            complete.unwrap_or(address)
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;
    use crate::error::Operation;

    /// Takes one connection and answers each request head with the next of `replies`. Returns the first lines of the
    /// heads and their proxy credentials.
    async fn answer(listener: TcpListener, replies: &[&str]) -> Vec<String> {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut seen = Vec::new();
        for reply in replies {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                if line.trim_end().is_empty() {
                    break;
                }
                head.push(line.trim_end().to_owned());
            }
            let is_credential = |line: &String| line.to_ascii_lowercase().starts_with("proxy-auth");
            seen.push(head[0].clone());
            seen.extend(head.into_iter().filter(is_credential));
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
        seen
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_a_tunnel() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxies = proxy::matcher::Matcher::builder()
            .all(format!("http://u:p@{address}"))
            .build();
        let base = BaseUrl::parse("http://everscan.example.org").unwrap();
        let pool = connect_through(&proxies, &base, None).unwrap();
        let proxy = tokio::spawn(answer(
            listener,
            &["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"],
        ));
        let response = pool.get("http://everscan.example.org/healthz".parse().unwrap());
        assert_eq!(response.await.unwrap().status(), 204);
        let seen = proxy.await.unwrap();
        assert_eq!(seen[0], "CONNECT everscan.example.org:80 HTTP/1.1");
        assert!(seen[1].ends_with("Basic dTpw"), "{seen:?}");
        assert_eq!(seen[2..], ["GET /healthz HTTP/1.1"]);
    }

    #[tokio::test]
    async fn a_refusing_proxy_is_named_without_its_password() {
        for (status, reason, is_transient) in [
            ("407 Authentication", "wants a user and a password", false),
            ("403 Forbidden", "refuses a connection to the daemon", true),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let proxies = proxy::matcher::Matcher::builder()
                .all(format!("http://u:hush@{address}"))
                .build();
            let base = BaseUrl::parse("https://everscan.example.org").unwrap();
            let pool = connect_through(&proxies, &base, None).unwrap();
            let reply = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let proxy = tokio::spawn(async move { answer(listener, &[&reply]).await });
            let url = "https://everscan.example.org/healthz";
            let failed = pool.get(url.parse().unwrap()).await.unwrap_err();
            let error = Error::unanswered(&Operation::new(&Method::GET, url), failed);
            proxy.await.unwrap();
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(cause, format!("the proxy http://{address}/ {reason}"));
            assert!(error.hint().unwrap().contains("HTTPS_PROXY"));
            assert_eq!(error.is_transient(), is_transient);
        }
    }

    #[tokio::test]
    async fn a_daemon_on_this_machine_is_reached_without_a_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let proxies = proxy::matcher::Matcher::builder()
            .all("http://127.0.0.1:1")
            .build();
        let pool = connect_through(&proxies, &BaseUrl::parse(&address).unwrap(), None).unwrap();
        let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        let daemon = tokio::spawn(async move { answer(listener, &[reply; 2]).await });
        for _ in 0..2 {
            let response = pool.get(address.parse().unwrap()).await.unwrap();
            assert_eq!(response.collect().await.unwrap().to_bytes(), "ok");
        }
        assert_eq!(daemon.await.unwrap(), ["GET / HTTP/1.1"; 2]);
    }
}
