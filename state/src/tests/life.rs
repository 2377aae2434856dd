//! Tests opening, changing and reading a state, and its files.

use std::collections::BTreeMap;

use model::decide::{CreateToken, Dispatch, Once, Refusal};
use model::{
    IdempotencyKey, Inputs, JobState, Made, Projects, Reason, Rights, Scopes, TokenId, UserId,
};
use store::{Key, OpenErrorKind};
use workflow::InputValue;

use super::fixture::Folder;
use super::picture::picture;
use crate::layout::Layout;
use crate::{OpenError, SubmitError};

#[tokio::test]
async fn reopening_a_state_changes_nothing() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    opened.make_owner().await;
    let done = opened.running_job(fleet, "build").await;
    opened.complete(done).await;
    opened.running_job(fleet, "build").await;
    opened.new_job(fleet, "check").await;
    opened.set_values().await;
    let before = opened.state.read(picture);
    let second = folder.try_open().await.err().unwrap();
    assert!(matches!(second, OpenError::Store(it) if it.kind() == OpenErrorKind::InUse));
    opened.close();

    let opened = folder.open().await;
    assert_eq!(opened.state.read(picture), before);
    let job = opened.state.job(done).await.unwrap().unwrap();
    assert_eq!(job.state.end().unwrap().reason, Reason::StepsSucceeded);
    assert!(
        opened.new_job(fleet, "check").await > done,
        "ids do not increase"
    );
}

#[tokio::test]
async fn a_job_goes_from_dispatch_to_its_history() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let id = opened.new_job(fleet, "build").await;
    assert_eq!(
        opened.state.job(id).await.unwrap().unwrap().state,
        JobState::Scheduled
    );
    folder.advance(1_000);
    let claimed = opened.claim(fleet, id).await;
    assert_eq!(
        opened.claim(fleet, id).await,
        claimed,
        "a repeated claim gets a different answer"
    );

    opened.store_artifact(id, "report", "zip").await;
    let stored = opened.state.open_artifact(id, "report").await.unwrap();
    let stored = stored.unwrap();
    let (stored, piece) = stored.read(1, 2).await.unwrap();
    assert_eq!(piece, "ip");
    assert!(
        stored.read(2, 2).await.is_err(),
        "a read beyond the third byte succeeded"
    );
    assert!(
        opened
            .state
            .open_artifact(id, "other")
            .await
            .unwrap()
            .is_none()
    );

    let job = opened.complete(id).await;
    assert_eq!(job.state.name(), "succeeded");
    assert!(
        opened.state.read(|world| world.job(id).is_none()),
        "a finished job is still live"
    );
    assert_eq!(opened.state.job(id).await.unwrap().unwrap(), job);
    let head = opened.head(fleet, "build");
    assert_eq!((head.totals.succeeded, head.latest_job), (1, id));
    assert_eq!(head.successes[0].digests["report"], "d1");
    opened.close();
    let history = std::fs::read_to_string(
        folder
            .root()
            .join(Layout::history(&fleet.scan("build"), 0).as_str()),
    )
    .unwrap();
    assert!(history.contains(&id.to_string()) && history.lines().count() == 1);
}

#[tokio::test]
async fn a_repeated_request_gets_the_job_of_the_first_request() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let caller = TokenId::from_uuid(uuid::Uuid::from_u128(7));
    let asked = |what: &[u8]| Some(IdempotencyKey::new(caller.uuid(), "dispatch", "key", what));
    let first = Dispatch {
        idempotency: asked(b"a"),
        ..opened.dispatch(fleet, "build")
    };
    let job = opened.state.submit(first.clone()).await.unwrap();
    opened.close();

    let opened = folder.open().await;
    assert_eq!(opened.state.submit(first).await.unwrap(), job);
    let other = Dispatch {
        idempotency: asked(b"b"),
        ..opened.dispatch(fleet, "build")
    };
    assert!(matches!(
        opened.state.submit(other).await,
        Err(SubmitError::Refused(_))
    ));
}

