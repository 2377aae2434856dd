//! The arrows between packages are those of ARCHITECTURE.md and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The direct dependencies of each package. A package may also use the dependencies of these.
const ARROWS: &[(&str, &[&str])] = &[
    ("workflow", &[]),
    ("store", &[]),
    ("wire", &[]),
    ("ui", &["wire"]),
    ("model", &["workflow"]),
    ("state", &["model", "store"]),
    ("reconciler", &["state"]),
    ("client", &["wire"]),
    ("outbound", &[]),
    ("delivery", &["outbound", "reconciler"]),
    ("listen", &[]),
    ("callback", &["listen"]),
    ("identity", &[]),
    ("api", &["delivery", "identity", "listen", "ui", "wire"]),
    ("runner", &["client", "workflow", "model"]),
    ("cli", &["client", "workflow", "model", "runner"]),
    (
        "daemon",
        &["api", "callback", "client", "outbound", "runner", "cli"],
    ),
];

/// Crates that a pure package must not have, directly or not.
const IMPURE: &[&str] = &[
    "tokio", "warp", "hyper", "rustls", "git2", "notify", "rustix", "tempfile",
];

#[test]
fn packages_use_only_what_the_map_allows() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(package, _)| (*package, below(package)))
        .collect();
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages
        .iter()
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        allowed.keys().copied().collect(),
        "every package stands on the map, and only those"
    );
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            assert!(
                !names.contains(used) || allowed[name].contains(used),
                "{name} uses {used}, which the map does not allow"
            );
        }
    }
}

#[test]
fn pure_packages_depend_on_no_impure_crate() {
    // Only for this machine's system: crates of other systems are not downloaded.
    let metadata = metadata(&["--filter-platform=host-tuple"]);
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let name_of: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            (
                package["id"].as_str().unwrap(),
                package["name"].as_str().unwrap(),
            )
        })
        .collect();
    let normal: BTreeMap<&str, Vec<&str>> = nodes
        .iter()
        .map(|node| {
            let used = node["deps"].as_array().unwrap().iter().filter(|dep| {
                dep["dep_kinds"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|kind| kind["kind"].is_null())
            });
            (
                node["id"].as_str().unwrap(),
                used.map(|dep| dep["pkg"].as_str().unwrap()).collect(),
            )
        })
        .collect();
    for pure in ["workflow", "model", "ui", "wire"] {
        let root = name_of
            .iter()
            .find(|(id, name)| **name == pure && id.contains("path+file"))
            .unwrap()
            .0;
        let mut reached = BTreeSet::new();
        let mut queue = vec![*root];
        while let Some(id) = queue.pop() {
            if reached.insert(id) {
                queue.extend(normal.get(id).into_iter().flatten());
            }
        }
        let impure: Vec<&str> = reached
            .iter()
            .map(|id| name_of[id])
            .filter(|name| IMPURE.contains(name))
            .collect();
        assert!(impure.is_empty(), "{pure} reaches {impure:?}");
    }
}

#[test]
fn only_tests_can_kill_a_daemon_at_a_failpoint_or_set_its_clock() {
    let features = |edges| {
        let store = ["tree", "--invert", "store", "--depth=0", "--format={f}"];
        let output = cargo(&[&store[..], &["--edges", edges]].concat());
        String::from_utf8(output).unwrap().trim().to_owned()
    };
    assert_eq!(features("all"), "failpoints");
    assert_eq!(features("no-dev"), "");
}

/// All dependencies of a package, also indirect ones.
fn below(package: &str) -> BTreeSet<&'static str> {
    let direct = ARROWS
        .iter()
        .find(|(name, _)| *name == package)
        .map_or(&[][..], |(_, used)| used);
    direct
        .iter()
        .flat_map(|used| below(used).into_iter().chain([*used]))
        .collect()
}

pub(crate) fn metadata(arguments: &[&str]) -> Value {
    let format = ["metadata", "--format-version=1"];
    serde_json::from_slice(&cargo(&[&format, arguments].concat())).unwrap()
}

fn cargo(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
