//! Ends the demonstration's programs with the demonstration, even if it is killed.
//!
//! The demonstration puts its process id into a variable of its programs. Each program asks the system for a signal at
//! the end of that process. On systems without this feature, the programs end only if the demonstration ends normally.

pub(crate) const VARIABLE: &str = "EVERSCAN_DEMO_PROCESS";

/// Asks for the signal if there is a process to end with. Returns false if that process is already gone.
pub(crate) fn hold() -> bool {
    let Ok(starter) = std::env::var(VARIABLE) else {
        return true;
    };
    ask_for_signal();
    // The process may have ended before the request, and then no signal comes.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    parent.is_some_and(|parent| parent == starter)
}

#[cfg(target_os = "linux")]
fn ask_for_signal() {
    use rustix::process::{Signal, set_parent_process_death_signal};

    // If the kernel refuses, the demonstration runs without it.
    let _refused = set_parent_process_death_signal(Some(Signal::TERM));
}

#[cfg(not(target_os = "linux"))]
fn ask_for_signal() {}
