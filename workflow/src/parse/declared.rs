//! The names that a file declares, for its expressions. They are read before other checks, so a name whose declaration has an
//! error is not also reported as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::object::keys;
use crate::dispatch::InputKind;
use crate::yaml::{Content, Entry, Node};

/// Inputs with their kinds. An unreadable kind is absent.
pub(super) type Inputs = BTreeMap<String, Option<InputKind>>;

/// Scans with the names of their artifacts.
pub(super) fn scans(entries: &[Entry]) -> BTreeMap<String, BTreeSet<String>> {
    let artifacts = |scan: &Node| {
        let items = items(scan, "artifacts").iter();
        let names = items.filter_map(|item| member(item, "name"));
        names
            .filter_map(|name| text(name))
            .map(str::to_owned)
            .collect()
    };
    entries
        .iter()
        .map(|entry| (entry.key.to_string(), artifacts(&entry.value)))
        .collect()
}

/// The inputs of a scan. `None` if an error hides them.
pub(super) fn inputs(scan: &Node) -> Option<Inputs> {
    let on = member(scan, "on")?;
    let Some(dispatch) = member(on, "dispatch") else {
        return is_plain(on, &keys::ON).then(Inputs::new);
    };
    let Some(inputs) = member(dispatch, "inputs") else {
        return is_plain(dispatch, &keys::DISPATCH).then(Inputs::new);
    };
    let Content::Map(entries) = &inputs.content else {
        return None;
    };
    // If a key is repeated, it is unknown which value would count.
    let is_certain = [on, dispatch, inputs].iter().all(|node| !node.is_partial());
    let kind = |entry: &Entry| is_certain.then(|| kind(&entry.value)).flatten();
    let inputs = entries
        .iter()
        .map(|entry| (entry.key.to_string(), kind(entry)));
    Some(inputs.collect())
}

/// The names of a scan's steps with their indexes. `None` if an error hides a name.
pub(super) fn steps(scan: &Node) -> Option<Arc<BTreeMap<String, usize>>> {
    let Content::List(items) = &member(scan, "steps")?.content else {
        return None;
    };
    let mut steps = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        if !is_plain(item, &keys::STEP) {
            return None;
        }
        if let Some(name) = member(item, "name") {
            steps.entry(text(name)?.to_owned()).or_insert(place);
        }
    }
    Some(Arc::new(steps))
}

/// The environment variables of a scan or workflow: those in `env` and `pass_env`, and those that a script sets as `NAME=`.
pub(super) fn variables(node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(Content::Map(entries)) = member(node, "env").map(|env| &env.content) {
        names.extend(entries.iter().map(|entry| entry.key.to_string()));
    }
    let passed = items(node, "pass_env").iter();
    names.extend(passed.filter_map(|item| text(item)).map(str::to_owned));
    for step in items(node, "steps") {
        let script = member(step, "run").and_then(text).unwrap_or_default();
        let words = script.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '='));
        let set = words.filter_map(|word| word.split_once('='));
        let set = set.filter(|(_, value)| !value.starts_with('='));
        names.extend(set.map(|(name, _)| name.to_owned()));
    }
    names
}

/// Whether a node is an object without misspelled or repeated keys.
fn is_plain(node: &Node, known: &[&str]) -> bool {
    match &node.content {
        Content::Map(entries) => {
            !node.is_partial() && entries.iter().all(|entry| known.contains(&&*entry.key))
        }
        Content::Scalar(_) | Content::List(_) | Content::Invalid => false,
    }
}

/// The inputs that every scan declares with the same kind. The workflow's own `env` may read them.
pub(super) fn common(inputs: &[Option<Inputs>]) -> Option<Inputs> {
    let known: Vec<&Inputs> = inputs.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let Some((first, rest)) = known.split_first() else {
        return Some(Inputs::new());
    };
    let everywhere = |(key, kind): &(&String, &Option<InputKind>)| {
        rest.iter().all(|other| other.get(*key) == Some(kind))
    };
    let common = first.iter().filter(everywhere);
    Some(common.map(|(key, kind)| (key.clone(), *kind)).collect())
}

fn kind(input: &Node) -> Option<InputKind> {
    if !is_plain(input, &keys::INPUT) {
        return None;
    }
    match member(input, "type") {
        None => Some(InputKind::Text),
        Some(given) => {
            let given = text(given)?;
            let mut kinds = InputKind::ALL.iter().copied();
            kinds.find(|kind| kind.name() == given)
        }
    }
}

/// The value of a key, if the node is an object with this key.
pub(super) fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    member_entry(node, key).map(|entry| entry.value.as_ref())
}

/// The key with its value.
pub(super) fn member_entry<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    match &node.content {
        Content::Map(entries) => entries.iter().find(|entry| &*entry.key == key),
        Content::Scalar(_) | Content::List(_) | Content::Invalid => None,
    }
}

/// The entries of a key's list.
fn items<'n>(node: &'n Node, key: &str) -> &'n [Rc<Node>] {
    match member(node, key).map(|node| &node.content) {
        Some(Content::List(items)) => items,
        _ => &[],
    }
}

pub(super) fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(scalar) => Some(&scalar.text),
        Content::List(_) | Content::Map(_) | Content::Invalid => None,
    }
}
