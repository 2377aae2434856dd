//! Blobs: what may be replaced, what is counted, and what links are good for.

use chrono::TimeDelta;

use crate::blob::{Blob, BlobCondition, LinkUse};
use crate::decide::{CreateBlobLink, MoveBlob, Refusal, RemoveBlob, StoreBlob};
use crate::testing::House;
use crate::{Actor, ProjectId, TokenId};

fn project() -> ProjectId {
    ProjectId::of_source(&"recon".parse().unwrap())
}

fn store(path: &str, size: u64, before: Option<&Blob>) -> StoreBlob {
    StoreBlob {
        project: project(),
        path: path.parse().unwrap(),
        size,
        sha256: format!("{size:064}"),
        expires_in: None,
        before: before.cloned(),
        condition: BlobCondition::None,
        quota: Some(10),
        actor: Actor::Daemon,
    }
}

fn used(house: &House) -> (u64, u64) {
    let usage = house.world.blob_usage(project());
    (usage.blobs, usage.bytes)
}

#[test]
fn each_change_updates_the_usage_of_the_project() {
    let mut house = House::new();
    let first = house.run(store("a", 4, None)).unwrap();
    let second = house.run(store("b", 6, None)).unwrap();
    assert_eq!(used(&house), (2, 10));
    let more = house.run(store("c", 1, None)).unwrap_err();
    assert!(matches!(
        more,
        Refusal::QuotaExceeded {
            used: 10,
            maximum: 10,
            wanted: 1
        }
    ));
    let less = house.run(store("a", 2, Some(&first))).unwrap();
    let command = MoveBlob {
        blob: less,
        to: "b".parse().unwrap(),
        before: Some(second),
        condition: BlobCondition::None,
    };
    let moved = house.run(command).unwrap();
    assert_eq!(
        (moved.path.to_string(), used(&house)),
        ("b".to_owned(), (1, 2))
    );
    let remove = RemoveBlob {
        blob: moved,
        condition: BlobCondition::None,
    };
    house.run(remove).unwrap();
    assert_eq!(used(&house), (0, 0));
}

#[test]
fn above_a_quota_that_was_lowered_a_project_may_only_shrink() {
    let mut house = House::new();
    let free = StoreBlob {
        quota: None,
        ..store("a", 40, None)
    };
    let large = house.run(free).unwrap();
    assert!(house.run(store("b", 1, None)).is_err());
    house.run(store("a", 30, Some(&large))).unwrap();
    assert_eq!(used(&house), (1, 30));
}

#[test]
fn a_change_may_have_a_condition_on_the_current_blob() {
    let mut house = House::new();
    let first = house.run(store("a", 1, None)).unwrap();
    let sha256 = |text: &str| BlobCondition::Sha256(vec!["x".to_owned(), text.to_owned()]);
    let found = Some(&first);
    for (condition, with, without) in [
        (BlobCondition::None, true, true),
        (BlobCondition::Exists, true, false),
        (BlobCondition::Absent, false, true),
        (sha256(&first.sha256), true, false),
        (sha256("y"), false, false),
    ] {
        assert_eq!(condition.holds(found), with, "{condition:?}");
        assert_eq!(condition.holds(None), without, "{condition:?}");
    }
    let stale = StoreBlob {
        condition: sha256("y"),
        ..store("a", 2, found)
    };
    let refused = house.run(stale).unwrap_err();
    assert!(matches!(
        refused,
        Refusal::BlobChanged {
            sha256: Some(_),
            ..
        }
    ));
}

#[test]
fn an_expired_blob_counts_as_absent_and_is_listed_until_it_is_removed() {
    let mut house = House::new();
    let hour = TimeDelta::hours(1);
    let short = StoreBlob {
        expires_in: Some(hour),
        ..store("a", 1, None)
    };
    let blob = house.run(short).unwrap();
    assert_eq!(blob.expires_at, Some(house.now + hour));
    house.now += hour;
    assert_eq!(house.world.expired_blobs(house.now, 10).len(), 1);
    let again = StoreBlob {
        condition: BlobCondition::Absent,
        ..store("a", 1, Some(&blob))
    };
    house.run(again).unwrap();
    assert!(house.world.expired_blobs(house.now, 10).is_empty());
    assert_eq!(used(&house), (1, 1));
}

#[test]
fn a_link_has_an_end_within_a_week_and_old_ones_go() {
    let mut house = House::new();
    let create = |life| CreateBlobLink {
        project: project(),
        path: "a".parse().unwrap(),
        use_for: LinkUse::Get,
        life,
        token: TokenId::from_uuid(uuid::Uuid::nil()),
    };
    for life in [TimeDelta::zero(), TimeDelta::days(8)] {
        let refused = house.run(create(life)).unwrap_err();
        assert!(matches!(
            refused,
            Refusal::InvalidField {
                field: "expires_in",
                ..
            }
        ));
    }
    let first = house.run(create(TimeDelta::hours(1))).unwrap();
    let found = house.world.blob_link_of(&first.secret.hash());
    assert_eq!(found, Some(&first.link));
    house.now += TimeDelta::hours(1);
    house.run(create(TimeDelta::days(7))).unwrap();
    assert_eq!(house.world.blob_link(first.link.id), None);
    assert_eq!(house.world.blob_links().count(), 1);
}
