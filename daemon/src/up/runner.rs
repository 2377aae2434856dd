//! The ordinary runner inside this process. It registers, polls and reports over HTTP like any runner.

use std::num::NonZero;
use std::path::Path;

use client::Client;
use model::decide::CreateRegistration;
use model::{RunnerId, TokenHash};
use runner::{
    Configuration, ConfigurationError, HostEnvironment, OWN_PROGRAM, Options, RegisteredAs,
    SessionError, Setup, Urgency, folder_of,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::RegisterRunner;

use super::error::UpError;
use super::home::{Home, make_folder};
use crate::run::Serving;

const NAME: &str = "up";

pub(super) struct LocalRunner {
    id: RunnerId,
    urgency: watch::Sender<Urgency>,
    work: JoinHandle<Result<(), SessionError>>,
}

impl LocalRunner {
    /// Starts it with the last registration, if the daemon still accepts the registration.
    pub(super) async fn start(home: &Home, serving: &Serving) -> Result<Self, UpError> {
        let folder = folder_of(home.root(), NAME)?;
        let known = match Configuration::load(home.root(), NAME) {
            Ok(configuration) => is_known(&configuration, serving).then_some(configuration),
            Err(ConfigurationError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let configuration = match known {
            Some(configuration) => Configuration {
                url: serving.url.clone(),
                ..configuration
            },
            None => register(&folder, serving).await?,
        };
        configuration.save(&folder)?;
        let id = RunnerId::from_uuid(configuration.runner_id);
        let setup = Setup {
            configuration,
            folder,
            environment: environment(&home.bin()),
            supervisor: OWN_PROGRAM.into(),
            options: Options::default(),
        };
        let (urgency, watched) = watch::channel(Urgency::None);
        let work = tokio::spawn(runner::serve(setup, watched));
        Ok(Self { id, urgency, work })
    }

    pub(super) const fn id(&self) -> RunnerId {
        self.id
    }

    /// Increases the urgency of the stop: the first call lets jobs finish, the second cancels them.
    pub(super) fn stop(&self) {
        self.urgency
            .send_modify(|urgency| *urgency = urgency.next());
    }

    pub(super) async fn ended(&mut self) -> Result<(), UpError> {
        match (&mut self.work).await {
            Ok(ended) => ended.map_err(UpError::Runner),
            Err(_) => Err(UpError::RunnerEnded),
        }
    }
}

/// Whether the daemon still accepts the session. A new state folder does not know it, and it expires after a long pause.
fn is_known(configuration: &Configuration, serving: &Serving) -> bool {
    let token = TokenHash::of(&configuration.token);
    let now = serving.handle.now();
    serving.handle.state().read(|world| {
        world
            .runner(RunnerId::from_uuid(configuration.runner_id))
            .is_some_and(|runner| runner.is_held_by(token, now))
    })
}

async fn register(folder: &Path, serving: &Serving) -> Result<Configuration, UpError> {
    let workdir = folder.join("work");
    make_folder(&workdir).map_err(UpError::folder(&workdir))?;
    let create = CreateRegistration::default();
    let registration = serving.handle.state().submit(create).await?;
    let capacity = std::thread::available_parallelism().map_or(1, NonZero::get);
    let asked = RegisteredAs {
        ca_file: None,
        insecure_http: false,
        name: NAME.to_owned(),
        workdir,
        labels: Vec::new(),
        exclusive: false,
        capacity: u32::try_from(capacity).unwrap_or(1),
    };
    let request = RegisterRunner {
        token: registration.secret.reveal().to_owned(),
        name: asked.name.clone(),
        labels: asked.labels.clone(),
        exclusive: asked.exclusive,
        capacity: asked.capacity,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        replace: true,
    };
    let client = Client::new(&serving.url, None).map_err(UpError::Register)?;
    let registered = client.register(&request).await.map_err(UpError::Register)?;
    Ok(Configuration::new(&registered, serving.url.clone(), asked))
}

/// The environment that steps may inherit: the environment of this process, with `everscan` in the PATH.
fn environment(bin: &Path) -> HostEnvironment {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).unwrap_or(path);
    std::env::vars_os().chain([("PATH".into(), path)]).collect()
}
