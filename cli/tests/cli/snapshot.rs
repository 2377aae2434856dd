//! Texts that are compared with files. `UPDATE_SNAPSHOTS=1` writes the files instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The beginning of the line above each case of a file.
const MARK: &str = "==== ";

/// Held while a file is rewritten, because tests run in parallel.
static WRITING: Mutex<()> = Mutex::new(());

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli")
        .join(name)
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

#[track_caller]
pub(crate) fn check(path: &Path, found: &str) {
    if is_update() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_same(&path.display().to_string(), &expected, found);
}

/// Compares one listing. The file is named after the first word of the case.
#[track_caller]
pub(crate) fn check_listing(case: &str, found: &str) {
    let (area, _) = case.split_once('-').unwrap();
    check_case(&folder("listings").join(format!("{area}.txt")), case, found);
}

/// Compares one case of a file of several cases.
#[track_caller]
pub(crate) fn check_case(path: &Path, case: &str, found: &str) {
    if is_update() {
        let _guard = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cases = read_cases(path);
        cases.insert(case.to_owned(), found.to_owned());
        check(path, &join(&cases));
        return;
    }
    let cases = read_cases(path);
    let expected = cases.get(case).map_or("", String::as_str);
    assert_same(&format!("{case} in {}", path.display()), expected, found);
}

/// The text of a file with these cases.
pub(crate) fn join(cases: &BTreeMap<String, String>) -> String {
    let cases = cases.iter();
    cases
        .map(|(case, text)| format!("{MARK}{case}\n{text}"))
        .collect()
}

fn read_cases(path: &Path) -> BTreeMap<String, String> {
    let file = std::fs::read_to_string(path).unwrap_or_default();
    let mut cases = BTreeMap::new();
    let mut case = String::new();
    for line in file.split_inclusive('\n') {
        match line.strip_prefix(MARK) {
            Some(name) => {
                case = name.trim_end().to_owned();
                cases.insert(case.clone(), String::new());
            }
            None => cases.entry(case.clone()).or_default().push_str(line),
        }
    }
    cases
}

#[track_caller]
fn assert_same(place: &str, expected: &str, found: &str) {
    assert!(
        expected == found,
        "{place} differs; UPDATE_SNAPSHOTS=1 takes this text:\n{found}"
    );
}
