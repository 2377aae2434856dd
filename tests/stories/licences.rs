//! The list of licences on the page About matches Cargo's metadata. `UPDATE_LICENCES=1` updates it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::architecture::metadata;

#[test]
fn the_list_of_licences_has_all_crates_of_the_program() {
    let found = list(&metadata(&["--filter-platform=x86_64-unknown-linux-gnu"]));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/licences.txt");
    if std::env::var_os("UPDATE_LICENCES").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, found, "run with UPDATE_LICENCES=1");
}

/// The crates that are linked into the program: direct and indirect dependencies of the daemon,
/// without build and test dependencies. One line per crate, in the order of names.
fn list(metadata: &Value) -> String {
    let by_id = |list: &'static str, key: &'static str| -> BTreeMap<&str, &Value> {
        let items = metadata.pointer(list).unwrap().as_array().unwrap();
        items
            .iter()
            .map(|item| (item[key].as_str().unwrap(), item))
            .collect()
    };
    let packages = by_id("/packages", "id");
    let nodes = by_id("/resolve/nodes", "id");
    let is_macro = |id: &str| {
        let targets = packages[id]["targets"].as_array().unwrap();
        targets
            .iter()
            .any(|target| target["kind"][0] == "proc-macro")
    };
    let named = |package: &&&Value| package["name"] == "daemon" && package["source"].is_null();
    let daemon = packages.values().find(named).unwrap();
    let mut left = vec![daemon["id"].as_str().unwrap()];
    let mut linked = BTreeSet::new();
    while let Some(id) = left.pop() {
        if is_macro(id) || !linked.insert(id) {
            continue;
        }
        for used in nodes[id]["deps"].as_array().unwrap() {
            let mut kinds = used["dep_kinds"].as_array().unwrap().iter();
            if kinds.any(|kind| kind["kind"].is_null()) {
                left.push(used["pkg"].as_str().unwrap());
            }
        }
    }
    let foreign = linked.into_iter().map(|id| packages[id]);
    let lines: BTreeSet<String> = foreign
        .filter(|package| !package["source"].is_null())
        .map(|package| {
            let text = |key: &str| package[key].as_str().unwrap_or("in a file of its own");
            let mut line = String::new();
            // An old spelling of `OR`.
            let licence = text("license").replace('/', " OR ");
            writeln!(line, "{} {}\t{licence}", text("name"), text("version")).unwrap();
            line
        })
        .collect();
    lines.into_iter().collect()
}
