//! Checks the accessibility of every page in light and in dark, on a desktop and on a phone, and takes pictures on
//! request. A page is loaded once; its looks are emulated.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::browser::Browser;
use crate::chromium::skip;
use crate::scene::{Page, Scene, fresh};
use crate::support::World;

/// The file `axe.min.js` of axe-core, which finds accessibility problems.
const AXE: &str = "EVERSCAN_AXE";

/// A folder for pictures of every page.
const PICTURES: &str = "EVERSCAN_PICTURES";

/// A folder for the pictures in the documentation.
const SHOWN: &str = "EVERSCAN_SHOWN_PICTURES";

struct Look {
    name: &'static str,
    theme: &'static str,
    size: (u32, u32),
}

const PHONE: (u32, u32) = (390, 844);
const DESK: (u32, u32) = (1280, 800);

/// Pages are opened in the first look. The phone is first, since its menu is scrolled when a page opens.
const LOOKS: [Look; 4] = [
    Look {
        name: "phone",
        theme: "light",
        size: PHONE,
    },
    Look {
        name: "phone-dark",
        theme: "dark",
        size: PHONE,
    },
    Look {
        name: "dark",
        theme: "dark",
        size: DESK,
    },
    Look {
        name: "light",
        theme: "light",
        size: DESK,
    },
];

/// The pictures in the documents: page and look.
const IN_DOCUMENTS: [(&str, &str); 4] = [
    ("overview", "light"),
    ("workflow", "light"),
    ("job-failed", "dark"),
    ("overview", "phone"),
];

/// The outputs that are made on request.
const DIALOGS: [&str; 2] = ["shortcuts", "finder"];

/// Maximum height of a picture of a whole page.
const TALLEST: u64 = 4_000;

/// A walk with a browser through the pages of several worlds.
struct Walk {
    browser: Browser,
    axe: Option<String>,
    pictures: Option<PathBuf>,
    shown: Option<PathBuf>,
    problems: Vec<String>,
}

#[test]
fn every_page_is_accessible_in_every_look() {
    let [pictures, shown] = [PICTURES, SHOWN].map(|name| std::env::var_os(name).map(PathBuf::from));
    let Some(browser) = Browser::start() else {
        return;
    };
    let axe = std::env::var_os(AXE).map(|path| std::fs::read_to_string(path).unwrap());
    if axe.is_none() {
        skip(&format!(
            "{AXE} does not name axe.min.js of axe-core: only widths, menus and complaints are checked"
        ));
    }
    // Scroll bars of phones take no space.
    let hidden = serde_json::json!({ "hidden": true });
    browser.devtools("Emulation.setScrollbarsHidden", hidden);
    let mut walk = Walk {
        browser,
        axe,
        pictures,
        shown,
        problems: Vec::new(),
    };
    let (world, pages) = fresh();
    walk.browser.sign_in(&world);
    walk.visit(&world, &pages);
    let scene = Scene::set();
    walk.browser.sign_in(&scene.world);
    walk.visit(&scene.world, &scene.pages);
    let (token, pages) = &scene.limited;
    walk.browser.sign_in_with(&scene.world, token);
    walk.visit(&scene.world, pages);
    assert!(walk.problems.is_empty(), "{}", walk.problems.join("\n"));
}

impl Walk {
    fn visit(&mut self, world: &World, pages: &[Page]) {
        for page in pages {
            self.show(&LOOKS[0]);
            self.browser.open(world, &page.path);
            let place = self.browser.place();
            if place != page.path {
                self.note(page.name, vec![format!("it leads to {place}")]);
            }
            let complaints = self.browser.complaints();
            if !page.is_problem {
                self.note(page.name, complaints);
            }
            if let Some(axe) = &self.axe {
                self.browser.run(axe, vec![]);
            }
            for look in &LOOKS {
                self.look(page, look);
            }
            self.note(page.name, self.browser.complaints());
        }
    }

    fn show(&self, look: &Look) {
        self.browser.prefer(look.theme);
        self.browser.resize(look.size.0, look.size.1);
    }

    fn note(&mut self, place: &str, found: Vec<String>) {
        let found = found.into_iter();
        self.problems
            .extend(found.map(|problem| format!("{place}: {problem}")));
    }

    /// The present page in one look. The page is not loaded again.
    fn look(&mut self, page: &Page, look: &Look) {
        self.show(look);
        self.browser.settled();
        let name = format!("{}-{}", page.name, look.name);
        self.note(&name, layout(&self.browser));
        self.note(&name, self.accessibility_problems(look));
        if page.name == "overview" {
            for dialog in DIALOGS {
                let act = |action: &str| {
                    let script = format!("document.getElementById(arguments[0]).{action}()");
                    self.browser.run(&script, vec![dialog.into()]);
                };
                act("showModal");
                let found = [layout(&self.browser), self.accessibility_problems(look)].concat();
                act("close");
                self.note(&format!("{name} with {dialog}"), found);
            }
        }
        if let Some(folder) = &self.shown
            && IN_DOCUMENTS.contains(&(page.name, look.name))
        {
            write(&folder.join(format!("{name}.png")), &self.browser.picture());
        }
        if let Some(folder) = &self.pictures {
            let height = "return document.documentElement.scrollHeight";
            let height = self.browser.run(height, vec![]).as_u64().unwrap();
            let height = u32::try_from(height.min(TALLEST)).unwrap();
            self.browser.resize(look.size.0, height);
            self.browser.settled();
            write(&folder.join(format!("{name}.png")), &self.browser.picture());
        }
    }

    /// The accessibility problems by all default rules, including best practices. A theme changes only colours, so in
    /// the dark only the rules about colours run.
    fn accessibility_problems(&self, look: &Look) -> Vec<String> {
        if self.axe.is_none() {
            return Vec::new();
        }
        let script = "const options = { resultTypes: ['violations'] };
            if (arguments[0]) options.runOnly = ['color-contrast', 'link-in-text-block'];
            return axe.run(document, options).then((found) => found.violations.map((rule) =>
                `${rule.id}: ${rule.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`))";
        let is_dark = look.theme == "dark";
        texts(&self.browser.run(script, vec![is_dark.into()]))
    }
}

/// Problems of the layout: elements that make the page wider than its window without their own scroll bar, and a menu
/// that hides the entry of the present page.
fn layout(browser: &Browser) -> Vec<String> {
    let script = "const root = document.documentElement, found = [];
        const here = document.querySelector('.rail [aria-current]')?.getBoundingClientRect();
        if (here && (here.left < 0 || here.right > root.clientWidth)) found.push('the menu hides the present page');
        if (root.scrollWidth > root.clientWidth) {
            const wide = [...document.body.querySelectorAll('*')]
                .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1);
            found.push(`it scrolls sideways, ${root.scrollWidth} pixels: `
                + wide.slice(0, 20).map((element) => element.outerHTML.slice(0, 80)).join('\\n'));
        }
        return found";
    texts(&browser.run(script, vec![]))
}

fn texts(found: &Value) -> Vec<String> {
    let found = found.as_array().unwrap().iter();
    found.filter_map(Value::as_str).map(str::to_owned).collect()
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
