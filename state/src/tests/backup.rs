//! Tests backups taken while the daemon runs, and the first start of a restored state.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use model::blob::LinkUse;
use model::decide::{
    Cancel, CreateBlobLink, CreateRegistration, CreateToken, NewToken, PlanDeliveries, Refusal,
    RegenerateToken, RevokeToken, SignIn, SignOut, SignedInBy,
};
use model::limits::REGISTRATION_SWEEP;
use model::restored::{Credential, Ending, UserPart, endings, sorted};
use model::{
    Actor, AuditKind, JobState, MessageId, PlainToken, ProjectId, Projects, Reason, Rights, Scope,
    Scopes, TokenHash, TokenKind, TokenManager, UsedToken, UserId,
};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::everything::failure;
use super::fixture::{Folder, Opened, Seeded, completion, line};
use super::fsck::findings_at;
use crate::audit::tests::entry;
use crate::layout::Layout;
use crate::{AuditEntry, CopyError, LaterAudit, LaterAuditError, State, back_up, restore};

fn never() -> bool {
    false
}

/// Backs up `folder` and restores the backup to a new folder.
fn restored(folder: &Folder) -> Folder {
    let kept = folder.root().with_file_name("backup");
    back_up(folder.root(), &kept, &never).unwrap();
    let restored = folder.empty_twin();
    restore(&kept, restored.root(), &never).unwrap();
    std::fs::remove_dir_all(kept).unwrap();
    restored
}

#[tokio::test]
async fn a_restored_state_is_complete_and_its_running_jobs_have_ended() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let done = opened.running_job(fleet, "build").await;
    opened.store_artifact(done, "report", "zip").await;
    let logs = opened.state.logs();
    logs.append(done, 0, vec![line("one"), line("two")])
        .await
        .unwrap();
    let done = opened.state.complete(completion(done, 2)).await.unwrap();
    let running = opened.running_job(fleet, "build").await;
    let waiting = opened.new_job(fleet, "build").await;
    let mirror = folder.root().join("sources/recon/mirror.git");
    std::fs::create_dir_all(&mirror).unwrap();
    std::fs::write(mirror.join("HEAD"), "ref").unwrap();

    for _ in 0..2 * REGISTRATION_SWEEP {
        let (projects, labels, maker) = (None, None, None);
        let register = CreateRegistration {
            projects,
            labels,
            maker,
        };
        opened.state.submit(register).await.unwrap();
    }

    let mut restored = restored(&folder);
    let made = opened.state.newest_backup();
    assert!(made.is_some());
    assert!(!restored.root().join("sources/recon/mirror.git").exists());
    for _ in 0..2 {
        let opened = restored.open().await;
        assert_eq!(opened.state.newest_backup(), made, "the backup exists");
        let found = opened.state.job(done.id).await.unwrap().unwrap();
        assert_eq!(found, done);
        let zip = opened.state.open_artifact(done.id, "report").await.unwrap();
        assert_eq!(zip.unwrap().read(0, 3).await.unwrap().1, "zip");
        assert_eq!(opened.state.logs().records(done.id).await.unwrap(), 2);
        let lost = opened.state.job(running).await.unwrap().unwrap();
        assert_eq!(lost.state.end().unwrap().reason, Reason::Restored);
        let held = opened.state.job(waiting).await.unwrap().unwrap();
        assert_eq!(held.state, JobState::Scheduled);
        let registrations = opened.state.read(|world| world.registrations().count());
        assert_eq!(registrations, 0, "they may have been used since");
        let now = opened.state.now();
        assert!(opened.state.read(|world| {
            let mut runners = world.runners();
            runners.all(|runner| runner.session.expires_at <= now)
        }));
        opened.close();
    }
    // Only the first start after a restore ends jobs. Jobs that start later keep running.
    let opened = restored.open().await;
    opened.claim(fleet, waiting).await;
    opened.close();
    let opened = restored.open().await;
    let job = opened.state.job(waiting).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Running { .. }));
    let gone = opened.state.complete(completion(running, 0)).await;
    assert!(matches!(
        gone,
        Err(crate::CompleteError::Submit(crate::SubmitError::Refused(
            Refusal::JobOver { .. }
        )))
    ));
}

