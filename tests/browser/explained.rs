//! Explanations on pages: why a scan does not run, why a job waits, and how two revisions differ.

use crate::browser::Browser;
use crate::stage::{self, PROBE, REPORT, SITE};

#[test]
fn pages_say_why_a_scan_does_not_run_why_a_job_waits_and_how_revisions_differ() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);

    browser.open(&world, REPORT);
    browser.shows("#past", "It never ran");
    browser.shows("#now .clause", "false");
    browser.shows("#now .clause code", "scans.probe.is_available()");

    let job = world.dispatch("site", "probe", &["target=a.example"]);
    browser.open(&world, PROBE);
    browser.shows("#now", "scheduled");
    browser.shows("#now", "It waits: no runner of this project is registered.");
    browser.click(&format!("#now a[href='/jobs/{job}']"));
    browser.arrives(&format!("/jobs/{job}"));
    browser.shows("#head", "scheduled");
    browser.shows("[aria-labelledby=why-title]", "dispatch");
    browser.shows("#head .lead", "runner");

    let changed = SITE
        .replace("echo reported", "echo reported twice")
        .replace("          note: {}\n", "");
    world.push(&[("site.yaml", Some(&changed))]);
    world.sync();
    browser.open(&world, "/workflows/main/site/-/revisions");
    browser.click("main a[href='/workflows/main/site/-/revisions/2']");
    browser.arrives("/workflows/main/site/-/revisions/2");
    browser.shows("[aria-labelledby=file-title] .line", "echo reported twice");
    browser.press("Compare");
    browser.arrives("/workflows/main/site/-/revisions/2?against=1");
    browser.shows("[aria-labelledby=difference-title] h3", "probe changed");
    browser.shows("[aria-labelledby=difference-title] li", "input note");
    browser.shows("[aria-labelledby=difference-title] h3", "report changed");
    browser.shows("[aria-labelledby=difference-title] del", "echo reported");
    browser.shows(
        "[aria-labelledby=difference-title] ins",
        "echo reported twice",
    );
}
