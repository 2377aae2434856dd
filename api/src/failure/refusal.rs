//! A refused command as a failure of its request.

use http::header::ETAG;
use model::decide::{Refusal, Remedy};
use model::{Made, Scope, SuspendedPart};
use reconciler::SecretError;
use wire::{ErrorCode, FieldError};
use workflow::InputError;

use super::{Failure, RESTORE, shorten};
use crate::precondition::etag;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::NoSuchWorkflow { .. } => Self::new(ErrorCode::WorkflowNotFound, text)
                .hint("`everscan workflow list` shows the workflows"),
            Refusal::NoSuchScan { known, .. } => Self::new(ErrorCode::NotFound, text).names(
                Scope::WorkflowRead,
                format!("the workflow has: {}", known.join(", ")),
            ),
            Refusal::NoSuchRunner
            | Refusal::NoSuchSession
            | Refusal::NoSuchVar { .. }
            | Refusal::NoSuchSecret { .. } => Self::new(ErrorCode::NotFound, text),
            Refusal::NoSuchChannel { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan notify channel list` shows the channels"),
            Refusal::NoSuchRule { is_in_file: true, .. } => Self::new(ErrorCode::NotFound, text)
                .hint("remove it from `everscan.yaml` in the repository"),
            Refusal::NoSuchRule { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan notify rule list` shows the rules"),
            Refusal::NoSuchSource { .. } => Self::new(ErrorCode::SourceNotFound, text),
            Refusal::NoSuchProject { .. } => Self::new(ErrorCode::ProjectNotFound, text),
            Refusal::NoSuchBlob { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan blob ls` shows the blobs; `everscan blob sync` fetches a folder"),
            Refusal::NoSuchCondition { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan condition list` shows the open conditions"),
            Refusal::NoSuchCallback => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan callback list` shows the callback servers"),
            Refusal::NoSuchCallbackToken => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan callback token list` shows the names"),
            Refusal::CallbackExists { .. } => Self::new(ErrorCode::NameTaken, text),
            Refusal::TooManyCallbacks { .. } | Refusal::TooManyCallbackTokens { .. } => {
                Self::new(ErrorCode::QuotaExceeded, text).hint("delete one that is not needed any more")
            }
            Refusal::NoSuchPayloadGroup => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan payload group list` shows the payload groups"),
            Refusal::NoSuchPayload { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan payload list GROUP` shows the payloads"),
            Refusal::PayloadGroupExists { .. } => Self::new(ErrorCode::NameTaken, text),
            Refusal::PayloadLimit { .. } => Self::new(ErrorCode::QuotaExceeded, text)
                .hint("delete what is not needed any more; a payload is deleted with its versions"),
            Refusal::NoSuchBlobLink => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan blob links` shows the links"),
            Refusal::TooManyBlobLinks { .. } => Self::new(ErrorCode::QuotaExceeded, text)
                .hint("revoke some with `everscan blob unlink`; each ends after 7 days"),
            Refusal::BlobChanged { .. } => Self::new(ErrorCode::PreconditionFailed, text)
                .hint("read the blob again, then retry with its current version, or without a condition such as `--no-replace`"),
            Refusal::BlobIsFolder { .. } => Self::new(ErrorCode::PathConflict, text)
                .hint("give the blob another name, or put it into that folder"),
            Refusal::BlobIsNoFolder { .. } => Self::new(ErrorCode::PathConflict, text)
                .hint("choose another folder, or move that blob away"),
            Refusal::BlobFolderFull { .. } => Self::new(ErrorCode::FolderFull, text)
                .hint("make folders in it, by date or by the first letters of a name for example"),
            Refusal::QuotaExceeded { .. } => Self::new(ErrorCode::QuotaExceeded, text)
                .hint("remove blobs that are not needed with `everscan blob rm`; the operator sets `blob_quota`"),
            Refusal::PreconditionFailed {
                what,
                present,
                must_be_new,
                ..
            } => {
                let failure = Self::new(ErrorCode::PreconditionFailed, text);
                match present {
                    Some(version) if must_be_new => failure
                        .hint(match what {
                            "channel" => {
                                "choose another name, or change that channel with `everscan notify channel add … --replace`".to_owned()
                            }
                            _ => format!("choose another name, or edit version {version}"),
                        })
                        .header(ETAG, etag(version)),
                    Some(version) => failure
                        .hint(format!(
                            "somebody changed it: read version {version}, then repeat the edit with that version"
                        ))
                        .header(ETAG, etag(version)),
                    None => failure.hint("repeat the edit without a version to create it"),
                }
            }
            Refusal::NotTheTip { source_name, .. } => Self::new(ErrorCode::NotTheTip, text).hint(
                format!("review the newest tip with `everscan source show {source_name}`, and approve it"),
            ),
            Refusal::NoSuchToken => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan token list` shows the tokens that you can manage"),
            Refusal::LastAdmin => Self::new(ErrorCode::LastAdmin, text)
                .hint("`everscan token create --scope admin` makes one"),
            Refusal::Retired { .. } => Self::new(ErrorCode::Retired, text)
                .hint("push the file again to bring the workflow back"),
            Refusal::SourceDropped { .. } => Self::new(ErrorCode::Retired, text)
                .hint("name the source in the daemon's configuration again and restart the daemon"),
            Refusal::Suspended { part, workflow, scan, .. } => {
                Self::new(ErrorCode::Suspended, text).hint(match part {
                    SuspendedPart::Workflow => {
                        format!("`everscan workflow resume {}` lets it start jobs again", shorten(&workflow))
                    }
                    SuspendedPart::Scan => format!(
                        "`everscan scan resume {} {}` lets it start jobs again",
                        shorten(&workflow),
                        shorten(&scan)
                    ),
                })
            }
            Refusal::JobHeld { .. } => Self::new(ErrorCode::OfferLapsed, text),
            Refusal::WorkflowUnreadable { remedy, .. } => {
                Self::new(ErrorCode::WorkflowUnreadable, text).hint(match remedy {
                    Remedy::ValidFile { source_name } => format!(
                        "`everscan source show {source_name}` says what is wrong with its file; a valid one makes the next revision"
                    ),
                    Remedy::File => format!("push its file again, which makes the next revision; or: {RESTORE}"),
                    Remedy::Source => format!(
                        "name its source in the daemon's configuration again, which makes the next revision; or: {RESTORE}"
                    ),
                    Remedy::Backup => RESTORE.to_owned(),
                })
            }
            Refusal::RevisionChanged { .. } => {
                Self::new(ErrorCode::Unavailable, text).hint("try again")
            }
            Refusal::InvalidInputs { mut errors, .. } => {
                let similar = errors.iter_mut().filter_map(InputError::take_suggestion);
                let similar: Vec<String> = similar.map(|name| format!("`{name}`")).collect();
                let mut failure = Self::new(ErrorCode::InvalidInputs, text);
                if !similar.is_empty() {
                    let hint = format!("did you mean {}?", similar.join(", "));
                    failure = failure.names(Scope::WorkflowRead, hint);
                }
                failure.more.errors = errors
                    .into_iter()
                    .map(|error| FieldError {
                        field: format!("inputs.{}", error.input),
                        message: error.problem.to_string(),
                    })
                    .collect();
                failure
            }
            Refusal::IdempotencyMismatch => Self::new(ErrorCode::IdempotencyMismatch, text)
                .hint("use a fresh key for a new request"),
            Refusal::AlreadyDone { made } => {
                let mut failure = Self::new(ErrorCode::AlreadyDone, text).hint(match made {
                    Made::Job(_) => "use a fresh key for a new request".to_owned(),
                    Made::Token(id) => format!(
                        "if the first response is lost, `everscan token regenerate {id}` makes a new secret, and \
                         `everscan token revoke {id}` removes it"
                    ),
                    Made::Registration(_) => {
                        "if the first response is lost, make another registration token with a fresh key; this one expires"
                            .to_owned()
                    }
                    Made::BlobLink(_) => {
                        "if the first response is lost, make another link with a fresh key, and revoke this link with DELETE".to_owned()
                    }
                });
                failure.more.made = Some(made.uuid());
                failure
            }
            Refusal::JobOver { .. } => Self::new(ErrorCode::JobOver, text),
            Refusal::IllegalTransition(_) => Self::new(ErrorCode::IllegalTransition, text),
            Refusal::JobNotOver { .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint("`everscan job cancel` ends it")
            }
            Refusal::RerunNotOver { .. } => Self::new(ErrorCode::IllegalTransition, text)
                .hint("`everscan job wait` waits for its end; `everscan scan dispatch` starts another job"),
            Refusal::RetryNotOver { retry, .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint(format!(
                    "`everscan job wait {retry}` waits for its end; `everscan job cancel {retry}` ends it"
                ))
            }
            Refusal::ScanRetired { renamed_to, .. } => {
                let failure = Self::new(ErrorCode::Retired, text);
                match renamed_to {
                    Some(heir) => failure.names(
                        Scope::WorkflowRead,
                        format!("its name is `{heir}` now; `everscan scan dispatch` starts a job of it"),
                    ),
                    None => failure.hint("push a file that has the scan to bring it back"),
                }
            }
            Refusal::JobNotSilent { .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint("try again after that")
            }
            Refusal::NotYourJob { .. } | Refusal::NotServed { .. } => {
                Self::new(ErrorCode::OfferLapsed, text)
            }
            Refusal::BadReport { .. } | Refusal::UndeclaredArtifact { .. } => {
                Self::new(ErrorCode::InvalidRequest, text)
            }
            Refusal::ArtifactMismatch { .. } => Self::new(ErrorCode::ArtifactMismatch, text),
            Refusal::BadRegistration => Self::new(ErrorCode::Unauthorized, text)
                .hint("make a new one with `everscan runner register-token`"),
            Refusal::TooManyRegistrations { .. } => {
                Self::new(ErrorCode::QuotaExceeded, text).hint("each expires after 15 minutes")
            }
            Refusal::HistoryUnreadable { .. } => Self::new(ErrorCode::Internal, text)
                .hint("see the daemon's log; the next request reads the history again"),
            Refusal::RevisionUnreadable { .. } => {
                Self::new(ErrorCode::Internal, text).hint(RESTORE)
            }
            Refusal::TooManyJobs { .. } => Self::new(ErrorCode::TooManyJobs, text)
                .hint("try again when some have ended, or cancel what is not needed"),
            Refusal::TooManyTokens { .. } => Self::new(ErrorCode::TooManyTokens, text)
                .hint("use one token for many calls instead of one for each"),
            Refusal::Unwritable { .. } => Self::internal(&refusal),
            Refusal::NameTaken { .. } => Self::new(ErrorCode::NameTaken, text)
                .hint("give another name; `--replace` replaces only a runner of the same projects"),
            Refusal::RunnerOfOthers => Self::new(ErrorCode::Forbidden, text)
                .hint("name projects in which you have it; an administrator manages all runners"),
            Refusal::NoSecretKey => SecretError::NoKey.into(),
            Refusal::InvalidField { field, problem } => Self::invalid(field, problem),
            Refusal::TooStrong | Refusal::NotYourToken | Refusal::NotForOthers => {
                Self::new(ErrorCode::Forbidden, text)
            }
            Refusal::NoSuchUser => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan user list` shows the users"),
            Refusal::UserExists { .. } => Self::new(ErrorCode::NameTaken, text),
            Refusal::TooManyUsers { .. } => Self::new(ErrorCode::QuotaExceeded, text),
            Refusal::TooManyInvitations { .. } => Self::new(ErrorCode::QuotaExceeded, text).hint(
                "each ends when it is accepted, or after 72 hours; `everscan user delete NAME` ends one now",
            ),
            Refusal::NoSuchUserLink => Self::new(ErrorCode::NotFound, text).hint(
                "it was used, has expired, or who made it may not do so any more; ask for a new one",
            ),
            Refusal::MayNotGive => Self::new(ErrorCode::Forbidden, text).hint(
                "maintainers give roles in their own projects; administrators give the others",
            ),
            Refusal::OwnPassword => Self::new(ErrorCode::Forbidden, text)
                .hint("sign in and change it, or ask another administrator for a link"),
            Refusal::NoPasswordOf { .. } => Self::new(ErrorCode::Forbidden, text),
            Refusal::SignInAgain => Self::new(ErrorCode::SignInAgain, text)
                .hint("sign in again, on the command line with `everscan login`, and send this again; who has no password gets a link from `everscan session link`, with an access token"),
            Refusal::LastAdministrator => Self::new(ErrorCode::LastAdmin, text)
                .hint("`everscan user invite NAME --administrator` makes another one"),
            Refusal::NoRights => crate::failure::unauthorized(),
            Refusal::RightsReduced => {
                Self::new(ErrorCode::Forbidden, text).hint("send the request again")
            }
        }
    }
}
