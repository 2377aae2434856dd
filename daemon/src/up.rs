//! `everscand up`: everything for one machine in one process and one folder.
//!
//! It runs the daemon and the ordinary runner, which talk over HTTP. If the folder is not a Git repository, it also keeps a
//! repository and commits the workflows and `everscan.yaml` to it. It prints events as they happen. A later `up` continues where the last `up`
//! stopped, and `everscand run` can serve the same state folder.

mod error;
mod home;
mod narrator;
mod runner;
mod workflows;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use api::Front;
use chrono::Local;
use model::decide::{RevokeToken, SignedInBy};
use model::limits::CYCLE_PAUSE;
use model::retention::RetentionSettings;
use model::{SealingKey, TokenHash, TokenManager, UserId};
use reconciler::{Access, BlobSettings, LOG_LIMIT, Location, SIGN_IN_LINK, SourceConfig};

use crate::arguments::UpOptions;
use crate::configuration::{ConfigurationError, DaemonSettings, INTERVAL};
use crate::error::Error;
use crate::limits::{FOLDER_POLL, REQUESTS};
use crate::logging;
use crate::run::{Serving, Site, bind, print, serve};
use crate::secret_key;
use crate::stop_signal::StopSignals;
use home::Home;
use narrator::Narrator;
use runner::LocalRunner;
use workflows::Workflows;

pub(crate) use error::UpError;

/// The name of the only source. Ids of workflows derive from it, so it must not change if the folder moves.
const SOURCE: &str = "local";

pub(crate) fn up(options: &UpOptions) -> Result<(), Error> {
    let home = Home::open(&options.dir)?;
    let _held = home.occupy()?;
    log_to(&home)?;
    let workflows = Workflows::of(&home)?;
    let listener = listen(&home, options)?;
    let site = Site {
        listener,
        front: Front {
            requests: Some(REQUESTS),
            ..Front::default()
        },
        tls: None,
        settings: DaemonSettings {
            state: home.state(),
            allow_network_state: options.allow_network_state,
            sources: vec![source(&workflows)],
            secret_keys: Some(secret_key(&home)?.into()),
            retention: RetentionSettings::default(),
            log_limit: LOG_LIMIT,
            cycle_pause: CYCLE_PAUSE,
            blobs: BlobSettings::default(),
            backup_within: None,
            heartbeat: None,
            delivery: delivery::Settings {
                outbound: outbound::Outbound::new(
                    own_addresses(),
                    "a configuration file, with `everscand run`",
                    outbound::Limits::default(),
                ),
                ..delivery::Settings::default()
            },
            callback: None,
        },
    };
    serve(site, |serving| async move {
        Ok(Running::start(home, workflows, serving)
            .await?
            .run()
            .await?)
    })
}

/// Binds the requested address. Without one, binds the last address, or a free port of this machine if the last address
/// is taken or not allowed.
fn listen(home: &Home, options: &UpOptions) -> Result<std::net::TcpListener, Error> {
    let bind = |address| bind(address, options.insecure_http);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = match (options.listen, home.address()) {
        (Some(asked), _) => bind(asked)?,
        (None, Some(before)) => match bind(before) {
            Err(Error::Listen { .. } | Error::PlainHttp { .. }) => bind(any)?,
            bound => bound?,
        },
        (None, None) => bind(any)?,
    };
    let kept = listener
        .local_addr()
        .and_then(|address| home.keep_address(address));
    kept.map_err(UpError::folder(&home.own()))?;
    Ok(listener)
}

#[expect(
    clippy::expect_used,
    reason = "an invalid constant is a defect of this file, and its test finds it"
)]
fn source(workflows: &Workflows) -> SourceConfig {
    SourceConfig {
        name: SOURCE.parse().expect("a plain name"),
        location: Location::Local(workflows.repository().to_owned()),
        access: Access::default(),
        reference: None,
        folder: "workflows".to_owned(),
        interval: INTERVAL,
    }
}

