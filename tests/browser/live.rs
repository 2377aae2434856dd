//! A job that is watched to its end without a reload, and a job that is retried.

use crate::browser::Browser;
use crate::stage::{is_marked, mark};
use crate::support::World;

#[test]
fn the_log_and_state_of_an_open_job_update_live() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    let gates = ["first", "second", "third"].map(|name| world.path(name));
    let workflow = format!(
        "scans:\n  slow:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: |\n          \
         echo the first line\n          \
         until [ -e {} ]; do sleep 0.05; done\n          \
         echo the second line\n          \
         until [ -e {} ]; do sleep 0.05; done\n      - run: echo the last line\n  \
         later:\n    on: {{ dispatch: {{}} }}\n    retry: {{ attempts: 1, backoff: 1h }}\n    steps:\n      - run: exit 1\n  \
         again:\n    on: {{ dispatch: {{}} }}\n    retry: {{ attempts: 1, backoff: 1s }}\n    steps:\n      - run: |\n          \
         [ -e {ran} ] || {{ touch {ran}; exit 1; }}\n          \
         until [ -e {} ]; do sleep 0.05; done\n",
        gates[0].display(),
        gates[1].display(),
        gates[2].display(),
        ran = world.path("ran").display(),
    );
    world.init_repository();
    world.push(&[("slow.yaml", Some(&workflow))]);
    world.start_daemon();
    world.sync();
    browser.sign_in(&world);

    let job = world.dispatch("slow", "slow", &[]);
    browser.open(&world, &format!("/jobs/{job}"));
    mark(&browser);
    browser.shows("#head", "scheduled");
    browser.shows("#log", "No output yet");
    world.start_runner(1);
    browser.shows("#head", "running");
    browser.shows("#log .line", "the first line");
    browser.shows("#steps", "1 of 2");

    // A selected line does not change while lines are added.
    browser.run(
        "const text = document.querySelector('#log .line .t').firstChild;
         getSelection().selectAllChildren(text.parentNode);",
        vec![],
    );
    std::fs::write(&gates[0], "").unwrap();
    browser.shows("#log .line", "the second line");
    let selected = browser.run("return getSelection().toString()", vec![]);
    assert_eq!(selected, "the first line");
    browser.shows("#head", "running");
    // Typed and chosen values stay while the page is updated.
    browser.fill("#log-text", "line");
    browser.shows("#log-hits", "1 of 2");

    std::fs::write(&gates[1], "").unwrap();
    browser.shows("#head", "succeeded");
    browser.shows("#steps", "2 of 2");
    browser.shows("#log-foot", "3 lines");
    browser.until(
        "the announcement for screen readers",
        "return document.getElementById('announcements').textContent === 'Job of slow is succeeded'",
        vec![],
    );
    browser.shows("#log .line", "the last line");
    browser.shows("#log-hits", "1 of 3");
    assert_eq!(browser.value("#log-text"), "line");
    assert_eq!(browser.count("#log-text:focus"), 1);
    assert_eq!(browser.text("#log mark"), "line");
    assert!(is_marked(&browser));

    // A failed job with a pending retry is not listed under "Needs you".
    let later = world.dispatch("slow", "later", &[]);
    browser.open(&world, &format!("/jobs/{later}"));
    browser.shows("#head", "failed");
    browser.open(&world, "/");
    browser.shows("#needs", "attempt 2 of 2");
    assert_eq!(browser.count("#needs .state.failed"), 0);
    browser.click(&format!("#needs a[href='/jobs/{later}']"));
    browser.arrives(&format!("/jobs/{later}"));

    // A failed job, and its retry.
    let first = world.dispatch("slow", "again", &[]);
    browser.open(&world, &format!("/jobs/{first}"));
    browser.shows("#head", "failed");
    let retry = world.json(&["job", "show", &first])["retried_by"].clone();
    let retry = retry.as_str().unwrap();
    browser.click(&format!("#head .facts a[href='/jobs/{retry}']"));
    browser.arrives(&format!("/jobs/{retry}"));
    browser.shows("#head .facts", "2 of 2");
    browser.shows("#log", "No output yet");
    std::fs::write(&gates[2], "").unwrap();
    browser.shows("#head", "succeeded");
    browser.shows("#log", "The job wrote no output");
    browser.click(&format!("#head .facts a[href='/jobs/{first}']"));
    browser.arrives(&format!("/jobs/{first}"));
}
