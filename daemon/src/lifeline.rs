//! Ends the demonstration's programs together with the demonstration, even if it is killed.
//!
//! The demonstration puts its process id into a variable of its programs. Each program asks the system for a signal when that
//! process ends. On systems without this feature, the programs end only if the demonstration ends normally.

pub(crate) const VARIABLE: &str = "EVERSCAN_DEMO_PROCESS";

/// Asks for the signal if the variable is set. Returns false if the demonstration has already ended.
pub(crate) fn hold() -> bool {
    let Ok(starter) = std::env::var(VARIABLE) else {
        return true;
    };
    ask_for_signal();
    // The process may have ended before the request. Then no signal arrives.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    parent.is_some_and(|parent| parent == starter)
}

#[cfg(target_os = "linux")]
fn ask_for_signal() {
    use rustix::process::{Signal, set_parent_process_death_signal};

    // If the kernel refuses, the program runs without the signal.
    let _refused = set_parent_process_death_signal(Some(Signal::TERM));
}

#[cfg(not(target_os = "linux"))]
fn ask_for_signal() {}
