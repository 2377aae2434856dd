//! Compares the members of each part of the model one by one. Each part is destructured without `..`, so that a new member does
//! not compile until it is compared here.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::{Change, Edit, Part, readers, steps};
use crate::checkout::Checkout;
use crate::cron::Schedules;
use crate::definition::{Artifact, Expect, OnCallback, Retry, Scan, Triggers, Variable, Workflow};
use crate::dispatch::{Input, InputValue};
use crate::duration::format_duration;
use crate::expression::Expression;
use crate::names::ScanName;
use crate::notify::NotifyName;
use crate::size::format_size;
use crate::template::Template;

pub(super) const RENAMED_FROM: &str = "renamed_from";

/// The differences outside of the scans.
pub(super) fn workflow(before: &Workflow, after: &Workflow) -> Vec<Change> {
    let mut changes = Changes::of(Part::Itself);
    changes.compare("name", before.name.clone(), after.name.clone());
    changes.compare(
        "description",
        before.description.clone(),
        after.description.clone(),
    );
    let mut found = changes.found;
    variables(&before.env, &after.env, &mut found);
    found
}

/// The differences of a scan, except for its name. `after` belongs to the workflow `around`.
pub(super) fn scan(before: &Scan, after: &Scan, around: &Workflow) -> Vec<Change> {
    let Scan {
        name: _,
        on,
        artifacts,
        env,
        // This belongs to the workflow, and is reported there.
        inherited_env: _,
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
    } = before;
    let mut found = triggers(on, &after.on);
    variables(env, &after.env, &mut found);
    steps::compare(steps, &after.steps, &mut found);
    found.extend(all_artifacts(artifacts, after, around));
    let mut changes = Changes::of(Part::Itself);
    changes.compare("timeout", time(*timeout), time(after.timeout));
    changes.compare(
        "log_limit",
        log_limit.map(format_size),
        after.log_limit.map(format_size),
    );
    changes.compare("retry", retry.map(attempts), after.retry.map(attempts));
    changes.compare("runs_on", list(runs_on), list(&after.runs_on));
    changes.compare("overlap", word(overlap.name()), word(after.overlap.name()));
    changes.compare("pass_env", list(pass_env), list(&after.pass_env));
    let allowed = |permissions: &Option<Vec<String>>| {
        let permissions = permissions.as_deref()?;
        list(permissions).or_else(|| word("none"))
    };
    changes.compare(
        "permissions",
        allowed(permissions),
        allowed(&after.permissions),
    );
    changes.compare(
        "checkout",
        checkout.as_ref().map(Checkout::shown),
        after.checkout.as_ref().map(Checkout::shown),
    );
    let server = |name: &Option<NotifyName>| name.as_ref().map(ToString::to_string);
    changes.compare("callback", server(callback), server(&after.callback));
    changes.compare("expect", expectations(*expect), expectations(after.expect));
    let former = |name: &Option<ScanName>| name.as_ref().map(ToString::to_string);
    changes.compare(
        RENAMED_FROM,
        former(renamed_from),
        former(&after.renamed_from),
    );
    found.extend(changes.found);
    found
}

fn triggers(before: &Triggers, after: &Triggers) -> Vec<Change> {
    let Triggers {
        cron,
        timezone,
        catch_up,
        expr,
        callback,
        dispatch,
    } = before;
    let mut changes = Changes::of(Part::Itself);
    changes.meaning(Some("cron"), cron.as_ref(), after.cron.as_ref());
    changes.compare(
        "timezone",
        word(timezone.name()),
        word(after.timezone.name()),
    );
    changes.compare(
        "catch_up",
        word(catch_up.name()),
        word(after.catch_up.name()),
    );
    changes.meaning(Some("expr"), expr.as_ref(), after.expr.as_ref());
    changes.compare(
        "callback",
        callback.as_ref().map(callback_of),
        after.callback.as_ref().map(callback_of),
    );
    let is_there = |is_there: bool| is_there.then(|| "{}".to_owned());
    changes.compare(
        "dispatch",
        is_there(dispatch.is_some()),
        is_there(after.dispatch.is_some()),
    );
    let inputs = |on: &Triggers| on.dispatch.clone().unwrap_or_default().inputs;
    let mut found = changes.found;
    let (before, after) = (inputs(before), inputs(after));
    for (name, pair) in by_name(&before, &after, |input| &input.key) {
        let mut changes = Changes::of(Part::Input { name });
        match pair {
            (Some(before), Some(after)) => changes.input(before, after),
            (before, after) => {
                let kind = |input: &Input| input.kind.name().to_owned();
                changes.whole(before.map(kind), after.map(kind));
            }
        }
        found.extend(changes.found);
    }
    found
}

