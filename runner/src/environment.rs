//! The environment of a job's steps. From the runner's own environment it takes only the names listed here and in the scan's
//! `pass_env`. Later layers win.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use wire::Assignment;

use crate::limits;
use crate::source_files;

/// The token for steps that call the API.
pub(crate) const TOKEN: &str = workflow::TOKEN_VARIABLE;

/// The certificates that `everscan` in a step trusts.
const CA_FILE: &str = "SERVICE_CA_FILE";

/// Whether `everscan` in a step may send its token over plain HTTP to another machine.
const INSECURE_HTTP: &str = "SERVICE_INSECURE_HTTP";

/// The names that every step gets from the runner's own environment, in addition to `LC_*`.
const PASSED_NAMES: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TZ",
    "TMPDIR",
    TOKEN,
    CA_FILE,
    INSECURE_HTTP,
];

/// Stops `git` from asking for passwords. Steps have no terminal; this also gives the better error.
const NO_PROMPT: (&str, &str) = ("GIT_TERMINAL_PROMPT", "0");

/// The variable with the id of the job to which a process belongs.
pub(crate) const JOB_ID: &str = "SERVICE_JOB_ID";

/// The name of a callback server.
pub(crate) const CALLBACK_HOST: &str = "SERVICE_CALLBACK_HOST";

/// The runner's own environment. It has no `SERVICE_TOKEN`, unless the operator gives it to all steps.
#[derive(Clone, Default)]
pub struct HostEnvironment(BTreeMap<OsString, OsString>);

impl FromIterator<(OsString, OsString)> for HostEnvironment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self(variables.filter(|(name, _)| name != TOKEN).collect())
    }
}

impl HostEnvironment {
    /// Gives every step this token instead of the token of its job.
    #[must_use]
    pub fn with_token(mut self, token: OsString) -> Self {
        self.0.insert(TOKEN.into(), token);
        self
    }

    /// Adds how the runner itself talks to the daemon.
    pub(crate) fn with_connection(mut self, ca_file: Option<&Path>, insecure_http: bool) -> Self {
        if let Some(path) = ca_file {
            self.0.insert(CA_FILE.into(), path.into());
        }
        match insecure_http {
            true => self.0.insert(INSECURE_HTTP.into(), "true".into()),
            false => self.0.remove(OsStr::new(INSECURE_HTTP)),
        };
        self
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.0.get(OsStr::new(TOKEN))?.to_str()
    }
}

impl std::fmt::Debug for HostEnvironment {
    /// Prints only names, because values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EnvironmentError {
    #[error(
        "environment variable {name} has {bytes} bytes, over the kernel's limit of {limit}; pass it in a file or a blob",
        limit = limits::ENVIRONMENT_ENTRY_BYTES
    )]
    TooLarge {
        name: String,
        /// The length of name, value, equals sign and closing zero.
        bytes: usize,
    },
    #[error("environment variable {name} has a NUL character, which the kernel does not allow")]
    HoldsNul { name: String },
    #[error("{name:?} cannot be the name of an environment variable")]
    Name { name: String },
}

#[derive(Clone)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of a job's steps, without the workflow's `env`. Steps run in `folder`.
    pub(crate) fn of_job(
        host: &HostEnvironment,
        assignment: &Assignment,
        url: &str,
        folder: &Path,
    ) -> Self {
        let (name, value) = NO_PROMPT;
        let mut variables = BTreeMap::from([(name.into(), value.into())]);
        if let Some(token) = &assignment.job_token {
            variables.insert(TOKEN.into(), token.into());
        }
        let passed = host.0.iter();
        variables.extend(
            passed
                .filter(|(name, _)| is_passed(name, &assignment.pass_env))
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let of_service = [
            ("SERVICE_URL", url.to_owned()),
            ("SERVICE_PROJECT_ID", assignment.project_id.to_string()),
            ("SERVICE_WORKFLOW_ID", assignment.workflow_id.to_string()),
            ("SERVICE_REVISION_ID", assignment.revision_id.to_string()),
            (JOB_ID, assignment.job_id.to_string()),
            ("SERVICE_SCAN_NAME", assignment.scan.clone()),
        ];
        for (name, value) in of_service {
            variables.insert(name.into(), value.into());
        }
        if let Some(callback) = &assignment.callback {
            variables.insert(CALLBACK_HOST.into(), callback.into());
        }
        if let Some(checkout) = &assignment.checkout {
            let folder = folder.join(source_files::FOLDER);
            variables.insert("SERVICE_SOURCE_DIR".into(), folder.into());
            let of_source = [
                ("SERVICE_SOURCE_COMMIT", &checkout.commit),
                ("SERVICE_SOURCE_REF", &checkout.reference),
            ];
            for (name, value) in of_source {
                variables.insert(name.into(), value.into());
            }
        }
        Self(variables)
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.into(), value.into());
    }

    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.0.get(OsStr::new("PATH")).map(OsString::as_os_str)
    }

    pub(crate) fn entries(&self) -> Result<Vec<(OsString, OsString)>, EnvironmentError> {
        self.0
            .iter()
            .map(|(name, value)| {
                check(name, value)?;
                Ok((name.clone(), value.clone()))
            })
            .collect()
    }
}

fn is_passed(name: &OsStr, pass_env: &[String]) -> bool {
    PASSED_NAMES.iter().any(|passed| name == *passed)
        || name.as_bytes().starts_with(b"LC_")
        || pass_env.iter().any(|passed| name == passed.as_str())
}

fn check(name: &OsStr, value: &OsStr) -> Result<(), EnvironmentError> {
    let shown = || name.to_string_lossy().into_owned();
    if name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0)) {
        return Err(EnvironmentError::Name { name: shown() });
    }
    if value.as_bytes().contains(&0) {
        return Err(EnvironmentError::HoldsNul { name: shown() });
    }
    let bytes = name.len() + value.len() + 2;
    if bytes > limits::ENVIRONMENT_ENTRY_BYTES {
        return Err(EnvironmentError::TooLarge {
            name: shown(),
            bytes,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