/// The addresses of this machine, whose owner alone uses `up`: notifications may go there.
#[expect(
    clippy::expect_used,
    reason = "an invalid constant is a defect of this file, and its test finds it"
)]
fn own_addresses() -> Vec<outbound::Allowed> {
    ["127.0.0.0/8", "::1"]
        .map(|range| range.parse().expect("a range"))
        .to_vec()
}

/// Logs to a file, which each start empties. The terminal shows only events of workflows and jobs.
fn log_to(home: &Home) -> Result<(), Error> {
    let path = home.log();
    let opened = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = opened.map_err(UpError::folder(&path))?;
    Ok(logging::to_file(file)?)
}

/// The key that seals secrets. The first start makes it.
fn secret_key(home: &Home) -> Result<SealingKey, ConfigurationError> {
    let path = home.secret_key();
    if !path.exists() {
        secret_key::make(&path)?;
    }
    Ok(secret_key::read(&path, &home.state())?)
}

struct Running {
    workflows: Workflows,
    serving: Serving,
    runner: LocalRunner,
    narrator: Narrator,
    signals: StopSignals,
}

enum Wake {
    Changed,
    Poll,
    Stop,
    RunnerEnded(Result<(), UpError>),
}

impl Running {
    async fn start(home: Home, workflows: Workflows, serving: Serving) -> Result<Self, UpError> {
        let signals = StopSignals::receive().map_err(UpError::folder(&home.own()))?;
        let is_revoked = revoke_step_token(&home, &serving).await?;
        let runner = LocalRunner::start(&home, &serving).await?;
        introduce(&home, &workflows, &serving);
        let narrator = Narrator::of(&serving.handle, workflows.first_step(&home));
        let running = Self {
            workflows,
            serving,
            runner,
            narrator,
            signals,
        };
        running.report_killed_jobs();
        if is_revoked {
            let line = "the token that an earlier release gave to steps is revoked: each job has a token of its own";
            tracing::info!("{line}");
            running.report(line);
        }
        Ok(running)
    }

