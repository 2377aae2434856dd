//! The renewal of the session token.

use client::Secret;
use model::error_chain;
use tokio::task::JoinError;

use super::Session;
use crate::configuration::{Configuration, ConfigurationError};

/// The result of writing a configuration with a renewed token.
pub(super) type Saved = Result<Result<Configuration, ConfigurationError>, JoinError>;

impl Session {
    /// Stores a token before using it, so that a restart never begins with an older token. If storing fails, the old token stays
    /// in use, and the daemon offers a new token again.
    pub(super) fn renew(&mut self, token: Secret) {
        if !self.saving.is_empty() {
            return;
        }
        let renewed = Configuration {
            token: token.expose().to_owned(),
            ..self.configuration.clone()
        };
        let folder = self.shared.folder.clone();
        self.saving
            .spawn_blocking(move || renewed.save(&folder).map(|()| renewed));
    }

    pub(super) fn use_saved(&mut self, saved: Saved) {
        let error = match saved {
            Ok(Ok(renewed)) => {
                let token = Secret::new(renewed.token.clone());
                self.client = self.client.with_token(token);
                self.configuration = renewed;
                return;
            }
            Ok(Err(error)) => error_chain(&error),
            Err(error) => error.to_string(),
        };
        tracing::error!(error, "cannot keep the renewed session token");
    }
}
