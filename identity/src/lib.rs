//! Verifies who somebody is. Passwords are hashed so slowly that few can be tried, so guesses are delayed before they cost a
//! hash, and a hash waits for its turn. It knows no users: the caller brings the stored hash, or none for an unknown name.

mod browser;
mod delays;
mod limits;
mod password;
mod passwords;
mod turns;

pub use self::browser::KnownBrowser;
pub use self::limits::{PASSWORD_CHARS, SALT_BYTES};
pub use self::password::{BadPassword, Password, PasswordHash};
pub use self::passwords::{Guess, Passwords, Refused};
