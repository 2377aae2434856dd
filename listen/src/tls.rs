//! TLS of a listener. Its certificate and key are read at the start, and again whenever their files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::limits::{TLS_CHECK, TLS_FILE_BYTES};
use crate::validity::not_after;

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
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate and key of a listener. A new connection uses the newest; open connections keep theirs.
#[derive(Debug, Clone)]
pub struct ServerTls(watch::Receiver<Arc<ServerConfig>>);

impl ServerTls {
    pub(crate) async fn shake_hands(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let settings = self.0.borrow().clone();
        TlsAcceptor::from(settings).accept(stream).await
    }
}

/// The certificate in use, and its files.
pub struct Tls {
    files: TlsFiles,
    /// The latest contents of the files, even if they are unusable.
    found: Contents,
    current: watch::Sender<Arc<ServerConfig>>,
    expires: watch::Sender<Option<DateTime<Utc>>>,
}

impl Tls {
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let found = files.read()?;
        let (settings, expires) = files.settings(&found)?;
        Ok(Self {
            files,
            found,
            current: watch::Sender::new(Arc::new(settings)),
            expires: watch::Sender::new(expires),
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
                    match self.files.settings(&found) {
                        Ok((settings, expires)) => {
                            self.current.send_replace(Arc::new(settings));
                            self.expires.send_replace(expires);
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

    /// The settings, and the end of the certificate.
    fn settings(
        &self,
        found: &Contents,
    ) -> Result<(ServerConfig, Option<DateTime<Utc>>), TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&found.certificate).collect();
        let chain = chain.map_err(|source| TlsError::Certificate {
            path: self.certificate.clone(),
            source,
        })?;
        let Some(certificate) = chain.first() else {
            return Err(TlsError::NoCertificate {
                path: self.certificate.clone(),
            });
        };
        let expires = not_after(certificate);
        let key = PrivateKeyDer::from_pem_slice(&found.key).map_err(|source| TlsError::Key {
            path: self.key.clone(),
            source,
        })?;
        let unusable = |source| TlsError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
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
        Ok((settings, expires))
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

    fn certify(folder: &TempDir, year: i32) -> TlsFiles {
        let files = TlsFiles {
            certificate: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
        };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        files
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_certificate_in_use_is_followed() {
        let folder = TempDir::new().unwrap();
        let tls = Tls::load(certify(&folder, 3000)).unwrap();
        let mut expires = tls.expires();
        let year = |end: &Option<DateTime<Utc>>| end.map(|end| end.format("%Y").to_string());
        assert_eq!(year(&expires.borrow()).as_deref(), Some("3000"));
        let following = tokio::spawn(tls.follow());
        certify(&folder, 3001);
        expires.changed().await.unwrap();
        assert_eq!(year(&expires.borrow()).as_deref(), Some("3001"));
        following.abort();
    }
}
