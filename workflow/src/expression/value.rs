//! The result of an evaluation as plain data.

use std::collections::BTreeMap;

use cel_interpreter::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelNull, CelString,
    CelTimestamp, CelUInt,
};
use cel_interpreter::common::value::Val;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::absent::Absent;
use super::history::{History, Job};
use super::kind::JOB_MEMBERS;

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Timestamp(DateTime<Utc>),
    Duration(TimeDelta),
    /// Values in order. A scan is the list of its jobs.
    List(Vec<Value>),
    /// Values by name. A job is the map of its members.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// Its type in messages.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Uint(_) | Self::Double(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "a timestamp",
            Self::Duration(_) => "a duration",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// The text that a template inserts. `None` for bytes, lists and maps. Null becomes an empty text.
    pub fn to_text(&self) -> Option<String> {
        Some(match self {
            Self::Null => String::new(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Timestamp(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            Self::Duration(duration) => seconds(*duration),
            Self::Bytes(_) | Self::List(_) | Self::Map(_) => return None,
        })
    }

    /// Whether JSON can represent it: JSON has no infinity and no NaN.
    pub fn fits_json(&self) -> bool {
        match self {
            Self::Double(value) => value.is_finite(),
            Self::List(values) => values.iter().all(Self::fits_json),
            Self::Map(values) => values.values().all(Self::fits_json),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Timestamp(_)
            | Self::Duration(_) => true,
        }
    }

    /// The value as JSON, for people and programs. A number that [JSON cannot represent](Self::fits_json) becomes null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Uint(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
            Self::Text(_) | Self::Timestamp(_) | Self::Duration(_) => self.to_text().into(),
            Self::List(values) => values.iter().map(Self::to_json).collect(),
            Self::Map(values) => values
                .iter()
                .map(|(name, value)| (name.clone(), value.to_json()))
                .collect(),
        }
    }

    /// Converts a CEL value. `Err` names a type that has no counterpart.
    pub(super) fn from_cel(value: &dyn Val) -> Result<Self, String> {
        if let Some(value) = value.downcast_ref::<CelBool>() {
            return Ok(Self::Bool(*value.inner()));
        }
        if let Some(value) = value.downcast_ref::<CelInt>() {
            return Ok(Self::Int(*value.inner()));
        }
        if let Some(value) = value.downcast_ref::<CelUInt>() {
            return Ok(Self::Uint(*value.inner()));
        }
        if let Some(value) = value.downcast_ref::<CelDouble>() {
            return Ok(Self::Double(*value.inner()));
        }
        if let Some(text) = value.downcast_ref::<CelString<'_>>() {
            return Ok(Self::Text(text.inner().to_owned()));
        }
        if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
            return Ok(Self::Bytes(bytes.inner().to_vec()));
        }
        if let Some(time) = value.downcast_ref::<CelTimestamp>() {
            return Ok(Self::Timestamp(time.inner().with_timezone(&Utc)));
        }
        if let Some(duration) = value.downcast_ref::<CelDuration>() {
            return Ok(Self::Duration(*duration.inner()));
        }
        if value.downcast_ref::<CelNull>().is_some() || value.downcast_ref::<Absent>().is_some() {
            return Ok(Self::Null);
        }
        if let Some(list) = value.downcast_ref::<CelList<'_>>() {
            return list
                .inner()
                .iter()
                .map(|value| Self::from_cel(value.as_ref()))
                .collect::<Result<_, _>>()
                .map(Self::List);
        }
        if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
            let mut values = BTreeMap::new();
            for (key, value) in map.inner() {
                values.insert(key_text(key)?, Self::from_cel(value.as_ref())?);
            }
            return Ok(Self::Map(values));
        }
        if let Some(history) = value.downcast_ref::<History>() {
            return Ok(Self::List(history.jobs().iter().map(job_value).collect()));
        }
        if let Some(job) = value.downcast_ref::<Job>() {
            return Ok(job_value(job));
        }
        Err(value.get_type().name().to_owned())
    }
}

fn key_text(key: &cel_interpreter::common::types::CelMapKey<'_>) -> Result<String, String> {
    let value = Value::from_cel(key.inner())?;
    value.to_text().ok_or_else(|| value.label().to_owned())
}

/// A job without its outputs, because the context has outputs only if the expression reads them.
fn job_value(job: &Job) -> Value {
    let members = JOB_MEMBERS.iter().filter(|name| **name != "outputs");
    let members = members.filter_map(|name| {
        let value = Value::from_cel(job.member(name)?.as_ref()).ok()?;
        Some(((*name).to_owned(), value))
    });
    Value::Map(members.collect())
}

/// Seconds with their fraction, as CEL writes durations: `90s`, `0.5s`.
fn seconds(duration: TimeDelta) -> String {
    let sign = if duration < TimeDelta::zero() {
        "-"
    } else {
        ""
    };
    let positive = duration.abs();
    let nanos = positive.subsec_nanos();
    if nanos == 0 {
        return format!("{sign}{}s", positive.num_seconds());
    }
    let fraction = format!("{nanos:09}");
    format!(
        "{sign}{}.{}s",
        positive.num_seconds(),
        fraction.trim_end_matches('0')
    )
}
