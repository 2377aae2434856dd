//! Connections to addresses that users name: webhooks, mail servers, monitors.
//!
//! A name is resolved once. Its addresses are checked, and the connection goes to exactly a checked address. Addresses of
//! this machine and of private networks need an entry in `outbound.allow` of the daemon's configuration. Each step has a
//! time limit, and a peer can send only [`RECEIVED_BYTES`]. Redirects are not followed, and no body of an answer is read.

mod address;
mod error;
mod http;
mod stream;

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use address::{Allowed, ParseAllowedError};
pub use error::Error;
pub use http::{Answer, check_url};
pub use stream::{RECEIVED_BYTES, Stream};

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For each of: the look-up of a name, a connection, a TLS handshake.
    pub connect: Duration,
    /// From the look-up to the answer.
    pub exchange: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            exchange: Duration::from_secs(60),
        }
    }
}

/// Makes guarded connections.
#[derive(Debug)]
pub struct Outbound {
    allow: Vec<Allowed>,
    /// Zones whose names lead back to this daemon.
    zones: Vec<String>,
    config_file: String,
    limits: Limits,
    /// Trusts the machine's certificates, which are read at the first use.
    machine: OnceLock<Arc<ClientConfig>>,
}

impl Outbound {
    /// `allow` has the entries of `outbound.allow` in `config_file`, which errors name.
    pub fn new(allow: Vec<Allowed>, config_file: impl Into<String>, limits: Limits) -> Self {
        Self {
            allow,
            zones: Vec::new(),
            config_file: config_file.into(),
            limits,
            machine: OnceLock::new(),
        }
    }

    /// Refuses every name in these zones. They belong to callback servers: whoever plants such a name in a channel must not make
    /// the daemon report itself.
    #[must_use]
    pub fn refusing(self, zones: Vec<String>) -> Self {
        Self { zones, ..self }
    }

    fn check_zone(&self, host: &str) -> Result<(), Error> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_in = |zone: &&String| {
            let above = host.strip_suffix(zone.as_str());
            above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match self.zones.iter().find(is_in) {
            Some(zone) => Err(Error::OwnZone {
                zone: zone.clone(),
                host,
            }),
            None => Ok(()),
        }
    }

    /// Connects to the first address of `host` that is allowed and answers.
    ///
    /// # Errors
    /// No address is found, allowed or reachable.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Stream, Error> {
        let host = check_host(host)?;
        self.check_zone(host)?;
        let unreachable = |reason: String| Error::Unreachable {
            host: host.to_owned(),
            port,
            reason,
        };
        let found = timeout(self.limits.connect, lookup_host((host, port)))
            .await
            .map_err(|_| unreachable("the look-up of its address took too long".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        let mut failure = unreachable("it has no address".to_owned());
        for mut address in found {
            address.set_ip(address.ip().to_canonical());
            failure = match self.check(host, address) {
                Err(forbidden) => forbidden,
                Ok(()) => match timeout(self.limits.connect, TcpStream::connect(address)).await {
                    Ok(Ok(tcp)) => return Ok(Stream::new(tcp)),
                    Ok(Err(error)) => unreachable(error.to_string()),
                    Err(_) => unreachable("the connection took too long".to_owned()),
                },
            };
        }
        Err(failure)
    }

    fn check(&self, host: &str, address: SocketAddr) -> Result<(), Error> {
        match address::guarded_range(address.ip()) {
            Some(range) if !self.allow.iter().any(|entry| entry.allows(host, address)) => {
                Err(Error::Forbidden {
                    host: host.to_owned(),
                    port: address.port(),
                    entry: address.ip().into(),
                    range,
                    config_file: self.config_file.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Begins TLS. The certificates in `ca` (PEM), if given, are trusted instead of the machine's.
    ///
    /// # Errors
    /// The peer cannot prove that it is `host`, or `ca` is unusable.
    pub async fn secure(
        &self,
        stream: Stream,
        host: &str,
        ca: Option<&str>,
    ) -> Result<TlsStream<Stream>, Error> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let failed = |reason: String| Error::Tls {
            host: host.to_owned(),
            reason,
        };
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
        let config = match ca {
            Some(pem) => Arc::new(
                builder(host)?
                    .with_root_certificates(roots(pem)?)
                    .with_no_client_auth(),
            ),
            None => self.machine_config(host)?,
        };
        let handshake = TlsConnector::from(config).connect(name, stream);
        timeout(self.limits.connect, handshake)
            .await
            .map_err(|_| failed("the handshake took too long".to_owned()))?
            .map_err(|error| failed(error.to_string()))
    }

    fn machine_config(&self, host: &str) -> Result<Arc<ClientConfig>, Error> {
        if let Some(config) = self.machine.get() {
            return Ok(config.clone());
        }
        let trusting = builder(host)?.with_native_roots();
        let trusting = trusting.map_err(|error| Error::Tls {
            host: host.to_owned(),
            reason: format!("this machine's certificates cannot be read: {error}"),
        })?;
        let config = Arc::new(trusting.with_no_client_auth());
        Ok(self.machine.get_or_init(|| config).clone())
    }

    /// Ends an exchange with a peer that takes too long.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of `exchange`.
    pub async fn in_time<T, E: From<Error>>(
        &self,
        exchange: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let limit = self.limits.exchange;
        match timeout(limit, exchange).await {
            Ok(result) => result,
            Err(_) => Err(Error::TimedOut(limit).into()),
        }
    }
}

/// Returns the host without the brackets of an IPv6 address.
///
/// # Errors
/// It is neither a host name in ASCII nor an address.
pub fn check_host(host: &str) -> Result<&str, Error> {
    let in_brackets = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let bare = in_brackets.unwrap_or(host);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = in_brackets.is_none() && !host.is_empty() && host.chars().all(is_part);
    (is_name || bare.parse::<Ipv6Addr>().is_ok())
        .then_some(bare)
        .ok_or_else(|| Error::Host(host.to_owned()))
}

type ConfigBuilder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder(host: &str) -> Result<ConfigBuilder, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls {
            host: host.to_owned(),
            reason: error.to_string(),
        })
}

/// The certificates of a PEM text.
fn roots(pem: &str) -> Result<RootCertStore, Error> {
    let unusable = |reason: String| Error::Ca(reason);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_of_our_own_zones_are_refused() {
        let outbound = Outbound::new(Vec::new(), "everscand.yaml", Limits::default());
        let outbound = outbound.refusing(vec!["cb.example.com".to_owned()]);
        for host in ["cb.example.com", "A-b.CB.example.com."] {
            let refused = outbound.connect(host, 443).await.unwrap_err();
            assert!(refused.is_permanent(), "{refused}");
            assert!(
                refused.to_string().contains("`cb.example.com`"),
                "{refused}"
            );
        }
        for host in ["example.com", "xcb.example.com", "cb.example.com.evil"] {
            assert_eq!(outbound.check_zone(host), Ok(()), "{host}");
        }
    }
}
