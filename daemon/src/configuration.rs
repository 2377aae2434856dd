//! Reads flags, environment and the configuration file, and checks the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{BasePath, Rate};
use chrono::TimeDelta;
use delivery::Program;
use listen::{Cidr, TlsFiles};
use model::limits::{BLOB_VERSIONS, CYCLE_PAUSE};
use model::retention::RetentionSettings;
use model::{BlobPath, KeptVersions, SealingKeys, SourceName};
use outbound::{Allowed, Outbound};
use reconciler::{BlobSettings, LOG_LIMIT, SourceConfig};
use serde::Deserialize;
use thiserror::Error;

use self::callback::{CallbackSettings, FileCallback};
use self::source::FileSource;
use crate::arguments::{LISTEN, RunOptions, listen_address};
use crate::certificate::CertificateSource;
use crate::heartbeat::Heartbeat;
use crate::limits::{BEAT_EVERY, LONGEST_CYCLE_PAUSE, NOTIFY_COMMAND_TIMEOUT, REQUESTS};
use crate::logging::LogForm;
use crate::retention::{FileRetention, Size};
use crate::secret_key::{self, KeyFileError};

mod access;
pub(crate) mod callback;
mod source;

pub(crate) const INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) log_form: LogForm,
    pub(crate) listen: SocketAddr,
    pub(crate) insecure_http: bool,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) trusted_proxies: Vec<Cidr>,
    pub(crate) base_path: BasePath,
    pub(crate) local_from: Vec<Cidr>,
    pub(crate) requests: Option<Rate>,
    pub(crate) daemon: DaemonSettings,
}

/// The settings of the daemon behind its listener.
#[derive(Debug)]
pub(crate) struct DaemonSettings {
    pub(crate) state: PathBuf,
    pub(crate) allow_network_state: bool,
    pub(crate) sources: Vec<SourceConfig>,
    pub(crate) secret_keys: Option<SealingKeys>,
    pub(crate) retention: RetentionSettings,
    pub(crate) log_limit: u64,
    /// How long jobs of scans that wake each other wait, from the second lap on.
    pub(crate) cycle_pause: TimeDelta,
    pub(crate) blobs: BlobSettings,
    /// How old the newest backup may become.
    pub(crate) backup_within: Option<TimeDelta>,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// How notifications are sent.
    pub(crate) delivery: delivery::Settings,
    /// Where callback servers listen, if they do.
    pub(crate) callback: Option<CallbackSettings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    state: Option<PathBuf>,
    allow_network_state: bool,
    listen: Option<String>,
    insecure_http: bool,
    tls: Option<FileTls>,
    trust_proxy: Vec<String>,
    base_path: String,
    local_from: Vec<String>,
    rate_limit: Option<FileRate>,
    secret_key_file: Option<PathBuf>,
    old_secret_key_files: Vec<PathBuf>,
    sources: Vec<FileSource>,
    retention: FileRetention,
    log_limit: Option<Size>,
    cycle_pause: Option<Pause>,
    backup_within: Option<String>,
    heartbeat: Option<FileHeartbeat>,
    outbound: FileOutbound,
    url: Option<String>,
    notify_commands: BTreeMap<String, FileCommand>,
    callback: Option<FileCallback>,
    blob_quota: Option<Size>,
    blob_versions: BTreeMap<String, u8>,
}

/// A pause. 0 means the minimum.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`cycle_pause` must be a duration, such as 1s, or 0 for the least"
)]
enum Pause {
    Number(u64),
    Text(String),
}

