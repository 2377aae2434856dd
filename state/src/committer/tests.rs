//! Tests the committer with an engine whose commits can be made to fail.

mod audit;
mod histories;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use model::decide::{
    Command, ConfigureSource, CreateToken, Decision, DropSource, Refusal, Urgency,
};
use model::{Change, Recent, ScanHead, Scopes, SourceName, User, UserId, WorkflowId, World};
use store::limits::BATCH_OPERATIONS;
use store::memory::{Injected, MemoryStore};
use store::{Append, Batch, Reader as _, Seq};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::submission::{Attachment, kind};
use super::*;
use crate::audit::Audited;
use crate::audit::tests::entry;
use crate::ended_jobs::EndedJobs;
use crate::error::ReadError;
use crate::history::KnownPast;
use crate::layout::Layout;
use crate::limits::WAITING_COMMANDS;
use crate::reader::StoreReader;
use crate::recent::ReadRecent;
use crate::tests::fixture::{Seeded, TestClock};

type Answer<A> = oneshot::Receiver<Result<A, SubmitError>>;

/// A committer whose commands are all queued before it starts, so that the tests know which commands share a commit.
struct Bench {
    store: MemoryStore,
    queue: mpsc::Sender<Waiting>,
    waiting: Option<mpsc::Receiver<Waiting>>,
    publication: Arc<Publication>,
    alarm: Alarm,
    /// Replaces the store as the reader of histories.
    histories: Option<Arc<dyn ReadRecent>>,
}

impl Bench {
    fn new() -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_COMMANDS);
        let mut world = World::default();
        for id in OWNERS.map(owner) {
            let name = format!("user-{}", id.uuid().as_u128()).parse().unwrap();
            let user = User {
                id,
                name,
                ..User::owner(model::Timestamp::UNIX_EPOCH)
            };
            world.apply(&Change::User(Arc::new(user)));
        }
        let publication = Arc::new(Publication::new(
            world,
            Seq(0),
            EndedJobs::default(),
            Arc::default(),
        ));
        let (store, alarm) = (MemoryStore::new(), Alarm::new());
        Self {
            store,
            queue,
            waiting: Some(waiting),
            publication,
            alarm,
            histories: None,
        }
    }

    fn submit<C: Command>(&self, command: C) -> Answer<C::Answer> {
        self.submit_for(None, command)
    }

    /// Like `submit`, for a request of a person.
    fn submit_for<C: Command>(
        &self,
        audited: Option<Arc<Audited>>,
        command: C,
    ) -> Answer<C::Answer> {
        self.submit_with(audited, command, Box::new(|_, _| ()))
    }

    fn submit_with<C: Command>(
        &self,
        audited: Option<Arc<Audited>>,
        command: C,
        attachment: Attachment<C>,
    ) -> Answer<C::Answer> {
        let (reply, answer) = oneshot::channel();
        assert!(
            self.queue
                .try_send(Box::new(Submission {
                    audited,
                    guard: None,
                    command,
                    attachment,
                    rewritten: None,
                    reply,
                }))
                .is_ok(),
            "the queue has room"
        );
        answer
    }

    async fn start(&mut self) {
        let mut engine = self.store.engine();
        let (epoch, last) = engine.open(&mut |_| {}).await.unwrap();
        let reader = engine.reader();
        let committer = Committer {
            tails: Tails::none(),
            measuring: Measuring::default(),
            tails_committed: Tails::none(),
            engine,
            written: Written::until(epoch, last, HashMap::new()),
            pending: self.publication.read(World::clone),
            order: Order::START,
            publication: self.publication.clone(),
            clock: TestClock::at_noon(),
            entropy: Box::new(Seeded(1)),
            volume: self.store.engine().volume(),
            last_room: Room::Enough,
            cycle_pause: model::limits::CYCLE_PAUSE,
            histories: Histories::new(
                self.histories
                    .clone()
                    .unwrap_or_else(|| Arc::new(StoreReader::new(reader))),
            ),
            queue: self.waiting.take().unwrap(),
            again: VecDeque::new(),
            is_closing: false,
            log_bytes: Box::new(|_| 0),
            alarm: self.alarm.clone(),
        };
        committer.start().unwrap();
    }

    /// The number of changes of each published commit.
    async fn commits(&self) -> Vec<usize> {
        let mut followed = self.publication.subscribe(Seq(0)).unwrap();
        let mut commits = Vec::new();
        loop {
            tokio::select! {
                biased;
                published = followed.next() => commits.push(published.unwrap().changes.len()),
                () = std::future::ready(()) => return commits,
            }
        }
    }

    fn sources(&self) -> Vec<(String, bool)> {
        self.publication.read(|world| {
            world
                .sources()
                .map(|one| (one.name.to_string(), one.configured))
                .collect()
        })
    }
}

fn source(name: &str) -> SourceName {
    name.parse().unwrap()
}

