//! Setting and deleting the secrets of a project.

use std::sync::Arc;

use super::values::{Precondition, check_name, check_value, edited, project_name};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{PROJECT_VALUES, SECRET_CHARS, SECRETS_BYTES};
use crate::moment::Moment;
use crate::project::{ProjectSecrets, StoredSecret};
use crate::sealing::{Place, Sealed, SealingKey, SecretValue};
use crate::world::World;
use crate::{Actor, ProjectId};

/// Give a secret a value.
#[derive(Debug, Clone)]
pub struct SetSecret {
    pub project: ProjectId,
    pub name: String,
    /// The new value.
    pub value: SecretValue,
    /// What seals it.
    pub key: SealingKey,
    pub actor: Actor,
    /// What it must replace.
    pub expects: Precondition,
}

impl Command for SetSecret {
    type Answer = StoredSecret;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// Always makes a new version, so that nobody learns whether the value changed.
    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<StoredSecret>, Refusal> {
        project_name(world, self.project)?;
        check_name("a secret name", &self.name)?;
        check_secret(&self.value)?;
        let mut record = record(world, self.project);
        let before = record.secrets.get(&self.name);
        let edit = before.map(|before| &before.edit);
        self.expects.check("secret", &self.name, edit)?;
        let edit = edited(&mut record.latest_version, self.actor, moment);
        let place = Place {
            project: self.project,
            name: &self.name,
            version: edit.version,
        };
        let sealed =
            Sealed::seal(&self.key, place, &self.value, moment.entropy).map_err(|error| {
                Refusal::InvalidField {
                    field: "value",
                    problem: error.to_string(),
                }
            })?;
        let secret = StoredSecret {
            bytes: self.value.reveal().len() as u64,
            sealed,
            edit,
        };
        record.secrets.insert(self.name, secret.clone());
        check_sizes(&record)?;
        Ok(Decision {
            changes: vec![Change::Secrets(Arc::new(record))],
            answer: secret,
        })
    }
}

/// Remove a secret.
#[derive(Debug, Clone)]
pub struct DeleteSecret {
    pub project: ProjectId,
    pub name: String,
    /// What it must remove.
    pub expects: Precondition,
}

impl Command for DeleteSecret {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let project = project_name(world, self.project)?;
        let mut record = record(world, self.project);
        match record.secrets.remove(&self.name) {
            Some(secret) => {
                self.expects
                    .check("secret", &self.name, Some(&secret.edit))?;
                Ok(Decision {
                    changes: vec![Change::Secrets(Arc::new(record))],
                    answer: (),
                })
            }
            None => Err(Refusal::NoSuchSecret {
                project,
                name: self.name,
            }),
        }
    }
}

fn record(world: &World, project: ProjectId) -> ProjectSecrets {
    world.secrets(project).map_or_else(
        || ProjectSecrets::none(project),
        |secrets| ProjectSecrets::clone(secrets),
    )
}

/// A very short value occurs in every text. Masking it would spoil the log and still reveal it.
fn check_secret(value: &SecretValue) -> Result<(), Refusal> {
    check_value(value.reveal())?;
    if value.reveal().trim().chars().count() < SECRET_CHARS {
        return Err(Refusal::InvalidField {
            field: "value",
            problem: format!(
                "a secret needs at least {SECRET_CHARS} characters beside white space at its ends: a shorter one \
                 could not be told from other text in a log, and so not be masked"
            ),
        });
    }
    Ok(())
}

/// A record must fit into a commit, and all secrets of a job into a masker.
fn check_sizes(record: &ProjectSecrets) -> Result<(), Refusal> {
    if record.secrets.len() > PROJECT_VALUES {
        return Err(Refusal::InvalidField {
            field: "name",
            problem: format!("the project has {PROJECT_VALUES} secrets, which is the limit"),
        });
    }
    let bytes: u64 = record.secrets.values().map(|secret| secret.bytes).sum();
    if bytes > SECRETS_BYTES {
        return Err(Refusal::InvalidField {
            field: "value",
            problem: format!(
                "all secrets of the project together would have {bytes} bytes, over the limit of {SECRETS_BYTES}"
            ),
        });
    }
    Ok(())
}
