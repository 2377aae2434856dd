//! Initial worlds of several stories.

use crate::browser::Browser;
use crate::support::World;

/// A scan that is started by hand, and a scan that follows it.
pub(crate) const SITE: &str = "\
name: Site
scans:
  probe:
    on:
      dispatch:
        inputs:
          target: { required: true, description: What to probe }
          note: {}
          deep: { type: bool, default: 'false' }
    env:
      TARGET: ${{ inputs.target }}
    steps:
      - run: echo \"probing $TARGET\"
      - run: echo \"$TARGET\" > found.txt
    artifacts:
      - name: found
        paths: [found.txt]
  report:
    on: { expr: scans.probe.is_available() }
    steps:
      - run: echo reported
";

pub(crate) const PROBE: &str = "/workflows/main/site/-/scans/probe";
pub(crate) const REPORT: &str = "/workflows/main/site/-/scans/report";

/// A world with a daemon and the workflow `site`, but no runner, so that its jobs wait.
pub(crate) fn without_runner() -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("site.yaml", Some(SITE))]);
    world.start_daemon();
    world.sync();
    world
}

/// Leaves a mark in the page. A reload or another page does not have it.
pub(crate) fn mark(browser: &Browser) {
    browser.run("window.storyMark = true", vec![]);
}

/// True if the page still has the mark.
pub(crate) fn is_marked(browser: &Browser) -> bool {
    browser.run("return window.storyMark === true", vec![]) == true
}
