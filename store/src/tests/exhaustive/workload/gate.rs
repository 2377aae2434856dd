//! Stops the applier at a chosen point.

use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

use super::ROOT;
use crate::disk::Action;

/// While closed, stops the applier before it changes a key.
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
    /// Never stopped.
    steps: ThreadId,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            steps: std::thread::current().id(),
        }
    }

    pub(super) fn set(&self, is_closed: bool) {
        self.state.lock().unwrap().is_closed = is_closed;
        self.changed.notify_all();
    }

    pub(super) fn wait_until_somebody_waits(&self) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_while(state, |state| !state.is_reached);
        drop(waited.unwrap());
    }

    pub(super) fn pass(&self, action: Action, path: &Path) {
        if std::thread::current().id() == self.steps {
            return;
        }
        // Objects are written to `tmp/` without the applier.
        let folders = ["journal", "index", "tmp"];
        let is_key = !folders
            .iter()
            .any(|folder| path.starts_with(Path::new(ROOT).join(folder)));
        let changes = matches!(
            action,
            Action::CreateFile | Action::RemoveFile | Action::Rename
        );
        let mut state = self.state.lock().unwrap();
        while state.is_closed && is_key && changes {
            state.is_reached = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
    }
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    /// True if the applier waits here.
    is_reached: bool,
}

/// Opens the gate on drop.
pub(super) struct Opening<'a>(pub(super) &'a Gate);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
