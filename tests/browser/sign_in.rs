//! The sign-in: a refused token, a valid token, and the way back to the requested page.

use crate::browser::Browser;
use crate::support::World;

#[test]
fn a_refused_token_shows_an_error_and_a_valid_token_opens_the_requested_page() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.start_daemon();

    browser.open(&world, "/jobs?state=failed");
    browser.arrives("/login?next=%2Fjobs%3Fstate%3Dfailed");
    browser.fill("input[name=token]", "wrong");
    browser.press("Sign in");
    browser.shows("main", "This token is not valid");
    assert_eq!(browser.value("input[name=token]"), "");
    let described = "const field = document.querySelector('input[name=token][aria-invalid=true]');
        return field.getAttribute('aria-describedby').split(' ')
            .map((id) => document.getElementById(id).innerText).join(' ')";
    let described = browser.run(described, vec![]);
    assert!(
        described
            .as_str()
            .unwrap()
            .contains("This token is not valid"),
        "{described}"
    );

    browser.fill("input[name=token]", &world.token().unwrap());
    browser.press("Sign in");
    browser.arrives("/jobs?state=failed");
    browser.shows("main", "No job matches");

    browser.click("nav.rail form button");
    browser.arrives("/login");
    browser.open(&world, "/jobs");
    browser.arrives("/login?next=%2Fjobs");
}
