//! Sessions of one token in two browsers.

use crate::browser::Browser;
use crate::stage::{self, is_marked, mark};

#[test]
fn signing_out_everywhere_updates_an_open_page_in_another_browser() {
    let (Some(here), Some(there)) = (Browser::start(), Browser::start()) else {
        return;
    };
    let world = stage::without_runner();
    here.sign_in(&world);
    there.sign_in(&world);
    here.open(&world, "/jobs?scan=probe");
    mark(&here);
    world.dispatch("site", "probe", &["target=a.example"]);
    here.shows("#jobs", "scheduled");

    there.open(&world, "/settings");
    there.shows("[aria-labelledby=sessions-title]", "this one");
    there.press("Sign out everywhere…");
    there.press("Sign out everywhere");
    there.arrives("/login");

    here.shows("#connection", "You are signed out");
    here.shows("#jobs", "scheduled");
    assert!(is_marked(&here));
    let sign_in = "/login?next=%2Fjobs%3Fscan%3Dprobe";
    here.appears("#connection a[href='/jobs?scan=probe']");

    // A sign-in in another tab also signs this tab in. It stays signed in when the other tab is closed.
    let page = here.tabs().pop().unwrap();
    let other = here.new_tab();
    here.open(&world, sign_in);
    here.fill("input[name=token]", &world.token().unwrap());
    here.press("Sign in");
    here.arrives("/jobs?scan=probe");
    here.go_to_tab(&page);
    here.until(
        "no bar",
        "return document.getElementById('connection').hidden",
        vec![],
    );
    here.go_to_tab(&other);
    here.close_tab();
    here.go_to_tab(&page);
    let job = world.dispatch("site", "probe", &["target=b.example"]);
    here.appears(&format!("#job-{job}"));
    assert!(is_marked(&here));
}
