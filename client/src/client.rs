//! The client. The other files add its methods, one file for each kind of object.

use std::path::Path;
use std::sync::Arc;

use crate::base_url::BaseUrl;
use crate::connector::{self, Pool};
use crate::{Error, Secret};

/// A connection pool to one daemon, with the token that every request carries. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) pool: Pool,
    pub(crate) base: Arc<BaseUrl>,
    pub(crate) token: Option<Secret>,
}

impl Client {
    /// A client of the daemon at `base_url`, which is the address without `/v0`. Nothing is sent yet.
    ///
    /// An address that is not valid fails with [`Error::BaseUrl`]. If TLS is needed but cannot be set up, the error is
    /// [`Error::Connector`].
    pub fn new(base_url: &str, token: Option<Secret>) -> Result<Self, Error> {
        Self::trusting(base_url, token, None)
    }

    /// The same, but trusts the certificates in the PEM file `ca_file`, if given, instead of the machine's.
    pub fn trusting(
        base_url: &str,
        token: Option<Secret>,
        ca_file: Option<&Path>,
    ) -> Result<Self, Error> {
        let base = BaseUrl::parse(base_url)?;
        let pool = connector::connect(&base, ca_file)?;
        Ok(Self {
            pool,
            base: Arc::new(base),
            token,
        })
    }

    /// Refuses plain HTTP to another machine, where others could read the token.
    pub fn refuse_plain_http(self) -> Result<Self, Error> {
        if self.base.is_https() || self.base.is_this_machine() {
            return Ok(self);
        }
        let url = self.base.uri().to_string();
        Err(Error::PlainHttp { url })
    }

    /// The same connections with a different token.
    #[must_use]
    pub fn with_token(&self, token: Secret) -> Self {
        Self {
            token: Some(token),
            ..self.clone()
        }
    }
}
