//! The `retention` part of the configuration file: how much history is kept.

use std::collections::BTreeMap;

use model::retention::{RetentionPolicy, RetentionSettings};
use model::{SourceName, WorkflowId};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FileRetention {
    #[serde(flatten)]
    default: FilePolicy,
    /// Limits by `source/name`. Such an entry replaces all the limits above.
    workflows: BTreeMap<String, FilePolicy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePolicy {
    jobs: Option<u64>,
    age: Option<String>,
    bytes: Option<Size>,
}

/// In YAML, a plain number of bytes is not a text.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`bytes`, `log_limit` and `blob_quota` must be a size, such as 10GiB, or a number of bytes"
)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub(crate) fn bytes(self) -> Result<u64, String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Text(text) => workflow::parse_size(&text).map_err(|error| error.to_string()),
        }
    }
}

impl FileRetention {
    /// Checks the limits. The error is a sentence for the user.
    pub(crate) fn check(self) -> Result<RetentionSettings, String> {
        let default = self.default.check()?;
        let workflows = self
            .workflows
            .into_iter()
            .map(|(name, policy)| {
                let named = |problem| format!("workflow `{name}`: {problem}");
                Ok((
                    workflow_id(&name).map_err(named)?,
                    policy.check().map_err(named)?,
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(RetentionSettings { default, workflows })
    }
}

impl FilePolicy {
    fn check(self) -> Result<RetentionPolicy, String> {
        let age = self.age.map(|text| {
            workflow::parse_duration(&text)
                .map_err(|error| format!("age: {error}\nhint: {}", error.hint()))
        });
        let bytes = self
            .bytes
            .map(|size| size.bytes().map_err(|error| format!("bytes: {error}")));
        Ok(RetentionPolicy {
            jobs: self.jobs,
            age: age.transpose()?,
            bytes: bytes.transpose()?,
        })
    }
}

fn workflow_id(name: &str) -> Result<WorkflowId, String> {
    let (source, workflow) = name
        .split_once('/')
        .ok_or("write it as SOURCE/NAME, as `everscan workflow list` shows it")?;
    let source: SourceName = source
        .parse()
        .map_err(|error: model::SourceNameError| error.to_string())?;
    Ok(WorkflowId::derive(&source, workflow))
}
