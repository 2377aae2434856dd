//! Tests a clock that is set, and a daemon that dies before it has adjusted the expiry times.

use chrono::TimeDelta;
use model::blob::LinkUse;
use model::decide::{
    CreateBlobLink, CreateRegistration, CreateToken, Dispatch, FollowClock, ForgetClocks,
    NoteClocks, NoteUse, StoreExpiry,
};
use model::limits::{REGISTRATION, RUNNER_SESSION, WORKER_SESSION};
use model::{
    Clock, Holder, IdempotencyKey, JobId, JobState, Projects, Rights, Scope, TokenId, UserId, World,
};
use uuid::Uuid;

use super::everything::make_every_kind_of_record;
use super::fixture::{Fleet, Folder, Opened};
use super::fsck::findings;
use crate::fsck::{Code, Event, Severity, repair};
use crate::layout::Layout;

const LIFE: TimeDelta = TimeDelta::days(1);
const LATER: TimeDelta = TimeDelta::minutes(10);

/// Changes of the clock.
fn steps() -> [TimeDelta; 4] {
    [5, -5, 400 * 24, -400 * 24].map(TimeDelta::hours)
}

/// Makes one record of every kind that expires. Returns the job with the idempotency key.
async fn begin(opened: &Opened, fleet: Fleet, key: &str) -> JobId {
    let state = &opened.state;
    create_token(opened).await;
    state.submit(CreateRegistration::default()).await.unwrap();
    opened.running_job(fleet, "build").await;
    let blob = opened.store_blob("notes.json", "{}").await;
    let link = CreateBlobLink {
        project: blob.project,
        path: blob.path,
        use_for: LinkUse::Get,
        life: LIFE,
        token: Some(TokenId::from_uuid(Uuid::nil())),
        user: None,
    };
    state.submit(link).await.unwrap();
    dispatch(opened, fleet, key).await
}

async fn create_token(opened: &Opened) -> TokenId {
    let create = CreateToken {
        name: "ci".to_owned(),
        scopes: std::iter::once(Scope::JobRead).collect(),
        life: Some(LIFE),
        projects: Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    };
    opened.state.submit(create).await.unwrap().token.id
}

async fn dispatch(opened: &Opened, fleet: Fleet, key: &str) -> JobId {
    let caller = TokenId::from_uuid(Uuid::nil());
    let dispatch = Dispatch {
        idempotency: Some(IdempotencyKey::new(caller.uuid(), "dispatch", key, b"body")),
        ..opened.dispatch(fleet, "build")
    };
    opened.state.submit(dispatch).await.unwrap()
}

/// The remaining time of each record that expires, by the world's time.
fn left(opened: &Opened, folder: &Folder) -> Vec<TimeDelta> {
    opened.state.read(|world| {
        let time = world.time(folder.clock.steady());
        let mut ends: Vec<_> = world.tokens().filter_map(|it| it.expires_at).collect();
        ends.extend(world.registrations().map(|it| it.expires_at));
        ends.extend(world.runners().map(|it| it.session.expires_at));
        ends.extend(world.blob_links().map(|it| it.expires_at));
        ends.extend(world.running().map(|job| match &job.state {
            JobState::Running { run } => run.expires_at,
            state => panic!("{state:?}"),
        }));
        ends.into_iter().map(|end| end - time).collect()
    })
}

/// The remaining times of the records of [`begin`] after `passed`.
fn spans(passed: TimeDelta) -> Vec<TimeDelta> {
    [LIFE, REGISTRATION, RUNNER_SESSION, LIFE, WORKER_SESSION]
        .map(|span| span - passed)
        .to_vec()
}

/// A crashed copy for a process that starts later. Its clock is `ahead` of the current clock.
fn crashed(folder: &Folder, ahead: TimeDelta) -> Folder {
    let crashed = folder.crashed();
    crashed.clock.jump(ahead + LATER);
    crashed
}

/// Stores the adjusted expiry times of the first `holders` records.
async fn keep(opened: &Opened, holders: usize) {
    for holder in opened.state.read(World::holders).into_iter().take(holders) {
        opened.state.submit(StoreExpiry { holder }).await.unwrap();
    }
}

#[tokio::test]
async fn a_start_within_the_hour_after_a_jump_ends_and_repeats_nothing() {
    for by in steps() {
        let (folder, opened, fleet) = Folder::prepared().await;
        let made = begin(&opened, fleet, "k").await;
        folder.clock.jump(by);
        opened.state.submit(NoteClocks).await.unwrap();
        let during = dispatch(&opened, fleet, "during").await;
        opened.state.settled().await.unwrap();
        // The clock stays as it was set, or it is set back.
        for ahead in [TimeDelta::zero(), -by] {
            let mut folder = crashed(&folder, ahead);
            // The first process dies before it stores anything, the second process stores some, and the third process
            // stores all.
            for stored in [0, 3, usize::MAX, 0] {
                let opened = folder.open().await;
                assert_eq!(left(&opened, &folder), spans(LATER), "{by} {ahead}");
                assert_eq!(dispatch(&opened, fleet, "k").await, made, "{by} {ahead}");
                assert_eq!(dispatch(&opened, fleet, "during").await, during);
                keep(&opened, stored).await;
                if stored == usize::MAX {
                    opened.state.submit(ForgetClocks).await.unwrap();
                }
                opened.state.settled().await.unwrap();
                opened.close();
                let found = findings(&folder).into_iter();
                // The copy has different modes.
                let found = found.filter(|finding| finding.code != Code::Mode);
                assert_eq!(found.collect::<Vec<_>>(), []);
            }
            assert!(!folder.path(&Layout::clock()).exists());
        }
        opened.close();
    }
}

