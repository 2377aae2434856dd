//! The form that starts a job: typed values survive a refusal, and a valid form leads to its job.

use crate::browser::Browser;
use crate::stage::{self, PROBE, SITE};

const TARGET: &str = "textarea[name='inputs.target']";
const NOTE: &str = "textarea[name='inputs.note']";
const DEEP: &str = "input[type=checkbox][name='inputs.deep']";

#[test]
fn typed_values_survive_a_refusal_and_a_valid_form_leads_to_its_job() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    browser.open(&world, PROBE);
    browser.press("Dispatch");
    browser.arrives(&format!("{PROBE}/dispatch"));
    browser.shows(
        "form .hint[id$='target-hint']",
        "What to probe. An empty field",
    );
    browser.fill(TARGET, "a.example\nb.example & <c>");
    browser.fill(NOTE, "only once");
    browser.click(DEEP);
    browser.shows(".count", "25 of 65,535 characters");

    // Meanwhile an input is removed from the workflow.
    world.push(&[("site.yaml", Some(&SITE.replace("          note: {}\n", "")))]);
    world.sync();
    browser.press("Start the job");
    browser.shows("main [role=alert]", "inputs.note");
    assert_eq!(browser.value(TARGET), "a.example\nb.example & <c>");
    assert_eq!(browser.count(NOTE), 0);
    assert_eq!(browser.count(&format!("{DEEP}:checked")), 1);

    browser.press("Start the job");
    let job = browser.arrives_below("/jobs/");
    browser.shows("[aria-labelledby=inputs-title] dd", "b.example & <c>");
    let inputs = &world.json(&["job", "show", "-j", &job])["inputs"];
    assert_eq!(inputs["target"], "a.example\nb.example & <c>");
    assert_eq!(inputs["deep"], true);

    // The form again, filled with the inputs of this job.
    browser.press("Run with changes");
    browser.arrives(&format!("{PROBE}/dispatch?job={job}"));
    assert_eq!(browser.value(TARGET), "a.example\nb.example & <c>");
    assert_eq!(browser.count(&format!("{DEEP}:checked")), 1);
}

#[test]
fn an_input_may_have_as_many_characters_as_the_daemon_takes() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    browser.open(&world, &format!("{PROBE}/dispatch"));
    paste(&browser, 65_536);
    browser.shows(".count", "65,536 of 65,535 characters");
    browser.press("Start the job");
    assert_eq!(browser.count(&format!("{TARGET}:invalid")), 1);
    assert!(world.jobs_of("site", "probe").is_empty());

    paste(&browser, 65_535);
    browser.shows(".count", "65,535 of 65,535 characters");
    browser.press("Start the job");
    let job = browser.arrives_below("/jobs/");
    assert_eq!(world.jobs_of("site", "probe"), [job]);
}

/// Fills the first input with this many characters. Half of them have several bytes.
fn paste(browser: &Browser, characters: usize) {
    let text: String = "aäb🦀".chars().cycle().take(characters).collect();
    let script = "const field = document.querySelector(arguments[0]);
        field.value = arguments[1];
        field.dispatchEvent(new Event('input', { bubbles: true }))";
    browser.run(script, vec![TARGET.into(), text.into()]);
}
