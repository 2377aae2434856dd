//! A request to a callback server appears on its page, as text.

use crate::browser::Browser;
use crate::scene::Hearing;
use crate::stage::{is_marked, mark};
use crate::support::World;

#[test]
fn a_hit_appears_on_the_page_of_its_server_as_text() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.push(&[]);
    let hearing = Hearing::configure(&mut world);
    world.start_daemon();
    world.sync();
    let page = hearing.hear(&world);
    browser.sign_in(&world);
    browser.open(&world, "/projects/main");
    browser.press("oast");
    browser.arrives(&page);
    browser.shows("#interactions", "/first");
    mark(&browser);
    let server = world.json(&["callback", "show", "oast"]);
    let name = server["names"][0].as_str().unwrap();
    hearing.request(name, "PUT /second HTTP/1.1");
    browser.shows("#interactions", "/second");
    assert!(is_marked(&browser), "the page was not loaded again");

    browser.click("#interactions tbody a");
    browser.shows("main pre", "X-Note: <b onclick=alert(1)>bold</b>");
    assert_eq!(browser.count("main pre b"), 0);
    assert_eq!(browser.count("main pre a"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    browser.open(&world, &page);
    browser.choose("#filter-type", "dns");
    browser.press("Filter");
    browser.shows("#interactions", "Nothing matches.");
}
