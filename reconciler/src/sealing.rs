//! Resealing: secrets sealed with an old key are sealed with the current key, project by project, then channel by channel, then the
//! certificate of callback servers.
//!
//! Each record names the key of its secrets. So after a crash, resealing continues where it stopped.

use std::collections::BTreeMap;

use model::decide::{Reseal, ResealCertificate, ResealChannel, Resealed};
use model::{
    ChannelId, KeyId, KeyState, MaskingCheck, ProjectId, ProjectSecrets, SealingKeys, World,
    check_masking,
};

use crate::error::SecretError;
use crate::handle::{Handle, Settings};
use crate::limits::SEALING_RETRY;

impl Settings {
    /// The keys of secrets, if the daemon has them.
    pub const fn sealing_keys(&self) -> Option<&SealingKeys> {
        self.secret_keys.as_ref()
    }

    /// Whether the daemon has the key of a secret.
    pub fn key_state(&self, key: &KeyId) -> KeyState {
        let keys = self.secret_keys.as_ref();
        keys.map_or(KeyState::Missing, |keys| keys.state_of(key))
    }

    /// What the masker hides of a secret. None if there is no such secret.
    pub async fn check_masking(
        &self,
        secrets: &ProjectSecrets,
        name: &str,
    ) -> Result<Option<MaskingCheck>, SecretError> {
        let keys = self.secret_keys.as_ref().ok_or(SecretError::NoKey)?;
        let Some(opened) = secrets.open(name, keys) else {
            return Ok(None);
        };
        let value = opened?;
        // Building a masker for a large value takes time.
        let checking = tokio::task::spawn_blocking(move || check_masking(&value));
        let checks = checking.await.map_err(|_| SecretError::Stopping)?;
        Ok(Some(checks?))
    }

    /// The missing keys, with the number of secrets that each key seals.
    fn missing_keys<'a>(&self, keys: impl Iterator<Item = &'a KeyId>) -> BTreeMap<KeyId, usize> {
        let mut missing = BTreeMap::new();
        for key in keys {
            match self.key_state(key) {
                KeyState::Missing => *missing.entry(key.clone()).or_default() += 1,
                KeyState::Current | KeyState::Old => {}
            }
        }
        missing
    }
}

/// Logs at the start which secrets cannot be opened.
pub(crate) fn log_sealed_secrets(handle: &Handle) {
    let settings = handle.settings();
    let (missing, of_channels): (Vec<_>, _) = handle.state().read(|world| {
        let of_projects = world
            .all_secrets()
            .map(|secrets| (secrets.project, settings.missing_keys(keys_of(secrets))));
        let of_channels = world.channels().filter_map(|channel| channel.sealed_with());
        (of_projects.collect(), settings.missing_keys(of_channels))
    });
    for (key, channels) in of_channels {
        tracing::error!(
            channels, %key,
            "the secrets of channels are sealed with a key that the daemon does not have; nothing is sent to these \
             channels; name the file of that key with `--secret-key-file` or `--old-secret-key-file`"
        );
    }
    for (project, keys_missing) in missing {
        for (key, secrets) in keys_missing {
            match settings.secret_keys {
                None => tracing::warn!(
                    %project, secrets, %key,
                    "secrets cannot be opened, because `--secret-key-file` is not given; jobs that use them fail"
                ),
                Some(_) => tracing::error!(
                    %project, secrets, %key,
                    "secrets are sealed with another key, which the daemon does not have; jobs that use them fail; \
                     name the file of that key with `--old-secret-key-file`"
                ),
            }
        }
    }
}

/// Reseals all secrets with the current key, and logs which old keys are no longer needed. Afterwards no secret is
/// sealed with an old key, so the task ends.
pub(crate) async fn reseal(handle: Handle) {
    let Some(keys) = &handle.settings().secret_keys else {
        return;
    };
    while !(reseal_projects(&handle, keys).await
        & reseal_channels(&handle, keys).await
        & reseal_certificate(&handle, keys).await)
    {
        tokio::time::sleep(SEALING_RETRY).await;
    }
    for key in keys.old() {
        let key = key.id();
        let left: usize = handle.state().read(|world| {
            let of_projects: usize = world.all_secrets().map(|it| it.sealed_with(&key)).sum();
            let mut channels = world.channels();
            let certificate = world.callback_certificate();
            let sealed = certificate.and_then(|it| it.secret.as_ref());
            of_projects
                + usize::from(channels.any(|it| it.sealed_with() == Some(&key)))
                + usize::from(sealed.is_some_and(|it| it.key == key))
        });
        if left == 0 {
            tracing::info!(
                %key,
                "no secret is sealed with this old key any more; the daemon needs its file only for old backups"
            );
        }
    }
}

