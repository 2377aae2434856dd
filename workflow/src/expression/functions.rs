//! The functions that expressions may call, with their parameter and result types. Other functions are refused when the
//! file is loaded, even if the library has them.

use std::collections::BTreeSet;

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

/// A function of one name, way of calling and list of types. A method's first parameter is its receiver.
struct Signature {
    name: &'static str,
    is_method: bool,
    parameters: &'static [Type],
    result: Type,
}

const fn function(name: &'static str, parameters: &'static [Type], result: Type) -> Signature {
    Signature {
        name,
        is_method: false,
        parameters,
        result,
    }
}

const fn method(name: &'static str, parameters: &'static [Type], result: Type) -> Signature {
    Signature {
        name,
        is_method: true,
        parameters,
        result,
    }
}

const SIGNATURES: &[Signature] = &[
    method("is_available", &[Type::History], Type::Bool),
    method("has_diff", &[Type::History], Type::Bool),
    method("has_diff", &[Type::History, Type::Text], Type::Bool),
    method("has_news", &[Type::History], Type::Bool),
    method("has_news", &[Type::History, Type::Text], Type::Bool),
    method("last_success", &[Type::History], Type::Job),
    method("processed", &[Type::History], Type::Processed),
    method("has_failed", &[Type::History], Type::Bool),
    method("size", &[Type::History], Type::Int),
    method("size", &[Type::Text], Type::Int),
    method("size", &[Type::Bytes], Type::Int),
    method("size", &[Type::List], Type::Int),
    method("size", &[Type::Map], Type::Int),
    function("size", &[Type::History], Type::Int),
    function("size", &[Type::Text], Type::Int),
    function("size", &[Type::Bytes], Type::Int),
    function("size", &[Type::List], Type::Int),
    function("size", &[Type::Map], Type::Int),
    method("contains", &[Type::Text, Type::Text], Type::Bool),
    method("startsWith", &[Type::Text, Type::Text], Type::Bool),
    method("endsWith", &[Type::Text, Type::Text], Type::Bool),
    method("matches", &[Type::Text, Type::Text], Type::Bool),
    function("matches", &[Type::Text, Type::Text], Type::Bool),
    function("bool", &[Type::Bool], Type::Bool),
    function("bool", &[Type::Text], Type::Bool),
    function("int", &[Type::Int], Type::Int),
    function("int", &[Type::Uint], Type::Int),
    function("int", &[Type::Double], Type::Int),
    function("int", &[Type::Text], Type::Int),
    function("int", &[Type::Timestamp], Type::Int),
    function("uint", &[Type::Int], Type::Uint),
    function("uint", &[Type::Uint], Type::Uint),
    function("uint", &[Type::Double], Type::Uint),
    function("uint", &[Type::Text], Type::Uint),
    function("double", &[Type::Int], Type::Double),
    function("double", &[Type::Uint], Type::Double),
    function("double", &[Type::Double], Type::Double),
    function("double", &[Type::Text], Type::Double),
    function("string", &[Type::Bool], Type::Text),
    function("string", &[Type::Int], Type::Text),
    function("string", &[Type::Uint], Type::Text),
    function("string", &[Type::Double], Type::Text),
    function("string", &[Type::Text], Type::Text),
    function("string", &[Type::Bytes], Type::Text),
    function("string", &[Type::Timestamp], Type::Text),
    function("string", &[Type::Duration], Type::Text),
    function("bytes", &[Type::Text], Type::Bytes),
    function("bytes", &[Type::Bytes], Type::Bytes),
    function("dyn", &[Type::Any], Type::Any),
    function("timestamp", &[Type::Text], Type::Timestamp),
    function("timestamp", &[Type::Int], Type::Timestamp),
    function("timestamp", &[Type::Timestamp], Type::Timestamp),
    function("duration", &[Type::Text], Type::Duration),
    function("duration", &[Type::Duration], Type::Duration),
    method("getFullYear", &[Type::Timestamp], Type::Int),
    method("getFullYear", &[Type::Timestamp, Type::Text], Type::Int),
    method("getMonth", &[Type::Timestamp], Type::Int),
    method("getMonth", &[Type::Timestamp, Type::Text], Type::Int),
    method("getDayOfYear", &[Type::Timestamp], Type::Int),
    method("getDayOfYear", &[Type::Timestamp, Type::Text], Type::Int),
    method("getDayOfMonth", &[Type::Timestamp], Type::Int),
    method("getDayOfMonth", &[Type::Timestamp, Type::Text], Type::Int),
    method("getDate", &[Type::Timestamp], Type::Int),
    method("getDate", &[Type::Timestamp, Type::Text], Type::Int),
    method("getDayOfWeek", &[Type::Timestamp], Type::Int),
    method("getDayOfWeek", &[Type::Timestamp, Type::Text], Type::Int),
    method("getHours", &[Type::Timestamp], Type::Int),
    method("getHours", &[Type::Timestamp, Type::Text], Type::Int),
    method("getHours", &[Type::Duration], Type::Int),
    method("getMinutes", &[Type::Timestamp], Type::Int),
    method("getMinutes", &[Type::Timestamp, Type::Text], Type::Int),
    method("getMinutes", &[Type::Duration], Type::Int),
    method("getSeconds", &[Type::Timestamp], Type::Int),
    method("getSeconds", &[Type::Timestamp, Type::Text], Type::Int),
    method("getSeconds", &[Type::Duration], Type::Int),
    method("getMilliseconds", &[Type::Timestamp], Type::Int),
    method("getMilliseconds", &[Type::Timestamp, Type::Text], Type::Int),
    method("getMilliseconds", &[Type::Duration], Type::Int),
];

