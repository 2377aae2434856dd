//! A short log of long lines: each line can be reached, wrapped or not.

use crate::browser::Browser;
use crate::support::World;

const WORKFLOW: &str = r#"
scans:
  wide:
    on: { dispatch: {} }
    steps:
      - run: |
          for number in $(seq 1 60); do printf 'line %s%0300d\n' "$number" 0; done
          printf '\033(Ba \033]8;;https://example.org\033\\link\033]8;;\033\\.\n'
"#;

/// The first request for lines fails, as it does while the daemon is away.
const FAILS_ONCE: &str = "const real = fetch;
    window.fetch = (address, ...more) => {
        if (!/from=0&limit/.test(address)) return real(address, ...more);
        window.fetch = real;
        return Promise.reject(new TypeError('away'));
    };";

#[test]
fn every_line_of_a_wrapped_log_can_be_reached() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::with_workflow("wide.yaml", WORKFLOW);
    let job = world.succeed("wide", "wide", &[]);
    browser.sign_in(&world);
    browser.prepare(FAILS_ONCE);

    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("#log .line[data-n='1']", "line 1000");
    is_in_sight(&browser, 1);
    for line in [12, 30, 31, 45, 58, 61] {
        browser.run("location.hash = `L${arguments[0]}`", vec![line.into()]);
        is_in_sight(&browser, line);
    }
    assert_eq!(browser.text("#log .line[data-n='61'] .t"), "a link.");
    // Scrolling also reaches all lines.
    browser.run(
        "const log = document.getElementById('log');
         window.met = new Set();
         log.scrollTop = 0;
         const look = () => {
             const box = log.getBoundingClientRect();
             for (const line of log.querySelectorAll('.line[data-n]')) {
                 const { top, bottom } = line.getBoundingClientRect();
                 if (top >= box.top - 1 && bottom <= box.bottom + 1) window.met.add(line.dataset.n);
             }
             log.scrollTop += 30;
             requestAnimationFrame(() => requestAnimationFrame(look));
         };
         requestAnimationFrame(() => requestAnimationFrame(look));",
        vec![],
    );
    browser.until("all lines", "return window.met.size === 61", vec![]);

    browser.click("[data-toggles=unwrapped]");
    browser.until(
        "a line that continues beyond the box",
        "const log = document.getElementById('log'); return log.scrollWidth > log.clientWidth + 500",
        vec![],
    );
}

/// Waits until the whole line is within the box of the log.
fn is_in_sight(browser: &Browser, line: u64) {
    let script = "const box = document.getElementById('log').getBoundingClientRect();
        const line = document.querySelector(`#log .line[data-n='${arguments[0]}']`)?.getBoundingClientRect();
        return line?.top >= box.top - 1 && line.bottom <= box.bottom + 1";
    browser.until(&format!("line {line}"), script, vec![line.into()]);
}
