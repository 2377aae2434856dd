//! Sets and deletes the secrets of a project, and seals them with a new key.

use std::sync::Arc;

use super::values::{Precondition, check_name, check_value, edited, project_name};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{PROJECT_VALUES, SECRET_CHARS, SECRETS_BYTES};
use crate::moment::Moment;
use crate::project::{ProjectSecrets, StoredSecret};
use crate::sealing::{Place, Sealed, SealingKey, SecretValue};
use crate::sealing_keys::{KeyState, SealingKeys};
use crate::world::World;
use crate::{Actor, ProjectId};

#[derive(Debug, Clone)]
pub struct SetSecret {
    pub project: ProjectId,
    pub name: String,
    pub value: SecretValue,
    pub key: SealingKey,
    pub actor: Actor,
    pub expects: Precondition,
}

impl Command for SetSecret {
    type Answer = StoredSecret;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// Always creates a new version, so that nobody can find out whether the value changed.
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
        let sealed = Sealed::seal(&self.key, place, &self.value, moment.entropy)
            .map_err(|error| Refusal::invalid("value", error.to_string()))?;
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
                Ok(Decision::of([Change::Secrets(Arc::new(record))]))
            }
            None => Err(Refusal::NoSuchSecret {
                project,
                name: self.name,
            }),
        }
    }
}

/// Seal the secrets of a project with the current key if they are sealed with an old key.
#[derive(Debug, Clone)]
pub struct Reseal {
    pub project: ProjectId,
    pub keys: SealingKeys,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Number of resealed secrets.
    pub secrets: usize,
    /// Secrets whose stored form is damaged. They are unchanged.
    pub damaged: Vec<String>,
}

impl Command for Reseal {
    type Answer = Resealed;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// Values and versions do not change, so this is not an edit. A repeat changes nothing.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Resealed>, Refusal> {
        let mut answer = Resealed::default();
        let Some(record) = world.secrets(self.project) else {
            return Ok(Decision {
                changes: Vec::new(),
                answer,
            });
        };
        let mut resealed = ProjectSecrets::clone(record);
        for (name, secret) in &mut resealed.secrets {
            match self.keys.state_of(&secret.sealed.key) {
                KeyState::Old => {}
                KeyState::Current | KeyState::Missing => continue,
            }
            let place = record.place(name, secret);
            let opened = self.keys.open(&secret.sealed, place);
            let sealed = opened
                .and_then(|value| Sealed::seal(self.keys.current(), place, &value, moment.entropy));
            match sealed {
                Ok(sealed) => {
                    secret.sealed = sealed;
                    answer.secrets += 1;
                }
                Err(_) => answer.damaged.push(name.clone()),
            }
        }
        let is_changed = answer.secrets > 0;
        Ok(Decision {
            changes: is_changed
                .then(|| Change::Secrets(Arc::new(resealed)))
                .into_iter()
                .collect(),
            answer,
        })
    }
}

fn record(world: &World, project: ProjectId) -> ProjectSecrets {
    world.secrets(project).map_or_else(
        || ProjectSecrets::none(project),
        |secrets| ProjectSecrets::clone(secrets),
    )
}

/// Refuses very short values. They occur in every text, so masking them would spoil the log and still reveal them.
fn check_secret(value: &SecretValue) -> Result<(), Refusal> {
    check_value(value.reveal())?;
    if value.reveal().trim().chars().count() < SECRET_CHARS {
        return Err(Refusal::invalid(
            "value",
            format!(
                "a secret needs at least {SECRET_CHARS} characters without white space at its ends: a shorter one occurs in \
                 other text of a log, so it cannot be masked"
            ),
        ));
    }
    Ok(())
}

/// Checks that a record fits into a commit, and all secrets of a job into a masker.
fn check_sizes(record: &ProjectSecrets) -> Result<(), Refusal> {
    if record.secrets.len() > PROJECT_VALUES {
        return Err(Refusal::invalid(
            "name",
            format!("the project has {PROJECT_VALUES} secrets, which is the limit"),
        ));
    }
    let bytes: u64 = record.secrets.values().map(|secret| secret.bytes).sum();
    if bytes > SECRETS_BYTES {
        return Err(Refusal::invalid(
            "value",
            format!(
                "all secrets of the project together would have {bytes} bytes, over the limit of {SECRETS_BYTES}"
            ),
        ));
    }
    Ok(())
}
