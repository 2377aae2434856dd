//! A channel and a rule are added on the page of notifications, and a failure is seen live.

use crate::browser::Browser;
use crate::stage::{is_marked, mark};
use crate::support::World;

const FAILS: &str =
    "scans:\n  broken:\n    on: { dispatch: {} }\n    steps:\n      - run: exit 1\n";

#[test]
fn a_channel_and_a_rule_are_added_and_a_failure_is_seen_live() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.push(&[("fails.yaml", Some(FAILS))]);
    let key = world.path("secret-key").display().to_string();
    world.output("everscand", &["secret-key", "make", &key]);
    world.daemon_key = Some("secret-key".to_owned());
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    browser.sign_in(&world);

    browser.open(&world, "/notifications");
    browser.press("Webhook");
    let form = "/notifications?kind=webhook";
    browser.arrives(form);
    browser.fill("#channel-name", "hook");
    browser.choose("#channel-project", "main");
    browser.fill("#channel-url", "http://127.0.0.1:9/");
    browser.press("Add Webhook");
    browser.shows("main .once", "whsec_");
    // A reload sends no form again.
    browser.arrives(form);
    browser.reload();
    browser.shows("#channels", "nothing sent yet");
    assert_eq!(browser.count("main .once"), 0);

    browser.press("Test");
    for part in [
        "Test of hook",
        "failed",
        "127.0.0.1",
        "an address of this machine",
        "outbound.allow",
    ] {
        browser.shows("main .banner", part);
    }

    browser.fill("#rule-name", "mine");
    browser.choose("#rule-project", "main");
    browser.fill("#rule-channel", "hook");
    browser.press("Preview");
    browser.shows("[aria-labelledby=preview-title]", "Nothing.");
    assert_eq!(browser.value("#rule-channel"), "hook");
    browser.press("Add the rule");
    browser.arrives("/notifications");
    browser.shows("[aria-labelledby=rules-title]", "mine");

    // The answer to a form is kept up to date like any page.
    browser.press("Test");
    browser.shows("main .banner", "failed");
    mark(&browser);
    assert_eq!(browser.count("#bell.danger"), 0);
    let job = world.dispatch("fails", "broken", &[]);
    // The scan fails, and so does the channel.
    browser.shows("#bell.danger", "2");
    browser.shows("#deliveries", "Failed: main/fails broken");
    browser.shows("#channels", "failing");
    assert!(is_marked(&browser));
    assert_eq!(browser.complaints(), Vec::<String>::new());

    browser.press("Preview");
    browser.arrives("/notifications?rule=main%2Fmine");
    browser.shows("[aria-labelledby=preview-title]", "failing");
    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("#head .facts", "to hook, failed");
    browser.open(&world, "/workflows/main/fails/-/scans/broken");
    browser.shows("#now", "to hook, failed");
    browser.click("#bell");
    browser.arrives("/");
    browser.shows("#needs", "broken");
}
