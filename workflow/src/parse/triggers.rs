//! Reads `on` and the inputs of a dispatch. They are read before the rest of a scan, because all expressions use the names that
//! are declared here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono_tz::Tz;

use super::Reader;
use super::object::{Object, keys};
use crate::cron::{Cron, Schedules};
use crate::definition::{CatchUp, OnCallback, Triggers};
use crate::diagnostic::Code;
use crate::dispatch::{Dispatch, Input, InputKind, InputValue};
use crate::expression::{Holder, Names, Site};
use crate::limits::{CALLBACK_INTERVAL, INPUT_CHARS, INPUTS, OPTIONS, SCHEDULES, TRIGGERS_BYTES};
use crate::names::{ScanName, check_variable_name};
use crate::notify::NotifyName;
use crate::number::Number;
use crate::suggestion::did_you_mean;
use crate::timezone::parse_timezone;
use crate::yaml::{Content, Entry, Meaning, Node};

/// The `on` of a scan.
pub(super) struct ReadTriggers {
    pub(super) read: Option<Triggers>,
    /// True if all of it could be read, and every key is at its place.
    pub(super) is_whole: bool,
}

impl Reader<'_> {
    /// Reports the first scan whose triggers exceed the record of all triggers.
    pub(super) fn bound_triggers(&mut self, scans: &[Entry], triggers: &[ReadTriggers]) {
        let mut bytes = 0_usize;
        for (entry, triggers) in scans.iter().zip(triggers) {
            let (Some(on), Ok(name)) = (&triggers.read, ScanName::new(&*entry.key)) else {
                continue;
            };
            let is_expected = matches!(&entry.value.content, Content::Map(keys)
                if keys.iter().any(|key| &*key.key == "expect"));
            bytes += on.bytes_for(&name, is_expected);
            if bytes > TRIGGERS_BYTES {
                let message = format!(
                    "up to scan `{name}` the triggers of `on` take {bytes} bytes; at most \
                     {TRIGGERS_BYTES} are allowed, about 5,900 short ones"
                );
                self.report
                    .error(entry.key_span, Code::TooMany, message)
                    .hint("divide the file into several workflows");
                return;
            }
        }
    }

    /// Reads the triggers of a scan from its entry.
    pub(super) fn triggers_of(
        &mut self,
        scan: &Entry,
        scans: &Arc<BTreeMap<String, BTreeSet<String>>>,
    ) -> ReadTriggers {
        let before = self.report.unread();
        let read = self.triggers(scan, scans);
        // A key of `on` that was written next to `on` may be a trigger, too.
        let are_keys_known = match &scan.value.content {
            Content::Map(members) => members.iter().all(|it| keys::SCAN.contains(&&*it.key)),
            Content::Scalar(_) | Content::List(_) | Content::Invalid => false,
        };
        ReadTriggers {
            read,
            is_whole: are_keys_known
                && self.report.unread() == before
                && self.is_whole(&scan.value),
        }
    }

    fn triggers(
        &mut self,
        scan: &Entry,
        scans: &Arc<BTreeMap<String, BTreeSet<String>>>,
    ) -> Option<Triggers> {
        let Content::Map(members) = &scan.value.content else {
            return None;
        };
        let no_trigger = "a scan needs `on` with `cron`, `expr`, `callback` or `dispatch`";
        let Some(on) = members.iter().find(|entry| &*entry.key == "on") else {
            let message = format!("nothing starts scan `{}`", scan.shown_key());
            self.report
                .error(scan.key_span, Code::NoTrigger, message)
                .hint(no_trigger);
            return None;
        };
        if on.value.is_null() {
            self.report
                .error(on.key_span, Code::NoTrigger, "`on` has no value")
                .hint(no_trigger);
            return None;
        }
        if let Content::Scalar(_) | Content::List(_) = &on.value.content {
            let message = format!("`on` must be an object, found {}", on.value.label());
            self.report
                .error(on.value.span, Code::WrongType, message)
                .hint(
                    "write `cron`, `expr`, `callback` or `dispatch` below it, as in `on: {dispatch: {}}`; a push changes what runs \
                     and starts nothing",
                );
            return None;
        }
        let object = Object::of(&on.value, "`on`", "{ dispatch: {} }", &mut self.report)?;
        object.check_keys(&keys::ON, &mut self.report);
        let [cron_entry, expr_entry, callback_entry, dispatch_entry] =
            ["cron", "expr", "callback", "dispatch"].map(|key| object.get(key));
        let starts_itself = cron_entry.or(expr_entry).or(callback_entry).is_some();
        if !starts_itself && dispatch_entry.is_none() {
            let message = format!("nothing starts scan `{}`", scan.shown_key());
            self.report
                .error(on.key_span, Code::NoTrigger, message)
                .hint(no_trigger);
        }
        let names = Names {
            scans: Some(Arc::clone(scans)),
            holder: Holder::Scan(scan.key.to_string()),
            inputs: None,
            steps: None,
            steps_before: 0,
            is_terse: self.report.is_full(),
        };
        let cron = cron_entry.and_then(|entry| self.schedules(entry));
        let expr =
            expr_entry.and_then(|entry| self.expression(entry, "`expr`", Site::Trigger, &names));
        let callback = callback_entry.and_then(|entry| self.on_callback(entry));
        let dispatch = dispatch_entry.and_then(|entry| self.dispatch(entry, starts_itself));
        let timezone = object
            .get("timezone")
            .and_then(|entry| self.timezone(entry));
        let catch_up = object
            .get("catch_up")
            .and_then(|entry| self.choice(entry, "`catch_up`", CatchUp::ALL, CatchUp::name));
        for key in ["timezone", "catch_up"] {
            if let Some(entry) = object.get(key).filter(|_| cron_entry.is_none()) {
                self.report
                    .error(
                        entry.key_span,
                        Code::InvalidValue,
                        format!("`{key}` needs `cron`"),
                    )
                    .hint("remove the key, or add a schedule");
            }
        }
        Some(Triggers {
            cron,
            timezone: timezone.unwrap_or(Tz::UTC),
            catch_up: catch_up.unwrap_or_default(),
            expr,
            callback,
            dispatch,
        })
    }

    fn on_callback(&mut self, entry: &Entry) -> Option<OnCallback> {
        let object = Object::of(
            &entry.value,
            "`callback`",
            "{ server: NAME }",
            &mut self.report,
        )?;
        object.check_keys(&keys::CALLBACK, &mut self.report);
        let min_interval = match object.get("min_interval") {
            None => CALLBACK_INTERVAL,
            Some(entry) => {
                let interval = self.duration(entry, "`min_interval`", None)?;
                if interval < CALLBACK_INTERVAL {
                    let message = "`min_interval` is shorter than 1m";
                    self.report
                        .error(entry.value.span, Code::InvalidValue, message)
                        .hint("interactions that come within a minute start one job together");
                    return None;
                }
                interval
            }
        };
        let Some(server) = object.get("server") else {
            self.report
                .error(
                    entry.key_span,
                    Code::MissingKey,
                    "`callback` has no `server`",
                )
                .hint("write the name of a callback server: `callback: {server: NAME}`");
            return None;
        };
        let name = self.text(&server.value, "`server`")?;
        match NotifyName::new(name) {
            Ok(server) => Some(OnCallback {
                server,
                min_interval,
            }),
            Err(error) => {
                self.report
                    .error(server.value.span, Code::InvalidName, error.to_string());
                None
            }
        }
    }

    /// One schedule, or a list of schedules.
    fn schedules(&mut self, entry: &Entry) -> Option<Schedules> {
        let Content::List(items) = &entry.value.content else {
            return Schedules::new(vec![self.cron(&entry.value, "`cron`")?]);
        };
        if items.is_empty() {
            self.report
                .error(entry.value.span, Code::Empty, "`cron` is empty")
                .hint("write a schedule, such as `30 3 * * *`, or remove the key");
        }
        let items = self.items(entry, "`cron`", "[30 3 * * *]", SCHEDULES);
        let mut all: Vec<Cron> = Vec::new();
        for item in items {
            if let Content::Map(_) = &item.content {
                let message = "an entry of `cron` must be a string, found an object";
                self.report
                    .error(item.span, Code::WrongType, message)
                    .hint("write only the five fields, as in `[0 3 * * *]`");
                continue;
            }
            let Some(cron) = self.cron(item, "an entry of `cron`") else {
                continue;
            };
            if all.iter().any(|known| known.source() == cron.source()) {
                let message = format!("`cron` names `{cron}` twice");
                self.report
                    .error(item.span, Code::DuplicateName, message)
                    .hint("remove one of the two");
            }
            all.push(cron);
        }
        Schedules::new(all)
    }

    fn cron(&mut self, node: &Node, what: &str) -> Option<Cron> {
        let text = self.text(node, what)?;
        // YAML keeps a line break at the end of a block.
        match Cron::parse(text.trim_end()) {
            Ok(cron) => {
                if let Some((range, field, plain)) = cron.starred_days(text) {
                    let span = self.report.places(node).locate(range);
                    let message = format!(
                        "`{field}` beside another day field: a day must match one of them; cron requires both"
                    );
                    self.report
                        .warning(span, Code::DiffersFromCron, message)
                        .hint(format!(
                            "write `{plain}`, which means the same to both; for days that match both, ask `date` in the script"
                        ));
                }
                Some(cron)
            }
            Err(errors) => {
                let places = self.report.places(node);
                for error in errors {
                    self.report.fault(&places, error.fault());
                }
                None
            }
        }
    }

    pub(super) fn timezone(&mut self, entry: &Entry) -> Option<Tz> {
        let text = self.text(&entry.value, "`timezone`")?;
        match parse_timezone(text.trim_end()) {
            Ok(zone) => Some(zone),
            Err(error) => {
                self.report
                    .error(entry.value.span, Code::UnknownTimezone, error.to_string())
                    .suggest(|| Some(error.hint()));
                None
            }
        }
    }

    fn dispatch(&mut self, entry: &Entry, starts_itself: bool) -> Option<Dispatch> {
        if entry.value.is_null() {
            self.report
                .error(entry.key_span, Code::NullValue, "`dispatch` has no value")
                .hint("write `dispatch: {}`");
            return None;
        }
        let object = Object::of(&entry.value, "`dispatch`", "{}", &mut self.report)?;
        object.check_keys(&keys::DISPATCH, &mut self.report);
        let Some(inputs) = object.get("inputs") else {
            return Some(Dispatch::default());
        };
        if inputs.value.is_null() {
            self.wrong_type(inputs, "`inputs`", "an object of inputs");
            return None;
        }
        let object = Object::of(
            &inputs.value,
            "`inputs`",
            "{ NAME: { type: string } }",
            &mut self.report,
        )?;
        if object.entries().len() > INPUTS {
            let message = format!(
                "a dispatch has at most {INPUTS} inputs, found {}",
                object.entries().len()
            );
            self.report.error(inputs.key_span, Code::TooMany, message);
        }
        let inputs = object
            .entries()
            .iter()
            .filter_map(|entry| self.input(entry, starts_itself))
            .collect();
        Some(Dispatch { inputs })
    }

    fn input(&mut self, entry: &Entry, starts_itself: bool) -> Option<Input> {
        if let Err(error) = check_variable_name("an input name", &entry.key) {
            self.report
                .error(entry.key_span, Code::InvalidName, error.to_string());
        }
        let what = format!("input `{}`", entry.shown_key());
        if entry.value.is_null() {
            self.report
                .error(
                    entry.key_span,
                    Code::NullValue,
                    format!("{what} has no value"),
                )
                .hint("write `{}` for an optional string");
            return None;
        }
        let object = Object::of(&entry.value, &what, "{ type: string }", &mut self.report)?;
        object.check_keys(&keys::INPUT, &mut self.report);
        let description = match object.get("description") {
            Some(entry) => Some(self.text(&entry.value, "`description`")?.to_owned()),
            None => None,
        };
        let kind = match object.get("type") {
            Some(entry) => self.choice(entry, "`type`", InputKind::ALL, InputKind::name),
            None => Some(InputKind::Text),
        };
        let required = match object.get("required") {
            Some(required) => {
                let value = self.boolean(required, "`required`")?;
                if value && starts_itself {
                    let message =
                        format!("{what} is required, but the scan also starts without a dispatch");
                    self.report
                        .error(required.key_span, Code::RequiredInput, message)
                        .hint("give it a `default` instead, which such jobs use");
                }
                value
            }
            None => false,
        };
        let kind = kind?;
        let options = self.options(object.get("options"), kind, entry, &what)?;
        let default = match object.get("default") {
            Some(entry) => self.default(entry, kind, &options)?,
            None => kind.default_value(&options),
        };
        Some(Input {
            key: entry.key.to_string(),
            description,
            kind,
            options,
            required,
            default,
        })
    }

    /// The options of a `choice`. Empty for other types.
    fn options(
        &mut self,
        options: Option<&Entry>,
        kind: InputKind,
        input: &Entry,
        what: &str,
    ) -> Option<Vec<String>> {
        match (kind, options) {
            (InputKind::Choice, Some(options)) => {
                if let Content::List(items) = &options.value.content
                    && items.is_empty()
                {
                    self.report
                        .error(options.value.span, Code::Empty, "`options` is empty")
                        .hint("a choice has at least one option");
                }
                let words = self.words(options, "`options`", OPTIONS, |_| Ok(()));
                (!words.is_empty()).then_some(words)
            }
            (InputKind::Choice, None) => {
                let message = format!("{what} is a choice and has no `options`");
                self.report
                    .error(input.key_span, Code::MissingKey, message)
                    .hint("list what it may be: `options: [small, large]`");
                None
            }
            (InputKind::Text | InputKind::Bool | InputKind::Number, None) => Some(Vec::new()),
            (InputKind::Text | InputKind::Bool | InputKind::Number, Some(options)) => {
                let message = "only a choice has `options`";
                self.report
                    .error(options.key_span, Code::InvalidValue, message)
                    .hint("write `type: choice`, or remove the key");
                None
            }
        }
    }

    fn default(
        &mut self,
        entry: &Entry,
        kind: InputKind,
        options: &[String],
    ) -> Option<InputValue> {
        match kind {
            InputKind::Number => {
                let number = match &entry.value.content {
                    Content::Scalar(scalar) => match scalar.meaning() {
                        Meaning::Number | Meaning::Text => scalar.text.parse::<Number>(),
                        Meaning::Null | Meaning::Bool(_) => "".parse(),
                    },
                    Content::List(_) | Content::Map(_) => "".parse(),
                    Content::Invalid => return None,
                };
                match number {
                    Ok(number) => Some(InputValue::Number(number)),
                    Err(error) => {
                        let message = format!("this `default` is not a number: {error}");
                        self.report
                            .error(entry.value.span, Code::InvalidValue, message);
                        None
                    }
                }
            }
            InputKind::Choice => {
                let text = self.text(&entry.value, "`default`")?;
                if !options.iter().any(|option| option == text) {
                    let message = "the default of a choice is one of its `options`";
                    self.report
                        .error(entry.value.span, Code::InvalidValue, message)
                        .suggest(|| did_you_mean(text, options.iter().map(String::as_str)));
                    return None;
                }
                Some(InputValue::Text(text.to_owned()))
            }
            InputKind::Text => {
                let text = self.text(&entry.value, "`default`")?;
                if text.chars().count() > INPUT_CHARS {
                    let message = format!("`default` has more than {INPUT_CHARS} characters");
                    self.report
                        .error(entry.value.span, Code::InvalidValue, message);
                    return None;
                }
                self.literal_default(&entry.value, text);
                Some(InputValue::Text(text.to_owned()))
            }
            InputKind::Bool => {
                let value = match &entry.value.content {
                    Content::Scalar(scalar) => match (scalar.meaning(), scalar.text.as_str()) {
                        (Meaning::Bool(value), _) => Some(value),
                        (Meaning::Text, "true") => Some(true),
                        (Meaning::Text, "false") => Some(false),
                        (Meaning::Null | Meaning::Number | Meaning::Text, _) => None,
                    },
                    Content::List(_) | Content::Map(_) => None,
                    Content::Invalid => return None,
                };
                if value.is_none() {
                    let message = "the default of a `bool` is `\"true\"` or `\"false\"`";
                    self.report
                        .error(entry.value.span, Code::InvalidValue, message);
                }
                value.map(InputValue::Bool)
            }
        }
    }
}
