//! A certificate for all zones, from an authority that speaks ACME (RFC 8555). The authority looks for its challenges in our DNS.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Limited;
use hyper::Request;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{
    Account, AccountBuilder, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse,
    ChallengeType, Error, HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::dns::answer::Challenges;
use crate::limits::{ACME_ANSWER_BYTES, ACME_ORDER, ACME_REQUEST, ACME_WAIT};
use crate::zone::Zone;

/// An authority, and who asks it for certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The URL of its directory.
    pub directory: String,
    pub email: String,
    /// Certificates (PEM) that are trusted for its API instead of the machine's.
    pub root: Option<PathBuf>,
}

/// A certificate with its chain, and its private key, both in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    pub chain: String,
    pub key: String,
}

#[derive(Debug, Error)]
pub enum AcmeError {
    #[error("cannot use {} as root certificates: {problem}", path.display())]
    Root { path: PathBuf, problem: String },
    /// An account must be made again.
    #[error("the authority does not know the account any more")]
    NoAccount,
    #[error("the authority did not accept {name}: {problem}")]
    Invalid { name: String, problem: String },
    #[error("{0}")]
    Refused(String),
    #[error("the authority has not issued the certificate within {} minutes", ACME_ORDER.as_secs() / 60)]
    Late,
}

impl From<Error> for AcmeError {
    fn from(error: Error) -> Self {
        if let Error::Api(problem) = &error
            && problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist")
        {
            return Self::NoAccount;
        }
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::Refused(text)
    }
}

impl Authority {
    /// Makes an account. The text has the account's private key.
    pub async fn register(&self) -> Result<String, AcmeError> {
        let contact = format!("mailto:{}", self.email);
        let new = NewAccount {
            contact: &[&contact],
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let made = self.client()?.create(&new, self.directory.clone(), None);
        let made = timeout(ACME_ORDER, made);
        let (_, credentials) = made.await.map_err(|_| AcmeError::Late)??;
        serde_json::to_string(&credentials).map_err(|error| Error::from(error).into())
    }

    /// Orders one certificate for the zones and for every name in them. The challenges are answered until this ends.
    pub async fn order(
        &self,
        account: &str,
        zones: &[Zone],
        challenges: &watch::Sender<Challenges>,
    ) -> Result<Issued, AcmeError> {
        let ordered = timeout(ACME_ORDER, self.issue(account, zones, challenges)).await;
        challenges.send_replace(Challenges::new());
        ordered.map_err(|_| AcmeError::Late)?
    }

    async fn issue(
        &self,
        account: &str,
        zones: &[Zone],
        challenges: &watch::Sender<Challenges>,
    ) -> Result<Issued, AcmeError> {
        let credentials: AccountCredentials = serde_json::from_str(account).map_err(Error::from)?;
        let account: Account = self.client()?.from_credentials(credentials).await?;
        let names = zones
            .iter()
            .flat_map(|zone| [zone.to_string(), format!("*.{zone}")]);
        let names: Vec<_> = names.map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&names)).await?;
        // A zone and its wildcard have their challenges at one name, so all are answered before the authority looks.
        let mut texts = Challenges::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Pending {
                let challenge = authorization.challenge(ChallengeType::Dns01);
                let challenge = challenge.ok_or(Error::Str("a challenge by DNS"))?;
                texts.push(challenge.key_authorization().dns_value());
            }
        }
        challenges.send_replace(texts);
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Pending
                && let Some(mut challenge) = authorization.challenge(ChallengeType::Dns01)
            {
                challenge.set_ready().await?;
            }
        }
        let patience = RetryPolicy::new().timeout(ACME_WAIT);
        if order.poll_ready(&patience).await? != OrderStatus::Ready {
            return Err(refused(&mut order).await?);
        }
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&patience).await?;
        Ok(Issued { chain, key })
    }

    fn client(&self) -> Result<AccountBuilder, AcmeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| AcmeError::Refused(error.to_string()))?;
        let builder = match &self.root {
            None => builder
                .with_native_roots()
                .map_err(|error| Error::Other(error.into()))?,
            Some(path) => {
                let unusable = |problem: String| AcmeError::Root {
                    path: path.clone(),
                    problem,
                };
                let mut roots = RootCertStore::empty();
                let found = CertificateDer::pem_file_iter(path);
                for root in found.map_err(|error| unusable(error.to_string()))? {
                    let root = root.map_err(|error| unusable(error.to_string()))?;
                    let added = roots.add(root);
                    added.map_err(|error| unusable(error.to_string()))?;
                }
                builder.with_root_certificates(roots)
            }
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(builder.with_no_client_auth())
            .https_only()
            .enable_http1()
            .build();
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Account::builder_with_http(Box::new(Http(http))))
    }
}

/// Why an order is invalid.
async fn refused(order: &mut Order) -> Result<AcmeError, Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        let state = authorization.refresh().await?;
        let problem = state.challenges.iter().find_map(|it| it.error.as_ref());
        if let Some(problem) = problem {
            return Ok(AcmeError::Invalid {
                name: state.identifier().to_string(),
                problem: problem.to_string(),
            });
        }
    }
    Ok(AcmeError::Refused("the order is invalid".to_owned()))
}

/// One connection at a time, with bounds on time and length. The client of `instant-acme` has neither, and speaks HTTP/2.
struct Http(Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

type Answered = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

impl HttpClient for Http {
    fn request(&self, request: Request<BodyWrapper<Bytes>>) -> Answered {
        let response = timeout(ACME_REQUEST, self.0.request(request));
        Box::pin(async move {
            let late = |_| Error::Other(io::Error::from(io::ErrorKind::TimedOut).into());
            let response = response.await.map_err(late)?;
            let response = response.map_err(|error| Error::Other(error.into()))?;
            let bounded = response.map(|body| Limited::new(body, ACME_ANSWER_BYTES));
            Ok(BytesResponse::from(bounded))
        })
    }
}
