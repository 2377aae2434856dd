//! The exit codes of `everscand`, documented in `docs/operating.md`.

/// Stopped as requested.
pub(crate) const STOPPED: u8 = 0;
/// Any error without its own code.
pub(crate) const FAILED: u8 = 1;
/// `fsck` found something.
pub(crate) const FINDINGS: u8 = 1;
/// Wrong arguments or configuration, or `fsck` could not check or repair.
pub(crate) const USAGE: u8 = 2;
/// Another daemon uses the state folder.
pub(crate) const STATE_IN_USE: u8 = 10;
/// A newer program wrote the state folder.
pub(crate) const NEWER_FORMAT: u8 = 11;
/// The state folder is damaged, or is no state folder.
pub(crate) const STATE_UNUSABLE: u8 = 12;
/// The daemon cannot listen on the address.
pub(crate) const ADDRESS: u8 = 13;
/// The disk failed during a commit or while stopping. The next start finds out which changes are on it.
pub(crate) const COMMIT_FAILED: u8 = 14;
/// The disk is full: the daemon cannot start, or it stopped before its files caught up with the journal.
pub(crate) const DISK_FULL: u8 = 15;
/// Something removed, moved or replaced a file or folder of the state while the daemon ran.
pub(crate) const STATE_PULLED_AWAY: u8 = 16;
/// Ctrl-C ended a demonstration, backup or restore. Shells report this code and the next for the signals.
pub(crate) const INTERRUPTED: u8 = 130;
/// SIGTERM ended a demonstration, backup or restore.
pub(crate) const TERMINATED: u8 = 143;
