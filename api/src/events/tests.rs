//! Tests listeners without a daemon: limits, order, and how they are closed.

use model::{
    Change, Credential, Projects, Runner, RunnerId, Scope, Session, Share, Timestamp, TokenHash,
    TokenId, UsedToken, UserId,
};
use state::Published;

use super::hub::Sender;
use super::*;
use crate::limits::{
    EVENT_TOPICS, LISTENER_COMMITS, PROJECT_LISTENERS, SHARE_LISTENERS, TOPICS_PAUSE,
};

fn published(seq: u64) -> Published {
    removal(seq, 0)
}

/// The commit that removes this runner.
fn removal(seq: u64, runner: u128) -> Published {
    let runner = Change::RunnerRemoved(Arc::new(runner_of(runner, Projects::All)));
    Published {
        seq: Seq(seq),
        changes: Arc::new([runner]),
    }
}

fn runner_of(number: u128, projects: Projects) -> Runner {
    let at = Timestamp::UNIX_EPOCH;
    Runner {
        id: RunnerId::from_uuid(uuid::Uuid::from_u128(number)),
        name: "one".to_owned(),
        labels: Vec::new(),
        exclusive: false,
        projects,
        capacity: 1,
        version: String::new(),
        capabilities: Vec::new(),
        registered_at: at,
        session: Session {
            token: TokenHash::of("x"),
            issued_at: at,
            expires_at: at,
        },
        previous_session: None,
    }
}

fn publish(hub: &Arc<Hub>, published: &Published) {
    let admin = |_: &Principal| Some(Rights::admin());
    hub.listeners().publish(published, admin);
}

fn listen(hub: &Arc<Hub>, job: Option<JobId>) -> Listener {
    listen_to(hub, job, Form::Whole)
}

fn listen_to(hub: &Arc<Hub>, job: Option<JobId>, form: Form) -> Listener {
    let wanted = wanted(TokenId::from_uuid(uuid::Uuid::nil()));
    listen_as(
        hub,
        Wanted {
            job,
            form,
            ..wanted
        },
    )
}

/// A subscription to all events, for this token.
fn wanted(token: TokenId) -> Wanted {
    let principal = Principal {
        name: "listener".to_owned(),
        share: Share::User(UserId::from_uuid(token.uuid())),
        credential: Credential::Token(UsedToken {
            token,
            secret: TokenHash::of("x"),
        }),
    };
    Wanted {
        principal: Arc::new(principal),
        only_project: None,
        project: None,
        workflow: None,
        job: None,
        form: Form::Whole,
    }
}

fn listen_as(hub: &Arc<Hub>, wanted: Wanted) -> Listener {
    let (outbox, inbox) = wanted.form.channel();
    let is_slow = Arc::new(AtomicBool::new(false));
    let id = hub.listeners().add(Sender {
        wanted: wanted.clone(),
        outbox,
        is_slow: is_slow.clone(),
    });
    Listener {
        start: Start::From(Seq(0)),
        past: None,
        place: Seq(0),
        wanted,
        inbox,
        is_slow,
        id,
        hub: hub.clone(),
    }
}

#[tokio::test]
async fn a_slow_listener_is_dropped_with_a_reason_and_delays_nobody() {
    let hub = Arc::new(Hub::default());
    let (mut slow, mut quick) = (listen(&hub, None), listen(&hub, None));
    let commits = LISTENER_COMMITS as u64 + 1;
    for seq in 1..=commits {
        publish(&hub, &published(seq));
        assert_eq!(quick.next().await.unwrap().seq, Seq(seq));
    }
    for seq in 1..commits {
        assert_eq!(slow.next().await.unwrap().seq, Seq(seq));
    }
    assert_eq!(slow.next().await.unwrap_err(), Dropped { is_slow: true });
    drop(quick);
    assert!(hub.listeners().all.is_empty() && hub.listeners().broad.is_empty());
}

#[test]
fn one_token_leaves_room_for_other_tokens() {
    let hub = Arc::new(Hub::default());
    let token = TokenId::from_uuid(uuid::Uuid::nil());
    let other = TokenId::from_uuid(uuid::Uuid::max());
    let mut all: Vec<Listener> = (0..SHARE_LISTENERS).map(|_| listen(&hub, None)).collect();
    let room = |token| hub.listeners().check_room(&wanted(token));
    assert_eq!(room(token), Err(TooManyListeners::Share));
    assert_eq!(room(other), Ok(()));
    all.pop();
    assert_eq!(room(token), Ok(()));
    drop(all);
    assert!(hub.listeners().of_shares.is_empty());
}