/// The message that the only channel begins, and whether it may be a repeat.
async fn begun(opened: &Opened) -> (MessageId, bool) {
    let plan = PlanDeliveries { at_start: false };
    let channel = opened.state.submit(plan).await.unwrap().remove(0);
    let sending = channel.sending.as_ref().unwrap();
    (sending.message, sending.is_repeated)
}

#[tokio::test]
async fn what_waited_for_a_channel_in_the_backup_is_sent_again_and_marked() {
    let (folder, opened, fleet) = Folder::prepared().await;
    opened.make_channel().await;
    let failed = opened.running_job(fleet, "check").await;
    opened.state.complete(failure(failed)).await.unwrap();
    let mut waiting = restored(&folder);
    // The daemon goes on: what is in the backup is sent.
    let (message, is_repeated) = begun(&opened).await;
    assert!(!is_repeated);
    let mut sending = restored(&folder);
    opened.close();

    let opened = waiting.open().await;
    assert!(begun(&opened).await.1, "it may have been sent before");
    opened.close();
    let opened = sending.open().await;
    let start = PlanDeliveries { at_start: true };
    opened.state.submit(start).await.unwrap();
    assert_eq!(begun(&opened).await, (message, true));
    opened.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backup_has_the_whole_log_of_a_job_that_ends_meanwhile() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let (job, cancelled) = (
        opened.running_job(fleet, "build").await,
        opened.running_job(fleet, "build").await,
    );
    let logs = opened.state.logs();
    for job in [job, cancelled] {
        logs.append(job, 0, vec![line("one")]).await.unwrap();
    }
    let kept = folder.root().with_file_name("backup");
    let copied = kept.join(Layout::log(job).as_str());
    let other = kept.join(Layout::log(cancelled).as_str());
    let (has_ended, handle) = (AtomicBool::new(false), Handle::current());
    // Folders are copied in alphabetical order, so this file is copied after the logs.
    let last = Path::new("last");
    std::fs::create_dir(folder.root().join(last)).unwrap();
    std::fs::write(folder.root().join(last).join("file"), "text").unwrap();
    // Called before each piece of each file.
    let meanwhile = || {
        let is_copied = |log: &Path| log.metadata().is_ok_and(|log| log.len() > 0);
        if is_copied(&copied) && is_copied(&other) && !has_ended.swap(true, Ordering::SeqCst) {
            handle.block_on(async {
                for job in [job, cancelled] {
                    let more = vec![line("two"), line("three")];
                    logs.append(job, 1, more).await.unwrap();
                }
                opened.state.complete(completion(job, 3)).await.unwrap();
                let cancel = Cancel {
                    job: cancelled,
                    actor: Actor::Daemon,
                };
                opened.state.submit(cancel).await.unwrap();
            });
        }
        false
    };
    tokio::task::block_in_place(|| back_up(folder.root(), &kept, &meanwhile).unwrap());
    assert!(has_ended.into_inner());

    let mut restored = folder.empty_twin();
    restore(&kept, restored.root(), &never).unwrap();
    std::fs::remove_dir_all(restored.root().join(last)).unwrap();
    let again = restored.open().await;
    for job in [job, cancelled] {
        let found = again.state.job(job).await.unwrap();
        assert_eq!(found, opened.state.job(job).await.unwrap());
        assert_eq!(again.state.logs().records(job).await.unwrap(), 3);
    }
    again.close();
    let found = findings_at(restored.root()).unwrap();
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn backup_refuses_a_used_folder_and_restore_needs_a_backup() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.close();
    let (root, twin) = (folder.root(), folder.empty_twin());
    let nothing = back_up(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(nothing, Err(CopyError::NoState { .. })));
    assert!(!twin.root().exists());
    let beside = root.parent().unwrap();
    let full = back_up(root, beside, &never);
    assert!(matches!(full, Err(CopyError::NotEmpty { .. })));
    let other_name = beside.join("other-name");
    std::os::unix::fs::symlink(root, &other_name).unwrap();
    for inside in [
        root.to_owned(),
        root.join("x"),
        root.join("x/y"),
        other_name.join("x"),
    ] {
        let endless = back_up(root, &inside, &never);
        assert!(
            matches!(endless, Err(CopyError::Inside { .. })),
            "{}",
            inside.display()
        );
    }
    std::fs::remove_file(other_name).unwrap();
    assert!(
        !root.join("x").exists(),
        "a refused backup wrote to the state"
    );
    let nothing = restore(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(nothing, Err(CopyError::NotABackup { .. })));
    let backup = root.with_file_name("backup");
    back_up(root, &backup, &never).unwrap();
    let into_itself = restore(&backup, &backup.join("sub/state"), &never);
    assert!(matches!(into_itself, Err(CopyError::Inside { .. })));
    let stopped = back_up(root, twin.root(), &|| true);
    assert!(matches!(stopped, Err(CopyError::Stopped)));
    let unfinished = restore(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(unfinished, Err(CopyError::NotABackup { .. })));
    assert!(!root.join("journal/HOLD").exists());
}

