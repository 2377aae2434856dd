//! Keeps what an authority of certificates has said.

use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::Timestamp;
use crate::callback::{
    AskedCertificate, CallbackCertificate, CertificateFailure, CertificateSecret, certificate,
};
use crate::change::Change;
use crate::moment::Moment;
use crate::sealing::{Sealed, SealingKey, SecretValue};
use crate::sealing_keys::{KeyState, SealingKeys};
use crate::world::World;

/// Keep an account, a certificate, or the reason why there is no new one. It is sealed with the current key.
#[derive(Clone)]
pub struct KeepCertificate {
    pub asked: AskedCertificate,
    pub secret: CertificateSecret,
    pub valid: Option<(Timestamp, Timestamp)>,
    /// Why the order has failed, if it has.
    pub failed: Option<String>,
    pub key: SealingKey,
}

impl Command for KeepCertificate {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let secret = seal(&self.key, &self.secret.value(), moment)?;
        let before = world.callback_certificate();
        let before = before.filter(|before| before.asked == self.asked);
        let before = before.and_then(|before| before.failure.as_ref());
        let failure = self.failed.map(|reason| CertificateFailure {
            at: moment.now,
            failures: before.map_or(0, |before| before.failures).saturating_add(1),
            reason,
        });
        let certificate = CallbackCertificate {
            asked: self.asked,
            secret: Some(secret),
            valid: self.valid,
            failure,
        };
        let change = Change::CallbackCertificate(Arc::new(certificate));
        Ok(Decision::of([change]))
    }
}

/// Seal the certificate with the current key, if an old one has sealed it.
#[derive(Debug, Clone)]
pub struct ResealCertificate {
    pub keys: SealingKeys,
}

impl Command for ResealCertificate {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let is_old = |sealed: &&Sealed| self.keys.state_of(&sealed.key) == KeyState::Old;
        let known = world.callback_certificate();
        let Some((known, sealed)) =
            known.and_then(|known| Some((known, known.secret.as_ref().filter(is_old)?)))
        else {
            return Ok(Decision::unchanged(()));
        };
        // If it is damaged, another certificate is ordered.
        let Ok(value) = self.keys.open(sealed, certificate::PLACE) else {
            return Ok(Decision::unchanged(()));
        };
        let certificate = CallbackCertificate {
            secret: Some(seal(self.keys.current(), &value, moment)?),
            ..CallbackCertificate::clone(known)
        };
        let change = Change::CallbackCertificate(Arc::new(certificate));
        Ok(Decision::of([change]))
    }
}

fn seal(key: &SealingKey, value: &SecretValue, moment: &mut Moment<'_>) -> Result<Sealed, Refusal> {
    let sealed = Sealed::seal(key, certificate::PLACE, value, moment.entropy);
    sealed.map_err(|error| Refusal::invalid("secret", error.to_string()))
}
