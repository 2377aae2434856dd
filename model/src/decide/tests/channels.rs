//! What a channel may be, and its secret.

use std::sync::Arc;

use super::deliveries::{hook, name, project};
use crate::channel::{Channel, Email, Security, Target};
use crate::decide::{Refusal, ResealChannel, SetChannel};
use crate::moment::SeededEntropy;
use crate::sealing::{SealingKey, SecretValue};
use crate::testing::TestWorld;
use crate::{Change, SealingKeys};

fn webhook(url: &str) -> Target {
    Target::Webhook {
        url: url.to_owned(),
        ca: None,
    }
}

fn email(from: &str, to: &[&str]) -> Email {
    Email {
        host: "mail.example".to_owned(),
        port: 587,
        security: Security::StartTls,
        from: from.to_owned(),
        to: to.iter().map(|&to| to.to_owned()).collect(),
        username: None,
        ca: None,
    }
}

fn mail(from: &str, to: &[&str]) -> Target {
    Target::Email(email(from, to))
}

fn ntfy(server: &str, topic: &str) -> Target {
    Target::Ntfy {
        server: server.to_owned(),
        topic: topic.to_owned(),
        ca: None,
    }
}

/// Sets a channel of the instance. Returns the field that is refused.
fn refused(test: &mut TestWorld, target: Target, secret: Option<&str>) -> Option<&'static str> {
    let set = SetChannel {
        target,
        secret: secret.map(|secret| SecretValue::new(secret.to_owned())),
        ..hook(None, "ops")
    };
    match test.run(set) {
        Ok(_) => None,
        Err(Refusal::InvalidField { field, .. }) => Some(field),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn each_part_of_a_channel_has_its_bounds() {
    let mut test = TestWorld::new();
    let long = format!("https://hook.example/{}", "x".repeat(5000));
    for url in ["", "https://hook.example/\nx", &long] {
        let found = refused(&mut test, webhook(url), Some("whsec_YQ=="));
        assert_eq!(found, Some("url"), "{url}");
    }
    let found = refused(&mut test, mail("", &["b@example.org"]), None);
    assert_eq!(found, Some("from"));
    for to in [
        vec![],
        vec!["b@example.org"; 21],
        vec!["b@example.org\r\nBcc: c@example.org"],
    ] {
        let found = refused(&mut test, mail("a@example.org", &to), None);
        assert_eq!(found, Some("to"), "{to:?}");
    }
    for topic in ["", "a/b", "a b", &"x".repeat(65)] {
        let found = refused(&mut test, ntfy("https://ntfy.example", topic), None);
        assert_eq!(found, Some("topic"), "{topic}");
    }
    let without_tls = Target::Email(Email {
        security: Security::None,
        username: Some("a".to_owned()),
        ..email("a@example.org", &["b@example.org"])
    });
    let found = refused(&mut test, without_tls, Some("hunter2"));
    assert_eq!(found, Some("security"));
    let no_authority = Target::Webhook {
        url: "https://hook.example/".to_owned(),
        ca: Some("a file".to_owned()),
    };
    let found = refused(&mut test, no_authority, Some("whsec_YQ=="));
    assert_eq!(found, Some("ca"));
    assert_eq!(test.world.channels().count(), 0);
    let certificate = format!(
        "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n",
        "MIIB8TCCAZegAwIBAgIUd2VsbCBtYWRlIHVwIGJ5IGhhbmQ\n".repeat(40)
    );
    let authority = Target::Webhook {
        url: "https://hook.example/".to_owned(),
        ca: Some(certificate),
    };
    assert_eq!(refused(&mut test, authority, Some("whsec_YQ==")), None);
}

#[test]
fn a_channel_has_the_secret_that_its_kind_needs() {
    let mut test = TestWorld::new();
    for (target, secret, field) in [
        (Target::Slack, None, Some("secret")),
        (Target::Slack, Some("https://hooks.example/x"), None),
        // Another target loses the secret.
        (Target::Discord, None, Some("secret")),
        (
            mail("a@example.org", &["b@example.org"]),
            Some("hunter2"),
            Some("secret"),
        ),
        (mail("a@example.org", &["b@example.org"]), None, None),
        (ntfy("https://ntfy.example", "t"), None, None),
        (
            ntfy("https://ntfy.example", "t"),
            Some("two\nlines"),
            Some("secret"),
        ),
        (ntfy("https://ntfy.example", "t"), Some(""), Some("secret")),
        (ntfy("https://ntfy.example", "t"), Some("token"), None),
        (webhook("https://hook.example/"), None, Some("secret")),
        (webhook("https://hook.example/"), Some("whsec_YQ=="), None),
        (
            webhook("https://hook.example/"),
            Some("whsec_YQ== whsec_Yg=="),
            None,
        ),
        (
            webhook("https://hook.example/"),
            Some("hush"),
            Some("secret"),
        ),
        (
            webhook("https://hook.example/"),
            Some("whsec_"),
            Some("secret"),
        ),
        (
            webhook("https://hook.example/"),
            Some("whsec_YQ== whsec_hush!"),
            Some("secret"),
        ),
        (webhook("https://hook.example/"), Some(" "), Some("secret")),
    ] {
        let found = refused(&mut test, target.clone(), secret);
        assert_eq!(found, field, "{target:?} {secret:?}");
    }
}

#[test]
fn a_secret_of_an_old_key_is_sealed_with_the_current_key() {
    let mut test = TestWorld::new();
    let set = hook(None, "ops");
    let old = set.key.clone().unwrap();
    let id = test.run(set).unwrap().channel.id;
    let current = SealingKey::random(&mut SeededEntropy::new(10));
    let seal = ResealChannel {
        channel: id,
        keys: SealingKeys::new(current.clone(), vec![old.clone()]),
    };
    assert!(test.run(seal.clone()).unwrap());
    let sealed = test.world.channel_of(None, &name("ops")).unwrap().clone();
    assert_eq!(sealed.sealed_with(), Some(&current.id()));
    let opened = sealed.open(&SealingKeys::from(current)).unwrap().unwrap();
    assert_eq!(opened.reveal(), "whsec_c2VjcmV0");
    let (changes, _) = test.changes(seal.clone()).unwrap();
    assert!(changes.is_empty(), "a repeat changes nothing");

    // A secret that was copied from another channel cannot be opened.
    let mut damaged = Channel::clone(test.world.channel(id).unwrap());
    let other = test.run(hook(None, "other")).unwrap().channel;
    damaged.secret = other.secret.clone();
    test.world
        .apply(&Change::Channel(Arc::new(damaged.clone())));
    assert!(!test.run(seal).unwrap());
    assert_eq!(test.world.channel(id).unwrap().secret, damaged.secret);
}

#[test]
fn another_target_needs_its_secret_again() {
    let mut test = TestWorld::new();
    test.run(hook(project(), "ops")).unwrap();
    let same = SetChannel {
        secret: None,
        ..hook(project(), "ops")
    };
    assert!(test.run(same.clone()).unwrap().channel.secret.is_some());
    let target = webhook("https://elsewhere.example/in");
    let moved = test.run(SetChannel { target, ..same });
    assert!(
        matches!(&moved, Err(Refusal::InvalidField { field, .. }) if *field == "secret"),
        "{moved:?}"
    );
}
