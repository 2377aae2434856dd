//! Errors of the daemon, with their texts and exit codes.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use listen::TlsError;
use state::CopyError;
use store::OpenErrorKind;
use thiserror::Error;

use crate::configuration::ConfigurationError;
use crate::demo::DemoError;
use crate::exit;
use crate::limits::LEAST_OPEN_FILES;
use crate::logging::LogFilterError;
use crate::stop_signal::StopSignal;
use crate::up::UpError;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Log(#[from] LogFilterError),
    #[error(
        "the state folder {} is not a folder; choose an empty or missing folder, or an existing state folder",
        root.display()
    )]
    NotAFolder { root: PathBuf },
    #[error("cannot open the state")]
    Open(#[from] state::OpenError),
    #[error("cannot check the state")]
    Fsck(#[source] store::file::OpenError),
    #[error("cannot repair the state")]
    Repair(#[source] state::fsck::RepairError),
    #[error("cannot look into the state")]
    Inspect(#[from] state::inspect::InspectError),
    #[error("cannot write to standard output")]
    Output(#[source] std::io::Error),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(
        "refused to serve plain HTTP on {address}: tokens and secrets would cross the network in the clear"
    )]
    PlainHttp { address: SocketAddr },
    #[error(transparent)]
    Callback(#[from] callback::StartError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot start")]
    Start(#[from] state::PayloadError),
    #[error("at most {limit} files may be open at once, and the daemon needs {LEAST_OPEN_FILES}")]
    OpenFiles { limit: u64 },
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Fatal(#[from] state::Fatal),
    #[error("stopped, but the state was not closed cleanly")]
    Close(#[source] state::CloseError),
    #[error("the demonstration failed")]
    Demo(#[source] DemoError),
    #[error("the demonstration was stopped before its end; nothing of it is left")]
    DemoStopped(StopSignal),
    #[error(transparent)]
    Up(#[from] UpError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("cannot read the newer audit log")]
    LaterAudit(#[source] state::LaterAuditError),
    #[error("cannot end what was revoked: remove the restored state folder, and restore again")]
    EndCredentials(#[source] state::PayloadError),
    #[error("there is no user `{name}`\nhint: the state folder has these people: {people}")]
    NoSuchUser { name: String, people: String },
    #[error("cannot make a link")]
    UserLink(#[source] state::SubmitError),
    #[error("stopped; the copy is not whole, remove it")]
    CopyStopped(StopSignal),
}

impl From<DemoError> for Error {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Stopped(signal) => Self::DemoStopped(signal),
            error => Self::Demo(error),
        }
    }
}

fn of_opening(kind: OpenErrorKind) -> u8 {
    match kind {
        OpenErrorKind::InUse => exit::STATE_IN_USE,
        OpenErrorKind::NewerFormat => exit::NEWER_FORMAT,
        OpenErrorKind::Network | OpenErrorKind::Unusable => exit::STATE_UNUSABLE,
        OpenErrorKind::Full => exit::DISK_FULL,
        OpenErrorKind::Failed => exit::FAILED,
    }
}

const fn is_full(error: &state::PayloadError) -> bool {
    matches!(
        error,
        state::PayloadError::Submit(state::SubmitError::DiskFull)
            | state::PayloadError::Write(state::WriteError::DiskFull)
    )
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_)
            | Self::Log(_)
            | Self::Fsck(_)
            | Self::Repair(_)
            | Self::LaterAudit(_)
            | Self::NoSuchUser { .. }
            | Self::PlainHttp { .. }
            | Self::OpenFiles { .. }
            | Self::Tls(_) => exit::USAGE,
            Self::NotAFolder { .. } => exit::STATE_UNUSABLE,
            Self::Open(state::OpenError::Store(error)) => of_opening(error.kind()),
            Self::Copy(CopyError::Open(error)) => of_opening(error.kind()),
            Self::Copy(CopyError::NotEmpty { .. } | CopyError::Inside { .. }) => exit::USAGE,
            Self::Copy(CopyError::Busy { .. }) => exit::STATE_IN_USE,
            Self::Copy(
                CopyError::NotABackup { .. }
                | CopyError::NotWhole { .. }
                | CopyError::NoState { .. },
            ) => exit::STATE_UNUSABLE,
            Self::Copy(CopyError::Disk(error)) if error.is_full() => exit::DISK_FULL,
            Self::Open(state::OpenError::Restored(state::SubmitError::DiskFull)) => exit::DISK_FULL,
            Self::Open(state::OpenError::Read(_)) => exit::STATE_UNUSABLE,
            Self::Open(state::OpenError::Newer { .. }) => exit::NEWER_FORMAT,
            Self::Open(state::OpenError::Keep { source, .. }) if source.is_full() => {
                exit::DISK_FULL
            }
            Self::Open(state::OpenError::Replace {
                source: store::CommitError::Full,
                ..
            }) => exit::DISK_FULL,
            Self::Open(state::OpenError::Keep { .. } | state::OpenError::Replace { .. }) => {
                exit::FAILED
            }
            Self::Start(error) | Self::EndCredentials(error) if is_full(error) => exit::DISK_FULL,
            Self::UserLink(state::SubmitError::DiskFull) => exit::DISK_FULL,
            Self::Up(UpError::Running { .. }) => exit::STATE_IN_USE,
            Self::Up(UpError::Folder { source, .. }) if source.kind() == ErrorKind::StorageFull => {
                exit::DISK_FULL
            }
            Self::Open(
                state::OpenError::Thread(_)
                | state::OpenError::Restored(_)
                | state::OpenError::Mark(_),
            )
            | Self::Copy(
                CopyError::Disk(_) | CopyError::HoldEnded | CopyError::TooBusy | CopyError::Stopped,
            )
            | Self::Output(_)
            | Self::Start(_)
            | Self::EndCredentials(_)
            | Self::UserLink(_)
            | Self::Runtime(_)
            | Self::Callback(callback::StartError::Thread(_))
            | Self::Inspect(_)
            | Self::Demo(_)
            | Self::Up(_) => exit::FAILED,
            Self::DemoStopped(StopSignal::Interrupt) | Self::CopyStopped(StopSignal::Interrupt) => {
                exit::INTERRUPTED
            }
            Self::DemoStopped(StopSignal::Terminate) | Self::CopyStopped(StopSignal::Terminate) => {
                exit::TERMINATED
            }
            Self::Listen { .. } | Self::Callback(callback::StartError::Bind { .. }) => {
                exit::ADDRESS
            }
            Self::Fatal(fatal) if fatal.is_pulled_away => exit::STATE_PULLED_AWAY,
            Self::Fatal(_) => exit::COMMIT_FAILED,
            Self::Close(state::CloseError::Store(error)) => match error {
                store::CloseError::Fault(_) => exit::COMMIT_FAILED,
                store::CloseError::Unfinished => exit::DISK_FULL,
            },
            Self::Close(state::CloseError::Failed(_)) => exit::COMMIT_FAILED,
            Self::Close(state::CloseError::Panicked) => exit::FAILED,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        if self.exit_code() == exit::DISK_FULL {
            return Some("make room on that disk and start again");
        }
        match self {
            Self::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                Some("give another port with --listen ADDRESS:PORT; port 0 takes a free one")
            }
            Self::Tls(TlsError::Unfit { .. }) => Some(
                "HTTPS of callback servers needs one certificate for each zone and for every name in it: `example.org` and \
                 `*.example.org`",
            ),
            Self::Callback(callback::StartError::Bind { source, .. }) => match source.kind() {
                ErrorKind::AddrInUse => Some(
                    "end the other program that uses this port. On port 53 it is often systemd-resolved, on 127.0.0.53: name the public \
                     address of this machine instead of 0.0.0.0",
                ),
                ErrorKind::PermissionDenied => Some(
                    "a port below 1024 needs a right: `AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit for systemd",
                ),
                _ => None,
            },
            Self::PlainHttp { .. } => Some(
                "give it a certificate (--tls-cert and --tls-key); or listen on 127.0.0.1 and put Caddy or nginx with TLS in front, \
                 or come through an SSH tunnel: ssh -L 7411:127.0.0.1:7411 HOST (docs/operating.md, TLS); --insecure-http serves it all the same",
            ),
            Self::OpenFiles { .. } => Some(
                "raise the limit: `ulimit -n 4096` in the shell that starts it, or `LimitNOFILE=4096` in its unit for systemd",
            ),
            Self::Open(state::OpenError::Store(error))
                if error.kind() == OpenErrorKind::Network =>
            {
                Some("to use it all the same, give --allow-network-state")
            }
            Self::Fatal(fatal) if fatal.is_pulled_away => Some(
                "the last changes that were acknowledged may be in `journal/` only. If another daemon has the folder now, leave it to \
                 that one. Otherwise put back what is missing, or restore a backup, before the next start",
            ),
            Self::Up(UpError::Missing { .. }) => {
                Some("make the folder first, or name another one: everscand up DIR")
            }
            Self::Up(UpError::Sha256 { .. }) => {
                Some("push the files to a repository made with `git init --object-format=sha1`")
            }
            _ => None,
        }
    }

    pub(crate) fn report(&self) -> String {
        let mut text = format!("error: {self}");
        for cause in model::causes(self) {
            text.push_str(&format!("\n  caused by: {cause}"));
        }
        if let Some(hint) = self.hint() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: Error, code: u8, hint: Option<&str>) {
        assert_eq!(error.exit_code(), code);
        let report = error.report();
        match hint {
            Some(hint) => {
                let last = report.lines().last().unwrap_or_default();
                assert!(
                    last.starts_with("hint: ") && last.contains(hint),
                    "{report}"
                );
            }
            None => assert!(!report.contains("hint: "), "{report}"),
        }
    }

    #[test]
    fn errors_that_a_person_can_mend_have_a_hint() {
        let listen = |kind: ErrorKind| Error::Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 7411)),
            source: kind.into(),
        };
        check(listen(ErrorKind::AddrInUse), exit::ADDRESS, Some("port 0"));
        check(listen(ErrorKind::PermissionDenied), exit::ADDRESS, None);
        let callback = |kind: ErrorKind| callback::StartError::Bind {
            service: "DNS",
            address: SocketAddr::from(([192, 0, 2, 1], 53)),
            source: kind.into(),
        };
        let taken = callback(ErrorKind::AddrInUse).into();
        check(taken, exit::ADDRESS, Some("systemd-resolved"));
        let denied = callback(ErrorKind::PermissionDenied).into();
        check(denied, exit::ADDRESS, Some("CAP_NET_BIND_SERVICE"));
        let foreign = callback(ErrorKind::AddrNotAvailable).into();
        check(foreign, exit::ADDRESS, None);
        let few = Error::OpenFiles { limit: 100 };
        check(few, exit::USAGE, Some("ulimit -n"));
        let missing = UpError::Missing {
            path: PathBuf::from("/missing"),
        };
        check(missing.into(), exit::FAILED, Some("make the folder"));
        let folder = |kind: ErrorKind| UpError::Folder {
            path: PathBuf::from("/home/ada"),
            source: kind.into(),
        };
        let full = folder(ErrorKind::StorageFull);
        check(full.into(), exit::DISK_FULL, Some("make room"));
        let denied = folder(ErrorKind::PermissionDenied);
        check(denied.into(), exit::FAILED, None);
        let full = Error::Start(state::SubmitError::DiskFull.into());
        check(full, exit::DISK_FULL, Some("make room"));
        let unfinished = store::CloseError::Unfinished;
        let full = Error::Close(unfinished.into());
        check(full, exit::DISK_FULL, Some("make room"));
        let fatal = |is_pulled_away| {
            let message = "could not go on".to_owned();
            Error::Fatal(state::Fatal {
                message,
                is_pulled_away,
            })
        };
        check(fatal(false), exit::COMMIT_FAILED, None);
        check(fatal(true), exit::STATE_PULLED_AWAY, Some("put back"));
    }
}
