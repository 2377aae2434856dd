//! TLS of a listener. Its certificate and key are read at the start, and again whenever their files change. A listener can also
//! have certificates that come from elsewhere.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::limits::{TLS_CHECK, TLS_FILE_BYTES};
use crate::validity::{Validity, validity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its chain, in PEM form.
    pub certificate: PathBuf,
    /// The private key, in PEM form.
    pub key: PathBuf,
}

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is longer than a certificate or key can be", path.display())]
    TooLong { path: PathBuf },
    #[error("{} is no certificate in PEM form: {source}", path.display())]
    Certificate { path: PathBuf, source: pem::Error },
    #[error("{} holds no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} is no private key in PEM form: {source}", path.display())]
    Key { path: PathBuf, source: pem::Error },
    #[error("the certificate {} cannot be used with the key {}: {source}", certificate.display(), key.display())]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        source: rustls::Error,
    },
    #[error("the certificate {} is not for {host}", certificate.display())]
    Unfit { certificate: PathBuf, host: String },
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// A certificate with its chain and its key.
#[derive(Debug, Clone)]
pub struct Certificate {
    settings: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
    /// `None` if its times are not readable.
    pub validity: Option<Validity>,
}

impl Certificate {
    /// Reads a chain and a key in PEM form. Errors call them by the names in `named`.
    pub fn read(chain: &[u8], key: &[u8], named: &TlsFiles) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|source| TlsError::Certificate {
            path: named.certificate.clone(),
            source,
        })?;
        let Some(leaf) = chain.first().cloned() else {
            return Err(TlsError::NoCertificate {
                path: named.certificate.clone(),
            });
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Key {
            path: named.key.clone(),
            source,
        })?;
        let unusable = |source| TlsError::Pair {
            certificate: named.certificate.clone(),
            key: named.key.clone(),
            source,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut settings = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            settings: Arc::new(settings),
            validity: validity(&leaf),
            leaf,
        })
    }

    /// Whether clients accept it for this host, or for every name of a wildcard such as `*.example.com`.
    pub fn fits(&self, host: &str) -> bool {
        let any = host.strip_prefix("*.").map(|zone| format!("any.{zone}"));
        let host = any.as_deref().unwrap_or(host);
        let (Ok(certificate), Ok(host)) = (
            ParsedCertificate::try_from(&self.leaf),
            ServerName::try_from(host),
        ) else {
            return false;
        };
        verify_server_name(&certificate, &host).is_ok()
    }

    pub fn settings(&self) -> Arc<ServerConfig> {
        self.settings.clone()
    }

    fn expires(&self) -> Option<DateTime<Utc>> {
        Some(self.validity?.until)
    }
}

/// The certificate of a listener, if it has one yet. A new connection uses the newest; open connections keep theirs.
#[derive(Debug, Clone)]
pub struct ServerTls(watch::Receiver<Option<Certificate>>);

impl ServerTls {
    pub fn new(certificates: watch::Receiver<Option<Certificate>>) -> Self {
        Self(certificates)
    }

    /// The newest certificate.
    pub fn certificate(&self) -> Option<Certificate> {
        self.0.borrow().clone()
    }

    pub(crate) async fn shake_hands(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let certificate = self.certificate();
        let certificate = certificate.ok_or_else(|| io::Error::other("there is no certificate"))?;
        TlsAcceptor::from(certificate.settings).accept(stream).await
    }
}

/// The certificate in use, and its files.
pub struct Tls {
    files: TlsFiles,
    /// What the certificate must be for.
    hosts: Vec<String>,
    /// The latest contents of the files, even if they are unusable.
    found: Contents,
    current: watch::Sender<Option<Certificate>>,
    expires: watch::Sender<Option<DateTime<Utc>>>,
}

