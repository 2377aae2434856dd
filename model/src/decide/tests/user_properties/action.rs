//! Random actions.

use proptest::prelude::*;

use crate::Scope;

/// A random action. Numbers select from what there is, so that actions often conflict.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Begins an act. Other actions may come before its command is decided.
    Begin {
        by: u8,
        what: What,
        at: u8,
        whom: u8,
        role: u8,
    },
    /// Decides the command of an act that has begun.
    Finish {
        act: u8,
    },
    Accept {
        link: u8,
    },
    SignIn {
        whom: u8,
        with: Option<u8>,
    },
    SignOut {
        whom: u8,
    },
    MakeToken {
        whom: u8,
        scopes: u32,
        at: Option<u8>,
    },
    RevokeToken {
        token: u8,
    },
    StartJob {
        at: u8,
    },
    EndJob {
        job: u8,
    },
    Pass {
        minutes: i64,
    },
}

/// What a person or program does.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Dispatch,
    Suspend,
    SetVar,
    Register,
    Invite,
    SetMember,
    /// Deactivates or activates a user.
    Activate(bool),
    Promote(bool),
    Delete,
}

impl What {
    pub(super) fn scope(self) -> Scope {
        match self {
            Self::Dispatch => Scope::Dispatch,
            Self::Suspend => Scope::WorkflowSuspend,
            Self::SetVar => Scope::ProjectWrite,
            Self::Register => Scope::RunnerWrite,
            Self::Invite | Self::SetMember => Scope::MemberWrite,
            Self::Activate(_) | Self::Promote(_) | Self::Delete => Scope::Admin,
        }
    }
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => Just(What::Dispatch),
        2 => Just(What::Suspend),
        3 => Just(What::SetVar),
        2 => Just(What::Register),
        4 => Just(What::Invite),
        6 => Just(What::SetMember),
        3 => any::<bool>().prop_map(What::Activate),
        2 => any::<bool>().prop_map(What::Promote),
        1 => Just(What::Delete),
    ]
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let some = || any::<u8>();
    prop_oneof![
        24 => (some(), what(), some(), some(), some())
            .prop_map(|(by, what, at, whom, role)| Action::Begin { by, what, at, whom, role }),
        20 => (0..3_u8).prop_map(|act| Action::Finish { act }),
        6 => some().prop_map(|link| Action::Accept { link }),
        4 => (some(), prop::option::of(some())).prop_map(|(whom, with)| Action::SignIn { whom, with }),
        1 => some().prop_map(|whom| Action::SignOut { whom }),
        5 => (some(), any::<u32>(), prop::option::of(some()))
            .prop_map(|(whom, scopes, at)| Action::MakeToken { whom, scopes, at }),
        2 => some().prop_map(|token| Action::RevokeToken { token }),
        2 => some().prop_map(|at| Action::StartJob { at }),
        1 => some().prop_map(|job| Action::EndJob { job }),
        2 => (0..20_i64).prop_map(|minutes| Action::Pass { minutes }),
    ]
}
