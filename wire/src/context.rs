//! What the expressions of a job saw.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The values that the expressions of a job read, frozen when a runner claimed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobContext {
    /// When they were frozen.
    pub frozen_at: DateTime<Utc>,
    /// The values: `job`, `project`, `workflow`, `revision`, `vars`, `inputs` and `scans`, in the form that `everscan expr
    /// eval --context` takes.
    pub context: serde_json::Value,
    /// The secrets that they name, with their versions at that time. Nobody can read their values.
    pub secrets: BTreeMap<String, u64>,
}
