//! Makes a context available as variables of CEL.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cel_interpreter::ExecutionError;
use cel_interpreter::common::traits::Container;
use cel_interpreter::common::types::{CelBool, CelDouble, CelInt, CelList, CelString, Type};
use cel_interpreter::common::value::{CowVal, Val};
use cel_interpreter::context::VariableResolver;

use super::cel_value::cel_value;
use super::history::{self, Scans, name_of};
use super::reads::{Reads, Recorder};
use crate::context::{CallbackSummary, Context, StepSummary};
use crate::dispatch::InputValue;
use crate::number::Number;

static TABLE_TYPE: Type = Type::new_unspecified_type("table");

/// The values of an expression's names.
pub(super) struct Variables {
    id: Option<CelString<'static>>,
    name: Option<CelString<'static>>,
    project: Table,
    workflow: Table,
    revision: Table,
    vars: Table,
    secrets: Table,
    inputs: Table,
    callback: Table,
    scans: Scans,
    steps: BTreeMap<String, StepSummary>,
    event: Table,
    ok: CelBool,
    always: CelBool,
    recorder: Recorder,
}

impl Variables {
    pub(super) fn new(context: Context) -> Self {
        Self::with(context, Recorder::default())
    }

    /// The same, but records every job that is read.
    pub(super) fn recorded(context: Context) -> Self {
        Self::with(context, Recorder::on())
    }

    /// The values of the template of a notification.
    pub(super) fn of_event(event: BTreeMap<String, String>) -> Self {
        Self {
            event: texts("event", event),
            ..Self::new(Context::default())
        }
    }

    /// Created when it is read.
    fn steps(&self) -> CowVal<'static, 'static> {
        let step = |step: &StepSummary| {
            history::map(std::iter::once((
                "outputs",
                history::outputs(&step.outputs),
            )))
        };
        history::map(
            self.steps
                .iter()
                .map(|(name, found)| (name.as_str(), step(found))),
        )
    }

    /// The jobs read since the last call.
    pub(super) fn take_reads(&self) -> Reads {
        self.recorder.take()
    }

    fn with(context: Context, recorder: Recorder) -> Self {
        let identity = |label: &'static str, id: String| Table {
            label,
            entries: vec![(Cow::Borrowed("id"), Entry::Text(CelString::from(id)))],
        };
        let inputs = context
            .inputs
            .into_iter()
            .map(|(name, value)| match value {
                InputValue::Text(text) => (Cow::Owned(name), Entry::Text(CelString::from(text))),
                InputValue::Bool(value) => (Cow::Owned(name), Entry::Bool(CelBool::from(value))),
                InputValue::Number(number) => (Cow::Owned(name), Entry::of_number(number)),
            })
            .collect();
        let (id, name) = context
            .job
            .map(|job| (CelString::from(job.id), CelString::from(job.name)))
            .unzip();
        Self {
            id,
            name,
            project: identity("project", context.project),
            workflow: identity("workflow", context.workflow),
            revision: identity("revision", context.revision),
            vars: texts("vars", context.vars),
            secrets: texts("secrets", context.secrets),
            inputs: Table {
                label: "inputs",
                entries: inputs,
            },
            callback: callback(context.callback),
            scans: Scans::new(context.scans, &recorder),
            steps: context.steps,
            event: texts("event", BTreeMap::new()),
            ok: CelBool::from(context.ok),
            always: CelBool::from(true),
            recorder,
        }
    }
}

impl VariableResolver for Variables {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let value: &dyn Val = match variable {
            "id" => self.id.as_ref()?,
            "name" => self.name.as_ref()?,
            "project" => &self.project,
            "workflow" => &self.workflow,
            "revision" => &self.revision,
            "vars" => &self.vars,
            "secrets" => &self.secrets,
            "inputs" => &self.inputs,
            "callback" => &self.callback,
            "scans" => &self.scans,
            "steps" => return Some(self.steps()),
            "event" => &self.event,
            "ok" => &self.ok,
            "always" => &self.always,
            _ => return None,
        };
        Some(CowVal::Borrowed(value))
    }
}

/// Values sorted by name. The table knows its own name for messages about a missing value.
#[derive(Debug, Clone)]
struct Table {
    label: &'static str,
    entries: Vec<(Cow<'static, str>, Entry)>,
}

impl Table {
    fn find(&self, name: &str) -> Option<&Entry> {
        let by_name = |(known, _): &(Cow<'static, str>, Entry)| known.as_ref().cmp(name);
        let at = self.entries.binary_search_by(by_name).ok()?;
        self.entries.get(at).map(|(_, entry)| entry)
    }

    fn at<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let name = name_of(index, self.label)?;
        match self.find(name) {
            Some(Entry::Text(text)) => Ok(CowVal::Borrowed(text)),
            Some(Entry::Bool(value)) => Ok(CowVal::Borrowed(value)),
            Some(Entry::Whole(value)) => Ok(CowVal::Borrowed(value)),
            Some(Entry::Fraction(value)) => Ok(CowVal::Borrowed(value)),
            Some(Entry::Texts(values)) => Ok(CowVal::Borrowed(values)),
            None => {
                let key = format!("{}.{name}", self.label);
                Err(ExecutionError::no_such_key(&key))
            }
        }
    }
}

fn texts(label: &'static str, values: BTreeMap<String, String>) -> Table {
    let entry = |(name, value)| (Cow::Owned(name), Entry::Text(CelString::from(value)));
    let entries = values.into_iter().map(entry).collect();
    Table { label, entries }
}

fn callback(cause: CallbackSummary) -> Table {
    let whole = |number: u64| Entry::Whole(CelInt::from(i64::try_from(number).unwrap_or(i64::MAX)));
    let text = |text: String| Entry::Text(CelString::from(text));
    let types = cause.types.into_iter();
    let types: Vec<Box<dyn Val>> = types
        .map(|name| Box::new(CelString::from(name)) as Box<dyn Val>)
        .collect();
    let entries = [
        ("count", whole(cause.count)),
        ("first", whole(cause.first)),
        ("job", text(cause.job)),
        ("last", whole(cause.last)),
        ("server", text(cause.server)),
        ("types", Entry::Texts(CelList::from(types))),
    ];
    Table {
        label: "callback",
        entries: entries
            .map(|(name, entry)| (Cow::Borrowed(name), entry))
            .into(),
    }
}

#[derive(Debug, Clone)]
enum Entry {
    Text(CelString<'static>),
    Bool(CelBool),
    Whole(CelInt),
    Fraction(CelDouble),
    Texts(CelList<'static>),
}

impl Entry {
    /// A number without a fraction is an integer, so expressions can combine it with integers.
    fn of_number(number: Number) -> Self {
        match number.whole() {
            Some(whole) => Self::Whole(CelInt::from(whole)),
            None => Self::Fraction(CelDouble::from(number.to_f64())),
        }
    }
}

cel_value!(Table, TABLE_TYPE {
    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }
});

impl Container for Table {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(name_of(value, self.label)?).is_some())
    }
}
