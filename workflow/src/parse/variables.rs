//! `env`.

use super::Reader;
use super::object::Object;
use crate::definition::Variable;
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::names::check_environment_name;
use crate::yaml::Entry;

impl Reader<'_> {
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
                variables.push(Variable {
                    name: entry.key.to_string(),
                    value,
                });
            }
        }
        variables
    }
}
