//! The examples' workflows as stories need them.

/// The workflow without its schedules, which would start jobs of their own in a story that is told at that time.
pub(crate) fn without(workflow: &str) -> String {
    let is_schedule = |line: &&str| line.trim_start().starts_with("cron:");
    let lines = workflow.split_inclusive('\n');
    let (schedules, rest): (Vec<_>, Vec<_>) = lines.partition(is_schedule);
    assert!(!schedules.is_empty(), "the workflow has schedules");
    rest.concat()
}
