//! Every page on a phone.

use crate::browser::Browser;
use crate::pages::pages;

#[test]
fn no_page_scrolls_sideways_on_a_phone_and_the_browser_has_nothing_to_complain_about() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let pages = pages();
    browser.resize(390, 844);
    browser.open(&pages.world, "/login");
    assert_eq!(too_wide(&browser), "", "/login");
    browser.sign_in(&pages.world);
    for (_, address) in &pages.addresses {
        browser.open(&pages.world, address);
        assert_eq!(browser.place(), *address);
        assert_eq!(too_wide(&browser), "", "{address}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{address}");
    }
    browser.open(&pages.world, "/nowhere");
    browser.shows("main", "There is no such page");
    assert_eq!(too_wide(&browser), "", "/nowhere");
}

/// The elements that make the page wider than its window, unless they scroll by themselves; empty if it is not.
fn too_wide(browser: &Browser) -> String {
    let script = "const root = document.documentElement;
        if (root.scrollWidth <= root.clientWidth) return '';
        const wide = [...document.body.querySelectorAll('*')]
            .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1);
        return `${root.scrollWidth} pixels: `
            + wide.slice(0, 20).map((element) => element.outerHTML.slice(0, 80)).join('\\n')";
    let found = browser.run(script, vec![]);
    found.as_str().unwrap().to_owned()
}
