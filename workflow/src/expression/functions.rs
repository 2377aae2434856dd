//! The functions that expressions may call, with their parameter and result types. Other functions are refused when the file is
//! loaded, even if the library has them.

use std::collections::BTreeSet;

use self::Form::{Function, Method};
use self::Type::{
    Any, Bool, Bytes, Double, Duration, History, Int, Job, List, Map, Processed, Text, Timestamp,
    Uint,
};
use super::kind::Kind;

/// A parameter or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Any,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List,
    Map,
    History,
    Job,
    Processed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Function,
    /// The first parameter is the receiver.
    Method,
}

/// A form, a name, the possible types of the first parameter, the allowed numbers of further texts, and the result.
type Signature = (Form, &'static str, &'static [Type], &'static [usize], Type);

const SIZED: &[Type] = &[History, Text, Bytes, List, Map];
const NUMBERS: &[Type] = &[Int, Uint, Double, Text];
const TIME: &[Type] = &[Timestamp];
const PERIOD: &[Type] = &[Duration];
const SCAN: &[Type] = &[History];
const TEXT: &[Type] = &[Text];
const NONE: &[usize] = &[0];
const ONE: &[usize] = &[1];
const OPTIONAL: &[usize] = &[0, 1];

const SIGNATURES: &[Signature] = &[
    (Method, "is_available", SCAN, NONE, Bool),
    (Method, "has_diff", SCAN, OPTIONAL, Bool),
    (Method, "has_news", SCAN, OPTIONAL, Bool),
    (Method, "last_success", SCAN, NONE, Job),
    (Method, "processed", SCAN, NONE, Processed),
    (Method, "has_failed", SCAN, NONE, Bool),
    (Method, "size", SIZED, NONE, Int),
    (Function, "size", SIZED, NONE, Int),
    (Method, "contains", TEXT, ONE, Bool),
    (Method, "startsWith", TEXT, ONE, Bool),
    (Method, "endsWith", TEXT, ONE, Bool),
    (Method, "matches", TEXT, ONE, Bool),
    (Function, "matches", TEXT, ONE, Bool),
    (Function, "bool", &[Bool, Text], NONE, Bool),
    (Function, "int", NUMBERS, NONE, Int),
    (Function, "int", TIME, NONE, Int),
    (Function, "uint", NUMBERS, NONE, Uint),
    (Function, "double", NUMBERS, NONE, Double),
    (Function, "string", NUMBERS, NONE, Text),
    (Function, "string", &[Bool, Bytes], NONE, Text),
    (Function, "string", &[Timestamp, Duration], NONE, Text),
    (Function, "bytes", &[Text, Bytes], NONE, Bytes),
    (Function, "dyn", &[Any], NONE, Any),
    (
        Function,
        "timestamp",
        &[Text, Int, Timestamp],
        NONE,
        Timestamp,
    ),
    (Function, "duration", &[Text, Duration], NONE, Duration),
    (Method, "getFullYear", TIME, OPTIONAL, Int),
    (Method, "getMonth", TIME, OPTIONAL, Int),
    (Method, "getDayOfYear", TIME, OPTIONAL, Int),
    (Method, "getDayOfMonth", TIME, OPTIONAL, Int),
    (Method, "getDate", TIME, OPTIONAL, Int),
    (Method, "getDayOfWeek", TIME, OPTIONAL, Int),
    (Method, "getHours", TIME, OPTIONAL, Int),
    (Method, "getHours", PERIOD, NONE, Int),
    (Method, "getMinutes", TIME, OPTIONAL, Int),
    (Method, "getMinutes", PERIOD, NONE, Int),
    (Method, "getSeconds", TIME, OPTIONAL, Int),
    (Method, "getSeconds", PERIOD, NONE, Int),
    (Method, "getMilliseconds", TIME, OPTIONAL, Int),
    (Method, "getMilliseconds", PERIOD, NONE, Int),
];

/// Macros. The parser expands valid calls, so only wrong calls reach the check.
const MACROS: [&str; 7] = [
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
];

/// The result of looking up a call.
pub(super) enum Lookup {
    /// A valid call with this result.
    Known(Kind),
    /// The function exists but takes values of other types.
    WrongArguments,
    /// The function exists but takes another number of values, given in words.
    WrongCount(String),
    /// A macro that was called in a wrong form.
    MalformedMacro,
    /// A method was called as a function, or the reverse.
    WrongForm,
    /// There is no such function.
    Unknown,
}

/// Finds the function of a call. A method's receiver is the first of `arguments`.
pub(super) fn lookup(name: &str, is_method: bool, arguments: &[&Kind]) -> Lookup {
    if MACROS.contains(&name) {
        return Lookup::MalformedMacro;
    }
    let mut has_name = false;
    let mut counts = BTreeSet::new();
    let receiver = usize::from(is_method);
    for (form, _, firsts, texts, result) in SIGNATURES.iter().filter(|it| it.1 == name) {
        has_name = true;
        if (*form == Method) != is_method {
            continue;
        }
        counts.extend(texts.iter().map(|texts| texts + 1 - receiver));
        if let Some((first, rest)) = arguments.split_first()
            && firsts.iter().any(|kind| takes(*kind, first))
            && texts.contains(&rest.len())
            && rest.iter().all(|kind| takes(Text, kind))
        {
            return Lookup::Known(kind_of(*result));
        }
    }
    let given = arguments.len().saturating_sub(receiver);
    if !has_name {
        Lookup::Unknown
    } else if counts.is_empty() {
        Lookup::WrongForm
    } else if counts.contains(&given) {
        Lookup::WrongArguments
    } else {
        let counts: Vec<&str> = counts.into_iter().map(values).collect();
        Lookup::WrongCount(counts.join(" or "))
    }
}

/// A number of values in words, without the receiver.
const fn values(count: usize) -> &'static str {
    match count {
        0 => "no value",
        1 => "one value",
        // No function in the table takes more values.
        _ => "two values",
    }
}

/// All names, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SIGNATURES.iter().map(|signature| signature.1).chain(MACROS)
}

const fn takes(parameter: Type, kind: &Kind) -> bool {
    if kind.is_unknown() {
        return true;
    }
    match parameter {
        Any => true,
        Bool => matches!(kind, Kind::Bool),
        Int => matches!(kind, Kind::Int | Kind::Number),
        Uint => matches!(kind, Kind::Uint),
        Double => matches!(kind, Kind::Double | Kind::Number),
        Text => matches!(kind, Kind::Text),
        Bytes => matches!(kind, Kind::Bytes),
        Timestamp => matches!(kind, Kind::Timestamp),
        Duration => matches!(kind, Kind::Duration),
        List => matches!(kind, Kind::List(_)),
        Map => matches!(kind, Kind::Map(_)),
        History => matches!(kind, Kind::History(_)),
        Job => matches!(kind, Kind::Job),
        Processed => matches!(kind, Kind::Processed),
    }
}

fn kind_of(result: Type) -> Kind {
    match result {
        Any => Kind::Any,
        Bool => Kind::Bool,
        Int => Kind::Int,
        Uint => Kind::Uint,
        Double => Kind::Double,
        Text => Kind::Text,
        Bytes => Kind::Bytes,
        Timestamp => Kind::Timestamp,
        Duration => Kind::Duration,
        List => Kind::List(Box::new(Kind::Any)),
        Map => Kind::Map(Box::new(Kind::Any)),
        History => Kind::History(None),
        Job => Kind::Job,
        Processed => Kind::Processed,
    }
}
