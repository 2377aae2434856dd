//! Enums without data that exist in the domain and in `wire`.

use model::blob::LinkUse;
use reconciler::ArtifactPhase;

pub(crate) trait Convert<T> {
    fn converted(self) -> T;
}

/// Converts each variant to the variant with the same name. A new variant does not compile until it is listed.
macro_rules! convert {
    ($($from:ty => $to:ty { $($variant:ident)* })*) => {
        $(impl Convert<$to> for $from {
            fn converted(self) -> $to {
                match self {
                    $(<$from>::$variant => <$to>::$variant,)*
                }
            }
        })*
    };
}

macro_rules! convert_both_ways {
    ($($ours:ty, $theirs:ty { $($variant:ident)* })*) => {
        $(convert! {
            $ours => $theirs { $($variant)* }
            $theirs => $ours { $($variant)* }
        })*
    };
}

convert_both_ways! {
    model::Trigger, wire::Trigger { Dispatch Cron Expr Callback }
    model::StepStatus, wire::StepStatus { Running Succeeded Failed Cancelled Skipped }
    model::StepOutcome, wire::StepOutcome { Succeeded Failed Cancelled Skipped }
    model::SuspendedPart, wire::SuspendedPart { Workflow Scan }
    model::Role, wire::Role { Viewer Operator Maintainer }
    model::Scope, wire::Scope {
        ProjectRead ProjectWrite WorkflowRead WorkflowWrite WorkflowSuspend ConditionWrite JobRead JobWrite JobCancel
        Dispatch BlobRead BlobWrite SecretWrite NotifyRead NotifyWrite CallbackRead CallbackWrite PayloadRead PayloadWrite RunnerRead RunnerWrite MemberWrite TokenWrite
        Metrics Admin CallbackOwn
    }
    state::Stream, wire::Stream { Stdout Stderr Runner }
    ArtifactPhase, wire::ArtifactPhase { Packing Uploading }
    LinkUse, wire::BlobLinkUse { Get Put }
    workflow::Severity, wire::Severity { Error Warning }
    workflow::How, wire::How { Starts Reads }
}

// These enums of `wire` have further variants.
convert! {
    model::EndState => wire::JobState { Succeeded Failed Cancelled Skipped }
    model::KeyState => wire::KeyState { Current Old Missing }
    model::Missed => wire::NotMasked { TooShort NotRecognised }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_the_same_names_and_order_on_the_wire() {
        let scopes = model::Scope::ALL.iter().chain(model::Scope::OF_JOBS);
        let named = scopes.map(|scope| (Convert::converted(*scope), scope.name()));
        let expected = wire::Scope::ALL.iter().map(|it| (*it, it.as_str()));
        assert!(named.eq(expected));
    }
}