/// Tries each project once. True if no project must be retried.
async fn reseal_projects(handle: &Handle, keys: &SealingKeys) -> bool {
    let mut is_done = true;
    let projects = handle.state().read(|world| sealed_with_old(world, keys));
    for project in projects {
        let keys = keys.clone();
        match handle.state().submit(Reseal { project, keys }).await {
            Ok(Resealed { secrets, damaged }) => {
                if secrets > 0 {
                    tracing::info!(%project, secrets, "secrets are sealed with the current key");
                }
                if !damaged.is_empty() {
                    tracing::error!(
                        %project, ?damaged,
                        "the stored form of these secrets is damaged, so they stay as they are; set them again"
                    );
                }
            }
            // A full disk is retried. A failed disk ends the process.
            Err(error) => {
                tracing::warn!(%project, %error, "secrets cannot be sealed with the current key yet");
                is_done = false;
            }
        }
    }
    is_done
}

/// The same for each channel.
async fn reseal_channels(handle: &Handle, keys: &SealingKeys) -> bool {
    let mut is_done = true;
    let channels: Vec<ChannelId> = handle.state().read(|world| {
        let is_old = |key: &KeyId| keys.state_of(key) == KeyState::Old;
        let channels = world.channels();
        let old = channels.filter(|channel| channel.sealed_with().is_some_and(is_old));
        old.map(|channel| channel.id).collect()
    });
    for channel in channels {
        let keys = keys.clone();
        let seal = ResealChannel { channel, keys };
        match handle.state().submit(seal).await {
            Ok(true) => tracing::info!(%channel, "the secret is sealed with the current key"),
            Ok(false) => tracing::error!(
                %channel,
                "the stored form of the secret is damaged, so it stays as it is; set it again"
            ),
            Err(error) => {
                tracing::warn!(%channel, %error, "the secret cannot be sealed with the current key yet");
                is_done = false;
            }
        }
    }
    is_done
}

/// The same for the certificate of callback servers.
async fn reseal_certificate(handle: &Handle, keys: &SealingKeys) -> bool {
    let keys = keys.clone();
    let resealed = handle.state().submit(ResealCertificate { keys }).await;
    if let Err(error) = &resealed {
        tracing::warn!(%error, "the certificate of callback servers cannot be sealed with the current key yet");
    }
    resealed.is_ok()
}

fn keys_of(secrets: &ProjectSecrets) -> impl Iterator<Item = &KeyId> {
    secrets.secrets.values().map(|secret| &secret.sealed.key)
}

/// The projects with a secret that is sealed with an old key.
fn sealed_with_old(world: &World, keys: &SealingKeys) -> Vec<ProjectId> {
    let has_old = |secrets: &ProjectSecrets| {
        let old = keys.old().iter().map(model::SealingKey::id);
        old.map(|key| secrets.sealed_with(&key)).sum::<usize>() > 0
    };
    let projects = world.all_secrets().filter(|secrets| has_old(secrets));
    projects.map(|secrets| secrets.project).collect()
}

#[cfg(test)]
mod tests {
    use crate::handle::Upkeep;
    use model::callback::{AskedCertificate, CertificateSecret};
    use model::channel::{Offered, Target};
    use model::decide::{KeepCertificate, Precondition, SetChannel, SetSecret};
    use model::retention::RetentionSettings;
    use model::{Actor, SealingKey, SecretValue};
    use tempfile::TempDir;

    use super::*;
    use crate::testing::{Lab, Seeded, TestDaemon, configure, source_name};

    fn set(name: &str, key: &SealingKey) -> SetSecret {
        SetSecret {
            expects: Precondition::Anything,
            project: ProjectId::of_source(&source_name()),
            name: name.to_owned(),
            value: SecretValue::new("hunter2".to_owned()),
            key: key.clone(),
            actor: Actor::Daemon,
        }
    }