/// An audited handle to the state, for the user request `request`.
fn by_a_person(opened: &Opened, request: u128) -> State {
    opened.state.audited(AuditEntry {
        request: Uuid::from_u128(request),
        ..entry("ada")
    })
}

async fn made(opened: &Opened, name: &str, scope: Scope) -> NewToken {
    let create = CreateToken {
        name: name.to_owned(),
        scopes: Scopes::from_iter([scope]),
        projects: Projects::All,
        life: None,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    };
    by_a_person(opened, 1).submit(create).await.unwrap()
}

async fn regenerate(opened: &Opened, token: &NewToken, request: u128) {
    let regenerate = RegenerateToken {
        token: token.token.id,
        overlap: TimeDelta::zero(),
        life: None,
        by: TokenManager::owner(),
        ends_by: None,
    };
    let state = by_a_person(opened, request);
    state.end_secret(token.token.id, regenerate).await.unwrap();
}

async fn revoke(opened: &Opened, token: model::TokenId, request: u128) {
    let by = TokenManager::owner();
    let state = by_a_person(opened, request);
    state
        .end_secret(token, RevokeToken { token, by })
        .await
        .unwrap();
}

fn summaries(endings: &[Ending]) -> Vec<(&str, AuditKind)> {
    let one = |it: &'_ Ending| it.because.map(|(kind, _)| kind).unwrap();
    endings
        .iter()
        .map(|it| (it.name.as_str(), one(it)))
        .collect()
}

