//! Reads `env`.

use std::sync::Arc;

use super::Reader;
use super::consistency::InputsRead;
use super::object::Object;
use crate::definition::Variable;
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::names::check_environment_name;
use crate::yaml::Entry;

/// The workflow's own `env`, which every scan inherits.
pub(super) struct Inherited {
    pub(super) variables: Arc<[Variable]>,
    pub(super) inputs_read: InputsRead,
    /// True if all of it could be read.
    pub(super) is_whole: bool,
}

impl Reader<'_> {
    /// Reads the workflow's `env`. `is_plain` is true if the file cannot have a second `env`.
    pub(super) fn inherited(
        &mut self,
        env: Option<&Entry>,
        is_plain: bool,
        names: &Names,
    ) -> Inherited {
        let before = self.report.unread();
        let variables = env
            .map(|env| self.variables(env, Site::Environment, names))
            .unwrap_or_default();
        Inherited {
            variables: variables.into(),
            inputs_read: std::mem::take(&mut self.inputs_read),
            is_whole: is_plain
                && self.report.unread() == before
                && env.is_none_or(|env| self.is_whole(&env.value)),
        }
    }

    /// The entries of an `env`, in file order.
    pub(super) fn variables(&mut self, entry: &Entry, site: Site, names: &Names) -> Vec<Variable> {
        if entry.value.is_null() {
            self.wrong_type(entry, "`env`", "an object of names and strings");
            return Vec::new();
        }
        let Some(object) = Object::of(&entry.value, "`env`", "{ NAME: value }", &mut self.report)
        else {
            return Vec::new();
        };
        let mut variables = Vec::new();
        for entry in object.entries() {
            let what = format!("`env` value `{}`", entry.shown_key());
            if let Err(error) = check_environment_name(&entry.key) {
                self.report
                    .error(entry.key_span, Code::InvalidName, error.to_string());
            }
            if let Some(value) = self.template(&entry.value, &what, site, names) {
                self.literal_variable(&entry.value, value.source(), &entry.key);
                variables.push(Variable {
                    name: entry.key.to_string(),
                    value,
                });
            }
        }
        variables
    }
}
