//! Guesses against real hashes, at times that the tests choose.

use std::sync::LazyLock;

use futures_util::FutureExt;

use super::*;
use crate::limits::FREE_GUESSES;

const RIGHT: &str = "correct horse battery";

static HASH: LazyLock<PasswordHash> = LazyLock::new(|| {
    let password = Password::parse(RIGHT.to_owned()).unwrap();
    PasswordHash::of(&password, [1; SALT_BYTES]).unwrap()
});

fn passwords() -> Passwords {
    Passwords::new([3; SALT_BYTES + 32])
}

fn guess<'a>(name: &'a str, password: &str, network: u8) -> Guess<'a> {
    Guess {
        name,
        hash: (name == "anna").then_some(&*HASH),
        password: password.to_owned(),
        network: [192, 0, 2, network].into(),
        browser: None,
    }
}

#[tokio::test]
async fn the_right_password_is_accepted_and_a_new_hash_too() {
    let (passwords, now) = (passwords(), Instant::now());
    let right = passwords.check(guess("anna", RIGHT, 1), now).await;
    assert_eq!(right, Ok(None));
    let wrong = passwords.check(guess("anna", "wrong", 1), now).await;
    assert_eq!(wrong, Err(Refused::Wrong));
    let new = Password::parse("another horse battery".to_owned()).unwrap();
    let new = passwords.hash("anna", new, [2; SALT_BYTES]).await.unwrap();
    let changed = Guess {
        hash: Some(&new),
        ..guess("anna", "another horse battery", 1)
    };
    assert_eq!(passwords.check(changed, now).await, Ok(None));
}

#[tokio::test]
async fn unknown_names_get_the_same_answers_after_the_same_number_of_guesses() {
    let now = Instant::now();
    let mut answers = [Vec::new(), Vec::new()];
    for (answers, name) in answers.iter_mut().zip(["anna", "nobody"]) {
        let passwords = passwords();
        for n in 0..FREE_GUESSES + 2 {
            let network = u8::try_from(n).unwrap();
            answers.push(passwords.check(guess(name, "wrong", network), now).await);
        }
    }
    assert_eq!(answers[0], answers[1]);
    let refused = Err(Refused::Delayed(Duration::from_secs(1)));
    assert_eq!(answers[0].last(), Some(&refused));
}

/// Both are checked against a hash with the same parameters, which are the cost.
#[tokio::test]
async fn unknown_names_and_users_without_a_password_cost_as_much() {
    let passwords = passwords();
    for name in ["anna", "nobody"] {
        let answer = passwords.check(guess(name, "wrong", 0), Instant::now());
        assert_eq!(answer.await, Err(Refused::Wrong));
    }
    let cost = format!("$argon2id$v=19$m={HASH_KIB},t={HASH_PASSES},p=1$");
    assert!(passwords.nobody.as_str().starts_with(&cost));
}

#[tokio::test]
async fn a_delayed_guess_is_not_checked_and_never_locks_the_account() {
    let (passwords, now) = (passwords(), Instant::now());
    for n in 0..=FREE_GUESSES {
        let network = u8::try_from(n).unwrap();
        let wrong = passwords.check(guess("anna", "wrong", network), now).await;
        assert_eq!(wrong, Err(Refused::Wrong));
    }
    let early = passwords.check(guess("anna", RIGHT, 100), now).await;
    assert_eq!(early, Err(Refused::Delayed(Duration::from_secs(1))));
    let later = now + Duration::from_secs(1);
    let right = passwords.check(guess("anna", RIGHT, 100), later).await;
    assert_eq!(right, Ok(None));
    let wrong = passwords.check(guess("anna", "wrong", 100), later).await;
    assert_eq!(wrong, Err(Refused::Wrong), "the account begins anew");
}

#[tokio::test]
async fn a_known_browser_has_a_place_and_a_delay_of_its_own() {
    let (passwords, now) = (passwords(), Instant::now());
    let browser = KnownBrowser::new(uuid::Uuid::from_u128(1));
    let cookie = browser.cookie(&HASH);
    let known = |password| Guess {
        browser: Some(&cookie),
        ..guess("anna", password, 1)
    };
    // Guesses from many networks take all places, and the account's delay is long.
    let networks = (0..100).map(|n| passwords.check(guess("anna", "wrong", n), now));
    let networks: Vec<_> = networks.map(Box::pin).collect();
    let mut networks = futures_util::future::join_all(networks);
    assert!((&mut networks).now_or_never().is_none());
    assert_eq!(passwords.check(known(RIGHT), now).await, Ok(Some(browser)));
    let answers = networks.await;
    let checked = answers.iter().filter(|it| **it == Err(Refused::Wrong));
    assert!(checked.count() <= 6, "the delay of the account applies");
    for _ in 0..=FREE_GUESSES {
        let wrong = passwords.check(known("wrong"), now).await;
        assert_eq!(wrong, Err(Refused::Wrong));
    }
    let delayed = passwords.check(known(RIGHT), now).await;
    assert_eq!(delayed, Err(Refused::Delayed(Duration::from_secs(1))));
}

#[tokio::test]
async fn nobody_can_make_the_cookie_of_a_known_browser_without_the_hash() {
    let (passwords, now) = (passwords(), Instant::now());
    let cookie = KnownBrowser::new(uuid::Uuid::from_u128(1)).cookie(&HASH);
    let forged = Guess {
        browser: Some(&cookie),
        ..guess("nobody", RIGHT, 1)
    };
    assert_eq!(passwords.check(forged, now).await, Err(Refused::Wrong));
    let own = passwords.nobody.clone();
    assert!(KnownBrowser::parse(&cookie, &own).is_none());
}
