//! Blobs: conditions, usage, and the lifetime of links.

use chrono::TimeDelta;

use crate::blob::{Blob, BlobCondition, LinkUse};
use crate::decide::{ConfigureSource, CreateBlobLink, MoveBlob, Refusal, RemoveBlob, StoreBlob};
use crate::limits::BLOB_LINKS_OF_PROJECT;
use crate::testing::TestWorld;
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

fn used(test: &TestWorld) -> (u64, u64) {
    let usage = test.world.blob_usage(project());
    (usage.blobs, usage.bytes)
}

#[test]
fn each_change_updates_the_usage_of_the_project() {
    let mut test = TestWorld::new();
    let first = test.run(store("a", 4, None)).unwrap();
    let second = test.run(store("b", 6, None)).unwrap();
    assert_eq!(used(&test), (2, 10));
    let more = test.run(store("c", 1, None)).unwrap_err();
    assert!(matches!(
        more,
        Refusal::QuotaExceeded {
            used: 10,
            maximum: 10,
            wanted: 1
        }
    ));
    let less = test.run(store("a", 2, Some(&first))).unwrap();
    let command = MoveBlob {
        blob: less,
        to: "b".parse().unwrap(),
        before: Some(second),
        condition: BlobCondition::None,
    };
    let moved = test.run(command).unwrap();
    assert_eq!(
        (moved.path.to_string(), used(&test)),
        ("b".to_owned(), (1, 2))
    );
    let remove = RemoveBlob {
        blob: moved,
        condition: BlobCondition::None,
    };
    test.run(remove).unwrap();
    assert_eq!(used(&test), (0, 0));
}

#[test]
fn above_a_lowered_quota_a_project_can_only_shrink() {
    let mut test = TestWorld::new();
    let free = StoreBlob {
        quota: None,
        ..store("a", 40, None)
    };
    let large = test.run(free).unwrap();
    assert!(test.run(store("b", 1, None)).is_err());
    test.run(store("a", 30, Some(&large))).unwrap();
    assert_eq!(used(&test), (1, 30));
}

#[test]
fn a_change_may_have_a_condition_on_the_current_blob() {
    let mut test = TestWorld::new();
    let first = test.run(store("a", 1, None)).unwrap();
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
    let refused = test.run(stale).unwrap_err();
    assert!(matches!(refused, Refusal::BlobChanged { exists: true, .. }));
}

#[test]
fn an_expired_blob_counts_as_absent_and_is_listed_until_it_is_removed() {
    let mut test = TestWorld::new();
    let hour = TimeDelta::hours(1);
    let short = StoreBlob {
        expires_in: Some(hour),
        ..store("a", 1, None)
    };
    let blob = test.run(short).unwrap();
    assert_eq!(blob.expires_at, Some(test.now + hour));
    test.now += hour;
    assert_eq!(test.world.expired_blobs(test.now, 10).len(), 1);
    let again = StoreBlob {
        condition: BlobCondition::Absent,
        ..store("a", 1, Some(&blob))
    };
    test.run(again).unwrap();
    assert!(test.world.expired_blobs(test.now, 10).is_empty());
    assert_eq!(used(&test), (1, 1));
}

#[test]
fn a_link_expires_within_a_week_and_expired_links_are_removed() {
    let mut test = TestWorld::new();
    let create = |life| CreateBlobLink {
        project: project(),
        path: "a".parse().unwrap(),
        use_for: LinkUse::Get,
        life,
        token: Some(TokenId::from_uuid(uuid::Uuid::nil())),
        user: None,
    };
    for life in [TimeDelta::zero(), TimeDelta::days(8)] {
        let refused = test.run(create(life)).unwrap_err();
        assert!(matches!(
            refused,
            Refusal::InvalidField {
                field: "expires_in",
                ..
            }
        ));
    }
    let first = test.run(create(TimeDelta::hours(1))).unwrap();
    let found = test.world.blob_link_of(&first.secret.hash());
    assert_eq!(found, Some(&first.link));
    test.now += TimeDelta::hours(1);
    test.run(create(TimeDelta::days(7))).unwrap();
    assert_eq!(test.world.blob_link(first.link.id), None);
    assert_eq!(test.world.blob_links().count(), 1);
}

#[test]
fn links_of_one_project_leave_room_for_others() {
    let mut test = TestWorld::new();
    let create = |project| CreateBlobLink {
        project,
        path: "a".parse().unwrap(),
        use_for: LinkUse::Get,
        life: TimeDelta::hours(1),
        token: Some(TokenId::from_uuid(uuid::Uuid::nil())),
        user: None,
    };
    test.run(ConfigureSource {
        name: "other".parse().unwrap(),
        url: "/srv/other.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    })
    .unwrap();
    let other = ProjectId::of_source(&"other".parse().unwrap());
    for _ in 0..BLOB_LINKS_OF_PROJECT {
        test.run(create(project())).unwrap();
    }
    let full = Refusal::TooManyBlobLinks {
        links: BLOB_LINKS_OF_PROJECT,
        project: Some("recon".to_owned()),
    };
    assert_eq!(test.run(create(project())).unwrap_err(), full);
    test.run(create(other)).unwrap();
}
