//! Forms. Each posts an idempotency key and shows problems beside its fields.

use std::collections::BTreeMap;

use maud::{Markup, html};
use percent_encoding::utf8_percent_encode;
use wire::Problem;

use crate::links::IN_A_SEGMENT;
use crate::shell::{Visit, name_of};
use crate::words::with_code;

/// The values and the problem of a refused form.
#[derive(Debug, Clone, Default)]
pub struct Refused {
    /// Typed values by field name, without secrets.
    pub typed: BTreeMap<String, String>,
    pub problem: Option<Problem>,
}

impl Refused {
    /// The typed text of a field, or else its initial value.
    pub(crate) fn value<'a>(&'a self, field: &str, otherwise: &'a str) -> &'a str {
        self.typed.get(field).map_or(otherwise, String::as_str)
    }

    pub(crate) fn error(&self, field: &str) -> Option<&str> {
        let errors = &self.problem.as_ref()?.errors;
        let error = errors.iter().find(|error| error.field == field)?;
        Some(&error.message)
    }

    /// True if there are errors, and all of them belong to these fields.
    pub(crate) fn concerns_only(&self, fields: &[&str]) -> bool {
        let errors = self.problem.iter().flat_map(|problem| &problem.errors);
        let mut errors = errors.peekable();
        errors.peek().is_some() && errors.all(|error| fields.contains(&&*error.field))
    }

    /// The problem without the errors of the given fields. Those errors are shown at the fields.
    pub(crate) fn summary(&self, fields: &[&str]) -> Markup {
        html! {
            @if let Some(problem) = &self.problem {
                div.problem role="alert" {
                    p { b { (with_code(&problem.detail)) } }
                    @if let Some(hint) = &problem.hint { p { (with_code(hint)) } }
                    (other_problems(problem, fields))
                }
            }
        }
    }
}

/// Errors of members other than the given fields.
pub(crate) fn other_problems(problem: &Problem, fields: &[&str]) -> Markup {
    let has_no_field = |field: &str| !fields.contains(&field);
    html! {
        @if problem.errors.iter().any(|error| has_no_field(&error.field)) {
            ul.plain {
                @for error in problem.errors.iter().filter(|error| has_no_field(&error.field)) {
                    li { code { (error.field) } ": " (with_code(&error.message)) }
                }
            }
        }
    }
}

/// A form with its idempotency key. `name` is unique in the page.
pub(crate) fn post(visit: &Visit, name: &str, action: &str, content: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="idempotency_key" value=(visit.key_of(name));
            (content)
        }
    }
}

pub(crate) fn button(visit: &Visit, action: &str, label: &str) -> Markup {
    post(
        visit,
        action,
        action,
        &html! { button.button type="submit" { (label) } },
    )
}

/// A button for an action that cannot be undone. The reader must first open a disclosure, which works without
/// scripts.
pub(crate) fn guarded(visit: &Visit, action: &str, label: &str, warning: &str) -> Markup {
    guarded_with(visit, action, label, warning, &html! {})
}

/// Like [`guarded`], with more fields.
pub(crate) fn guarded_with(
    visit: &Visit,
    action: &str,
    label: &str,
    warning: &str,
    fields: &Markup,
) -> Markup {
    guard(visit, action, label, warning, fields, "button danger")
}

/// Like [`guarded_with`], for a harmless action.
pub(crate) fn disclosed(
    visit: &Visit,
    action: &str,
    label: &str,
    note: &str,
    fields: &Markup,
) -> Markup {
    guard(visit, action, label, note, fields, "button")
}

/// A disclosure with a form in it. `class` is the class of its summary and of its button.
fn guard(
    visit: &Visit,
    action: &str,
    label: &str,
    note: &str,
    fields: &Markup,
    class: &str,
) -> Markup {
    let id = format!("guard-{}", name_of(&format!("{action} {label}")));
    html! {
        details.guard {
            summary class=(class) { (label) "…" }
            div.confirm {
                p id=(id) { (note) }
                (post(visit, &format!("{action} {label}"), action, &html! {
                    (fields)
                    button class=(class) type="submit" aria-describedby=(id) { (label) }
                }))
            }
        }
    }
}

/// The limit of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Bytes(u64),
    Characters(u64),
}

/// A field with its label, hint and error.
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) label: &'a str,
    pub(crate) hint: &'a str,
    /// True if browsers refuse an empty value.
    pub(crate) required: bool,
    /// True if the label says "(required)".
    pub(crate) marked: bool,
    /// The prefix of its id. Two forms of a page may have fields of the same name.
    pub(crate) form: &'a str,
    /// The most characters of a one-line text.
    pub(crate) most: Option<u64>,
    /// What a password manager may fill in.
    pub(crate) filled: &'a str,
}

impl<'a> Field<'a> {
    pub(crate) const fn new(name: &'a str, label: &'a str) -> Self {
        Self {
            name,
            label,
            hint: "",
            required: false,
            marked: false,
            form: "field",
            most: None,
            filled: "off",
        }
    }

