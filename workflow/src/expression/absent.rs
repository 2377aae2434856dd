//! What an expression finds where there is no job: it is equal to null, and says why if a member is asked for.

use std::sync::Arc;

use cel_interpreter::ExecutionError;
use cel_interpreter::common::types::CelNull;
use cel_interpreter::common::value::{CowVal, Val};

use super::cel_value::cel_value;
use super::history::JOB_TYPE;

/// Precedes the words of an [`Absent`] in the library's error. No name of a member can begin with it.
const ABSENT: char = '\0';

/// A job that is not there. `has()` finds no member in it; whoever reads one gets the reason, in words.
#[derive(Debug, Clone)]
pub(super) struct Absent(Arc<str>);

/// What is said of a value that is not there, if an evaluation has asked for a member of it.
pub(super) fn absence(missing_key: &str) -> Option<&str> {
    missing_key.strip_prefix(ABSENT)
}

impl Absent {
    /// `words` say why there is none.
    pub(super) fn new(words: &str) -> Self {
        Self(Arc::from(words))
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
