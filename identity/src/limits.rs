//! Every bound of the package, with its reason.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Characters of a password. From 15 on, a password needs no rules about its characters (NIST SP 800-63B).
pub const PASSWORD_CHARS: RangeInclusive<usize> = 15..=256;

pub const SALT_BYTES: usize = 16;

/// Memory of a hash in KiB, and how often it is passed over: the smallest cost that OWASP recommends for argon2id.
pub(crate) const HASH_KIB: u32 = 19 * 1024;
pub(crate) const HASH_PASSES: u32 = 2;

/// Wrong passwords for one account, or from one known browser, before the first delay. People try their other passwords.
pub(crate) const FREE_GUESSES: u32 = 5;

/// The same for one network, which many people may share.
pub(crate) const FREE_GUESSES_OF_NETWORK: u32 = 20;

/// The first delay. Each further wrong password doubles it.
pub(crate) const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay: 2,880 guesses a day, hopeless for 15 characters, and no lockout for the person.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How long it takes until one wrong password is forgotten.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(10 * 60);

/// Accounts, networks and browsers whose wrong passwords are counted: about two megabytes. Only hashed guesses are counted, so
/// one thread cannot fill this before it is forgotten.
pub(crate) const COUNTED: usize = 10_000;

/// Characters of a name that count. No user has a longer name.
pub(crate) const NAME_CHARS: usize = 64;

/// Hashes that wait, of each kind of place. One more would wait for some seconds.
pub(crate) const WAITING: usize = 16;

/// How long a caller should wait who got no place.
pub(crate) const NO_PLACE: Duration = Duration::from_secs(2);

/// Hashes at once, however many cores there are. Each takes 19 MiB.
pub(crate) const AT_ONCE: usize = 8;

/// The lowest priority: a hash never takes time from the threads that commit and answer.
pub(crate) const NICE: i32 = 19;