fn configure(name: &str) -> ConfigureSource {
    ConfigureSource {
        name: source(name),
        url: "https://example.org".to_owned(),
        reference: None,
        folder: String::new(),
        interval_seconds: 60,
    }
}

/// A request of the person whose token has this name.
fn request(name: &str) -> Arc<Audited> {
    Arc::new(Audited::Request(entry(name)))
}

fn somebody() -> Arc<Audited> {
    request("somebody")
}

/// More users than the tokens of a test need, since the tokens of one user are bounded.
const OWNERS: [u128; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn owner(number: u128) -> UserId {
    UserId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Makes a token of one of the users in turn.
fn create_token() -> CreateToken {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let turn = MADE.fetch_add(1, Ordering::Relaxed) % OWNERS.len();
    CreateToken {
        name: "one".to_owned(),
        scopes: Scopes::admin(),
        life: None,
        projects: model::Projects::All,
        owner: owner(OWNERS[turn]),
        by: owner(OWNERS[turn]),
        granted_by: model::Rights::admin(),
        ends_by: None,
    }
}

#[tokio::test]
async fn a_full_disk_also_undoes_decisions_that_depend_on_undone_changes() {
    let mut bench = Bench::new();
    bench.store.inject(Injected::Full);
    let first = bench.submit(configure("a"));
    let filling: Vec<_> = (1..BATCH_OPERATIONS)
        .map(|_| bench.submit(create_token()))
        .collect();
    // This command does not fit into the batch, so the batch is committed first. It was decided while `a` was pending.
    let on_top = bench.submit(DropSource { name: source("a") });
    bench.start().await;
    assert!(matches!(first.await.unwrap(), Err(SubmitError::DiskFull)));
    for answer in filling {
        assert!(matches!(answer.await.unwrap(), Err(SubmitError::DiskFull)));
    }
    assert!(matches!(on_top.await.unwrap(), Err(SubmitError::DiskFull)));
    assert_eq!(bench.sources(), []);

    bench.submit(configure("b")).await.unwrap().unwrap();
    assert!(matches!(
        bench
            .submit(DropSource { name: source("a") })
            .await
            .unwrap(),
        Err(SubmitError::Refused(_))
    ));
    assert_eq!(bench.sources(), [("b".to_owned(), true)]);
}

#[tokio::test]
async fn commands_that_wait_together_share_a_commit_and_see_each_other() {
    let mut bench = Bench::new();
    let made = bench.submit(configure("a"));
    let dropped = bench.submit(DropSource { name: source("a") });
    let refused = bench.submit(DropSource { name: source("b") });
    bench.start().await;
    made.await.unwrap().unwrap();
    assert_eq!(
        bench.sources(),
        [("a".to_owned(), false)],
        "the change was not published before the answer"
    );
    dropped.await.unwrap().unwrap();
    assert!(matches!(
        refused.await.unwrap(),
        Err(SubmitError::Refused(_))
    ));
    assert_eq!(
        bench.commits().await,
        [2],
        "the commands do not share one commit"
    );
}

#[tokio::test]
async fn several_batches_are_several_commits_and_no_decision_is_split() {
    let mut bench = Bench::new();
    let answers: Vec<_> = (0..BATCH_OPERATIONS * 2 + 1)
        .map(|_| bench.submit(create_token()))
        .collect();
    bench.start().await;
    for answer in answers {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(bench.commits().await.len(), 3);
}

#[tokio::test]
async fn another_commit_failure_stops_the_committer_and_is_reported() {
    for fault in [
        Injected::Fenced,
        Injected::Unknown { stored: true },
        Injected::Unknown { stored: false },
    ] {
        let mut bench = Bench::new();
        bench.store.inject(fault);
        let answer = bench.submit(configure("a"));
        let refused = bench.submit(DropSource { name: source("b") });
        bench.start().await;
        assert!(
            matches!(answer.await.unwrap(), Err(SubmitError::OutcomeUnknown)),
            "{fault:?}"
        );
        let refused = refused.await.unwrap();
        assert!(
            matches!(refused, Err(SubmitError::OutcomeUnknown)),
            "a refusal may depend on an uncommitted change"
        );
        assert!(!bench.alarm.rung().await.message.is_empty());
        assert_eq!(bench.sources(), []);
        // The engine and its lock stay open while somebody may still write to the state.
        assert!(bench.submit(configure("b")).await.is_err());
        assert!(!bench.queue.is_closed());
    }
}

/// Otherwise these commands, and whoever waits for the engine to close, would wait forever.
#[tokio::test]
async fn commands_that_wait_for_a_second_decision_are_dropped_when_a_commit_fails() {
    let mut bench = Bench::new();
    bench.store.inject(Injected::TooLarge);
    bench.store.inject(Injected::Unknown { stored: false });
    let first = bench.submit(configure("a"));
    let second = bench.submit(configure("b"));
    bench.start().await;
    let first = first.await.unwrap();
    assert!(
        matches!(first, Err(SubmitError::OutcomeUnknown)),
        "{first:?}"
    );
    second.await.unwrap_err();
}

/// A batch that the store refuses before writing leaves the store unchanged. So a removed file does not stop the
/// daemon; only the command that needs the file is refused.
#[tokio::test]
async fn a_batch_that_the_store_refuses_undoes_only_the_decision_that_caused_it() {
    let mut bench = Bench::new();
    let before = bench.submit(configure("a"));
    // Appends to a log that was removed.
    let wrong = bench.submit_with(
        None,
        configure("b"),
        Box::new(|_, batch| {
            batch.appends.push(Append {
                ledger: Layout::audit("2026-11-20".parse().unwrap()),
                at: 7,
                bytes: "x\n".into(),
            });
        }),
    );
    let on_top = bench.submit(DropSource { name: source("b") });
    let after = bench.submit_for(Some(somebody()), configure("c"));
    bench.start().await;
    before.await.unwrap().unwrap();
    assert!(matches!(
        wrong.await.unwrap(),
        Err(SubmitError::Contradicted)
    ));
    let on_top = on_top.await.unwrap();
    assert!(matches!(on_top, Err(SubmitError::Refused(_))), "{on_top:?}");
    after.await.unwrap().unwrap();
    let all = [("a".to_owned(), true), ("c".to_owned(), true)];
    assert_eq!(bench.sources(), all);
    assert_eq!(bench.commits().await, [1, 1]);

    bench.submit(configure("d")).await.unwrap().unwrap();
    assert_eq!(bench.sources().len(), 3);
}

#[tokio::test]
async fn a_full_disk_refuses_all_commands_except_finishing_commands() {
    let mut bench = Bench::new();
    bench.store.set_room(Room::Full);
    let answer = bench.submit(configure("a"));
    bench.start().await;
    assert!(matches!(answer.await.unwrap(), Err(SubmitError::DiskFull)));
    let remove = model::decide::RemoveRunner {
        runner: model::RunnerId::from_uuid(uuid::Uuid::nil()),
        by: model::Rights::admin(),
    };
    let answer = bench.submit(remove).await.unwrap();
    assert!(
        matches!(answer, Err(SubmitError::Refused(_))),
        "the command was not decided"
    );
}

/// A command that breaks an invariant.
#[derive(Clone)]
struct Panics;

impl Command for Panics {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    #[expect(clippy::panic, reason = "the test needs a panic")]
    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        panic!("an invariant is broken")
    }
}

/// A command that panics before its decision.
#[derive(Clone)]
struct PanicsBefore;

impl Command for PanicsBefore {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    #[expect(clippy::panic, reason = "the test needs a panic")]
    fn histories(&self, _: &World) -> BTreeSet<ScanKey> {
        panic!("an invariant is broken")
    }

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision::unchanged(()))
    }
}

