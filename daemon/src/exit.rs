//! The exit codes of `everscand`, documented in `docs/operating.md`.

/// Stopped as asked.
pub(crate) const STOPPED: u8 = 0;
/// Anything that has no code of its own.
pub(crate) const FAILED: u8 = 1;
/// `fsck` found something.
pub(crate) const FINDINGS: u8 = 1;
/// Wrong arguments or configuration; `fsck` could not do what was asked.
pub(crate) const USAGE: u8 = 2;
/// Another daemon has the state folder.
pub(crate) const STATE_IN_USE: u8 = 10;
/// The state folder was written by a newer program.
pub(crate) const NEWER_FORMAT: u8 = 11;
/// The state folder is damaged, or is no state folder.
pub(crate) const STATE_UNUSABLE: u8 = 12;
/// The address cannot be listened on.
pub(crate) const ADDRESS: u8 = 13;
/// The disk failed while committing, or while stopping: what is on it is known after the next start.
pub(crate) const COMMIT_FAILED: u8 = 14;
/// The disk is full, so that the daemon cannot start, or has stopped with its files behind the journal.
pub(crate) const DISK_FULL: u8 = 15;
/// A file or folder of the state was removed, moved or replaced while the daemon ran.
pub(crate) const STATE_PULLED_AWAY: u8 = 16;
/// A demonstration, backup or restore was ended by Ctrl-C. This code and the next are what a shell makes of the signals.
pub(crate) const INTERRUPTED: u8 = 130;
/// The same by SIGTERM.
pub(crate) const TERMINATED: u8 = 143;
