//! Only the keyboard: from the sign-in to a job and its log.

use crate::browser::{Browser, CONTROL, ENTER, ESCAPE, TAB};
use crate::stage;

#[test]
fn every_task_can_be_done_with_the_keyboard() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    let jobs = ["one", "two"]
        .map(|target| world.dispatch("site", "probe", &[&format!("target={target}")]));

    browser.open(&world, "/login");
    tab_to(&browser, "input[name=token]");
    browser.keys(&world.token().unwrap());
    browser.keys(&ENTER.to_string());
    browser.arrives("/");

    // The first element in the tab order skips the menu.
    browser.keys(&TAB.to_string());
    assert_eq!(browser.count("a.skip:focus"), 1);
    browser.keys(&ENTER.to_string());
    browser.until(
        "the content to have the focus",
        "return document.activeElement.id === 'main'",
        vec![],
    );

    browser.keys("gj");
    browser.arrives("/jobs");
    browser.appears(&format!("#job-{}", jobs[1]));
    // One dialog after the other, with no pause between.
    browser.keys(&format!("?{ESCAPE}/"));
    browser.appears("#finder[open]");
    browser.keys(&ESCAPE.to_string());
    browser.until(
        "the finder to close",
        "return !document.getElementById('finder').open",
        vec![],
    );
    browser.keys("j");
    browser.appears(&format!("#job-{} a:focus", jobs[1]));
    // While a row has the focus, a new row is not inserted but announced: on the page, and in the region for screen
    // readers.
    let place = "return document.activeElement.getBoundingClientRect().top";
    let before = browser.run(place, vec![]);
    let third = world.dispatch("site", "probe", &["target=three"]);
    browser.shows("#news", "1 new");
    assert_eq!(browser.text("#announcements"), "1 new");
    assert_eq!(browser.run(place, vec![]), before);
    browser.keys("j");
    browser.appears(&format!("#job-{} a:focus", jobs[0]));
    // A removed row does not take the focus with it, and neither does a moved row.
    browser.open(&world, "/jobs?state=scheduled");
    browser.run("delete Element.prototype.moveBefore", vec![]);
    let first = format!("#job-{} a", jobs[0]);
    let focus = "document.querySelector(arguments[0]).focus()";
    browser.run(focus, vec![first.as_str().into()]);
    world.everscan(&["job", "cancel", "-j", &third]);
    let gone = "return !document.getElementById(`job-${arguments[0]}`)";
    browser.until("the row to go", gone, vec![third.as_str().into()]);
    // A window in the background has no `:focus`.
    let keeps_focus = "return document.activeElement === document.querySelector(arguments[0])";
    assert_eq!(browser.run(keeps_focus, vec![first.into()]), true);
    browser.keys(&ENTER.to_string());
    browser.arrives(&format!("/jobs/{}", jobs[0]));

    browser.keys("?");
    browser.appears("#shortcuts[open]");
    browser.keys(&ESCAPE.to_string());
    browser.until(
        "the list to close",
        "return !document.getElementById('shortcuts').open",
        vec![],
    );

    browser.keys("/");
    assert_eq!(browser.count("#log-text:focus"), 1);
    // A typed letter is not a shortcut.
    browser.keys("gj?");
    assert_eq!(browser.value("#log-text"), "gj?");
    assert_eq!(browser.count("#shortcuts[open]"), 0);

    browser.chord(CONTROL, 'k');
    browser.appears("#finder[open]");
    browser.keys("report");
    browser.shows("#finder-list [aria-selected=true]", "report");
    // Jobs that were created since are found as well.
    browser.keys(&ESCAPE.to_string());
    world.register_runner("younger", 1);
    browser.chord(CONTROL, 'k');
    browser.keys("younger");
    browser.shows("#finder-list [aria-selected=true]", "younger");
    browser.fill("#finder-text", "report");
    browser.shows("#finder-list [aria-selected=true]", "report");
    browser.keys(&ENTER.to_string());
    browser.arrives(stage::REPORT);

    browser.keys("u");
    browser.arrives("/workflows/main/site");
}

/// Presses the tab key until the element has the focus.
fn tab_to(browser: &Browser, css: &str) {
    let focused = format!("{css}:focus");
    for _ in 0..20 {
        if browser.count(&focused) == 1 {
            return;
        }
        browser.keys(&TAB.to_string());
    }
    panic!("{css} cannot be reached");
}
