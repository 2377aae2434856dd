//! The keys of each object of a workflow file, for the parser and the schema.

pub(crate) const WORKFLOW: [&str; 5] = ["$schema", "name", "description", "env", "scans"];
pub(crate) const SCAN: [&str; 12] = [
    "on",
    "renamed_from",
    "artifacts",
    "env",
    "steps",
    "timeout",
    "log_limit",
    "retry",
    "runs_on",
    "overlap",
    "pass_env",
    "checkout",
];
pub(crate) const ON: [&str; 5] = ["cron", "expr", "dispatch", "timezone", "catch_up"];
pub(crate) const DISPATCH: [&str; 1] = ["inputs"];
pub(crate) const INPUT: [&str; 4] = ["type", "options", "required", "default"];
pub(crate) const ARTIFACT: [&str; 7] = [
    "name",
    "paths",
    "if",
    "expires_in",
    "upload_on",
    "strict",
    "notify_on",
];
pub(crate) const STEP: [&str; 6] = ["name", "run", "shell", "if", "allow_failure", "timeout"];
pub(crate) const RETRY: [&str; 2] = ["attempts", "backoff"];