    #[test]
    fn secrets_of_a_missing_key_are_counted() {
        let key = SealingKey::random(&mut Seeded(1));
        let other = SealingKey::random(&mut Seeded(2));
        let mut lab = Lab::new(1);
        lab.decide(configure()).unwrap();
        for (name, key) in [("A", &key), ("B", &key), ("C", &other)] {
            lab.decide(set(name, key)).unwrap();
        }
        let secrets = lab
            .world
            .secrets(ProjectId::of_source(&source_name()))
            .unwrap();
        let only = |key: &SealingKey| SealingKeys::from(key.clone());
        let count = |secret_keys: Option<SealingKeys>| {
            let settings = Settings {
                retention: RetentionSettings::default(),
                log_limit: 0,
                upkeep: Upkeep::default(),
                secret_keys,
                callbacks: None,
            };
            let missing = settings.missing_keys(keys_of(secrets));
            missing.into_values().sum::<usize>()
        };
        assert_eq!(count(Some(only(&key))), 1);
        assert_eq!(count(Some(only(&other))), 2);
        assert_eq!(count(None), 3);
        let both = SealingKeys::new(key, vec![other]);
        assert_eq!(count(Some(both)), 0);
    }

    #[tokio::test]
    async fn a_start_with_a_new_key_reseals_the_secrets() {
        let folder = TempDir::new().unwrap();
        let old = SealingKey::random(&mut Seeded(4));
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        let current = daemon.handle.settings().secret_keys.clone().unwrap();
        let current = current.current().clone();
        daemon.handle.state().submit(configure()).await.unwrap();
        daemon
            .handle
            .state()
            .submit(set("KEY", &old))
            .await
            .unwrap();
        let channel = SetChannel {
            project: None,
            name: "ops".to_owned().try_into().unwrap(),
            offered: Offered::default(),
            target: Target::Slack,
            secret: Some(SecretValue::new("https://hooks.example/x".to_owned())),
            key: Some(old.clone()),
            actor: Actor::Daemon,
            expects: Precondition::Anything,
        };
        daemon.handle.state().submit(channel).await.unwrap();
        let keep = KeepCertificate {
            asked: AskedCertificate {
                directory: String::new(),
                email: String::new(),
                zones: Vec::new(),
            },
            secret: CertificateSecret {
                account: Some("hunter3".to_owned()),
                ..CertificateSecret::default()
            },
            valid: None,
            failed: None,
            key: old.clone(),
        };
        daemon.handle.state().submit(keep).await.unwrap();
        daemon.close().await;

        let keys = SealingKeys::new(current.clone(), vec![old]);
        let daemon = TestDaemon::sealing(&folder, keys).await;
        let mut changes = daemon.handle.state().changed();
        let sealed = |world: &World| {
            let secrets = world.all_secrets().next().unwrap();
            let channel = world.channels().next().unwrap();
            let certificate = world.callback_certificate().unwrap();
            let sealed = certificate.secret.as_ref().unwrap();
            secrets.sealed_with(&current.id()) == 1
                && channel.sealed_with() == Some(&current.id())
                && sealed.key == current.id()
        };
        while !daemon.handle.state().read(sealed) {
            changes.changed().await.unwrap();
        }
        daemon.close().await;

        // The old key is no longer needed.
        let daemon = TestDaemon::sealing(&folder, current.clone().into()).await;
        let opened = daemon.handle.state().read(|world| {
            let secrets = world.all_secrets().next().unwrap();
            let channel = world.channels().next().unwrap();
            let keys = current.clone().into();
            [
                secrets.open("KEY", &keys).unwrap(),
                channel.open(&keys).unwrap(),
            ]
        });
        let account = daemon.handle.state().read(|world| {
            let certificate = world.callback_certificate().unwrap();
            certificate.open(&current.clone().into()).unwrap().account
        });
        assert_eq!(account.as_deref(), Some("hunter3"));
        let opened = opened.map(|value| value.unwrap().reveal().to_owned());
        assert_eq!(opened, ["hunter2", "https://hooks.example/x"]);
        daemon.close().await;
    }
}