#[tokio::test]
async fn a_token_is_made_once_for_its_key_even_across_a_restart() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let caller = TokenId::from_uuid(uuid::Uuid::from_u128(7));
    let create = || Once {
        command: CreateToken {
            name: "ci".to_owned(),
            scopes: Scopes::admin(),
            life: None,
            projects: Projects::All,
            owner: UserId::OWNER,
            by: UserId::OWNER,
            granted_by: Rights::admin(),
            ends_by: None,
        },
        key: Some(IdempotencyKey::new(caller.uuid(), "tokens", "key", b"a")),
    };
    let token = opened.state.submit(create()).await.unwrap().token.id;
    opened.close();

    let opened = folder.open().await;
    let made = Made::Token(token);
    match opened.state.submit(create()).await {
        Err(SubmitError::Refused(refusal)) => assert_eq!(refusal, Refusal::AlreadyDone { made }),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a second token was made"),
    }
}

#[tokio::test]
async fn a_change_that_is_too_large_is_refused_and_nothing_changes() {
    let (_folder, opened, fleet) = Folder::prepared().await;
    let note = InputValue::Text("x".repeat(store::limits::BATCH_BYTES));
    let inputs = Inputs::Inline(BTreeMap::from([("note".to_owned(), note)]));
    let dispatch = Dispatch {
        inputs,
        ..opened.dispatch(fleet, "build")
    };
    let before = opened.state.read(picture);
    assert!(matches!(
        opened.state.submit(dispatch).await,
        Err(SubmitError::TooLarge)
    ));
    assert_eq!(opened.state.read(picture), before);
    opened.new_job(fleet, "build").await;
}

#[tokio::test]
async fn the_journal_never_holds_the_first_token() {
    let mut folder = Folder::new();
    let opened = folder.open().await;
    let first = opened.make_owner().await;
    let known = opened
        .state
        .read(|world| world.tokens().map(|token| (token.id, token.hash)).next());
    let (id, hash) = known.unwrap();
    assert_eq!(hash, first.hash());
    opened.state.settled().await.unwrap();
    let journal = std::fs::read_dir(folder.root().join("journal")).unwrap();
    let holds = |bytes: &[u8], text: &str| {
        let mut pieces = bytes.windows(text.len());
        pieces.any(|piece| piece == text.as_bytes())
    };
    let mut knows_hash = false;
    for file in journal {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!holds(&bytes, first.reveal()));
        knows_hash |= holds(&bytes, &id.to_string());
    }
    assert!(knows_hash, "the journal does not contain the commit");
    let file = folder.root().join("initial-admin-token");
    let kept = || std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept(), format!("{}\n", first.reveal()));
    opened.close();

    // Without its record, the file makes nobody admin. An older version could leave this after a power failure.
    std::fs::remove_file(folder.path(&Layout::token(id))).unwrap();
    let opened = folder.open().await;
    let second = opened.make_owner().await;
    let hashes: Vec<_> = opened
        .state
        .read(|world| world.tokens().map(|token| token.hash).collect());
    assert_eq!(hashes, [second.hash()]);
    assert!(first != second);
    opened.state.settled().await.unwrap();
    assert_eq!(kept(), format!("{}\n", second.reveal()));
    opened.close();
}

#[tokio::test]
async fn damaged_and_misplaced_records_are_set_aside_and_the_others_are_served() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let (damaged, good) = (
        opened.new_job(fleet, "build").await,
        opened.new_job(fleet, "build").await,
    );
    let stranger = opened.register("two").await;
    opened.close();
    let path = |key: Key| folder.path(&key);
    let job = path(Layout::job(damaged));
    let changed = std::fs::read_to_string(&job)
        .unwrap()
        .replace("\"scan\": \"build\"", "\"scan\": \"check\"");
    std::fs::write(&job, changed).unwrap();
    std::fs::rename(
        path(Layout::runner(stranger)),
        folder.root().join("runners/elsewhere.json"),
    )
    .unwrap();
    // Without its index the store reads all record files.
    folder.remove_index();

    let opened = folder.open().await;
    let jobs: Vec<_> = opened
        .state
        .read(|world| world.jobs().map(|job| job.id).collect());
    assert_eq!(jobs, [good]);
    let runners: Vec<_> = opened
        .state
        .read(|world| world.runners().map(|runner| runner.id).collect());
    assert_eq!(runners, [fleet.runner]);
    assert!(opened.state.job(damaged).await.unwrap().is_none());
    opened.state.settled().await.unwrap();
    for key in [Layout::job(damaged).as_str(), "runners/elsewhere.json"] {
        assert!(!folder.root().join(key).exists(), "{key}");
        assert!(folder.root().join("quarantine").join(key).exists(), "{key}");
    }
    opened.claim(fleet, good).await;
    opened.complete(good).await;
}
