//! The connection pool. TLS, and with it the machine's certificate store, is only set up for `https`, so that a client
//! of a daemon on the same machine starts fast and stays small.

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use crate::base_url::BaseUrl;
use crate::{Error, limits};

pub(crate) fn connect(base: &BaseUrl) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("everscan/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits::CONNECT)
        .pool_idle_timeout(limits::IDLE_CONNECTION)
        .tcp_keepalive(limits::KEEP_ALIVE)
        .tcp_keepalive_interval(limits::KEEP_ALIVE)
        .tcp_keepalive_retries(limits::KEEP_ALIVE_QUESTIONS)
        // The contract has no redirect, and the token must not follow one.
        .redirect(reqwest::redirect::Policy::none());
    if base.is_loopback() {
        builder = builder.no_proxy();
    }
    builder = if base.is_https() {
        if CryptoProvider::get_default().is_none() {
            // Losing the race against another thread leaves a provider installed, which is all that is wanted.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        builder.https_only(true)
    } else {
        builder.tls_backend_preconfigured(without_certificates()?)
    };
    builder.build().map_err(|source| Error::Connector {
        source: Box::new(source),
    })
}

/// A TLS configuration that trusts nobody, for a pool that never speaks TLS.
fn without_certificates() -> Result<ClientConfig, Error> {
    let provider = rustls::crypto::ring::default_provider();
    let builder = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|source| Error::Connector {
            source: Box::new(source),
        })?;
    Ok(builder
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}
