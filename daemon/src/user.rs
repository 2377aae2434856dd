//! `everscand user reset`: a way back in for who is locked out. Whoever may write the state folder may do everything anyway.

use std::sync::Arc;

use chrono::SecondsFormat;
use model::decide::MakeUserLink;
use model::limits::CYCLE_PAUSE;
use model::{Entropy as _, User, UserName, World};
use state::{AuditEntry, Options, State};

use crate::arguments::{UserCommand, UserResetOptions};
use crate::backup::print;
use crate::error::Error;
use crate::logging;
use crate::system::{SystemClock, SystemEntropy};

pub(crate) fn run(command: UserCommand) -> Result<(), Error> {
    match command {
        UserCommand::Reset(options) => reset(options),
    }
}

fn reset(options: UserResetOptions) -> Result<(), Error> {
    logging::to_stderr(logging::LogForm::Text)?;
    let root = options.state_dir;
    if !root.is_dir() {
        return Err(Error::NotAFolder { root });
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
    let (state, closing) = runtime.block_on(State::open(Options {
        root,
        allow_network: options.allow_network_state,
        clock: Arc::new(SystemClock::new()),
        entropy: Box::new(SystemEntropy),
        cycle_pause: CYCLE_PAUSE,
    }))?;
    let found = state.read(|world| find(world, &options.name));
    let made = found.and_then(|user| {
        let user = user.id;
        let request = SystemEntropy.uuid_v4();
        let audited = state.audited(AuditEntry::of_program("user reset", request));
        let make = audited.submit(MakeUserLink { user, by: None });
        runtime.block_on(make).map_err(Error::UserLink)
    });
    drop(state);
    closing.join().map_err(Error::Close)?;
    let made = made?;
    if let (Some(secret), Some(link)) = (&made.secret, &made.user.link) {
        tracing::info!(
            user = %made.user.name,
            until = link.expires_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            "start the daemon, then open this path below its address: it sets a new password, once"
        );
        print(&api::user_link_path(secret))?;
    }
    Ok(())
}

fn find(world: &World, name: &str) -> Result<Arc<User>, Error> {
    let parsed = name.parse::<UserName>().ok();
    let found = parsed.and_then(|name| world.user_named(&name));
    let people = || {
        let people = world
            .users()
            .filter(|user| user.is_person() && !user.is_deleted());
        let names: Vec<&str> = people.map(|user| user.name.as_str()).collect();
        names.join(", ")
    };
    found.cloned().ok_or_else(|| Error::NoSuchUser {
        name: name.to_owned(),
        people: people(),
    })
}
