//! Every bound of this package, with its reason.

use std::time::Duration;

/// Pause after an accept failed for lack of descriptors or memory: long enough to avoid a busy loop, short enough that nobody
/// notices it.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Pause between two warnings that connections are refused.
pub(crate) const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Time for a TLS handshake: some round trips on a slow connection.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Bytes of a head, and of a body that is read ahead: a hundred times an ordinary head. All connections together stay below a
/// gigabyte.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// Time between two checks of the certificate and key: a new pair is in use within ten seconds.
pub(crate) const TLS_CHECK: Duration = Duration::from_secs(4);

/// Longest certificate or key file. A long chain has a few kilobytes, and a wrong path must not fill the memory.
pub(crate) const TLS_FILE_BYTES: u64 = 1024 * 1024;
