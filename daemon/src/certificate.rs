//! The certificate of callback servers: the operator's files, or one that an authority issues.

use std::sync::Arc;

use callback::{AcmeError, Authority, Challenges, Zone};
use listen::{Certificate, ServerTls, Tls, TlsError, TlsFiles, Validity};
use model::callback::{AskedCertificate, CallbackCertificate, CertificateSecret};
use model::decide::KeepCertificate;
use model::{SealingKeys, Timestamp};
use reconciler::Handle;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::limits::{
    CERTIFICATE_AFTER_START, CERTIFICATE_CHECK, CERTIFICATE_REASON_CHARS, KEEP_AGAIN,
};

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CertificateSource {
    Files(TlsFiles),
    Authority(Authority),
}

/// Has the newest certificate, and keeps it new.
pub(crate) enum Certifier {
    Files(Tls),
    Authority(Box<Orders>),
}

impl Certifier {
    pub(crate) fn new(source: CertificateSource, zones: &[Zone]) -> Result<Self, TlsError> {
        Ok(match source {
            CertificateSource::Files(files) => Self::Files(Tls::load(files, hosts(zones))?),
            CertificateSource::Authority(authority) => {
                Self::Authority(Box::new(Orders::new(authority, zones)))
            }
        })
    }

    pub(crate) fn server(&self) -> ServerTls {
        match self {
            Self::Files(tls) => tls.server(),
            Self::Authority(orders) => ServerTls::new(orders.current.subscribe()),
        }
    }

    pub(crate) fn expires(&self) -> watch::Receiver<Option<Timestamp>> {
        match self {
            Self::Files(tls) => tls.expires(),
            Self::Authority(orders) => orders.expires.subscribe(),
        }
    }

    pub(crate) fn challenges(&self) -> watch::Receiver<Challenges> {
        match self {
            Self::Files(_) => watch::channel(Challenges::new()).1,
            Self::Authority(orders) => orders.challenges.subscribe(),
        }
    }

    /// Uses a certificate that is known, before this returns. Keeps it new while the value is awaited.
    pub(crate) fn keep(self, handle: Handle) -> impl Future<Output = ()> + Send {
        let mut secret = CertificateSecret::default();
        if let (Self::Authority(orders), Some(keys)) = (&self, handle.settings().sealing_keys()) {
            secret = orders.take_up(&handle, keys);
        }
        async move {
            match self {
                Self::Files(tls) => tls.follow().await,
                // The configuration has a key if it has an authority.
                Self::Authority(orders) => {
                    if let Some(keys) = handle.settings().sealing_keys() {
                        orders.keep(&handle, keys, secret).await;
                    }
                }
            }
        }
    }
}

/// What a certificate must be for: any name in a zone may be asked for.
fn hosts(zones: &[Zone]) -> Vec<String> {
    let hosts = zones.iter();
    let hosts = hosts.flat_map(|zone| [zone.to_string(), format!("*.{zone}")]);
    hosts.collect()
}

/// Orders certificates of an authority.
pub(crate) struct Orders {
    authority: Authority,
    zones: Vec<Zone>,
    asked: AskedCertificate,
    challenges: watch::Sender<Challenges>,
    current: watch::Sender<Option<Certificate>>,
    expires: watch::Sender<Option<Timestamp>>,
}

impl Orders {
    fn new(authority: Authority, zones: &[Zone]) -> Self {
        Self {
            asked: AskedCertificate {
                directory: authority.directory.clone(),
                email: authority.email.clone(),
                zones: zones.iter().map(ToString::to_string).collect(),
            },
            authority,
            zones: zones.to_vec(),
            challenges: watch::Sender::default(),
            current: watch::Sender::new(None),
            expires: watch::Sender::new(None),
        }
    }

    async fn keep(&self, handle: &Handle, keys: &SealingKeys, mut secret: CertificateSecret) {
        let mut is_start = true;
        loop {
            let due = known(handle).and_then(|known| self.due(&known, is_start));
            let wait = due.and_then(|due| (due - handle.now()).to_std().ok());
            if let Some(wait) = wait {
                // The clock may be set.
                sleep(wait.min(CERTIFICATE_CHECK)).await;
                continue;
            }
            is_start = false;
            self.order(handle, keys, &mut secret).await;
        }
    }

    /// When to order. None is at once.
    fn due(&self, known: &CallbackCertificate, is_start: bool) -> Option<Timestamp> {
        let valid = known.valid.filter(|_| self.current.borrow().is_some());
        let known = CallbackCertificate {
            valid,
            ..known.clone()
        };
        let next = known.next_order(&self.asked)?;
        match &known.failure {
            // Somebody may have mended what was wrong.
            Some(failure) if is_start => Some(next.min(failure.at + CERTIFICATE_AFTER_START)),
            Some(_) | None => Some(next),
        }
    }

