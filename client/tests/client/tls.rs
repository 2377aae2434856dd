//! Messages for a server whose certificate is not trusted, and for the wrong scheme.

use std::error::Error as _;
use std::sync::Arc;

use client::Client;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::server::{Reply, Server};

/// A server of HTTPS with a certificate of an unknown authority. It refuses all that is not TLS. Returns its address.
async fn start() -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let settings = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    address
}

async fn failure(url: &str) -> client::Error {
    Client::new(url, None).unwrap().health().await.unwrap_err()
}

#[tokio::test]
async fn an_unknown_authority_is_named() {
    let error = failure(&format!("https://{}", start().await)).await;
    assert_eq!(
        error.source().unwrap().to_string(),
        "the server's certificate is not accepted: its authority is not among those that are trusted here"
    );
    assert_eq!(
        error.hint(),
        Some("name the file with its authority's certificate with --ca-file")
    );
    assert!(!error.is_transient());
}

#[tokio::test]
async fn http_to_a_port_of_https_is_reported_as_such() {
    let nginx = "<h1>The plain HTTP request was sent to HTTPS port</h1>";
    let proxy = Server::start([Reply::new(400, &[("content-type", "text/html")], nginx)]).await;
    for url in [format!("http://{}", start().await), proxy.url.clone()] {
        let error = failure(&url).await;
        assert_eq!(
            error.source().unwrap().to_string(),
            "the server does not speak plain HTTP at this address; it seems to speak HTTPS"
        );
        assert_eq!(error.hint(), Some("write the address with https://"));
        assert!(!error.is_transient());
    }
}
