//! A daemon is killed and restarted while a page is open.

use crate::browser::Browser;
use crate::stage::{self, is_marked, mark};

#[test]
fn a_page_shows_that_the_daemon_is_away_and_continues_when_it_is_back() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = stage::without_runner();
    browser.sign_in(&world);
    let job = world.dispatch("site", "probe", &["target=a.example"]);
    browser.open(&world, "/jobs");
    browser.appears(&format!("#job-{job}"));
    mark(&browser);

    for _ in 0..2 {
        world.kill_daemon();
        browser.shows("#connection", "Not connected");
        browser.shows("#connection", "Retry in");
        browser.shows(&format!("#job-{job}"), "scheduled");

        world.start_daemon();
        browser.until(
            "no bar",
            "return document.getElementById('connection').hidden",
            vec![],
        );
        let next = world.dispatch("site", "probe", &["target=b.example"]);
        browser.appears(&format!("#job-{next}"));
    }
    world.everscan(&["job", "cancel", "-j", &job]);
    browser.shows(&format!("#job-{job}"), "cancelled");
    assert!(is_marked(&browser));
}