#[test]
fn the_text_of_an_event_is_made_once_and_only_its_listeners_wake() {
    let hub = Arc::new(Hub::default());
    let mut of_job = listen(&hub, Some(JobId::FIRST));
    let mut all = [listen(&hub, None), listen(&hub, None)];
    publish(&hub, &published(1));
    let texts = all.each_mut().map(|listener| {
        let batch = listener.next().now_or_never().unwrap().unwrap();
        batch.texts[0].as_ptr()
    });
    assert_eq!(texts[0], texts[1]);
    assert!(of_job.next().now_or_never().is_none());
    assert_eq!(of_job.place(), Some(Seq(1)));
    drop(of_job);
    assert!(hub.listeners().of_jobs.is_empty());
}

#[test]
fn one_project_leaves_room_for_other_projects() {
    let hub = Arc::new(Hub::default());
    let one = ProjectId::from_uuid(uuid::Uuid::nil());
    let other = ProjectId::from_uuid(uuid::Uuid::max());
    let room = |wanted: &Wanted| hub.listeners().check_room(wanted);
    let mut all = Vec::new();
    for number in 0..PROJECT_LISTENERS as u128 {
        let mut wanted = wanted(TokenId::from_uuid(uuid::Uuid::from_u128(number)));
        wanted.only_project = Some(one);
        assert_eq!(room(&wanted), Ok(()));
        all.push(listen_as(&hub, wanted));
    }
    let mut next = wanted(TokenId::from_uuid(uuid::Uuid::max()));
    next.only_project = Some(one);
    assert_eq!(room(&next), Err(TooManyListeners::Project));
    next.only_project = Some(other);
    assert_eq!(room(&next), Ok(()));
    next.only_project = None;
    assert_eq!(
        room(&next),
        Ok(()),
        "a listener to all projects still has room"
    );
    drop(all);
    assert!(hub.listeners().of_projects.is_empty());
}

#[test]
fn rights_are_read_when_events_are_sent() {
    let hub = Arc::new(Hub::default());
    let mut listener = listen(&hub, None);
    let none = Rights::limited([Scope::JobRead].into_iter().collect(), Projects::All);
    for (seq, rights) in [(1, Some(none)), (2, None)] {
        hub.listeners().publish(&published(seq), |_| rights.clone());
        assert!(listener.next().now_or_never().is_none());
    }
    publish(&hub, &published(3));
    let batch = listener.next().now_or_never().unwrap().unwrap();
    assert_eq!(batch.seq, Seq(3));
}

#[test]
fn runners_of_other_projects_make_no_events() {
    let hub = Arc::new(Hub::default());
    let mut listener = listen(&hub, None);
    let [own, other] = [1, 2].map(|number| ProjectId::from_uuid(uuid::Uuid::from_u128(number)));
    let rights = Rights::limited(
        [Scope::RunnerRead].into_iter().collect(),
        Projects::Only([own].into()),
    );
    let mut hears = |seq, projects: Projects| {
        let runner = Arc::new(runner_of(1, projects));
        let changes = [
            Change::Runner(runner.clone()),
            Change::RunnerRemoved(runner),
        ];
        let changes = Arc::new(changes);
        let seq = Seq(seq);
        hub.listeners()
            .publish(&Published { seq, changes }, |_| Some(rights.clone()));
        let batch = listener.next().now_or_never();
        batch.map_or(0, |batch| batch.unwrap().texts.len())
    };
    assert_eq!(hears(1, Projects::Only([other].into())), 0);
    assert_eq!(hears(2, Projects::Only([own, other].into())), 2);
    assert_eq!(hears(3, Projects::All), 2);
}

fn text(batch: &Batch) -> &str {
    std::str::from_utf8(&batch.texts[0]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_page_gets_the_first_topic_at_once_and_later_topics_in_batches() {
    let hub = Arc::new(Hub::default());
    let mut page = listen_to(&hub, None, Form::Topics);
    publish(&hub, &removal(1, 1));
    let first = page
        .next()
        .now_or_never()
        .expect("the first event is sent at once");
    assert_eq!(first.unwrap().seq, Seq(1));
    let begun = tokio::time::Instant::now();
    for seq in 2..=50 {
        publish(&hub, &removal(seq, u128::from(seq % 2)));
    }
    assert!(page.next().now_or_never().is_none());
    let second = page.next().await.unwrap();
    assert_eq!(begun.elapsed(), TOPICS_PAUSE);
    assert_eq!(second.seq, Seq(50));
    assert_eq!(text(&second).matches("runner/").count(), 2);
    assert!(page.next().now_or_never().is_none());
    // A slow page is never dropped, because little memory is kept for it.
    for seq in 51..=51 + EVENT_TOPICS as u64 {
        publish(&hub, &removal(seq, u128::from(seq)));
    }
    assert_eq!(
        text(&page.next().await.unwrap()),
        "event: changed\ndata: [\"*\"]\n\n"
    );
    publish(&hub, &removal(2_000, 1));
    hub.listeners().drop_all();
    assert_eq!(page.next().await.unwrap().seq, Seq(2_000));
    assert_eq!(page.next().await.unwrap_err(), Dropped { is_slow: true });
}