#[tokio::test]
async fn a_start_after_a_partly_stored_jump_knows_which_expiry_times_have_moved() {
    for by in steps() {
        let (folder, opened, fleet) = Folder::prepared().await;
        begin(&opened, fleet, "k").await;
        folder.clock.jump(by);
        opened.state.submit(FollowClock).await.unwrap();
        keep(&opened, 3).await;
        opened.state.settled().await.unwrap();
        for ahead in [TimeDelta::zero(), -by] {
            let mut folder = crashed(&folder, ahead);
            let opened = folder.open().await;
            assert_eq!(left(&opened, &folder), spans(LATER), "{by} {ahead}");
            opened.close();
        }
        opened.close();
    }
}

#[tokio::test]
async fn a_jump_that_is_undone_in_the_next_process_moves_all_expiry_times_back() {
    let by = TimeDelta::hours(5);
    let (folder, opened, fleet) = Folder::prepared().await;
    begin(&opened, fleet, "k").await;
    folder.clock.jump(by);
    opened.state.submit(NoteClocks).await.unwrap();
    opened.state.settled().await.unwrap();
    // The second process starts with the wrong clock, which is then corrected.
    let mut second = crashed(&folder, TimeDelta::zero());
    let again = second.open().await;
    let late = create_token(&again).await;
    second.clock.jump(-by);
    again.state.submit(NoteClocks).await.unwrap();
    again.state.settled().await.unwrap();
    let mut third = crashed(&second, TimeDelta::zero());
    let last = third.open().await;
    let time = third.clock.now();
    let end = last
        .state
        .read(|world| world.token(late).unwrap().expires_at);
    assert_eq!(end, Some(time + LIFE - LATER));
    last.state.read(|world| {
        let jobs = world.running().filter_map(|job| job.state.run());
        let ends: Vec<_> = jobs.map(|run| run.expires_at - time).collect();
        assert_eq!(ends, [WORKER_SESSION - LATER - LATER]);
    });
    for opened in [opened, again, last] {
        opened.close();
    }
}

#[tokio::test]
async fn an_expiry_time_of_an_earlier_process_stays_when_its_record_is_written_again() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let token = create_token(&opened).await;
    let end = |opened: &Opened| {
        let token = opened.state.read(|world| world.token(token).cloned());
        token.unwrap().expires_at
    };
    let before = end(&opened);
    opened.close();
    // The clock of a machine without a battery is corrected after the start.
    let by = TimeDelta::days(20_000);
    folder.clock.jump(-by);
    let opened = folder.open().await;
    folder.clock.jump(by);
    opened.state.submit(NoteClocks).await.unwrap();
    let day = folder.clock.now().date_naive();
    opened.state.submit(NoteUse { token, day }).await.unwrap();
    opened.state.settled().await.unwrap();
    let mut crashed = crashed(&folder, TimeDelta::zero());
    let again = crashed.open().await;
    assert_eq!(end(&again), before);
    let holder = Holder::Token(token);
    assert!(!again.state.read(World::holders).contains(&holder));
    again.close();
    opened.close();
}

#[tokio::test]
async fn a_check_reports_no_time_as_damage_and_a_repair_moves_nothing() {
    for by in steps() {
        let (folder, opened, fleet) = Folder::prepared().await;
        make_every_kind_of_record(&opened, fleet).await;
        let before = opened.running_job(fleet, "build").await;
        folder.clock.jump(by);
        for noted in [false, true] {
            opened.running_job(fleet, "check").await;
            let ended = opened.running_job(fleet, "build").await;
            opened.complete(ended).await;
            if !noted {
                opened.state.submit(NoteClocks).await.unwrap();
            }
        }
        opened.complete(before).await;
        opened.close();
        let severe = || {
            let found = findings(&folder).into_iter();
            let severe = found.filter(|finding| finding.severity < Severity::Note);
            severe.collect::<Vec<_>>()
        };
        assert_eq!(severe(), [], "{by}");
        let files = folder.files();
        let mut done = Vec::new();
        let report = &mut |event| match event {
            Event::Done(repair) => done.push(repair),
            Event::Found(_) | Event::Progress(_) | Event::Left(_) => {}
        };
        repair(folder.root(), false, report).await.unwrap();
        assert_eq!(done, [], "{by}");
        assert_eq!(folder.files(), files, "{by}");
    }
}
