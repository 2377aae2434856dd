//! Programs that end with the one that started them, even when it is killed and can say nothing any more.
//!
//! The demonstration names itself in a variable of its programs; they ask the system for a signal at its end. Where the
//! system cannot do that, only an end in order takes them along.

/// The process to end with.
pub(crate) const VARIABLE: &str = "EVERSCAN_DEMO_PROCESS";

/// Asks for the signal where there is a process to end with; false when that one has gone already.
pub(crate) fn hold() -> bool {
    let Ok(starter) = std::env::var(VARIABLE) else {
        return true;
    };
    ask_for_signal();
    // It may have ended before we asked, and then no signal comes.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    parent.is_some_and(|parent| parent == starter)
}

#[cfg(target_os = "linux")]
fn ask_for_signal() {
    use rustix::process::{Signal, set_parent_process_death_signal};

    // A kernel that refuses leaves us without; the demonstration runs all the same.
    let _refused = set_parent_process_death_signal(Some(Signal::TERM));
}

#[cfg(not(target_os = "linux"))]
fn ask_for_signal() {}
