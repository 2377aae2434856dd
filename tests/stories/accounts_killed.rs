//! Kills the daemon while eight writers change users, members and tokens. No acknowledged change is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use client::{Client, Error, Secret};
use tokio::task::JoinSet;
use wire::{CreateToken, CreateUser, Role, UpdateUser, UserState};

use crate::support::{World, eventually};

const WRITERS: usize = 8;
const KILLS: usize = 5;
/// Changes that are acknowledged before each kill.
const BETWEEN: usize = 40;

/// A change of one user. Each user is changed in this order, some of them not to the end.
#[derive(Clone, Copy)]
enum Step {
    Create,
    Promote,
    MakeToken,
    RevokeToken,
    Leave,
    Deactivate,
}

const STEPS: [Step; 6] = [
    Step::Create,
    Step::Promote,
    Step::MakeToken,
    Step::RevokeToken,
    Step::Leave,
    Step::Deactivate,
];

/// The role in the project, the state and the number of tokens of a user; none before the user is made.
type Account = Option<(Option<Role>, UserState, usize)>;

/// A user after the last acknowledged change, and the change that was not acknowledged.
struct Left {
    name: String,
    account: Account,
    in_flight: Option<Step>,
}

fn after(account: Account, step: Step) -> Account {
    let (role, state, tokens) = account.unwrap_or((None, UserState::Active, 0));
    Some(match step {
        Step::Create => (Some(Role::Viewer), state, tokens),
        Step::Promote => (Some(Role::Operator), state, tokens),
        Step::MakeToken => (role, state, 1),
        Step::RevokeToken => (role, state, 0),
        Step::Leave => (None, state, tokens),
        Step::Deactivate => (role, UserState::Deactivated, 0),
    })
}

async fn change(client: &Client, name: &str, step: Step) -> Result<(), Error> {
    match step {
        Step::Create => {
            let create = CreateUser {
                name: name.to_owned(),
                service: true,
                roles: [("main".to_owned(), Role::Viewer)].into(),
                ..CreateUser::default()
            };
            client.create_user(&create).await.map(drop)
        }
        Step::Promote => {
            let promoted = client.set_member("main", name, Role::Operator);
            promoted.await.map(drop)
        }
        Step::MakeToken => {
            let create = CreateToken {
                name: name.to_owned(),
                scopes: vec!["job:read".to_owned()],
                projects: None,
                expires_in_seconds: None,
                never_expires: false,
                user: Some(name.to_owned()),
            };
            match client.create_token(&create).await {
                // The first attempt was cut off, and its repeat says that it has taken effect.
                Err(error) if error.status() == Some(409) => Ok(()),
                made => made.map(drop),
            }
        }
        Step::RevokeToken => client.revoke_token(name).await,
        Step::Leave => client.delete_member("main", name).await,
        Step::Deactivate => {
            let update = UpdateUser {
                active: Some(false),
                administrator: None,
            };
            client.update_user(name, &update).await.map(drop)
        }
    }
}

/// Changes users until told to stop. After a failure, waits for the daemon and goes on with another user.
async fn write(
    client: Client,
    writer: usize,
    acknowledged: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
) -> Vec<Left> {
    let mut all = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut left = Left {
            name: format!("w{writer}-{number}"),
            account: None,
            in_flight: None,
        };
        for step in STEPS.into_iter().take(1 + number % STEPS.len()) {
            match change(&client, &left.name, step).await {
                Ok(()) => left.account = after(left.account, step),
                Err(error) => {
                    assert_eq!(error.status(), None, "{error}");
                    left.in_flight = Some(step);
                    break;
                }
            }
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        let is_cut_off = left.in_flight.is_some();
        all.push(left);
        while is_cut_off && client.me().await.is_err() {}
    }
    all
}

#[test]
fn under_repeated_kills_no_acknowledged_change_of_users_roles_and_tokens_is_lost() {
    let mut world = World::new();
    world.init_repository();
    world.push(&[(
        "hello.yaml",
        Some("scans: { a: { on: { dispatch: {} }, steps: [ { run: 'true' } ] } }\n"),
    )]);
    world.start_daemon();
    world.sync();
    let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
    let (acknowledged, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (acknowledged, is_over) = (acknowledged.clone(), is_over.clone());
        let write = write(client.clone(), writer, acknowledged, is_over);
        writers.spawn_on(write, runtime.handle());
    }
    for _ in 0..KILLS {
        let before = acknowledged.load(Ordering::Relaxed);
        eventually("changes", || {
            acknowledged.load(Ordering::Relaxed) >= before + BETWEEN
        });
        world.kill_daemon();
        world.start_daemon();
    }
    is_over.store(true, Ordering::Relaxed);
    let written: Vec<Left> = runtime
        .block_on(writers.join_all())
        .into_iter()
        .flatten()
        .collect();
    world.kill_daemon();
    world.start_daemon();

    let (users, tokens) = runtime.block_on(async {
        (
            client.users().await.unwrap(),
            client.tokens(Some("all")).await.unwrap(),
        )
    });
    let account = |name: &str| -> Account {
        let user = users.iter().find(|user| user.name == name)?;
        let own = tokens.iter().filter(|token| token.user == name);
        Some((user.roles.get("main").copied(), user.state, own.count()))
    };
    let mut cut_off = 0;
    for left in &written {
        let found = account(&left.name);
        // The commit of a change without an answer may have been the last one.
        let last = left.in_flight.map(|step| after(left.account, step));
        cut_off += usize::from(last.is_some());
        let is_expected = found == left.account || Some(found) == last;
        assert!(
            is_expected,
            "{}: {found:?}, not {:?}",
            left.name, left.account
        );
    }
    assert!(cut_off > 0, "no kill came between a change and its answer");
    world.stop_daemon();
    let state = world.path("state").display().to_string();
    let fsck = world.output("everscand", &["fsck", "--state-dir", &state]);
    let printed = String::from_utf8_lossy(&fsck.stdout);
    assert!(fsck.status.success(), "{printed}");
}
