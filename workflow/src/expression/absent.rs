//! What an expression finds where there is no job: it is equal to null, and says why if a member is asked for.

use std::any::Any;
use std::sync::Arc;

use cel_interpreter::ExecutionError;
use cel_interpreter::common::traits::Indexer;
use cel_interpreter::common::types::{CelNull, Type};
use cel_interpreter::common::value::{CowVal, StaticVal, Val};

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

    fn missing<T>(&self) -> Result<T, ExecutionError> {
        let key = format!("{ABSENT}{}", self.0);
        Err(ExecutionError::no_such_key(&key))
    }
}

impl Val for Absent {
    fn get_type(&self) -> &Type {
        &JOB_TYPE
    }

    fn cel_type() -> &'static Type {
        &JOB_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<CelNull>().is_some()
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Absent {}

impl Indexer for Absent {
    fn get<'b, 'v>(&'b self, _: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.missing()
    }

    fn steal<'v>(self: Box<Self>, _: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.missing()
    }
}
