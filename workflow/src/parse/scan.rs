//! Reads one scan.

use std::sync::Arc;

use chrono::TimeDelta;

use super::Reader;
use super::object::{Object, keys, listed};
use super::triggers::ReadTriggers;
use super::variables::Inherited;
use crate::definition::{Overlap, PERMISSIONS, Retry, Scan, TOKEN_VARIABLE};
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::limits::{JOB_TIMEOUT, LABELS, RETRY_ATTEMPTS, RETRY_BACKOFF, RETRY_PAUSE};
use crate::names::{NameError, ScanName, check_environment_name};
use crate::notify::NotifyName;
use crate::yaml::{Content, Entry};

impl Reader<'_> {
    /// `triggers` was read earlier, because it declares names that other parts use.
    pub(super) fn scan(
        &mut self,
        entry: &Entry,
        triggers: ReadTriggers,
        inherited: &Inherited,
        names: &Names,
    ) -> Option<Scan> {
        let name = self.scan_name(entry);
        let what = format!("scan `{}`", entry.shown_key());
        if entry.value.is_null() {
            self.wrong_type(entry, &what, "an object with `on` and `steps`");
            return None;
        }
        let object = Object::of(
            &entry.value,
            &what,
            "{ on: { dispatch: {} }, steps: [ run: ls ] }",
            &mut self.report,
        )?;
        let before = self.report.unread();
        self.inputs_read.clear();
        if let Some(uploads) = object.get("uploads") {
            self.report
                .error(
                    uploads.key_span,
                    Code::ReplacedKey,
                    "`uploads` was replaced by `artifacts`",
                )
                .hint("write `artifacts:` with a list of `name` and `paths`");
        }
        let known: Vec<&str> = keys::SCAN.into_iter().chain(["uploads"]).collect();
        object.check_keys(
            if object.get("uploads").is_some() {
                &known
            } else {
                &keys::SCAN
            },
            &mut self.report,
        );

        let env = object
            .get("env")
            .map(|env| self.variables(env, Site::Environment, names))
            .unwrap_or_default();
        let before_steps = self.report.unread();
        let steps = match object.get("steps") {
            Some(steps) => self.steps(steps, names),
            None => {
                self.report
                    .error(
                        entry.key_span,
                        Code::MissingKey,
                        format!("{what} has no `steps`"),
                    )
                    .hint("a scan has at least one step with `run`");
                Vec::new()
            }
        };
        let are_steps_whole = self.report.unread() == before_steps && self.is_whole(&entry.value);
        let artifacts = object
            .get("artifacts")
            .map(|artifacts| {
                self.artifacts(
                    artifacts,
                    are_steps_whole.then_some(steps.as_slice()),
                    names,
                )
            })
            .unwrap_or_default();
        if are_steps_whole
            && self.report.unread() == before
            && triggers.is_whole
            && inherited.is_whole
        {
            self.unused_inputs(entry, &inherited.inputs_read);
        }
        let timeout = object
            .get("timeout")
            .and_then(|entry| self.duration(entry, "`timeout`", Some(JOB_TIMEOUT)));
        let log_limit = object
            .get("log_limit")
            .and_then(|entry| self.size(entry, "`log_limit`"));
        let retry = object.get("retry").and_then(|entry| self.retry(entry));
        let runs_on = object
            .get("runs_on")
            .map(|entry| self.labels(entry))
            .unwrap_or_default();
        let overlap = object
            .get("overlap")
            .and_then(|entry| self.choice(entry, "`overlap`", Overlap::ALL, Overlap::name))
            .unwrap_or_default();
        let pass_env = object
            .get("pass_env")
            .map(|entry| self.pass_env(entry))
            .unwrap_or_default();
        let permissions = object
            .get("permissions")
            .map(|entry| self.permissions(entry));
        let checkout = object
            .get("checkout")
            .and_then(|entry| self.checkout(entry));
        let callback = object
            .get("callback")
            .and_then(|entry| self.callback_server(entry));
        let expect = object
            .get("expect")
            .and_then(|entry| self.expect(entry, timeout))
            .unwrap_or_default();
        let renamed_from = object
            .get("renamed_from")
            .and_then(|entry| self.former_name(entry));
        Some(Scan {
            name: name?,
            on: triggers.read?,
            artifacts,
            env,
            inherited_env: Arc::clone(&inherited.variables),
            steps,
            timeout,
            log_limit,
            retry,
            runs_on,
            overlap,
            pass_env,
            permissions,
            checkout,
            callback,
            expect,
            renamed_from,
        })
    }

    fn labels(&mut self, entry: &Entry) -> Vec<String> {
        let labels = self.words(entry, "`runs_on`", LABELS, |_| Ok(()));
        if let Content::List(items) = &entry.value.content {
            for item in items {
                if let Content::Scalar(scalar) = &item.content {
                    self.literal_label(item, &scalar.text);
                }
            }
        }
        labels
    }

    fn pass_env(&mut self, entry: &Entry) -> Vec<String> {
        let names = self.words(entry, "`pass_env`", LABELS, check_environment_name);
        let Content::List(items) = &entry.value.content else {
            return names;
        };
        for item in items {
            if matches!(&item.content, Content::Scalar(scalar) if scalar.text == TOKEN_VARIABLE) {
                let message = "`SERVICE_TOKEN` is not passed: a step has the token of its own job";
                self.report
                    .warning(item.span, Code::NoEffect, message)
                    .hint("remove it; `permissions` changes what the token of the job may do");
            }
        }
        names
    }

    fn permissions(&mut self, entry: &Entry) -> Vec<String> {
        self.words(entry, "`permissions`", PERMISSIONS.len(), |name| {
            if PERMISSIONS.contains(&name) {
                return Ok(());
            }
            let known = listed(&PERMISSIONS);
            let message = format!("the token of a job cannot have `{name}`; it can have {known}");
            Err(NameError(message))
        })
    }

    /// The name of a callback server of the project.
    pub(super) fn callback_server(&mut self, entry: &Entry) -> Option<NotifyName> {
        let text = self.text(&entry.value, "`callback`")?;
        match NotifyName::new(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.report
                    .error(entry.value.span, Code::InvalidName, error.to_string())
                    .hint("`everscan callback list` shows the names of callback servers");
                None
            }
        }
    }

    fn former_name(&mut self, entry: &Entry) -> Option<ScanName> {
        let text = self.text(&entry.value, "`renamed_from`")?;
        match ScanName::new(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.report
                    .error(entry.value.span, Code::InvalidName, error.to_string());
                None
            }
        }
    }

    fn backoff(&mut self, entry: &Entry) -> Option<TimeDelta> {
        let backoff = self.duration(entry, "`backoff`", Some(JOB_TIMEOUT))?;
        if backoff > RETRY_PAUSE {
            let message = "`backoff` is longer than the longest pause before a retry, 1h";
            self.report
                .warning(entry.value.span, Code::NoEffect, message)
                .hint("`backoff: 1h` means the same");
        }
        Some(backoff)
    }

    fn retry(&mut self, entry: &Entry) -> Option<Retry> {
        if entry.value.is_null() {
            self.wrong_type(entry, "`retry`", "an object with `attempts`");
            return None;
        }
        let object = Object::of(&entry.value, "`retry`", "{ attempts: 2 }", &mut self.report)?;
        object.check_keys(&keys::RETRY, &mut self.report);
        let backoff = match object.get("backoff") {
            Some(entry) => self.backoff(entry),
            None => Some(RETRY_BACKOFF),
        };
        let Some(attempts) = object.get("attempts") else {
            self.report
                .error(entry.key_span, Code::MissingKey, "`retry` needs `attempts`")
                .hint("`attempts: 2` makes up to two further jobs");
            return None;
        };
        let (attempts, backoff) = (
            self.number(attempts, "`attempts`", 1, RETRY_ATTEMPTS)?,
            backoff?,
        );
        Some(Retry { attempts, backoff })
    }
}
