//! Reads `everscan.yaml`, and single rules of notifications from the API, which have the same form.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::object::{Object, keys};
use super::{Reader, TemplatePolicy, in_sandbox};
use crate::diagnostic::{Code, Diagnostic};
use crate::duration::format_duration;
use crate::expression::{Names, Site};
use crate::limits::{
    RULE_AFTER, RULE_GROUP, RULE_PATTERNS, RULE_REPEAT, RULE_TEMPLATE_BYTES, RULES, RULES_BYTES,
};
use crate::notify::{Content as Lines, EventName, NotifyName, Pattern, Quiet, Rule, clock};
use crate::suggestion::did_you_mean;
use crate::yaml::{self, Content, Entry, Node};

const FORM: &str = "{ channel: NAME, events: [failing] }";

/// Reads the rules of `everscan.yaml`; `file` is its name in messages. There are no rules if there is an error.
pub fn parse_project(file: &str, text: &str) -> (Option<Vec<Rule>>, Vec<Diagnostic>) {
    let read = in_sandbox(file, text, |file, text| {
        read(file, text, |reader, root| {
            let mut names = BTreeSet::new();
            let what = "the configuration of a repository";
            let object = Object::of(root, what, "{ notify: [] }", &mut reader.report)?;
            object.check_keys(&keys::PROJECT, &mut reader.report);
            let Some(entry) = object.get("notify") else {
                return Some(Vec::new());
            };
            let items = reader.items(entry, "`notify`", &format!("[{FORM}]"), RULES);
            let rules = items.iter();
            let rules = rules.filter_map(|item| reader.rule(item, &mut names, false));
            let rules: Vec<Rule> = rules.collect();
            if Rule::bytes(&rules) > RULES_BYTES {
                let message = format!("the rules have more than {RULES_BYTES} bytes together");
                reader
                    .report
                    .error(entry.key_span, Code::FileTooComplex, message);
            }
            Some(rules)
        })
    });
    match read {
        Ok((rules, warnings)) => (Some(rules), warnings),
        // It has nothing but comments.
        Err(none) if none.is_empty() => (Some(Vec::new()), none),
        Err(diagnostics) => (None, diagnostics),
    }
}

/// Reads one rule of the API, in JSON. The events of the instance are for rules of the instance.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_rule(json: &str, is_of_instance: bool) -> Result<Rule, Vec<Diagnostic>> {
    in_sandbox("rule", json, move |file, text| {
        let read = read(file, text, |reader, root| {
            reader.rule(root, &mut BTreeSet::new(), is_of_instance)
        });
        read.map(|(rule, _)| rule)
    })
}

fn read<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&mut Reader<'_>, &Node) -> Option<T>,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut reader = Reader::new(file, text, TemplatePolicy::Warn);
    let root = yaml::build(text, &mut reader.report);
    match root.and_then(|root| read(&mut reader, &root)) {
        Some(read) if !reader.report.has_errors() => Ok((read, reader.report.finish())),
        Some(_) | None => Err(reader.report.finish()),
    }
}

