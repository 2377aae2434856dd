//! Browsers from which a user has signed in before. Each has a cookie that only says this. Its signature is made with the hash
//! of the user's password, so nothing is stored, and a new password makes the cookies of all browsers invalid.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use crate::password::PasswordHash;

/// A browser from which its user has signed in before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KnownBrowser(Uuid);

impl KnownBrowser {
    /// A browser from which somebody signs in now.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The value of the browser's cookie, for the user whose password has this hash.
    pub fn cookie(self, hash: &PasswordHash) -> String {
        let signature = self.signature(hash).finalize().into_bytes();
        format!("{}.{}", self.0.simple(), BASE64.encode(signature))
    }

    /// The browser with this cookie, if the user whose password has this hash has signed in from it.
    pub(crate) fn parse(cookie: &str, hash: &PasswordHash) -> Option<Self> {
        let (id, signature) = cookie.split_once('.')?;
        let browser = Self(id.parse().ok()?);
        let signature = BASE64.decode(signature).ok()?;
        let is_signed = browser.signature(hash).verify_slice(&signature).is_ok();
        is_signed.then_some(browser)
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn signature(self, hash: &PasswordHash) -> Hmac<Sha256> {
        let key = hash.as_str().as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
        mac.update(b"known browser ");
        mac.update(self.0.as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_valid_for_one_browser_and_one_password() {
        let hash = |text: &str| PasswordHash::stored(text.to_owned());
        let browser = KnownBrowser::new(Uuid::from_u128(7));
        let cookie = browser.cookie(&hash("a"));
        assert_eq!(KnownBrowser::parse(&cookie, &hash("a")), Some(browser));
        assert_eq!(KnownBrowser::parse(&cookie, &hash("b")), None);
        let other = KnownBrowser::new(Uuid::from_u128(8)).cookie(&hash("a"));
        let mixed = format!("{}{}", &other[..33], &cookie[33..]);
        for bad in ["", ".", "x.y", &cookie[..33], &cookie[..70], &mixed, "ä.ä"] {
            assert_eq!(KnownBrowser::parse(bad, &hash("a")), None, "{bad}");
        }
    }
}
