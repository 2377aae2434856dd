//! People: from an invitation to the first job, and a sign-out that reaches another browser.

use crate::browser::Browser;
use crate::stage::{self, PROBE, is_marked, mark};
use crate::support::World;

const PASSWORD: &str = "five words that nobody guesses";

/// Invites an operator of the project with the page of users, and returns the path of the invitation.
fn invite(browser: &Browser, world: &World, name: &str) -> String {
    browser.sign_in(world);
    browser.click("nav.rail a[href='/users']");
    browser.fill("input[name=name]", name);
    browser.fill("input[name=roles]", "main=operator");
    browser.press("Make the user");
    browser.shows("main h1", name);
    let link = browser.text("pre.once code");
    link.strip_prefix(world.url()).unwrap().to_owned()
}

fn accept(browser: &Browser, world: &World, link: &str) {
    browser.open(world, link);
    browser.fill("input[name=password]", PASSWORD);
    browser.fill("input[name=again]", PASSWORD);
    browser.press("Set the password");
    browser.arrives("/");
}

fn sign_in(browser: &Browser, world: &World, name: &str) {
    browser.open(world, "/login");
    browser.fill("input[name=user]", name);
    browser.fill("input[name=password]", PASSWORD);
    browser.press("Sign in");
    browser.arrives("/");
}

#[test]
fn an_invited_operator_starts_the_first_job_and_is_offered_nothing_more() {
    let (Some(admin), Some(kim)) = (Browser::start(), Browser::start()) else {
        return;
    };
    let world = stage::without_runner();
    let link = invite(&admin, &world, "kim");

    kim.open(&world, &link);
    kim.shows("main", "You are kim");
    kim.fill("input[name=password]", PASSWORD);
    kim.fill("input[name=again]", "another one, by mistake");
    kim.press("Set the password");
    kim.shows("main .error", "must be the same");
    kim.fill("input[name=password]", PASSWORD);
    kim.fill("input[name=again]", PASSWORD);
    kim.press("Set the password");
    kim.arrives("/");
    kim.shows("nav.rail .foot", "kim");

    kim.open(&world, PROBE);
    kim.press("Dispatch");
    kim.fill("textarea[name='inputs.target']", "a.example");
    kim.press("Start the job");
    let job = kim.arrives_below("/jobs/");
    let shown = world.json(&["job", "show", "-j", &job]);
    assert_eq!(shown["state"], "scheduled");
    // An operator cancels jobs, but does not remove them.
    kim.appears(&format!("form[action='/jobs/{job}/cancel']"));
    assert_eq!(kim.count("nav.rail a[href='/users']"), 0);
    kim.open(&world, "/projects/main");
    kim.shows("main h1", "main");
    assert_eq!(kim.count("main form"), 0);
    kim.press("Members");
    kim.shows("#main table", "operator");
    assert_eq!(kim.count("main form"), 0);
    kim.open(&world, "/users");
    kim.shows("main h1", "");
    assert_eq!(kim.count("main table"), 0);

    // The link works once.
    let other = Browser::start().unwrap();
    other.open(&world, &link);
    other.shows("main [role=alert]", "it was used, has expired");
    sign_in(&other, &world, "kim");
}

#[test]
fn a_person_who_signs_out_everywhere_is_signed_out_in_another_browser() {
    let (Some(here), Some(there)) = (Browser::start(), Browser::start()) else {
        return;
    };
    let world = stage::without_runner();
    let link = invite(&there, &world, "kim");
    accept(&here, &world, &link);
    here.open(&world, "/jobs");
    mark(&here);
    sign_in(&there, &world, "kim");

    there.open(&world, "/settings");
    there.shows("[aria-labelledby=sessions-title]", "this one");
    assert_eq!(there.count("[aria-labelledby=sessions-title] tbody tr"), 2);
    there.press("Sign out everywhere…");
    there.press("Sign out everywhere");
    there.arrives("/login");
    here.shows("#connection", "You are signed out");
    assert!(is_marked(&here));
}