/// Macros: the parser expands their calls. Only wrong calls reach the check.
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
    /// The function exists and takes values of other types.
    WrongArguments,
    /// The function exists and takes another number of values. The number, in words.
    WrongCount(String),
    /// A macro that was called in a wrong form.
    MalformedMacro,
    /// The name is a method and was called as a function, or the reverse.
    WrongForm,
    /// There is no such function.
    Unknown,
}

/// Finds the function that a call means. A method's receiver is the first of `arguments`.
pub(super) fn lookup(name: &str, is_method: bool, arguments: &[&Kind]) -> Lookup {
    if MACROS.contains(&name) {
        return Lookup::MalformedMacro;
    }
    let mut has_name = false;
    let mut counts = BTreeSet::new();
    for signature in SIGNATURES.iter().filter(|signature| signature.name == name) {
        has_name = true;
        if signature.is_method != is_method {
            continue;
        }
        counts.insert(signature.parameters.len() - usize::from(is_method));
        if signature.parameters.len() == arguments.len()
            && signature
                .parameters
                .iter()
                .zip(arguments)
                .all(|(parameter, kind)| takes(*parameter, kind))
        {
            return Lookup::Known(kind_of(signature.result));
        }
    }
    let given = arguments.len().saturating_sub(usize::from(is_method));
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
        // No function in the table takes more.
        _ => "two values",
    }
}

/// All names, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SIGNATURES
        .iter()
        .map(|signature| signature.name)
        .chain(MACROS)
}

const fn takes(parameter: Type, kind: &Kind) -> bool {
    if kind.is_unknown() {
        return true;
    }
    match parameter {
        Type::Any => true,
        Type::Bool => matches!(kind, Kind::Bool),
        Type::Int => matches!(kind, Kind::Int | Kind::Number),
        Type::Uint => matches!(kind, Kind::Uint),
        Type::Double => matches!(kind, Kind::Double | Kind::Number),
        Type::Text => matches!(kind, Kind::Text),
        Type::Bytes => matches!(kind, Kind::Bytes),
        Type::Timestamp => matches!(kind, Kind::Timestamp),
        Type::Duration => matches!(kind, Kind::Duration),
        Type::List => matches!(kind, Kind::List(_)),
        Type::Map => matches!(kind, Kind::Map(_)),
        Type::History => matches!(kind, Kind::History(_)),
        Type::Job => matches!(kind, Kind::Job),
        Type::Processed => matches!(kind, Kind::Processed),
    }
}

fn kind_of(result: Type) -> Kind {
    match result {
        Type::Any => Kind::Any,
        Type::Bool => Kind::Bool,
        Type::Int => Kind::Int,
        Type::Uint => Kind::Uint,
        Type::Double => Kind::Double,
        Type::Text => Kind::Text,
        Type::Bytes => Kind::Bytes,
        Type::Timestamp => Kind::Timestamp,
        Type::Duration => Kind::Duration,
        Type::List => Kind::List(Box::new(Kind::Any)),
        Type::Map => Kind::Map(Box::new(Kind::Any)),
        Type::History => Kind::History(None),
        Type::Job => Kind::Job,
        Type::Processed => Kind::Processed,
    }
}