fn callback_of(callback: &OnCallback) -> String {
    let OnCallback {
        server,
        min_interval,
    } = callback;
    let interval = format_duration(*min_interval);
    format!("{{ server: {server}, min_interval: {interval} }}")
}

fn variables(before: &[Variable], after: &[Variable], found: &mut Vec<Change>) {
    for (name, (before, after)) in by_name(before, after, |variable| &variable.name) {
        let mut changes = Changes::of(Part::Env { name });
        changes.meaning(None, before.map(value_of), after.map(value_of));
        found.extend(changes.found);
    }
}

const fn value_of(variable: &Variable) -> &Template {
    let Variable { name: _, value } = variable;
    value
}

fn all_artifacts(before: &[Artifact], after: &Scan, around: &Workflow) -> Vec<Change> {
    let mut found = Vec::new();
    for (name, pair) in by_name(before, &after.artifacts, |artifact| &artifact.name) {
        let mut changes = Changes::of(Part::Artifact { name: name.clone() });
        match pair {
            (Some(before), Some(after)) => changes.artifact(before, after),
            (before, now) => {
                let paths = |artifact: &Artifact| artifact.paths.join(", ");
                changes.whole(before.map(paths), now.map(paths));
                if now.is_none()
                    && let Some(change) = changes.found.last_mut()
                {
                    change.read_by = readers::of_artifact(around, after.name.as_str(), &name);
                }
            }
        }
        found.extend(changes.found);
    }
    // The order matters: artifacts are uploaded in this order.
    let order = |some: &[Artifact], other: &[Artifact]| -> Vec<String> {
        let names = some.iter().map(|artifact| &artifact.name);
        names
            .filter(|name| other.iter().any(|artifact| artifact.name == **name))
            .cloned()
            .collect()
    };
    let mut changes = Changes::of(Part::Itself);
    changes.compare(
        "artifacts",
        list(&order(before, &after.artifacts)),
        list(&order(&after.artifacts, before)),
    );
    found.extend(changes.found);
    found
}

/// A value that is shown as written but compared by meaning.
pub(super) trait Written {
    fn written(&self) -> &str;
    fn is_same(&self, other: &Self) -> bool;
}

macro_rules! written {
    ($($kind:ty),*) => {
        $(impl Written for $kind {
            fn written(&self) -> &str {
                self.source()
            }

            fn is_same(&self, other: &Self) -> bool {
                self.means_the_same(other)
            }
        })*
    };
}

written!(Schedules, Expression, Template);

pub(super) struct Changes {
    part: Part,
    pub(super) found: Vec<Change>,
}

impl Changes {
    pub(super) fn of(part: Part) -> Self {
        Self {
            part,
            found: Vec::new(),
        }
    }

    /// Reports a change of the part's own value, or whether the part was added or removed.
    pub(super) fn whole(&mut self, before: Option<String>, after: Option<String>) {
        self.add(None, before, after);
    }

    pub(super) fn compare(
        &mut self,
        member: &'static str,
        before: Option<String>,
        after: Option<String>,
    ) {
        self.add(Some(member), before, after);
    }

