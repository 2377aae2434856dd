//! Every bound of this package, with its reason.

use std::time::Duration;

/// Pause after a failed accept for lack of descriptors or memory: long enough not to spin, short enough not to be
/// noticed.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for a TLS handshake: some round trips on a slow link.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Bytes of a head, and of a body read ahead: a hundred times an ordinary head. All connections together stay below a
/// gigabyte.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// Time between two checks of the certificate and key: a new pair is in use within ten seconds.
pub(crate) const TLS_CHECK: Duration = Duration::from_secs(4);

/// Longest certificate or key file. A long chain has a few kilobytes, and a wrong path must not fill memory.
pub(crate) const TLS_FILE_BYTES: u64 = 1024 * 1024;
