//! The examples' workflows for stories.

/// The workflow without its schedules, which could start jobs during a story.
pub(crate) fn without(workflow: &str) -> String {
    let is_schedule = |line: &&str| line.trim_start().starts_with("cron:");
    let lines = workflow.split_inclusive('\n');
    let (schedules, rest): (Vec<_>, Vec<_>) = lines.partition(is_schedule);
    assert!(!schedules.is_empty(), "the workflow has schedules");
    rest.concat()
}