    pub(crate) const fn hint(mut self, hint: &'a str) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self.marked()
    }

    /// Marks the field as required, but lets the browser send an empty text.
    pub(crate) const fn marked(mut self) -> Self {
        self.marked = true;
        self
    }

    pub(crate) const fn of(mut self, form: &'a str) -> Self {
        self.form = form;
        self
    }

    pub(crate) const fn at_most(mut self, characters: u64) -> Self {
        self.most = Some(characters);
        self
    }

    pub(crate) const fn filled(mut self, with: &'a str) -> Self {
        self.filled = with;
        self
    }

    /// A one-line text. `kind` is the type of the input.
    pub(crate) fn input(&self, kind: &str, value: &str, refused: &Refused) -> Markup {
        let must_have_text = self.required && kind == "text";
        // Secrets are never sent back.
        let value = if kind == "password" {
            ""
        } else {
            refused.value(self.name, value)
        };
        self.around(refused, |described, invalid| html! {
            input id=(self.id()) name=(self.name) type=(kind) value=(value) required[self.required] maxlength=[self.most]
                pattern=[must_have_text.then_some(r".*\S.*")] title=[must_have_text.then_some("More than spaces")] autocomplete=(self.filled) spellcheck="false" aria-invalid=[invalid] aria-describedby=[described];
        })
    }

    pub(crate) fn number(&self, value: &str, refused: &Refused) -> Markup {
        self.around(refused, |described, invalid| html! {
            input id=(self.id()) name=(self.name) type="number" step="any" value=(refused.value(self.name, value))
                required[self.required] autocomplete="off" aria-invalid=[invalid] aria-describedby=[described];
        })
    }

    pub(crate) fn text(&self, value: &str, most: Limit, refused: &Refused) -> Markup {
        let (most, unit) = match most {
            Limit::Bytes(most) => (most, "bytes"),
            Limit::Characters(most) => (most, "characters"),
        };
        self.around(refused, |described, invalid| html! {
            textarea id=(self.id()) name=(self.name) rows="1" required[self.required] spellcheck="false"
                data-most=(most) data-unit=(unit) aria-invalid=[invalid] aria-describedby=[described] {
                // Browsers drop the first line end.
                "\n" (refused.value(self.name, value))
            }
            // A script shows the typed length here.
            p.hint.count {}
        })
    }

    /// A choice of several values, each with a label.
    pub(crate) fn select(
        &self,
        options: &[(String, String)],
        value: &str,
        refused: &Refused,
    ) -> Markup {
        let chosen = refused.value(self.name, value);
        self.around(refused, |described, invalid| {
            html! {
                select id=(self.id()) name=(self.name) required[self.required]
                    aria-invalid=[invalid] aria-describedby=[described] {
                    @for (option, label) in options {
                        option value=(option) selected[option == chosen] { (label) }
                    }
                }
            }
        })
    }

    /// A switch that always sends `true` or `false`: the hidden field comes first, and the last value counts.
    pub(crate) fn switch(&self, on: bool, refused: &Refused) -> Markup {
        let on = match refused.typed.get(self.name) {
            // All values of the field, separated by spaces.
            Some(typed) => typed.rsplit(' ').next() == Some("true"),
            None => on,
        };
        let error = self.error(refused);
        html! {
            div.field.switch {
                input type="hidden" name=(self.name) value="false";
                input id=(self.id()) name=(self.name) type="checkbox" value="true" checked[on]
                    aria-invalid=[error.map(|_| "true")] aria-describedby=[self.described(error)];
                label for=(self.id()) { (self.label) }
                (self.notes(error))
            }
        }
    }

    fn around(
        &self,
        refused: &Refused,
        control: impl FnOnce(Option<String>, Option<&'static str>) -> Markup,
    ) -> Markup {
        let error = self.error(refused);
        html! {
            div.field {
                label for=(self.id()) {
                    (self.label)
                    @if self.marked { span.muted { " (required)" } }
                }
                (control(self.described(error), error.map(|_| "true")))
                (self.notes(error))
            }
        }
    }

    fn error<'r>(&self, refused: &'r Refused) -> Option<&'r str> {
        refused.error(self.name)
    }

    fn id(&self) -> String {
        // An attribute that lists ids separates them by spaces.
        format!(
            "{}-{}",
            self.form,
            utf8_percent_encode(self.name, IN_A_SEGMENT)
        )
    }

    fn described(&self, error: Option<&str>) -> Option<String> {
        let id = self.id();
        match (self.hint.is_empty(), error) {
            (true, None) => None,
            (false, None) => Some(format!("{id}-hint")),
            (true, Some(_)) => Some(format!("{id}-error")),
            (false, Some(_)) => Some(format!("{id}-error {id}-hint")),
        }
    }

    fn notes(&self, error: Option<&str>) -> Markup {
        html! {
            @if let Some(error) = error { p.error id={ (self.id()) "-error" } { (with_code(error)) } }
            @if !self.hint.is_empty() { p.hint id={ (self.id()) "-hint" } { (with_code(self.hint)) } }
        }
    }
}
