//! Settings of one browser: the theme, the time zone and the shortcuts.

use serde_json::Value;

use crate::browser::Browser;
use crate::stage;

#[test]
fn the_theme_follows_the_system_until_the_reader_chooses_and_choices_stay() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    browser.prefer("light");
    let light = background(&browser);
    browser.prefer("dark");
    let dark = background(&browser);
    assert_ne!(light, dark);

    browser.open(&world, "/settings");
    browser.choose("#theme", "light");
    browser.choose("#times", "utc");
    browser.choose("#keys", "off");
    has_background(&browser, &light);
    browser.shows("[aria-labelledby=sessions-title] time", "UTC");

    browser.open(&world, "/jobs");
    has_background(&browser, &light);
    browser.keys("?gw");
    assert_eq!(browser.count("#shortcuts[open]"), 0);
    assert_eq!(browser.place(), "/jobs");

    browser.open(&world, "/settings");
    assert_eq!(browser.value("#theme"), "light");
    browser.choose("#theme", "system");
    browser.choose("#keys", "on");
    has_background(&browser, &dark);
    browser.click("main h1");
    browser.keys("gw");
    browser.arrives("/workflows");
}

fn has_background(browser: &Browser, color: &Value) {
    let script =
        "return getComputedStyle(document.documentElement).backgroundColor === arguments[0]";
    browser.until("the background", script, vec![color.clone()]);
}

fn background(browser: &Browser) -> Value {
    browser.run(
        "return getComputedStyle(document.documentElement).backgroundColor",
        vec![],
    )
}
