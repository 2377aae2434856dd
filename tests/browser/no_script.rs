//! A browser without scripts: forms post, logs are plain pages, and pages show the state at loading time.

use crate::browser::Browser;
use crate::stage::{PROBE, SITE};
use crate::support::World;

const TARGET: &str = "textarea[name='inputs.target']";

#[test]
fn without_scripts_forms_jobs_and_logs_work() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.turn_scripts_off();
    let world = World::with_workflow("site.yaml", SITE);
    browser.sign_in(&world);
    assert_eq!(browser.count("html[data-settled]"), 0);

    browser.open(&world, PROBE);
    browser.press("Dispatch");
    browser.arrives(&format!("{PROBE}/dispatch"));
    let paste = "document.querySelector(arguments[0]).value = 'x'.repeat(65_536)";
    browser.run(paste, vec![TARGET.into()]);
    browser.fill("textarea[name='inputs.note']", "a note");
    browser.press("Start the job");
    browser.shows("main .field .error", "65536 characters");
    assert_eq!(browser.value(TARGET).len(), 65_536);
    assert_eq!(browser.value("textarea[name='inputs.note']"), "a note");

    browser.fill(TARGET, "a.example");
    browser.press("Start the job");
    let job = browser.arrives_below("/jobs/");
    assert_eq!(world.finished(&job)["state"], "succeeded");
    browser.reload();
    browser.shows("#head", "succeeded");
    browser.shows("#steps", "2 of 2");
    browser.shows("#artifacts", "found.zip");
    browser.press("Read the log");
    browser.arrives(&format!("/jobs/{job}/log"));
    browser.shows("main .line", "probing a.example");
    browser.fill("input[name=q]", "nowhere");
    browser.press("Search");
    browser.shows("main", "No line contains this text");
}
