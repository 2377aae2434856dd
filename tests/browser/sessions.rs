//! Sessions of one token in two browsers.

use crate::browser::Browser;
use crate::stage::{self, is_marked, mark};

#[test]
fn signing_out_everywhere_tells_an_open_page_in_another_browser() {
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
    there.press("Sign out of all devices…");
    there.press("Sign out of all devices");
    there.arrives("/login");

    here.shows("#connection", "You are signed out");
    here.shows("#jobs", "scheduled");
    assert!(is_marked(&here));
    here.click("#connection a");
    here.arrives("/login?next=%2Fjobs%3Fscan%3Dprobe");
    here.fill("input[name=token]", &world.token().unwrap());
    here.press("Sign in");
    here.arrives("/jobs?scan=probe");
}
