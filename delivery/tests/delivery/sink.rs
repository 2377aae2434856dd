//! An HTTP server that takes one request.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

#[derive(Debug)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Answers with these bytes, and with `endless` for ever. Returns the URL of the sink.
pub(crate) async fn sink(
    head: impl Into<String>,
    endless: &'static str,
) -> (String, JoinHandle<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    (url, take_one(listener, head, endless))
}

/// Answers the first request.
pub(crate) fn take_one(
    listener: TcpListener,
    head: impl Into<String>,
    endless: &'static str,
) -> JoinHandle<Request> {
    let head = head.into();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, &head, endless).await
    })
}

/// A sink with TLS, for `localhost`. The certificate of its authority is the second value.
pub(crate) async fn tls_sink() -> (String, String, JoinHandle<Request>) {
    let own = certificate();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config.clone()));
            // A client that does not trust the certificate ends the handshake.
            if let Ok(stream) = acceptor.accept(stream).await {
                return answer(stream, &status("204 No Content"), "").await;
            }
        }
    });
    (format!("https://localhost:{port}/"), own.ca, taken)
}

pub(crate) struct Certificate {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
    pub(crate) ca: String,
}

/// A certificate for `localhost` by an authority of its own.
pub(crate) fn certificate() -> Certificate {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    Certificate {
        certificate: params.signed_by(&key, &issuer).unwrap(),
        key,
        ca: issuer.pem(),
    }
}

pub(crate) fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n")
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, head: &str, endless: &str) -> Request {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let line = lines.remove(0);
    let headers = lines.iter().filter_map(|line| line.split_once(": "));
    let mut request = Request {
        line,
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: String::new(),
    };
    let length = request.header("content-length").unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    request.body = String::from_utf8(body).unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    if endless == "silence" {
        // Until the client is gone.
        let _ended = stream.read_to_end(&mut Vec::new()).await;
    } else if !endless.is_empty() {
        let piece = endless.repeat(8_192 / endless.len());
        while stream.write_all(piece.as_bytes()).await.is_ok() {}
    }
    request
}
