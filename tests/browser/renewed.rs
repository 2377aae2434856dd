//! Page updates without events: without a stream, and for text that depends only on the time.

use serde_json::json;

use crate::browser::Browser;
use crate::stage;

/// A stream without events.
const SILENT: &str = "window.EventSource = class { addEventListener() {} };";

#[test]
fn a_page_updates_when_it_opens_each_minute_and_when_it_returns_from_the_cache() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    browser.prepare(SILENT);
    browser.prepare(
        "const real = setInterval;
         window.setInterval = (step, pause, ...more) => {
             if (pause === 60000) window.minute = step; else real(step, pause, ...more);
         };",
    );
    browser.open(&world, "/");
    fetched(&browser, 1);

    let job = world.dispatch("site", "probe", &["target=a.example"]);
    browser.run("window.minute()", vec![]);
    browser.shows("#strip", "1");
    fetched(&browser, 2);

    browser.run(
        "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))",
        vec![],
    );
    fetched(&browser, 3);

    // One topic is enough for all regions: they share the version of the page.
    browser.open(&world, &format!("/jobs/{job}"));
    fetched(&browser, 1);
    world.everscan(&["job", "cancel", "-j", &job]);
    browser.run(
        "new BroadcastChannel('everscan-live/').postMessage({ topics: [arguments[0]] })",
        vec!["scan/*".into()],
    );
    fetched(&browser, 2);
    browser.shows("#head", "cancelled");
    assert_eq!(browser.count("#log-state[data-over=true]"), 1);
}

/// Waits until the page has been fetched again this many times.
fn fetched(browser: &Browser, times: u64) {
    browser.until(
        &format!("{times} fetches"),
        "const fetches = performance.getEntriesByName(location.href, 'resource');
         return fetches.length === arguments[0] && document.documentElement.dataset.settled !== undefined",
        vec![json!(times)],
    );
}

/// Timers of a second fire once a minute, as in a hidden tab, and the minute passes at once. Each stream fails.
const HIDDEN: &str = "const timer = setTimeout, now = performance.now.bind(performance);
    let late = 0;
    window.tries = [];
    performance.now = () => now() + late;
    window.setTimeout = (step, pause, ...more) =>
        pause === 1000 ? timer(() => { late += 60000; step(...more); }, 5) : timer(step, pause, ...more);
    window.EventSource = class {
        addEventListener(name, hear) { if (name === 'error') { window.tries.push(late / 60000); timer(hear, 5); } }
        close() {}
    };";

#[test]
fn a_hidden_tab_reconnects_within_minutes() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    browser.prepare(HIDDEN);
    browser.open(&world, "/");
    browser.until("tries", "return window.tries.length > 6", vec![]);
    let tries = browser.run("return window.tries.slice(0, 7)", vec![]);
    assert_eq!(tries, json!([0, 1, 2, 3, 4, 5, 6]));
}

#[test]
fn a_slow_clock_of_the_browser_does_not_matter() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = stage::without_runner();
    let gate = world.path("gate");
    let slow = format!(
        "scans:\n  slow:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: 'until [ -e {} ]; do sleep 0.05; done'\n",
        gate.display()
    );
    world.push(&[("slow.yaml", Some(&slow))]);
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("slow", "slow", &[]);
    browser.sign_in(&world);
    browser.prepare("const now = Date.now; Date.now = () => now() - 120000;");
    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("#head", "running");
    let script = "const time = document.querySelector('#head time[data-time=since]');
        return time && /[1-9](\\.\\d)? s$/.test(time.textContent)";
    browser.until("the time that it has run", script, vec![]);
    std::fs::write(gate, "").unwrap();
    browser.shows("#head", "succeeded");
}
