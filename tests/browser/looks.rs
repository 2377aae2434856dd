//! Every page in light, in dark and on a phone: nobody is shut out by it, and pictures of it are taken on request.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::browser::Browser;
use crate::chromium::skip;
use crate::scene::{Page, Scene, is_of, routes};

/// The file `axe.min.js` of axe-core, which says what shuts somebody out.
const AXE: &str = "EVERSCAN_AXE";

/// A folder for pictures of every page.
const PICTURES: &str = "EVERSCAN_PICTURES";

/// A folder for the pictures that the documents show.
const SHOWN: &str = "EVERSCAN_SHOWN_PICTURES";

struct Look {
    name: &'static str,
    theme: &'static str,
    size: (u32, u32),
}

const LOOKS: [Look; 3] = [
    Look {
        name: "light",
        theme: "light",
        size: (1280, 800),
    },
    Look {
        name: "dark",
        theme: "dark",
        size: (1280, 800),
    },
    Look {
        name: "phone",
        theme: "light",
        size: (390, 844),
    },
];

/// The pictures in the documents: page and look.
const IN_DOCUMENTS: [(&str, &str); 4] = [
    ("overview", "light"),
    ("workflow", "light"),
    ("job-failed", "dark"),
    ("overview", "phone"),
];

/// What each page has on request.
const DIALOGS: [&str; 2] = ["shortcuts", "finder"];

/// A picture of a whole page is cut here.
const TALLEST: u64 = 4_000;

#[test]
fn every_page_shuts_nobody_out_in_every_look() {
    let axe = std::env::var_os(AXE).map(|path| std::fs::read_to_string(path).unwrap());
    let [pictures, shown] = [PICTURES, SHOWN].map(|name| std::env::var_os(name).map(PathBuf::from));
    if axe.is_none() {
        skip(&format!("{AXE} does not name axe.min.js of axe-core"));
        if pictures.is_none() && shown.is_none() {
            return;
        }
    }
    let Some(browser) = Browser::start() else {
        return;
    };
    let scene = Scene::set();
    for route in routes() {
        let has = scene.pages.iter().any(|page| is_of(route, &page.path));
        assert!(has, "{} is not among the pages", route.path);
    }
    // Phones have none that take room.
    let hidden = serde_json::json!({ "hidden": true });
    browser.devtools("Emulation.setScrollbarsHidden", hidden);
    browser.sign_in(&scene.world);
    let mut problems = Vec::new();
    for look in &LOOKS {
        browser.prefer(look.theme);
        for page in &scene.pages {
            let name = format!("{}-{}", page.name, look.name);
            browser.resize(look.size.0, look.size.1);
            browser.open(&scene.world, &page.path);
            let mut found = check(&browser, page, axe.as_deref());
            if page.name == "overview" {
                for dialog in DIALOGS {
                    browser.run(
                        "document.getElementById(arguments[0]).showModal()",
                        vec![dialog.into()],
                    );
                    found.extend(check(&browser, page, axe.as_deref()));
                    browser.run(
                        "document.getElementById(arguments[0]).close()",
                        vec![dialog.into()],
                    );
                }
            }
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{name}: {problem}")),
            );
            if let Some(folder) = &shown
                && IN_DOCUMENTS.contains(&(page.name, look.name))
            {
                write(&folder.join(format!("{name}.png")), &browser.picture());
            }
            if let Some(folder) = &pictures {
                let height = browser.run("return document.documentElement.scrollHeight", vec![]);
                let height = height.as_u64().unwrap().min(TALLEST);
                browser.resize(look.size.0, u32::try_from(height).unwrap());
                browser.settled();
                write(&folder.join(format!("{name}.png")), &browser.picture());
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What is wrong with the present page.
fn check(browser: &Browser, page: &Page, axe: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    let width =
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let width = browser.run(width, vec![]);
    if width != 0 {
        problems.push(format!("it scrolls sideways by {width} pixels"));
    }
    let complaints = browser.complaints();
    if !page.is_problem {
        problems.extend(complaints);
    }
    if let Some(axe) = axe {
        browser.run(axe, vec![]);
        // All rules that are on by default, best practices among them.
        let script = "return axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((rule) =>
            `${rule.id}: ${rule.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`))";
        let found = browser.run(script, vec![]);
        let found = found.as_array().unwrap().iter();
        problems.extend(found.filter_map(Value::as_str).map(str::to_owned));
    }
    problems
}

fn write(path: &Path, picture: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, picture).unwrap();
}

/// The pictures of the documents are taken by the story above, with `just pictures-of-docs`.
#[test]
fn the_documents_show_pictures_that_exist_and_are_small() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let text = std::fs::read_to_string(docs.join("web-ui.md")).unwrap();
    let mut named: Vec<&str> = text
        .split("](pictures/")
        .skip(1)
        .map(|rest| rest.split_once(')').unwrap().0)
        .collect();
    named.sort_unstable();
    let mut taken: Vec<String> = IN_DOCUMENTS
        .iter()
        .map(|(page, look)| format!("{page}-{look}.png"))
        .collect();
    taken.sort_unstable();
    assert_eq!(named, taken);
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(docs.join("pictures")).unwrap() {
        let entry = entry.unwrap();
        let picture = std::fs::read(entry.path()).unwrap();
        assert!(picture.starts_with(b"\x89PNG"), "{entry:?}");
        assert!(picture.len() <= 120 * 1024, "{entry:?}: {}", picture.len());
        kept.push(entry.file_name().into_string().unwrap());
    }
    kept.sort_unstable();
    assert_eq!(kept, taken);
}