impl Tls {
    /// Loads the files. The certificate must be for all of these hosts, now and whenever the files change.
    pub fn load(files: TlsFiles, hosts: Vec<String>) -> Result<Self, TlsError> {
        let found = files.read()?;
        let certificate = files.usable(&found, &hosts)?;
        Ok(Self {
            files,
            hosts,
            found,
            expires: watch::Sender::new(certificate.expires()),
            current: watch::Sender::new(Some(certificate)),
        })
    }

    pub fn server(&self) -> ServerTls {
        ServerTls(self.current.subscribe())
    }

    /// When the certificate in use expires. `None` if its end is not readable.
    pub fn expires(&self) -> watch::Receiver<Option<DateTime<Utc>>> {
        self.expires.subscribe()
    }

    /// Loads the files whenever they change. Unusable files have no effect, and a half-written pair is loaded after its next
    /// change.
    pub async fn follow(mut self) {
        loop {
            tokio::time::sleep(TLS_CHECK).await;
            let files = self.files.clone();
            let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await else {
                return;
            };
            let certificate = self.files.certificate.display();
            match read {
                Ok(found) if found == self.found => {}
                Ok(found) => {
                    match self.files.usable(&found, &self.hosts) {
                        Ok(new) => {
                            self.expires.send_replace(new.expires());
                            self.current.send_replace(Some(new));
                            tracing::info!(%certificate, "a new certificate is in use");
                        }
                        Err(error) => {
                            tracing::error!(%error, "the new certificate cannot be used; the last one stays in use");
                        }
                    }
                    self.found = found;
                }
                Err(error) => {
                    tracing::warn!(%error, "the certificate cannot be read");
                }
            }
        }
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
        })
    }

    fn usable(&self, found: &Contents, hosts: &[String]) -> Result<Certificate, TlsError> {
        let certificate = Certificate::read(&found.certificate, &found.key, self)?;
        match hosts.iter().find(|host| !certificate.fits(host)) {
            None => Ok(certificate),
            Some(host) => Err(TlsError::Unfit {
                certificate: self.certificate.clone(),
                host: host.clone(),
            }),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > TLS_FILE_BYTES {
        return Err(TlsError::TooLong {
            path: path.to_owned(),
        });
    }
    std::fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use tempfile::TempDir;

    use super::*;

    fn certify(folder: &TempDir, year: i32, host: &str) -> TlsFiles {
        let files = TlsFiles {
            certificate: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
        };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        files
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_certificate_in_use_is_followed() {
        let folder = TempDir::new().unwrap();
        let tls = Tls::load(certify(&folder, 3000, "localhost"), Vec::new()).unwrap();
        let mut expires = tls.expires();
        let year = |end: &Option<DateTime<Utc>>| end.map(|end| end.format("%Y").to_string());
        assert_eq!(year(&expires.borrow()).as_deref(), Some("3000"));
        let following = tokio::spawn(tls.follow());
        certify(&folder, 3001, "localhost");
        expires.changed().await.unwrap();
        assert_eq!(year(&expires.borrow()).as_deref(), Some("3001"));
        following.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_is_not_for_the_hosts_is_refused_and_does_not_replace_one() {
        let folder = TempDir::new().unwrap();
        let hosts = vec!["*.cb.example.com".to_owned()];
        let files = certify(&folder, 3000, "*.example.com");
        let error = Tls::load(files, hosts.clone()).err().unwrap();
        assert!(error.to_string().ends_with("is not for *.cb.example.com"));
        let tls = Tls::load(certify(&folder, 3001, "*.cb.example.com"), hosts).unwrap();
        let (server, mut expires) = (tls.server(), tls.expires());
        let following = tokio::spawn(tls.follow());
        certify(&folder, 3002, "*.example.com");
        tokio::time::sleep(3 * TLS_CHECK).await;
        certify(&folder, 3003, "*.cb.example.com");
        expires.changed().await.unwrap();
        let end = expires.borrow().unwrap().format("%Y").to_string();
        assert_eq!(end, "3003");
        assert!(server.certificate().unwrap().fits("x.cb.example.com"));
        following.abort();
    }
}