#[tokio::test]
async fn a_command_whose_decision_panics_is_refused_and_other_commands_are_committed() {
    let mut bench = Bench::new();
    let before = bench.submit_for(Some(request("before")), configure("a"));
    let wrong = bench.submit_for(Some(request("nobody")), Panics);
    let also_wrong = bench.submit(PanicsBefore);
    let after = bench.submit_for(Some(request("after")), configure("b"));
    bench.start().await;
    let defect = |answer: Result<(), SubmitError>| answer.unwrap_err().to_string();
    assert_eq!(
        defect(wrong.await.unwrap()),
        "Panics cannot be decided: this is a defect of Everscan; nothing has changed, and the daemon's log has the panic"
    );
    assert!(defect(also_wrong.await.unwrap()).starts_with("PanicsBefore "));
    before.await.unwrap().unwrap();
    after.await.unwrap().unwrap();
    assert_eq!(
        bench.commits().await,
        [2],
        "the valid commands do not share a commit"
    );
    let again = bench.submit(Panics).await.unwrap();
    assert!(
        matches!(again, Err(SubmitError::Defect { .. })),
        "{again:?}"
    );
    bench.submit(configure("c")).await.unwrap().unwrap();
    assert_eq!(bench.sources().len(), 3);
}

#[test]
fn a_command_is_named_without_paths() {
    assert_eq!(kind::<CreateToken>(), "CreateToken");
    assert_eq!(kind::<Option<CreateToken>>(), "Option<CreateToken>");
}

#[tokio::test]
#[expect(clippy::panic, reason = "the test needs a panic")]
async fn another_panic_of_the_committer_rings_the_alarm() {
    let mut bench = Bench::new();
    let attachment = Box::new(|_: &Decision<_>, _: &mut Batch| panic!("an invariant is broken"));
    let answer = bench.submit_with(None, configure("a"), attachment);
    bench.start().await;
    assert!(answer.await.is_err());
    assert_eq!(
        bench.alarm.rung().await.message,
        "the committer thread panicked"
    );
}