    /// Uses the certificate that is known. Returns what is sealed.
    fn take_up(&self, handle: &Handle, keys: &SealingKeys) -> CertificateSecret {
        let Some(known) = known(handle) else {
            return CertificateSecret::default();
        };
        let mut secret = match known.open(keys) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::error!(%error, "the certificate of callback servers cannot be opened: another one is ordered");
                return CertificateSecret::default();
            }
        };
        if !known.asked.has_account_of(&self.asked) {
            secret.account = None;
        }
        if known.asked.zones != self.asked.zones {
            (secret.chain, secret.key) = (None, None);
        }
        if let (Some(chain), Some(key)) = (&secret.chain, &secret.key)
            && let Err(error) = self.employ(chain, key)
        {
            tracing::error!(%error, "the certificate of callback servers cannot be used: another one is ordered");
        }
        secret
    }

    /// Uses a certificate from now on. Returns from when until when it is valid.
    fn employ(&self, chain: &str, key: &str) -> Result<(Timestamp, Timestamp), String> {
        let named = TlsFiles {
            certificate: "of the authority".into(),
            key: "of its order".into(),
        };
        let certificate = Certificate::read(chain.as_bytes(), key.as_bytes(), &named);
        let certificate = certificate.map_err(|error| error.to_string())?;
        let hosts = hosts(&self.zones);
        if let Some(host) = hosts.iter().find(|host| !certificate.fits(host)) {
            return Err(format!("the certificate is not for {host}"));
        }
        let Some(Validity { from, until }) = certificate.validity else {
            return Err("the times of the certificate are not readable".to_owned());
        };
        self.expires.send_replace(Some(until));
        self.current.send_replace(Some(certificate));
        Ok((from, until))
    }

    async fn order(&self, handle: &Handle, keys: &SealingKeys, secret: &mut CertificateSecret) {
        let (valid, failed) = match self.issue(secret).await {
            Ok(valid) => {
                tracing::info!(zones = ?self.asked.zones, until = %valid.1, "a new certificate of callback servers is in use");
                (Some(valid), None)
            }
            Err(reason) => {
                tracing::warn!(
                    directory = self.asked.directory,
                    reason,
                    "no certificate of callback servers is issued; this is retried"
                );
                let before = known(handle).and_then(|known| known.valid);
                let is_usable = self.current.borrow().is_some();
                (before.filter(|_| is_usable), Some(reason))
            }
        };
        self.submit(handle, keys, secret, valid, failed).await;
    }

    async fn issue(
        &self,
        secret: &mut CertificateSecret,
    ) -> Result<(Timestamp, Timestamp), String> {
        let account = match secret.account.clone() {
            Some(account) => account,
            None => {
                let account = self.authority.register().await;
                let account = account.map_err(|error| shown(&error))?;
                secret.account.insert(account).clone()
            }
        };
        let issued = self
            .authority
            .order(&account, &self.zones, &self.challenges);
        let issued = issued.await.map_err(|error| {
            if matches!(error, AcmeError::NoAccount) {
                secret.account = None;
            }
            shown(&error)
        })?;
        let valid = self.employ(&issued.chain, &issued.key)?;
        (secret.chain, secret.key) = (Some(issued.chain), Some(issued.key));
        Ok(valid)
    }

    /// Keeps the result of an order. Until it is kept nothing else is ordered: an authority counts orders.
    async fn submit(
        &self,
        handle: &Handle,
        keys: &SealingKeys,
        secret: &CertificateSecret,
        valid: Option<(Timestamp, Timestamp)>,
        failed: Option<String>,
    ) {
        let keep = KeepCertificate {
            asked: self.asked.clone(),
            secret: secret.clone(),
            valid,
            failed,
            key: keys.current().clone(),
        };
        while let Err(error) = handle.state().submit(keep.clone()).await {
            tracing::warn!(%error, "the certificate of callback servers cannot be kept yet");
            sleep(KEEP_AGAIN).await;
        }
    }
}

fn known(handle: &Handle) -> Option<Arc<CallbackCertificate>> {
    let state = handle.state();
    state.read(|world| world.callback_certificate().cloned())
}

fn shown(error: &AcmeError) -> String {
    let text = error.to_string();
    text.chars().take(CERTIFICATE_REASON_CHARS).collect()
}
