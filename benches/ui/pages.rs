//! Times that a reader notices, measured in Chromium.

use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::budgets::Budgets;
use crate::figures::{Times, ms};
use crate::scene::Scene;
use crate::support::World;

const ROUNDS: usize = 3;

const LINES: usize = 1_000_000;
const LINE: usize = 777_778;
const LINKS: usize = 10;

const ROWS: usize = 300;
const MORPHS: usize = 20;

const FIRST_PAINT: f64 = 200.0;
const SHIFT: f64 = 0.05;
const LINK: f64 = 500.0;
const MORPH: f64 = 50.0;

pub(crate) fn run(budgets: &mut Budgets) {
    let Some(browser) = Browser::start() else {
        return;
    };
    let scene = Scene::set();
    browser.sign_in(&scene.world);
    paint(&browser, &scene, budgets);
    renewal(&browser, &scene, budgets);
    drop(scene);
    link(&browser, budgets);
}

/// First paint and layout shift of every page.
fn paint(browser: &Browser, scene: &Scene, budgets: &mut Budgets) {
    const PAINT: &str =
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
    // Only observers get layout shifts, including earlier shifts.
    const SHIFTS: &str = "return new Promise((done) => {
        let sum = 0;
        new PerformanceObserver((list) => { for (const shift of list.getEntries()) sum += shift.value; })
            .observe({ type: 'layout-shift', buffered: true });
        requestAnimationFrame(() => setTimeout(() => done(sum), 50));
    })";
    let pages = scene.pages.iter();
    let pages: Vec<_> = pages
        .filter(|page| !page.is_problem && !page.name.starts_with("login"))
        .collect();
    let mut paints = Vec::new();
    let (mut slowest, mut shifted) = ((0.0, ""), (0.0, "none"));
    for _ in 0..ROUNDS {
        for page in &pages {
            browser.open(&scene.world, &page.path);
            let paint = number(&browser.until("the first paint", PAINT, vec![]));
            let shift = number(&browser.run(SHIFTS, vec![]));
            paints.push(Duration::from_secs_f64(paint / 1_000.0));
            if paint > slowest.0 {
                slowest = (paint, page.name);
            }
            if shift > shifted.0 {
                shifted = (shift, page.name);
            }
        }
    }
    let paints = Times::of(paints);
    println!(
        "  first paint of {} pages: {paints}; slowest {} {:.0} ms; most shift: {}",
        pages.len(),
        slowest.1,
        slowest.0,
        shifted.1
    );
    budgets.print("first paint, p95", ms(paints.at(95)), FIRST_PAINT, " ms");
    budgets.print("layout shift, most", shifted.0, SHIFT, "");
}

/// The module that updates pages. Scripts of WebDriver cannot import from the single script of the pages.
const MORPH_MODULE: &str = include_str!("../../ui/assets/morph.js");

/// The update of a table with the module of the pages: after a change of one row, and of all rows.
fn renewal(browser: &Browser, scene: &Scene, budgets: &mut Budgets) {
    const RENEW: &str = "const [rows, all] = arguments;
        const region = document.getElementById('jobs'), body = region.querySelector('tbody');
        if (body.children.length !== rows) {
            const models = [...body.children];
            const copy = (n) => Object.assign(models[n % models.length].cloneNode(true), { id: `job-${n}` });
            body.replaceChildren(...Array.from({ length: rows }, (_, n) => copy(n)));
        }
        const text = region.outerHTML;
        const fresh = new DOMParser().parseFromString(text, 'text/html').getElementById('jobs');
        const changed = [...fresh.querySelectorAll('tbody tr')].filter((_, n) => all || n === 7);
        const stamp = `${performance.now()}`;
        for (const row of changed) {
            row.className = row.className === 'a' ? 'b' : 'a';
            for (const cell of row.cells) cell.lastElementChild ? (cell.lastElementChild.textContent = stamp) : (cell.textContent = stamp);
        }
        region.offsetHeight;
        const begun = performance.now();
        morph(region, fresh);
        region.offsetHeight;
        const took = performance.now() - begun;
        const seen = [...region.querySelectorAll('tbody tr')].filter((row) => row.textContent.includes(stamp)).length;
        if (seen !== changed.length) throw new Error(`${seen} rows were renewed`);
        return took;";
    browser.open(&scene.world, "/jobs");
    let script = format!("{}\n{RENEW}", MORPH_MODULE.replace("export ", ""));
    for (what, all) in [("one has changed", false), ("all have changed", true)] {
        let times = (0..MORPHS).map(|_| {
            let took = number(&browser.run(&script, vec![ROWS.into(), all.into()]));
            Duration::from_secs_f64(took / 1_000.0)
        });
        let times = Times::of(times.collect());
        println!("  renewal with layout of {ROWS} rows, {what}: {times}");
        // The budget is for the usual case: a job changes its state.
        if !all {
            budgets.print(&format!("{ROWS} rows, p95"), ms(times.at(95)), MORPH, " ms");
        }
    }
}

/// From the start of the navigation until the linked line exists.
fn link(browser: &Browser, budgets: &mut Budgets) {
    // Runs before the page's own scripts, and checks each change.
    const WATCH: &str = "new MutationObserver((_, observer) => {
        const line = document.querySelector('#log[data-drawn] .marked .t');
        if (!line?.textContent) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.benchShown = [performance.now(), line.textContent]; }));
    }).observe(document, { subtree: true, childList: true, attributes: true });";
    let workflow = format!(
        "scans:\n  count:\n    on: {{ dispatch: {{}} }}\n    timeout: 30m\n    steps:\n      - run: seq -f 'record %.0f' 1 {LINES}\n"
    );
    let world = World::with_workflow("long.yaml", &workflow);
    let job = world.dispatch("long", "count", &[]);
    world.everscan(&["job", "wait", "-j", &job, "--timeout", "30m"]);
    browser.sign_in(&world);
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": WATCH }),
    );
    let times = (0..LINKS).map(|_| {
        // An open page would only scroll.
        browser.open_blank();
        browser.open(&world, &format!("/jobs/{job}#L{LINE}"));
        let shown = browser.until("the line", "return window.benchShown", vec![]);
        assert_eq!(shown[1], format!("record {LINE}"));
        Duration::from_secs_f64(number(&shown[0]) / 1_000.0)
    });
    let times = Times::of(times.collect());
    println!("  link to line {LINE} of {LINES}: {times}");
    budgets.print("link into a log, p95", ms(times.at(95)), LINK, " ms");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}
