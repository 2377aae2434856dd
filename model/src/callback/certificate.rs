//! The certificate of callback servers that an authority has issued, and the account there.

use serde::{Deserialize, Serialize};

use crate::limits::{CERTIFICATE_PAUSE, CERTIFICATE_PAUSE_MOST};
use crate::sealing::{Place, Sealed, SealingError, SecretValue};
use crate::sealing_keys::SealingKeys;
use crate::{ProjectId, Timestamp};

/// Where the account and the certificate are sealed.
pub(crate) const PLACE: Place<'static> = Place {
    project: ProjectId::from_uuid(uuid::Uuid::nil()),
    name: "callback certificate",
    version: 0,
};

/// There is at most one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackCertificate {
    pub asked: AskedCertificate,
    /// The [`CertificateSecret`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Sealed>,
    /// From when until when the certificate is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<(Timestamp, Timestamp)>,
    /// The latest orders have failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<CertificateFailure>,
}

/// Whom the configuration asks for a certificate of which zones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCertificate {
    pub directory: String,
    pub email: String,
    pub zones: Vec<String>,
}

impl AskedCertificate {
    /// Whether both are asked with the same account.
    pub fn has_account_of(&self, other: &Self) -> bool {
        self.directory == other.directory && self.email == other.email
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateFailure {
    pub at: Timestamp,
    /// How many orders in a row have failed.
    pub failures: u32,
    pub reason: String,
}

/// What nobody else may read. Only its sealed form is stored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateSecret {
    /// The account at the authority, with its key.
    pub account: Option<String>,
    /// The certificate with its chain, and its key, in PEM form.
    pub chain: Option<String>,
    pub key: Option<String>,
}

impl CertificateSecret {
    pub(crate) fn value(&self) -> SecretValue {
        // All members are texts, which always have a form in JSON.
        SecretValue::new(serde_json::to_string(self).unwrap_or_default())
    }
}

impl CallbackCertificate {
    /// Decrypts its secret. Nothing is in it if there is none.
    pub fn open(&self, keys: &SealingKeys) -> Result<CertificateSecret, SealingError> {
        let Some(secret) = &self.secret else {
            return Ok(CertificateSecret::default());
        };
        let value = keys.open(secret, PLACE)?;
        serde_json::from_str(value.reveal()).map_err(|_| SealingError::Damaged)
    }

    /// When a certificate is to be ordered: after two thirds of the life of a valid one, and after a failure with a growing pause.
    /// None is at once. Whoever asks for something else than before does not wait.
    pub fn next_order(&self, asked: &AskedCertificate) -> Option<Timestamp> {
        if self.asked != *asked {
            return None;
        }
        let renewal = self
            .valid
            .map(|(from, until)| from + (until - from) * 2 / 3);
        let retry = self.failure.as_ref().map(|failure| {
            let doublings = failure.failures.saturating_sub(1).min(16);
            let pause = CERTIFICATE_PAUSE * (1 << doublings);
            failure.at + pause.min(CERTIFICATE_PAUSE_MOST)
        });
        renewal.max(retry)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn asked(zone: &str) -> AskedCertificate {
        AskedCertificate {
            directory: "https://ca.example".to_owned(),
            email: "a@example.com".to_owned(),
            zones: vec![zone.to_owned()],
        }
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_and_a_failure_waits_up_to_a_day() {
        let mut certificate = CallbackCertificate {
            asked: asked("a"),
            secret: None,
            valid: None,
            failure: None,
        };
        assert_eq!(certificate.next_order(&asked("a")), None);
        certificate.valid = Some((at(30), at(330)));
        assert_eq!(certificate.next_order(&asked("a")), Some(at(230)));
        for (failures, minutes) in [(1, 1), (2, 2), (5, 16), (11, 1024), (12, 1440), (999, 1440)] {
            certificate.failure = Some(CertificateFailure {
                at: at(1000),
                failures,
                reason: String::new(),
            });
            let expected = Some(at(1000 + minutes));
            assert_eq!(certificate.next_order(&asked("a")), expected, "{failures}");
        }
        // A new configuration does not wait.
        assert_eq!(certificate.next_order(&asked("b")), None);
    }
}