impl Reader<'_> {
    fn rule(
        &mut self,
        node: &Node,
        names: &mut BTreeSet<NotifyName>,
        is_of_instance: bool,
    ) -> Option<Rule> {
        let object = Object::of(node, "a rule", FORM, &mut self.report)?;
        object.check_keys(&keys::RULE, &mut self.report);
        let Some(channel_entry) = object.get("channel") else {
            self.report
                .error(object.head(), Code::MissingKey, "a rule needs `channel`")
                .hint("name the channel that gets its messages");
            return None;
        };
        let channel = self.notify_name(channel_entry, "`channel`")?;
        let name_entry = object.get("name");
        let name = match name_entry {
            Some(entry) => self.notify_name(entry, "`name`")?,
            None => channel.clone(),
        };
        if !names.insert(name.clone()) {
            let span = name_entry.unwrap_or(channel_entry).value.span;
            self.report
                .error(
                    span,
                    Code::DuplicateName,
                    format!("there are two rules `{name}`"),
                )
                .hint("give it a `name`; without one, a rule has the name of its channel");
        }
        for key in ["events", "workflows", "scans", "callbacks"] {
            if let Some(entry) = object.get(key)
                && matches!(&entry.value.content, Content::List(items) if items.is_empty())
            {
                self.report
                    .error(entry.value.span, Code::Empty, format!("`{key}` is empty"))
                    .hint("remove the key, or the rule");
            }
        }
        let mut patterns = |key: &str| {
            object.get(key).map_or(Vec::new(), |entry| {
                let rule = |text: &str| Pattern::try_from(text.to_owned()).map(drop);
                let words = self.words(entry, &format!("`{key}`"), RULE_PATTERNS, rule);
                words
                    .into_iter()
                    .filter_map(|word| Pattern::try_from(word).ok())
                    .collect()
            })
        };
        let (workflows, scans) = (patterns("workflows"), patterns("scans"));
        let callbacks = patterns("callbacks");
        let after = object.get("after");
        let after = after.and_then(|entry| self.number(entry, "`after`", 1, RULE_AFTER));
        let content = object.get("content");
        let content =
            content.and_then(|entry| self.choice(entry, "`content`", Lines::ALL, Lines::name));
        Some(Rule {
            name,
            events: match object.get("events") {
                Some(entry) => self.events(entry, is_of_instance),
                None => BTreeSet::new(),
            },
            workflows,
            scans,
            callbacks,
            after: after.unwrap_or(1),
            group: object.get("group").and_then(|entry| self.group(entry)),
            repeat: object.get("repeat").and_then(|entry| self.repeat(entry)),
            quiet: object.get("quiet").and_then(|entry| self.quiet(entry)),
            template: object.get("template").and_then(|entry| self.message(entry)),
            content: content.unwrap_or_default(),
            ..Rule::of(channel)
        })
    }

    fn notify_name(&mut self, entry: &Entry, what: &str) -> Option<NotifyName> {
        let text = self.text(&entry.value, what)?;
        let name = NotifyName::new(text);
        if let Err(error) = &name {
            let message = format!("{what}: {error}");
            self.report
                .error(entry.value.span, Code::InvalidName, message);
        }
        name.ok()
    }

    fn events(&mut self, entry: &Entry, is_of_instance: bool) -> BTreeSet<EventName> {
        let mut events = BTreeSet::new();
        for item in self.items(
            entry,
            "`events`",
            "[failing, overdue]",
            EventName::ALL.len(),
        ) {
            let Some(text) = self.text(item, "an entry of `events`") else {
                continue;
            };
            let names = EventName::ALL.iter().map(|event| event.name());
            match EventName::ALL.iter().find(|event| event.name() == text) {
                None => self
                    .report
                    .error(item.span, Code::InvalidValue, "there is no such event")
                    .suggest(|| {
                        did_you_mean(text, names.clone()).or_else(|| {
                            let names: Vec<_> = names.collect();
                            Some(format!("events are {}", super::object::listed(&names)))
                        })
                    }),
                Some(event) if event.is_of_instance() && !is_of_instance => self
                    .report
                    .error(
                        item.span,
                        Code::InvalidValue,
                        format!("rules about `{text}` belong to the instance"),
                    )
                    .hint("an administrator adds them with `everscan notify rule add --instance`"),
                Some(event) if !events.insert(*event) => {
                    let message = format!("`events` names `{text}` twice");
                    self.report.error(item.span, Code::DuplicateName, message);
                }
                Some(_) => {}
            }
        }
        events
    }

    fn group(&mut self, entry: &Entry) -> Option<String> {
        // Other durations are longer than nothing.
        if matches!(&entry.value.content, Content::Scalar(scalar) if scalar.text == "0s") {
            return Some("0s".to_owned());
        }
        self.duration(entry, "`group`", Some(RULE_GROUP))
            .map(format_duration)
    }

    fn repeat(&mut self, entry: &Entry) -> Option<String> {
        let repeat: TimeDelta = self.duration(entry, "`repeat`", None)?;
        if repeat < RULE_REPEAT {
            let message = format!("`repeat` is at least {}", format_duration(RULE_REPEAT));
            self.report
                .error(entry.value.span, Code::InvalidValue, message);
            return None;
        }
        Some(format_duration(repeat))
    }

    fn quiet(&mut self, entry: &Entry) -> Option<Quiet> {
        let form = "{ from: \"22:00\", to: \"07:00\", timezone: Europe/Berlin }";
        let object = Object::of(&entry.value, "`quiet`", form, &mut self.report)?;
        object.check_keys(&keys::QUIET, &mut self.report);
        let mut time = |key: &str| {
            let Some(entry) = object.get(key) else {
                self.report
                    .error(
                        object.head(),
                        Code::MissingKey,
                        format!("`quiet` needs `{key}`"),
                    )
                    .hint(format!("write it like `{form}`"));
                return None;
            };
            let text = self.text(&entry.value, &format!("`{key}`"))?;
            if clock(text).is_none() {
                self.report
                    .error(
                        entry.value.span,
                        Code::InvalidValue,
                        format!("`{key}` is no time of a day"),
                    )
                    .hint("write hour and minute, such as `07:00`");
                return None;
            }
            Some(text.to_owned())
        };
        let (from, to) = (time("from"), time("to"));
        let timezone = match object.get("timezone") {
            Some(entry) => self.timezone(entry)?,
            None => crate::Timezone::UTC,
        };
        let (from, to) = (from?, to?);
        if from == to {
            self.report
                .error(
                    object.head(),
                    Code::InvalidValue,
                    "`from` and `to` are the same time",
                )
                .hint("remove the rule, or give it less quiet hours");
        }
        let timezone = timezone.name().to_owned();
        Some(Quiet { from, to, timezone })
    }

    fn message(&mut self, entry: &Entry) -> Option<String> {
        let text = self.text(&entry.value, "`template`")?;
        if text.trim().is_empty() || text.len() > RULE_TEMPLATE_BYTES {
            let message = format!("`template` has 1 to {RULE_TEMPLATE_BYTES} bytes");
            self.report
                .error(entry.value.span, Code::InvalidValue, message);
            return None;
        }
        let names = Names::default();
        let template = self.template(&entry.value, "`template`", Site::Message, &names)?;
        Some(template.source().to_owned())
    }
}
