//! The value for a job that does not exist. It equals null. Reading one of its members fails with the reason.

use std::sync::Arc;

use cel_interpreter::ExecutionError;
use cel_interpreter::common::types::CelNull;
use cel_interpreter::common::value::{CowVal, Val};

use super::cel_value::cel_value;
use super::history::JOB_TYPE;

/// Marks the reason of an [`Absent`] in the library's error. No member name can begin with it.
const ABSENT: char = '\0';

/// A job that does not exist, with the reason. `has()` is false for all its members.
#[derive(Debug, Clone)]
pub(super) struct Absent(Arc<str>);

/// The reason, if the missing key belongs to an [`Absent`].
pub(super) fn absence(missing_key: &str) -> Option<&str> {
    missing_key.strip_prefix(ABSENT)
}

impl Absent {
    pub(super) fn new(reason: &str) -> Self {
        Self(Arc::from(reason))
    }

    fn at<'b, 'v>(&'b self, _: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let key = format!("{ABSENT}{}", self.0);
        Err(ExecutionError::no_such_key(&key))
    }
}

cel_value!(Absent, JOB_TYPE {
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<CelNull>().is_some()
    }
});