    async fn run(mut self) -> Result<(), UpError> {
        let mut changes = self.serving.handle.state().changed();
        let mut ticks = tokio::time::interval(FOLDER_POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_stopping = false;
        loop {
            self.print_news().await;
            let wake = tokio::select! {
                _ = changes.changed() => Wake::Changed,
                _ = ticks.tick() => Wake::Poll,
                _ = self.signals.next() => Wake::Stop,
                ended = self.runner.ended() => Wake::RunnerEnded(ended),
            };
            match wake {
                Wake::Changed => {}
                Wake::Poll => self.commit_saved(),
                Wake::Stop => {
                    self.runner.stop();
                    let running = |world: &model::World| world.running().count();
                    let jobs = self.serving.handle.state().read(running);
                    if !is_stopping && jobs > 0 {
                        let s = if jobs == 1 { " is" } else { "s are" };
                        self.report(&format!(
                            "stopping once {jobs} running job{s} over; Ctrl-C again cancels"
                        ));
                    }
                    is_stopping = true;
                }
                Wake::RunnerEnded(Ok(())) if is_stopping => break,
                Wake::RunnerEnded(Ok(())) => return Err(UpError::RunnerEnded),
                Wake::RunnerEnded(Err(error)) => return Err(error),
            }
        }
        self.print_news().await;
        self.report("stopped; `everscand up` goes on from here");
        Ok(())
    }

    /// After a kill, the daemon gives the runner no job until it knows that the old process cannot come back.
    fn report_killed_jobs(&self) {
        let runner = self.runner.id();
        let running = |world: &model::World| world.running_on(runner).count();
        let jobs = self.serving.handle.state().read(running);
        if jobs > 0 {
            let s = if jobs == 1 { "" } else { "s" };
            self.report(&format!(
                "the last `up` was killed with {jobs} running job{s}; the runner takes work again once that is given up, \
                 in some seconds"
            ));
        }
    }

    async fn print_news(&mut self) {
        for line in self.narrator.news(&self.serving.handle).await {
            self.report(&line);
        }
    }

    /// A failed commit is reported, and repeated when the folder changes.
    fn commit_saved(&mut self) {
        let Workflows::Saved(saved) = &mut self.workflows else {
            return;
        };
        if let Err(error) = tokio::task::block_in_place(|| saved.commit_saved()) {
            self.report(&format!("what was saved is not committed: {error}"));
        }
    }

    fn report(&self, line: &str) {
        let now = self.serving.handle.now().with_timezone(&Local);
        print(&format!("{}  {}", now.format("%H:%M:%S"), cli::clean(line)));
    }
}

/// Earlier releases had a token for steps, in a file. Now each job has its own. True if there was one.
async fn revoke_step_token(home: &Home, serving: &Serving) -> Result<bool, UpError> {
    let Some(secret) = home.step_token() else {
        return Ok(false);
    };
    let state = serving.handle.state();
    let hash = TokenHash::of(&secret);
    let token = state.read(|world| Some(world.token_of(&hash)?.id));
    if let Some(token) = token {
        let by = TokenManager::owner();
        state.submit(RevokeToken { token, by }).await?;
    }
    home.remove_step_token()
        .map_err(UpError::folder(&home.own()))?;
    Ok(token.is_some())
}

/// Prints the URL on its own line, like `everscand run`, and then the next steps. It prints the path of the token's file instead
/// of the token, because this output may end up in logs. The link in it can be used once and expires soon.
fn introduce(home: &Home, workflows: &Workflows, serving: &Serving) {
    let (root, url) = (home.root().display(), &serving.url);
    let bin = quoted(&home.bin());
    let token = quoted(&home.first_token());
    let pushed = match workflows {
        Workflows::Committed { .. } => format!(
            "Workflows are the files in {root}/workflows. A commit or push to this repository makes them active at once."
        ),
        Workflows::Saved(_) => format!(
            "Workflows are the files in {root}/workflows. Saving one makes it active: it is committed to .everscan/repository.git."
        ),
    };
    let pages = match sign_in_link(serving) {
        Some(link) => format!(
            "Open this link in a browser. It signs you in, once, within {} minutes; `everscan session link` makes another:\n\n  {link}",
            SIGN_IN_LINK.num_minutes()
        ),
        None => "Open this address in a browser and sign in.".to_owned(),
    };
    print(&format!(
        "{url}\n\n{pages}\n\nOr use the command line:\n\n  export SERVICE_URL={url}\n  export SERVICE_TOKEN=$(cat {token})\n  export PATH={bin}:$PATH\n\n\
         {pushed}\nEverything is kept in {root}/.everscan. Ctrl-C stops.\n"
    ));
}

/// A link that signs the owner in as the whole person, unless somebody has deactivated that user. Whoever runs this may do
/// everything in the folder anyway.
fn sign_in_link(serving: &Serving) -> Option<String> {
    let handle = &serving.handle;
    let (user, epoch) = handle.state().read(|world| {
        let owner = world.user(UserId::OWNER).filter(|user| user.is_active())?;
        Some((owner.id, owner.epoch))
    })?;
    let by = SignedInBy::Person {
        user,
        epoch,
        signed_in_at: None,
    };
    let link = handle.sign_ins().make_link(user, by, None);
    let path = api::sign_in_path(&link.secret);
    Some(format!("{}{path}", serving.url))
}

fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_must_be_requested_at_each_start() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut options = UpOptions {
            dir: folder.path().to_owned(),
            listen: Some(any),
            insecure_http: true,
            allow_network_state: false,
        };
        drop(listen(&home, &options).unwrap());
        (options.listen, options.insecure_http) = (None, false);
        let listener = listen(&home, &options).unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
        options.listen = Some(any);
        assert!(matches!(
            listen(&home, &options),
            Err(Error::PlainHttp { .. })
        ));
    }

    #[test]
    fn a_path_is_quoted_for_the_shell() {
        for (path, word) in [
            ("/home/ada/scans-2", "/home/ada/scans-2"),
            ("/home/ada/my scans", "'/home/ada/my scans'"),
            ("/it's", r"'/it'\''s'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
