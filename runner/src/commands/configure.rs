//! `everscan-runner configure`: exchanges a registration token for a session and stores it.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use model::error_chain;
use wire::RegisterRunner;

use super::new_folders::NewFolders;
use super::{Failure, home, runner_name, runtime};
use crate::configuration::{Configuration, ConfigurationError, RegisteredAs, folder_of};
use crate::{limits, session};

#[derive(Debug, clap::Args)]
pub(super) struct Configure {
    /// The service's address, without /v0.
    #[arg(long, env = "SERVICE_URL")]
    url: String,
    /// A file with the certificates (PEM) to trust for https, in place of those of the machine.
    #[arg(long, value_name = "FILE", env = "SERVICE_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Send tokens over plain HTTP to another machine, where others can read them; steps may, too.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        env = "SERVICE_INSECURE_HTTP"
    )]
    insecure_http: Option<bool>,
    /// The runner's name [default: the host name].
    #[arg(long, env = "SERVICE_NAME")]
    name: Option<String>,
    /// A file that holds the registration token; without it SERVICE_REGISTRATION_TOKEN or stdin.
    #[arg(long, value_name = "FILE", env = "SERVICE_REGISTRATION_TOKEN_FILE")]
    registration_token_file: Option<PathBuf>,
    /// Where jobs work [default: a folder beside the configuration].
    #[arg(long, value_name = "DIR", env = "SERVICE_WORKDIR")]
    workdir: Option<PathBuf>,
    /// What the runner offers to `runs_on`, separated by commas; '' for none.
    #[arg(long, value_delimiter = ',', env = "SERVICE_LABELS")]
    labels: Option<Vec<String>>,
    /// Take only jobs of scans whose `runs_on` names one of the labels.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        env = "SERVICE_EXCLUSIVE"
    )]
    exclusive: Option<bool>,
    /// How many jobs run at once [default: 1].
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::CAPACITY)),
        env = "SERVICE_CAPACITY"
    )]
    capacity: Option<u32>,
    /// Take the place of a runner of the same name. What is not given stays as that runner was configured here.
    #[arg(long, env = "SERVICE_REPLACE")]
    replace: bool,
}

impl Configure {
    pub(super) fn execute(self) -> Result<(), Failure> {
        let home = home()?;
        let was_given = self.name.is_some();
        let name = runner_name(self.name);
        let folder = folder_of(&home, &name).map_err(|error| {
            if was_given {
                Failure::Configuration(error)
            } else {
                Failure::HostName(error)
            }
        })?;
        let before = match Configuration::load(&home, &name) {
            Err(ConfigurationError::Missing { .. }) => None,
            Ok(_) | Err(ConfigurationError::Content { .. } | ConfigurationError::Format { .. })
                if !self.replace =>
            {
                return Err(Failure::ConfiguredAlready { name });
            }
            Ok(before) => Some(before),
            Err(
                error @ (ConfigurationError::Content { .. } | ConfigurationError::Format { .. }),
            ) => {
                let error = error_chain(&error);
                tracing::warn!(error, "nothing of the old configuration is kept");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let labels = self.labels.map(|mut labels| {
            labels.retain(|label| !label.is_empty());
            labels
        });
        let before = before.as_ref();
        let workdir = self
            .workdir
            .or_else(|| Some(before?.workdir.clone()))
            .unwrap_or_else(|| folder.join("work"));
        let ca_file = self.ca_file.or_else(|| before?.ca_file.clone());
        // Make the folders now, so that an error appears before the token is consumed. After a failure the inner folder is
        // removed first.
        let new_folder = make_folder(&folder)?;
        let new_workdir = make_folder(&workdir)?;
        let asked = RegisteredAs {
            workdir: absolute(&workdir)?,
            ca_file: ca_file.as_deref().map(absolute).transpose()?,
            insecure_http: self
                .insecure_http
                .or_else(|| Some(before?.insecure_http))
                .unwrap_or_default(),
            labels: labels
                .or_else(|| Some(before?.labels.clone()))
                .unwrap_or_default(),
            exclusive: self
                .exclusive
                .or_else(|| Some(before?.exclusive))
                .unwrap_or_default(),
            capacity: self
                .capacity
                .or_else(|| Some(before?.capacity))
                .unwrap_or(1),
            name,
        };
        let token = registration_token(self.registration_token_file.as_deref())?;
        let request = RegisterRunner {
            token,
            name: asked.name.clone(),
            labels: asked.labels.clone(),
            exclusive: asked.exclusive,
            capacity: asked.capacity,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            replace: self.replace,
        };
        let client = session::client(&self.url, asked.ca_file.as_deref(), asked.insecure_http)
            .map_err(Failure::Register)?;
        let registered = runtime()?
            .block_on(client.register(&request))
            .map_err(Failure::Register)?;
        let asked = RegisteredAs {
            // The registration token may have fixed them. A daemon from before that names none.
            labels: match registered.labels.is_empty() {
                true => asked.labels,
                false => registered.labels.clone(),
            },
            ..asked
        };
        let configuration = Configuration::new(&registered, self.url, asked);
        configuration.save(&folder)?;
        new_workdir.keep();
        new_folder.keep();
        let name = if configuration.name == runner_name(None) {
            String::new()
        } else {
            format!(" --name {}", configuration.name)
        };
        tracing::info!(
            name = configuration.name,
            projects = serves(registered.projects.as_deref()),
            labels = configuration.labels.join(","),
            exclusive = configuration.exclusive,
            capacity = configuration.capacity,
            folder = %folder.display(),
            "registered; start it with `everscan-runner run{name}`"
        );
        if registered
            .projects
            .is_none_or(|projects| projects.len() > 1)
        {
            tracing::info!(
                "a runner of several projects separates nothing: their jobs can read each other's files and secrets here"
            );
        }
        Ok(())
    }
}

/// The projects of the runner, in words.
fn serves(projects: Option<&[String]>) -> String {
    projects.map_or_else(|| "all".to_owned(), |projects| projects.join(","))
}

fn make_folder(path: &Path) -> Result<NewFolders, Failure> {
    NewFolders::make(path).map_err(|source| unusable(path, source))
}

/// Makes the path of the folder absolute.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|source| unusable(path, source))
}

fn unusable(path: &Path, source: io::Error) -> Failure {
    Failure::Workdir {
        path: path.to_owned(),
        source,
    }
}

fn registration_token(file: Option<&Path>) -> Result<String, Failure> {
    if let Some(path) = file {
        let origin = path.display().to_string();
        return match File::open(path) {
            Ok(file) => read_token(file, origin),
            Err(source) => Err(Failure::RegistrationToken { origin, source }),
        };
    }
    let given = std::env::var("SERVICE_REGISTRATION_TOKEN").unwrap_or_default();
    if !given.is_empty() {
        return read_token(given.as_bytes(), "SERVICE_REGISTRATION_TOKEN".to_owned());
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::NoRegistrationToken);
    }
    read_token(stdin.lock(), "stdin".to_owned())
}

fn read_token(from: impl Read, origin: String) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(limits::REGISTRATION_TOKEN_BYTES)
        .read_to_string(&mut text)
        .map_err(|source| Failure::RegistrationToken { origin, source })?;
    match text.trim() {
        "" => Err(Failure::NoRegistrationToken),
        token => Ok(token.to_owned()),
    }
}
