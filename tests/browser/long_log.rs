//! A log of a million lines: a link into it, a search with counts, and its end.

use crate::browser::Browser;
use crate::support::World;

const WORKFLOW: &str = "\
scans:
  count:
    on: { dispatch: {} }
    timeout: 30m
    steps:
      - run: seq -f 'record %.0f' 1 1000000
";

#[test]
fn a_log_of_a_million_lines_opens_at_any_line_and_is_searched_whole() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::with_workflow("long.yaml", WORKFLOW);
    let job = world.dispatch("long", "count", &[]);
    // On a busy machine this takes minutes. The time of the job limits it.
    world.everscan(&["job", "wait", "-j", &job, "--timeout", "30m"]);
    browser.sign_in(&world);

    browser.open(&world, &format!("/jobs/{job}#L777778"));
    browser.shows("#log .marked[data-n='777778']", "record 777778");
    assert!(is_in_sight(&browser, "#log .marked"));
    assert!(browser.count("#log .line") < 100);
    browser.shows("#log-foot", "1,000,000 lines");

    // 99999, and 999990 to 999999.
    browser.fill("#log-text", "record 99999");
    browser.shows("#log-hits", "1 of 11");
    browser.shows("#log .marked[data-n='99999'] mark", "record 99999");
    browser.click("[data-log-action=next]");
    browser.shows("#log-hits", "2 of 11");
    browser.shows("#log .marked[data-n='999990'] mark", "record 99999");
    assert!(is_in_sight(&browser, "#log .marked"));
    let place = "return location.hash";
    assert_eq!(browser.run(place, vec![]), "#L999990");
    browser.fill("#log-text", "record 1000001");
    browser.shows("#log-hits", "none");

    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("#log .line[data-n='1']", "record 1");
    browser.until(
        "no button to follow a finished job",
        "return document.getElementById('log-follow').hidden",
        vec![],
    );
    browser.click("[data-log-action=last]");
    browser.shows("#log .line[data-n='1000000']", "record 1000000");
    assert!(is_in_sight(&browser, "#log .line[data-n='1000000']"));
}

const FAILING: &str = "\
scans:
  fail:
    on: { dispatch: {} }
    steps:
      - run: seq -f 'record %.0f' 1 3000
      - run: |
          echo the cause
          exit 3
      - run: echo never
";

#[test]
fn the_log_of_a_failed_job_opens_at_the_failed_step() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::with_workflow("fail.yaml", FAILING);
    let job = world.dispatch("fail", "fail", &[]);
    assert_eq!(world.finished(&job)["state"], "failed");
    browser.sign_in(&world);
    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("#log .line", "the cause");
    assert!(is_in_sight(&browser, "#log .line.group"));
    assert_eq!(browser.count("#log .marked"), 0);
    assert_eq!(browser.run("return location.hash", vec![]), "");
    // A link to a line still opens at this line.
    browser.open(&world, &format!("/jobs/{job}#L7"));
    browser.shows("#log .marked[data-n='7']", "record 7");
}

/// Whether the element is within the box of the log.
fn is_in_sight(browser: &Browser, css: &str) -> bool {
    let script = "const box = document.getElementById('log').getBoundingClientRect();
        const line = document.querySelector(arguments[0]).getBoundingClientRect();
        return line.top >= box.top - 1 && line.bottom <= box.bottom + 1";
    browser.run(script, vec![css.into()]) == true
}
