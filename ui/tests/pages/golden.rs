//! Pages and drawings compared with the files in `tests/golden`.
//!
//! `UPDATE_PAGES=1` rewrites the files; read the difference before you commit it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::parsed::{Element, elements};
use crate::{PLAIN, all, charts, without_tags};

/// One page of each layout: signed out, scrolling, and as high as the window. Each fills a file.
const WHOLE: [&str; 3] = ["login", "overview", "job-running"];

/// The files of all other cases, with the first words of the names in each.
const FILES: [(&str, &[&str]); 9] = [
    ("account", &["about", "audit", "problem", "tokens"]),
    (
        "charts",
        &["graph", "lanes", "mini", "outcomes", "progress", "slots"],
    ),
    (
        "data",
        &[
            "artifact",
            "artifacts",
            "blobs",
            "callback",
            "interaction",
            "payload",
            "projects",
            "variables",
        ],
    ),
    ("jobs", &["job", "jobs"]),
    ("notifications", &["notifications"]),
    ("runners", &["runner", "runners"]),
    ("sources", &["source", "sources"]),
    (
        "users",
        &[
            "device", "login", "members", "settings", "user", "users", "welcome",
        ],
    ),
    (
        "workflows",
        &[
            "dispatch",
            "overview",
            "revision",
            "revisions",
            "scan",
            "workflow",
            "workflows",
        ],
    ),
];

#[test]
fn pages_and_drawings_match_their_files() {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (name, page) in all::all(PLAIN) {
        // The hash changes with every asset.
        let page = by_element(&page.replace(ui::assets::version(), "HASH"));
        match name {
            "login" => drop(files.insert(name, page)),
            _ if WHOLE.contains(&name) => drop(files.insert(name, without_sprite(&page))),
            _ => files
                .entry(file_of(name))
                .or_default()
                .push_str(&fragment(name, &page)),
        }
    }
    for (name, drawing) in charts::drawings() {
        let drawing = format!("<!-- {name} -->\n{}\n", by_element(&drawing.into_string()));
        files.entry(file_of(name)).or_default().push_str(&drawing);
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut different = Vec::new();
    for (name, text) in &files {
        let file = folder.join(format!("{name}.html"));
        if std::env::var_os("UPDATE_PAGES").is_some() {
            write(&file, text);
        } else if std::fs::read_to_string(&file).ok().as_deref() != Some(text) {
            different.push(name);
        }
    }
    assert!(
        different.is_empty(),
        "run with UPDATE_PAGES=1 and look at {different:?}"
    );
    let stored = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(stored, files.len(), "a golden file that no test needs");
}

#[expect(clippy::disallowed_methods, reason = "a file of the tests")]
fn write(file: &std::path::Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

fn file_of(name: &str) -> &'static str {
    let word = name.split('-').next().unwrap();
    let found = FILES.iter().find(|(_, words)| words.contains(&word));
    found.unwrap_or_else(|| panic!("no file for {name}")).0
}

/// A line per element makes differences readable.
fn by_element(markup: &str) -> String {
    markup.replace("><", ">\n<") + "\n"
}

/// The parts that differ between pages: title, entry of the menu, breadcrumb and main content.
fn fragment(name: &str, page: &str) -> String {
    let all = elements(page);
    let content = |is_it: &dyn Fn(&Element) -> bool| {
        let found = all.iter().find(|element| is_it(element));
        found.map_or("", |element| element.content.as_str())
    };
    let title = content(&|it| it.name == "title");
    let menu = content(&|it| it.get("class") == Some("item") && it.get("aria-current").is_some());
    let crumbs = content(&|it| it.name == "ol" && it.around.contains(&"header".to_owned()));
    let main = content(&|it| it.name == "main");
    format!(
        "<!-- {name} | {title} | {} -->\n{}\n<main>{main}</main>\n\n",
        without_tags(menu).trim(),
        crumbs.trim(),
    )
}

/// The sprite is the same on every page, so only one golden file has it.
fn without_sprite(page: &str) -> String {
    let (before, rest) = page.split_once("<svg class=\"sprite\"").expect("a sprite");
    let (_, after) = rest.split_once("</svg>\n").expect("its end");
    format!("{before}{after}")
}