#[tokio::test]
async fn credentials_revoked_since_the_backup_are_ended_after_a_restore() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    let first = opened.state.read(|world| sorted(world)[0].id);
    let revoked = made(&opened, "revoked", Scope::JobRead).await;
    let before = made(&opened, "renewed before", Scope::JobRead).await;
    let renewed = made(&opened, "renewed", Scope::JobRead).await;
    regenerate(&opened, &before, 2).await;
    let sign_in = SignIn {
        by: SignedInBy::token(UsedToken {
            token: before.token.id,
            secret: opened
                .state
                .read(|world| world.token(before.token.id).unwrap().hash),
        }),
        is_device: false,
        device: "Firefox".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    let session = opened.state.submit(sign_in).await.unwrap().session.id;
    let backup = folder.root().with_file_name("backup");
    back_up(folder.root(), &backup, &never).unwrap();

    revoke(&opened, revoked.token.id, 3).await;
    regenerate(&opened, &renewed, 4).await;
    let user = UserId::OWNER;
    let sign_out = SignOut { user, session };
    by_a_person(&opened, 5).submit(sign_out).await.unwrap();
    made(&opened, "another admin", Scope::Admin).await;
    revoke(&opened, first, 6).await;
    // The state is still open, so the last changes may only be in the journal.
    let newer = folder.root();
    let audit = LaterAudit::read(newer, &backup).unwrap();
    assert!(!audit.is_cut && audit.unreadable == 0);

    let mut twin = folder.empty_twin();
    restore(&backup, twin.root(), &never).unwrap();
    let again = twin.open().await;
    let ended = again
        .state
        .read(|world| endings(world, &audit.later, false));
    let expected = [
        ("revoked", AuditKind::TokenRevoked),
        ("renewed", AuditKind::TokenRegenerated),
        ("Firefox", AuditKind::SignedOut),
        ("initial admin", AuditKind::TokenRevoked),
    ];
    assert_eq!(summaries(&ended), expected);
    let secret = PlainToken::random(TokenKind::Personal, &mut Seeded(3));
    let request = Uuid::from_u128(7);
    let ending = again.state.end_credentials(&ended, request, &secret);
    ending.await.unwrap();
    again.state.read(|world| {
        let mut left: Vec<_> = sorted(world).iter().map(|token| &*token.name).collect();
        left.sort_unstable();
        assert_eq!(left, ["initial admin", "renewed before"]);
        assert_eq!(world.sessions().count(), 0);
        assert!(world.token(first).is_none());
        assert!(world.token_of(&secret.hash()).is_some());
    });
    again.close();
    let text = std::fs::read_to_string(twin.root().join("initial-admin-token")).unwrap();
    assert_eq!(TokenHash::of(text.trim()), secret.hash());
    let found = findings_at(twin.root()).unwrap();
    assert!(found.is_empty(), "{found:?}");

    // The next restore of the same backup finds these endings in the audit log of the restored state.
    opened.close();
    let mut third = folder.empty_twin();
    restore(&backup, third.root(), &never).unwrap();
    let later = LaterAudit::read(twin.root(), &backup).unwrap().later;
    let again = third.open().await;
    let ended = again.state.read(|world| endings(world, &later, false));
    let names: Vec<_> = ended.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    again.close();

    // A copy of the audit folder is enough, and unreadable lines are counted.
    let copy = folder.root().with_file_name("copy");
    std::fs::create_dir(&copy).unwrap();
    let days = std::fs::read_dir(newer.join("audit")).unwrap();
    for day in days {
        let day = day.unwrap().path();
        let text = std::fs::read_to_string(&day).unwrap();
        let text = text.replacen("{\"at\"", "{'at'", 1);
        std::fs::write(copy.join(day.file_name().unwrap()), text).unwrap();
    }
    let copied = LaterAudit::read(&copy, &backup).unwrap();
    assert_eq!((copied.later, copied.unreadable), (audit.later, 1));
    let nothing = folder.root().with_file_name("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let none = LaterAudit::read(&nothing, &backup);
    assert!(matches!(none, Err(LaterAuditError::NoLog { .. })));
}

#[tokio::test]
async fn what_has_ended_with_another_credential_is_no_error() {
    let (_folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    let user = UserId::OWNER;
    let link = CreateBlobLink {
        project: ProjectId::of_source(&"recon".parse().unwrap()),
        path: "a/b".parse().unwrap(),
        use_for: LinkUse::Get,
        life: TimeDelta::days(1),
        token: None,
        user: Some(user),
    };
    let link = opened.state.submit(link).await.unwrap().link.id;
    let credentials = [
        Credential::OfUser(user, UserPart::Sessions),
        Credential::Link(link),
    ];
    let endings = credentials.map(|credential| Ending {
        credential,
        name: String::new(),
        because: None,
    });
    let secret = PlainToken::random(TokenKind::Personal, &mut Seeded(3));
    let request = Uuid::from_u128(7);
    let ending = opened.state.end_credentials(&endings, request, &secret);
    ending.await.unwrap();
    opened.close();
}

#[tokio::test]
async fn an_owner_who_becomes_administrator_again_has_the_new_token_only() {
    let (_folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    let user = UserId::OWNER;
    made(&opened, "old", Scope::Admin).await;
    let epoch = opened.state.read(|world| world.user(user).unwrap().epoch);
    let sign_in = SignIn {
        by: SignedInBy::Person {
            user,
            epoch,
            signed_in_at: None,
        },
        is_device: true,
        device: "laptop".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    opened.state.submit(sign_in).await.unwrap();
    let endings = [Ending {
        credential: Credential::OfUser(user, UserPart::Administrator),
        name: String::new(),
        because: None,
    }];
    let secret = PlainToken::random(TokenKind::Personal, &mut Seeded(3));
    let request = Uuid::from_u128(7);
    let ending = opened.state.end_credentials(&endings, request, &secret);
    ending.await.unwrap();
    opened.state.read(|world| {
        let owner = world.user(user).unwrap();
        assert!(owner.is_active() && owner.is_administrator && owner.password().is_none());
        assert_eq!(world.sessions().count(), 0);
        let tokens: Vec<_> = world.tokens().map(|token| token.hash).collect();
        assert_eq!(tokens, [secret.hash()]);
    });
    opened.close();
}