impl Pause {
    fn read(self) -> Result<TimeDelta, String> {
        let text = match self {
            Self::Number(0) => return Ok(TimeDelta::zero()),
            Self::Number(number) => return Err(format!("`{number}` needs a unit, such as 1s")),
            Self::Text(text) => text,
        };
        let pause = duration(&text)?;
        if pause > LONGEST_CYCLE_PAUSE {
            return Err("must be at most 1h, or 0 for the least".to_owned());
        }
        Ok(pause)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTls {
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FileOutbound {
    allow: Vec<String>,
}

/// A program that channels of the kind `command` may run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCommand {
    program: PathBuf,
    #[serde(default)]
    args: Vec<String>,
    timeout: Option<String>,
}

impl FileCommand {
    fn check(self, base: &Path) -> Result<Program, String> {
        let timeout = match self.timeout {
            None => NOTIFY_COMMAND_TIMEOUT,
            Some(text) => duration(&text).map_err(|error| format!("timeout: {error}"))?,
        };
        Ok(Program {
            program: base.join(self.program),
            args: self.args,
            timeout: timeout.to_std().unwrap_or_default(),
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHeartbeat {
    url: String,
    every: Option<String>,
}

impl FileHeartbeat {
    fn check(self) -> Result<Heartbeat, String> {
        outbound::check_url(&self.url).map_err(|error| format!("url: {error}"))?;
        let every = match self.every {
            None => BEAT_EVERY,
            Some(text) => duration(&text).map_err(|error| format!("every: {error}"))?,
        };
        Ok(Heartbeat {
            url: self.url,
            every: every.to_std().unwrap_or_default(),
        })
    }
}

/// How many requests may be made with one token. With 0 per second there is no limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRate {
    requests_per_second: u32,
    burst: Option<NonZeroU32>,
}

impl FileRate {
    fn rate(self) -> Option<Rate> {
        let per_second = NonZeroU32::new(self.requests_per_second)?;
        let burst = self.burst.unwrap_or(per_second);
        Some(Rate { per_second, burst })
    }
}

#[derive(Debug, Error)]
pub(crate) enum ConfigurationError {
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the configuration file {} is not valid: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error(
        "no state folder is named\nhint: give `--state-dir DIR`, or `state:` in the configuration file"
    )]
    NoState,
    #[error("{key}: {problem}")]
    Key { key: &'static str, problem: String },
    #[error("`--source {text}` is not NAME=URL")]
    SourceFlag { text: String },
    #[error("source `{name}`: {problem}")]
    Source { name: String, problem: String },
    #[error("blob_versions: `{folder}` {problem}")]
    BlobVersions { folder: String, problem: String },
    #[error("two sources are named `{name}`")]
    TwoSources { name: SourceName },
    #[error(transparent)]
    SecretKey(#[from] KeyFileError),
    #[error(
        "old secret key files are named, and no current one\nhint: name the current one with `--secret-key-file FILE`"
    )]
    NoCurrentKey,
    #[error(
        "the old secret key file {} holds the current key\nhint: name the new key with `--secret-key-file`, and the old one \
         with `--old-secret-key-file`",
        path.display()
    )]
    OldKeyIsCurrent { path: PathBuf },
}

fn invalid(key: &'static str) -> impl FnOnce(String) -> ConfigurationError {
    move |problem| ConfigurationError::Key { key, problem }
}

impl Settings {
    /// Combines flags, environment and file, and checks the result.
    pub(crate) fn resolve(options: RunOptions) -> Result<Self, ConfigurationError> {
        let (file, base) = match &options.config {
            None => (File::default(), PathBuf::new()),
            Some(path) => (
                read(path)?,
                path.parent().unwrap_or(Path::new("")).to_owned(),
            ),
        };
        let state = options
            .state_dir
            .or_else(|| file.state.map(|state| base.join(state)));
        let listen = file
            .listen
            .map(|text| listen_address(&text))
            .transpose()
            .map_err(invalid("listen"))?;
        let mut sources = Vec::new();
        for source in file.sources {
            sources.push(source.check(&base)?);
        }
        for text in options.sources {
            sources.push(FileSource::of_flag(text)?);
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = sources.iter().find(|source| !names.insert(&source.name)) {
            return Err(ConfigurationError::TwoSources {
                name: twice.name.clone(),
            });
        }
        let state = state.ok_or(ConfigurationError::NoState)?;
        for source in &sources {
            access::check_place(&source.access, &state).map_err(|problem| {
                ConfigurationError::Source {
                    name: source.name.to_string(),
                    problem,
                }
            })?;
        }
        let retention = file.retention.check().map_err(invalid("retention"))?;
        let log_limit = match file.log_limit.map_or(Ok(LOG_LIMIT), Size::bytes) {
            Ok(0) => Err("must be more than 0".to_owned()),
            read => read,
        };
        let log_limit = log_limit.map_err(invalid("log_limit"))?;
        let cycle_pause = file.cycle_pause.map_or(Ok(CYCLE_PAUSE), Pause::read);
        let cycle_pause = cycle_pause.map_err(invalid("cycle_pause"))?;
        let backup_within = file.backup_within.map(|text| duration(&text)).transpose();
        let backup_within = backup_within.map_err(invalid("backup_within"))?;
        let heartbeat = file.heartbeat.map(FileHeartbeat::check).transpose();
        let heartbeat = heartbeat.map_err(invalid("heartbeat"))?;
        let allow = file.outbound.allow.iter().map(|text| {
            let allowed = text.parse::<Allowed>();
            allowed.map_err(|error| format!("`{text}`: {error}"))
        });
        let allow: Result<_, _> = allow.collect();
        let allow = allow.map_err(invalid("outbound.allow"))?;
        let named = options
            .config
            .as_ref()
            .map(|path| path.display().to_string());
        let named = named.unwrap_or_else(|| "the configuration file".to_owned());
        let url = file.url.map(|url| url.trim_end_matches('/').to_owned());
        if let Some(url) = &url {
            outbound::check_url(url).map_err(|error| invalid("url")(error.to_string()))?;
        }
        let callback = file.callback.map(|file| file.check(url.as_deref(), &base));
        let callback = callback.transpose().map_err(invalid("callback"))?;
        let commands = file.notify_commands.into_iter().map(|(name, command)| {
            let checked = command.check(&base);
            let checked = checked.map_err(|problem| format!("`{name}`: {problem}"));
            Ok((name, checked.map_err(invalid("notify_commands"))?))
        });
        let zones = callback
            .iter()
            .flat_map(|callback| &callback.listening.zones);
        let zones = zones.map(ToString::to_string).collect();
        let delivery = delivery::Settings {
            outbound: Outbound::new(allow, named, outbound::Limits::default()).refusing(zones),
            commands: commands.collect::<Result<_, ConfigurationError>>()?,
            url,
        };
        let blob_quota = file.blob_quota.map(Size::bytes).transpose();
        let blob_quota = blob_quota.map_err(invalid("blob_quota"))?;
        let key_file = options
            .secret_key_file
            .or_else(|| file.secret_key_file.map(|path| base.join(path)));
        let old_key_files = match options.old_secret_key_files {
            none if none.is_empty() => {
                let paths = file.old_secret_key_files.iter();
                paths.map(|path| base.join(path)).collect()
            }
            given => given,
        };
        let secret_keys = secret_keys(key_file, old_key_files, &state)?;
        let certificate = callback.as_ref().and_then(|it| it.certificate.as_ref());
        if let (Some(CertificateSource::Authority(_)), None) = (certificate, &secret_keys) {
            let problem = "acme: needs `secret_key_file`: account and key are sealed with it";
            return Err(invalid("callback")(problem.to_owned()));
        }
        let tls = match (options.tls_cert, options.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            // Each of the flags requires the other.
            _ => file.tls.map(|tls| TlsFiles {
                certificate: base.join(tls.cert),
                key: base.join(tls.key),
            }),
        };
        let base_path = options.base_path.map_or_else(|| file.base_path.parse(), Ok);
        let base_path = base_path.map_err(invalid("base_path"))?;
        Ok(Self {
            log_form: options.log_form,
            listen: options.listen.or(listen).unwrap_or(LISTEN),
            insecure_http: options.insecure_http || file.insecure_http,
            tls,
            trusted_proxies: addresses("trust_proxy", options.trust_proxy, &file.trust_proxy)?,
            base_path,
            local_from: addresses("local_from", options.local_from, &file.local_from)?,
            requests: file.rate_limit.map_or(Some(REQUESTS), FileRate::rate),
            daemon: DaemonSettings {
                state,
                allow_network_state: options.allow_network_state || file.allow_network_state,
                sources,
                secret_keys,
                retention,
                log_limit,
                cycle_pause,
                blobs: BlobSettings {
                    quota: blob_quota,
                    versions: blob_versions(file.blob_versions)?,
                },
                backup_within,
                heartbeat,
                delivery,
                callback,
            },
        })
    }
}

fn duration(text: &str) -> Result<TimeDelta, String> {
    workflow::parse_duration(text).map_err(|error| error.to_string())
}

/// The addresses of flags, or else those of the file.
fn addresses(
    key: &'static str,
    flags: Vec<Cidr>,
    file: &[String],
) -> Result<Vec<Cidr>, ConfigurationError> {
    if !flags.is_empty() {
        return Ok(flags);
    }
    let parsed: Result<_, String> = file.iter().map(|text| text.parse()).collect();
    parsed.map_err(invalid(key))
}

/// How many former contents of blobs are kept, by folder.
fn blob_versions(folders: BTreeMap<String, u8>) -> Result<KeptVersions, ConfigurationError> {
    let mut checked = BTreeMap::new();
    for (folder, kept) in folders {
        let refused = |problem| {
            let folder = folder.clone();
            Err(ConfigurationError::BlobVersions { folder, problem })
        };
        if kept > BLOB_VERSIONS {
            return refused(format!("may keep at most {BLOB_VERSIONS}"));
        }
        let names = match folder.trim_matches('/') {
            // All folders of the project.
            "" => Vec::new(),
            path => match path.parse::<BlobPath>() {
                Ok(path) => path.names().to_vec(),
                Err(error) => return refused(format!("is no folder: it {error}")),
            },
        };
        if checked.insert(names, kept).is_some() {
            return refused("is named twice".to_owned());
        }
    }
    Ok(KeptVersions::new(checked))
}

/// Reads the key files. Each key is checked, so that a wrong file is found at the start and not when a secret is opened.
fn secret_keys(
    current: Option<PathBuf>,
    old: Vec<PathBuf>,
    state: &Path,
) -> Result<Option<SealingKeys>, ConfigurationError> {
    let Some(current) = current else {
        return match old.is_empty() {
            true => Ok(None),
            false => Err(ConfigurationError::NoCurrentKey),
        };
    };
    let current = secret_key::read(&current, state)?;
    let mut old_keys = Vec::new();
    for path in old {
        let key = secret_key::read(&path, state)?;
        if key == current {
            return Err(ConfigurationError::OldKeyIsCurrent { path });
        }
        old_keys.push(key);
    }
    Ok(Some(SealingKeys::new(current, old_keys)))
}

fn read(path: &Path) -> Result<File, ConfigurationError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    serde_yaml::from_str(&text).map_err(|error| ConfigurationError::Invalid {
        path: path.to_owned(),
        problem: error.without_snippet().to_string(),
    })
}

#[cfg(test)]
mod tests;
