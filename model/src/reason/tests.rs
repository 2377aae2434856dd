use super::*;

/// Every reason once. The match has no wildcard, so that a new reason must be added here.
fn all() -> impl Iterator<Item = Reason> {
    let text = || "x".to_owned();
    let successor = move |reason: Option<&Reason>| {
        Some(match reason {
            None => Reason::Dispatched,
            Some(Reason::Dispatched) => Reason::Rerun { of: JobId::FIRST },
            Some(Reason::Rerun { .. }) => Reason::Retry { of: JobId::FIRST },
            Some(Reason::Retry { .. }) => Reason::RetryDue {
                at: Timestamp::UNIX_EPOCH,
                attempt: 2,
                attempts: 4,
            },
            Some(Reason::RetryDue { .. }) => Reason::Claimed,
            Some(Reason::Claimed) => Reason::StepsSucceeded,
            Some(Reason::StepsSucceeded) => Reason::StepFailed {
                step: 1,
                exit_code: Some(2),
            },
            Some(Reason::StepFailed { .. }) => Reason::ArtifactFailed { message: text() },
            Some(Reason::ArtifactFailed { .. }) => Reason::EnvFailed { message: text() },
            Some(Reason::EnvFailed { .. }) => Reason::CheckoutFailed { message: text() },
            Some(Reason::CheckoutFailed { .. }) => Reason::SetupFailed { message: text() },
            Some(Reason::SetupFailed { .. }) => Reason::RunnerStopped { message: text() },
            Some(Reason::RunnerStopped { .. }) => Reason::RunnerLost,
            Some(Reason::RunnerLost) => Reason::Restored,
            Some(Reason::Restored) => Reason::CancelledByUser,
            Some(Reason::CancelledByUser) => Reason::TimedOut,
            Some(Reason::TimedOut) => Reason::SessionExpired,
            Some(Reason::SessionExpired) => Reason::Suspended {
                part: SuspendedPart::Workflow,
                since: Timestamp::UNIX_EPOCH,
                by: Actor::Daemon,
                text: text(),
            },
            Some(Reason::Suspended { .. }) => Reason::Retired,
            Some(Reason::Retired) => Reason::SourceDropped,
            Some(Reason::SourceDropped) => Reason::CyclePause {
                at: Timestamp::UNIX_EPOCH,
            },
            Some(Reason::CyclePause { .. }) => Reason::NoRunner,
            Some(Reason::NoRunner) => Reason::NoRunnerConnected { registered: 2 },
            Some(Reason::NoRunnerConnected { .. }) => Reason::NoRunnerFits {
                labels: vec![text()],
            },
            Some(Reason::NoRunnerFits { .. }) => Reason::RunnersExclusive { runners: 2 },
            Some(Reason::RunnersExclusive { .. }) => Reason::RunnersTooOld { capability: text() },
            Some(Reason::RunnersTooOld { .. }) => Reason::RunnersBusy {
                runners: 2,
                jobs: vec![JobId::FIRST],
                more: 1,
                over: 1,
                ahead: Ahead::default(),
            },
            Some(Reason::RunnersBusy { .. }) => Reason::NotFetched {
                ahead: Ahead::default(),
            },
            Some(Reason::NotFetched { .. }) => Reason::Fetched,
            Some(Reason::Fetched) => Reason::FetchFailed { message: text() },
            Some(Reason::FetchFailed { .. }) => Reason::CredentialsRefused { message: text() },
            Some(Reason::CredentialsRefused { .. }) => Reason::EmptyRepository,
            Some(Reason::EmptyRepository) => Reason::NeverFetched,
            Some(Reason::NeverFetched) => Reason::FolderMissing { folder: text() },
            Some(Reason::FolderMissing { .. }) => Reason::NoWorkflows { folder: text() },
            Some(Reason::NoWorkflows { .. }) => Reason::FolderUnreadable {
                folder: text(),
                what: text(),
            },
            Some(Reason::FolderUnreadable { .. }) => Reason::RemovalHeld {
                source: "recon".parse().unwrap(),
                workflows: 3,
                names: vec![text(), text()],
                folder: None,
            },
            Some(Reason::RemovalHeld { .. }) => Reason::FilesValid,
            Some(Reason::FilesValid) => Reason::FilesInvalid {
                invalid: 1,
                files: 2,
                without_good: 1,
            },
            Some(Reason::FilesInvalid { .. }) => Reason::TipActive,
            Some(Reason::TipActive) => Reason::TipPartlyActive {
                active: 1,
                files: 2,
            },
            Some(Reason::TipPartlyActive { .. }) => Reason::ApplyFailed {
                file: text(),
                message: text(),
                files: 2,
            },
            Some(Reason::ApplyFailed { .. }) => Reason::SlotDue {
                slot: Timestamp::UNIX_EPOCH,
                schedule: Some(text()),
            },
            Some(Reason::SlotDue { .. }) => Reason::ExpressionTrue,
            Some(Reason::ExpressionTrue) => Reason::ExpressionFalse,
            Some(Reason::ExpressionFalse) => Reason::ExpressionFailed { message: text() },
            Some(Reason::ExpressionFailed { .. }) => Reason::SlotsMissed,
            Some(Reason::SlotsMissed) => Reason::Overlap { job: JobId::FIRST },
            Some(Reason::Overlap { .. }) => Reason::Replaced { by: JobId::FIRST },
            Some(Reason::Replaced { .. }) => Reason::Expired,
            Some(Reason::Expired) => Reason::DeletedByUser,
            Some(Reason::DeletedByUser) => Reason::Pruned,
            Some(Reason::Pruned) => Reason::ClockSetBack {
                cursor: Timestamp::UNIX_EPOCH,
            },
            Some(Reason::ClockSetBack { .. }) => Reason::CallbackHeard {
                name: text(),
                first: 3,
                last: 5,
                count: 2,
            },
            Some(Reason::CallbackHeard { .. }) => Reason::OwnCallbacks,
            Some(Reason::OwnCallbacks) => return None,
        })
    };
    std::iter::successors(successor(None), move |reason| successor(Some(reason)))
}