    /// Compares values that have several spellings.
    pub(super) fn meaning<T: Written>(
        &mut self,
        member: Option<&'static str>,
        before: Option<&T>,
        after: Option<&T>,
    ) {
        let is_same = before.zip(after).is_some_and(|(b, a)| b.is_same(a));
        if !is_same {
            let source = |it: &T| it.written().to_owned();
            self.add(member, before.map(source), after.map(source));
        }
    }

    pub(super) fn edit(&mut self, member: Option<&'static str>, edit: Edit) {
        self.found.push(Change {
            part: self.part.clone(),
            member,
            edit,
            read_by: Vec::new(),
        });
    }

    fn add(&mut self, member: Option<&'static str>, before: Option<String>, after: Option<String>) {
        match (before, after) {
            (None, None) => {}
            (Some(from), Some(to)) if from == to => {}
            (Some(from), Some(to)) => self.edit(member, Edit::Changed { from, to }),
            (Some(from), None) => self.edit(member, Edit::Removed { from }),
            (None, Some(to)) => self.edit(member, Edit::Added { to }),
        }
    }

    fn input(&mut self, before: &Input, after: &Input) {
        let Input {
            key: _,
            description,
            kind,
            options,
            required,
            default,
        } = before;
        self.compare(
            "description",
            description.clone(),
            after.description.clone(),
        );
        self.compare("type", word(kind.name()), word(after.kind.name()));
        self.compare("options", list(options), list(&after.options));
        self.compare("required", flag(*required), flag(after.required));
        self.compare("default", value(default), value(&after.default));
    }

    fn artifact(&mut self, before: &Artifact, after: &Artifact) {
        let Artifact {
            name: _,
            paths,
            condition,
            expires_in,
            upload_on,
            strict,
            notify_on,
        } = before;
        self.compare("paths", list(paths), list(&after.paths));
        self.meaning(Some("if"), condition.as_ref(), after.condition.as_ref());
        self.compare("expires_in", time(*expires_in), time(after.expires_in));
        self.compare(
            "upload_on",
            word(upload_on.name()),
            word(after.upload_on.name()),
        );
        self.compare("strict", flag(*strict), flag(after.strict));
        self.compare(
            "notify_on",
            word(notify_on.name()),
            word(after.notify_on.name()),
        );
    }
}

/// The entries of both lists by name, in order of the names.
fn by_name<'l, T>(
    before: &'l [T],
    after: &'l [T],
    name: impl Fn(&T) -> &String,
) -> BTreeMap<String, (Option<&'l T>, Option<&'l T>)> {
    let mut pairs: BTreeMap<String, (Option<&T>, Option<&T>)> = BTreeMap::new();
    for entry in before {
        pairs.entry(name(entry).clone()).or_default().0 = Some(entry);
    }
    for entry in after {
        pairs.entry(name(entry).clone()).or_default().1 = Some(entry);
    }
    pairs
}

pub(super) fn time(duration: Option<TimeDelta>) -> Option<String> {
    duration.map(format_duration)
}

pub(super) fn flag(value: bool) -> Option<String> {
    Some(value.to_string())
}

fn word(word: &str) -> Option<String> {
    Some(word.to_owned())
}

fn value(value: &InputValue) -> Option<String> {
    Some(value.to_string())
}

fn attempts(retry: Retry) -> String {
    let Retry { attempts, backoff } = retry;
    format!(
        "attempts: {attempts}, backoff: {}",
        format_duration(backoff)
    )
}

fn expectations(expect: Expect) -> Option<String> {
    let Expect {
        success_every,
        starts_within,
        at_least,
        at_most,
    } = expect;
    let all = [
        ("success_every", success_every),
        ("starts_within", starts_within),
        ("at_least", at_least),
        ("at_most", at_most),
    ];
    let known = all
        .into_iter()
        .filter_map(|(name, value)| Some((name, time(value)?)));
    let texts: Vec<String> = known
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    list(&texts)
}

/// An empty list is the same as none.
fn list(entries: &[String]) -> Option<String> {
    (!entries.is_empty()).then(|| entries.join(", "))
}
