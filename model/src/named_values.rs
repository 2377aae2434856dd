//! Values that a job uses but its record does not contain: the values of secrets, and names without a value, each with the
//! reason.

use std::collections::BTreeMap;

use workflow::Scan;

use crate::sealing::SecretValue;
use crate::sealing_keys::SealingKeys;
use crate::{Job, World};

/// Only sent to the runner that executes the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedValues {
    /// The secrets that could be decrypted.
    pub secrets: BTreeMap<String, SecretValue>,
    /// Names without a value, as written in expressions (`vars.X`) or `callback`, with the reason and a hint.
    pub missing: BTreeMap<String, String>,
}

impl NamedValues {
    /// The values for a running job. A secret that was set after the claim has its newest value, because old values are
    /// not kept.
    pub fn of(world: &World, job: &Job, scan: &Scan, keys: Option<&SealingKeys>) -> Self {
        let mut found = Self::default();
        let Some(run) = job.state.run() else {
            return found;
        };
        let references = scan.references();
        let project = &job.workflow.source;
        let vars = references.vars.iter();
        for name in vars.filter(|name| !run.context.vars.contains_key(*name)) {
            found.missing.insert(
                format!("vars.{name}"),
                format!("is not set in project {project} (everscan var set {name} VALUE)"),
            );
        }
        if let (Some(server), None) = (&scan.callback, run.callback) {
            let why = format!(
                "callback server {server} did not exist in project {project} when the job was claimed \
                 (everscan callback create {server} --project {project})"
            );
            found.missing.insert("callback".to_owned(), why);
        }
        for name in &references.secrets {
            match open(world, job, name, keys) {
                Ok(value) => {
                    found.secrets.insert(name.clone(), value);
                }
                Err(why) => {
                    found.missing.insert(format!("secrets.{name}"), why);
                }
            }
        }
        found
    }

    /// The secrets that the job got at its claim, with their newest values. What cannot be opened is left out. Unlike
    /// the names in expressions, this is known when the revision of the job is not held any more.
    pub fn secrets(
        world: &World,
        job: &Job,
        keys: Option<&SealingKeys>,
    ) -> BTreeMap<String, SecretValue> {
        let frozen = job
            .state
            .run()
            .into_iter()
            .flat_map(|run| run.secrets.keys());
        let opened = frozen.map(|name| Some((name.clone(), open(world, job, name, keys).ok()?)));
        opened.flatten().collect()
    }
}

fn open(
    world: &World,
    job: &Job,
    name: &str,
    keys: Option<&SealingKeys>,
) -> Result<SecretValue, String> {
    let project = &job.workflow.source;
    let frozen = job.state.run().and_then(|run| run.secrets.get(name));
    let (Some(record), Some(_)) = (world.secrets(job.project), frozen) else {
        return Err(format!(
            "is not set in project {project} (everscan secret set {name})"
        ));
    };
    let Some(keys) = keys else {
        return Err("cannot be opened: the daemon runs without `--secret-key-file`".to_owned());
    };
    match record.open(name, keys) {
        Some(opened) => opened.map_err(|error| {
            format!("cannot be opened: {error} (everscan secret set {name} sets it again)")
        }),
        None => Err(format!(
            "was deleted from project {project} after the job was claimed"
        )),
    }
}