#[test]
fn the_code_is_the_serialised_tag() {
    let mut codes = std::collections::BTreeSet::new();
    for reason in all() {
        let json = serde_json::to_value(&reason).unwrap();
        assert_eq!(json["code"], reason.code());
        assert!(
            codes.insert(reason.code()),
            "two reasons have the code {}",
            reason.code()
        );
        assert!(!reason.to_string().is_empty());
        assert_eq!(serde_json::from_value::<Reason>(json).unwrap(), reason);
    }
}

/// A record of an older daemon has no schedule. The other records of a scan with one schedule look the same.
#[test]
fn a_slot_of_an_older_record_has_no_schedule() {
    let older = r#"{"code":"slot_due","slot":"2026-11-21T11:00:00Z"}"#;
    let reason: Reason = serde_json::from_str(older).unwrap();
    assert_eq!(
        reason.to_string(),
        "its schedule was due at 2026-11-21T11:00:00Z"
    );
    assert_eq!(serde_json::to_string(&reason).unwrap(), older);

    let newer = r#"{"code":"slot_due","slot":"2026-11-21T11:00:00Z","schedule":"0 11 * * 6"}"#;
    let reason: Reason = serde_json::from_str(newer).unwrap();
    assert_eq!(
        reason.to_string(),
        "its schedule `0 11 * * 6` was due at 2026-11-21T11:00:00Z"
    );
    assert_eq!(serde_json::to_string(&reason).unwrap(), newer);
}

#[test]
fn the_reasons_of_jobs_are_reasons() {
    let codes: std::collections::BTreeSet<_> = all().map(|reason| reason.code()).collect();
    let of_jobs = Reason::OF_JOBS.iter().copied().collect();
    assert!(codes.is_superset(&of_jobs), "{of_jobs:?}");
}

#[test]
fn only_files_with_a_valid_version_are_reported_as_active() {
    for (without_good, expected) in [
        (
            0,
            "3 of 5 workflow files invalid; the last valid versions stay active",
        ),
        (
            1,
            "3 of 5 workflow files invalid; the last valid versions of 2 stay active, the rest have none yet",
        ),
        (3, "3 of 5 workflow files invalid; no valid version so far"),
    ] {
        let reason = Reason::FilesInvalid {
            invalid: 3,
            files: 5,
            without_good,
        };
        assert_eq!(reason.to_string(), expected);
    }
}

#[test]
fn a_record_of_an_older_version_can_be_read() {
    let stored = r#"{"code":"files_invalid","invalid":1,"files":2}"#;
    let reason: Reason = serde_json::from_str(stored).unwrap();
    assert_eq!(
        reason.to_string(),
        "1 of 2 workflow files invalid; the last valid versions stay active"
    );
}
