//! Checks and hashes passwords: first the delays, then the place, then the hash.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use tokio::sync::oneshot;

use crate::browser::KnownBrowser;
use crate::delays::{Counted, GuessDelays};
use crate::limits::{HASH_KIB, HASH_PASSES, NAME_CHARS, NO_PLACE, SALT_BYTES};
use crate::password::{Password, PasswordHash};
use crate::turns::{Place, Turns};

/// The passwords of a daemon.
pub struct Passwords {
    delays: Mutex<GuessDelays>,
    turns: Arc<Turns>,
    /// Checked for users without a password and for unknown names, so that the answer takes as long. It matches nothing.
    nobody: PasswordHash,
}

/// A sign-in with a password.
pub struct Guess<'a> {
    /// The name as it was sent.
    pub name: &'a str,
    /// The hash of the user's password. None for an unknown name, and for users that cannot sign in with a password.
    pub hash: Option<&'a PasswordHash>,
    pub password: String,
    pub network: IpAddr,
    /// The cookie of a browser from which somebody signed in before, as it was sent.
    pub browser: Option<&'a str>,
}

impl fmt::Debug for Guess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Guess");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no user with this name and password")]
    Wrong,
    /// After wrong passwords. The password was not checked.
    #[error("too many wrong passwords")]
    Delayed(Duration),
    /// The password was not checked.
    #[error("too many sign-ins at the same time")]
    NoPlace(Duration),
}

const BUSY: Refused = Refused::NoPlace(NO_PLACE);

impl Passwords {
    /// `random` makes a hash that matches nothing. It must be secret, or anybody could make the cookie of a known browser for
    /// unknown names.
    pub fn new(random: [u8; SALT_BYTES + 32]) -> Self {
        let (salt, hash) = random.split_at(SALT_BYTES);
        let (salt, hash) = (BASE64.encode(salt), BASE64.encode(hash));
        let nobody = format!("$argon2id$v=19$m={HASH_KIB},t={HASH_PASSES},p=1${salt}${hash}");
        Self {
            delays: Mutex::default(),
            turns: Arc::default(),
            nobody: PasswordHash::stored(nobody),
        }
    }

    /// Checks a password, and returns the browser if its user has signed in from it before.
    ///
    /// # Errors
    /// If the password is wrong, or cannot be checked now.
    pub async fn check(
        &self,
        guess: Guess<'_>,
        now: Instant,
    ) -> Result<Option<KnownBrowser>, Refused> {
        let hash = guess.hash.unwrap_or(&self.nobody);
        let browser = guess.browser;
        let browser = browser.and_then(|cookie| KnownBrowser::parse(cookie, hash));
        let name: String = guess.name.chars().take(NAME_CHARS).collect();
        let (place, counted) = match browser {
            Some(browser) => (Place::User(name), vec![Counted::Browser(browser)]),
            None => (
                Place::Network(guess.network),
                vec![Counted::Account(name), Counted::Network(guess.network)],
            ),
        };
        let checked = {
            let mut delays = self.delays();
            let wait = delays.wait(&counted, now);
            if !wait.is_zero() {
                return Err(Refused::Delayed(wait));
            }
            let (hash, password) = (hash.clone(), guess.password);
            let checked = self.work(place, move || hash.is_of(&password))?;
            delays.begin(&counted, now);
            checked
        };
        let is_right = checked.await.map_err(|_| BUSY)? && guess.hash.is_some();
        if !is_right {
            return Err(Refused::Wrong);
        }
        self.delays().was_right(&counted, now);
        Ok(browser)
    }

    /// Hashes the new password of a user.
    ///
    /// # Errors
    /// If it cannot be hashed now.
    pub async fn hash(
        &self,
        user: &str,
        password: Password,
        salt: [u8; SALT_BYTES],
    ) -> Result<PasswordHash, Refused> {
        let place = Place::User(user.to_owned());
        let hashed = self.work(place, move || PasswordHash::of(&password, salt))?;
        let hash = hashed.await.map_err(|_| BUSY)?;
        hash.map_err(|error| {
            tracing::warn!(%error, "a password was not hashed");
            BUSY
        })
    }

    /// Does costly work in turn. Its result is dropped if nobody waits for it.
    fn work<T: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Refused> {
        let (sender, receiver) = oneshot::channel();
        let work = move |taken| {
            // The caller may have gone.
            if !sender.is_closed() {
                let result = work();
                drop(taken);
                drop(sender.send(result));
            }
        };
        match self.turns.add(place, Box::new(work)) {
            true => Ok(receiver),
            false => Err(BUSY),
        }
    }

    fn delays(&self) -> MutexGuard<'_, GuessDelays> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
