//! A client of one daemon. The other files add its methods, one file for each kind of thing.

use std::sync::Arc;

use crate::base_url::BaseUrl;
use crate::connector::{self, Pool};
use crate::{Error, Secret};

/// A connection pool to one daemon, with the token that goes out with every request. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) pool: Pool,
    pub(crate) base: Arc<BaseUrl>,
    pub(crate) token: Option<Secret>,
}

impl Client {
    /// A client of the daemon at `base_url`, which is what stands before `/v0`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::BaseUrl`] for a URL that cannot be one, [`Error::Connector`] when TLS is needed and cannot be set up.
    pub fn new(base_url: &str, token: Option<Secret>) -> Result<Self, Error> {
        let base = BaseUrl::parse(base_url)?;
        let pool = connector::connect(&base)?;
        Ok(Self {
            pool,
            base: Arc::new(base),
            token,
        })
    }

    /// The same connections under another token.
    #[must_use]
    pub fn with_token(&self, token: Secret) -> Self {
        Self {
            token: Some(token),
            ..self.clone()
        }
    }
}
