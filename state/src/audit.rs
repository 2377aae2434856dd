//! The audit log: one line for each commit that somebody caused with a person's credential. The commit itself contains
//! the line, so no such change lacks its line. A line belongs to the decision of its command: a new decision makes a
//! new line. Some lines have a commit of their own, because their action changed no record.
//!
//! A file has the lines of one day. Old days are removed with the first line of a new one.

use std::net::{IpAddr, Ipv4Addr};

use chrono::NaiveDate;
use model::decide::{Command, Decision, Refusal, Urgency};
use model::limits::AUDIT_ACTIONS;
use model::{
    AuditAction, AuditKind, Change, JobId, Moment, RunnerId, SessionId, Timestamp, TokenId, World,
    actions,
};
use serde::{Deserialize, Serialize};
use store::Key;
use uuid::Uuid;

use crate::error::ReadError;
use crate::layout::{Layout, RecordPlace};
use crate::limits::AUDIT_DAYS;
use crate::reader::StoreReader;
use crate::tail::{DayLedger, DayPage, DayPlace, day_page};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Absent if nobody was authenticated.
    #[serde(flatten)]
    pub actor: Option<AuditActor>,
    /// Absent if the line covers requests from several addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    pub method: String,
    pub path: String,
    /// The request's id in the daemon's log.
    pub request: Uuid,
}

impl AuditEntry {
    /// The line of a command that changes the state folder of a stopped daemon. Its caller may write that folder.
    pub fn of_program(command: &str, request: Uuid) -> Self {
        Self {
            actor: None,
            address: Some(Ipv4Addr::LOCALHOST.into()),
            method: "everscand".to_owned(),
            path: command.to_owned(),
            request,
        }
    }
}

/// The credential that the request used: a token, perhaps in the session of a browser; the token of a job; or the session of
/// a runner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditActor {
    /// The name of the user. Lines of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The name of the token, user or runner at that time, or `job` and an id.
    pub name: String,
    /// The session, if the request belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerId>,
}

impl AuditActor {
    /// True if a person calls the actor so: by its name or its id.
    fn is_called(&self, name: &str) -> bool {
        let ids = [
            self.token.map(TokenId::uuid),
            self.job.map(JobId::uuid),
            self.runner.map(RunnerId::uuid),
        ];
        self.name == name
            || self.user.as_deref() == Some(name)
            || ids.into_iter().flatten().any(|id| id.to_string() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// The actions. Lines of earlier versions lack them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<AuditAction>,
    /// How many further actions the line does not name, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_actions: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AuditRecord {
    fn new(at: Timestamp, entry: AuditEntry, mut actions: Vec<AuditAction>) -> Self {
        let more_actions = actions.len().saturating_sub(AUDIT_ACTIONS) as u64;
        actions.truncate(AUDIT_ACTIONS);
        Self {
            at,
            entry,
            actions,
            more_actions,
        }
    }
}

/// The audit lines that the commit of a command contains.
#[derive(Debug)]
pub(crate) enum Audited {
    /// A line for the request that submitted the command, with the command's changes. Without changes there is no line.
    Request(AuditEntry),
    /// A line for the claim of a runner, if its job gets secrets.
    Claim(AuditEntry),
    /// These lines, although no record changes.
    Lines(Vec<(AuditEntry, AuditAction)>),
}

impl Audited {
    /// The lines for a decision. `world` is the world before the decision; `time` is the world's time then.
    pub(crate) fn lines(
        &self,
        now: Timestamp,
        world: &World,
        time: Timestamp,
        changes: &[Change],
    ) -> Vec<AuditRecord> {
        match self {
            Self::Request(_) if changes.is_empty() => Vec::new(),
            Self::Request(entry) => {
                let actions = actions(world, time, changes);
                vec![AuditRecord::new(now, entry.clone(), actions)]
            }
            Self::Claim(entry) => {
                let mut actions = actions(world, time, changes);
                actions.retain(|action| action.kind == AuditKind::SecretRead);
                let line = || AuditRecord::new(now, entry.clone(), actions.clone());
                (!actions.is_empty()).then(line).into_iter().collect()
            }
            Self::Lines(lines) => lines
                .iter()
                .map(|(entry, action)| AuditRecord::new(now, entry.clone(), vec![action.clone()]))
                .collect(),
        }
    }
}

/// A command that changes nothing. It carries audit lines that belong to no change.
#[derive(Debug, Clone)]
pub(crate) struct NoChange;

impl Command for NoChange {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision::unchanged(()))
    }
}

impl DayLedger for AuditRecord {
    const DAYS: u64 = AUDIT_DAYS;
    const PLACE: RecordPlace = RecordPlace::Audit;

    fn file(day: NaiveDate) -> Key {
        Layout::audit(day)
    }
}

/// Selects lines of the audit log.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Lines of the user with this name, refused sign-ins as this user included, or of the token, job or runner with this
    /// id or name.
    pub actor: Option<String>,
    /// Lines with an action of this kind.
    pub kind: Option<AuditKind>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    fn takes(&self, record: &AuditRecord) -> bool {
        let is_of = |wanted: &String| {
            let actor = record.entry.actor.as_ref();
            let mut actions = record.actions.iter();
            actor.is_some_and(|actor| actor.is_called(wanted))
                || actions.any(|action| {
                    action.kind == AuditKind::SignInRefused && action.name.as_ref() == Some(wanted)
                })
        };
        let has = |kind| record.actions.iter().any(|action| action.kind == kind);
        self.actor.as_ref().is_none_or(is_of)
            && self.kind.is_none_or(has)
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at <= until)
    }
}

/// Reads the newest lines before a place.
pub(crate) async fn page(
    reader: &StoreReader,
    filter: &AuditFilter,
    from: Option<DayPlace>,
    limit: usize,
) -> Result<DayPage<AuditRecord>, ReadError> {
    let span = (filter.since, filter.until);
    day_page(reader, span, |record| filter.takes(record), from, limit).await
}

#[cfg(test)]
pub(crate) mod tests {
    use model::TokenId;

    use super::*;

    pub(crate) fn entry(name: &str) -> AuditEntry {
        AuditEntry {
            actor: Some(AuditActor {
                token: Some(TokenId::from_uuid(Uuid::from_u128(7))),
                name: name.to_owned(),
                ..AuditActor::default()
            }),
            address: Some("192.0.2.1".parse().unwrap()),
            method: "POST".to_owned(),
            path: "/v0/jobs/x/cancel".to_owned(),
            request: Uuid::from_u128(9),
        }
    }

    pub(crate) fn lines(at: Timestamp, names: &[&str]) -> Vec<AuditRecord> {
        let record = |name: &&str| AuditRecord::new(at, entry(name), Vec::new());
        names.iter().map(record).collect()
    }

    pub(crate) fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_line_of_an_earlier_version_is_read() {
        let line = concat!(
            r#"{"at":"2026-11-20T12:00:00Z","token":"00000000-0000-0000-0000-000000000007","name":"a","#,
            r#""address":"192.0.2.1","method":"POST","path":"/v0/jobs/x/cancel","#,
            r#""request":"00000000-0000-0000-0000-000000000009"}"#
        );
        let read: AuditRecord = serde_json::from_str(line).unwrap();
        let [record] = &lines(at("2026-11-20T12:00:00Z"), &["a"])[..] else {
            panic!()
        };
        assert_eq!(read, *record);
        assert_eq!(serde_json::to_string(record).unwrap(), line);
    }

    #[test]
    fn a_line_without_an_actor_is_read_and_matches_only_who_was_tried() {
        let noon = at("2026-11-20T12:00:00Z");
        let stranger = AuditEntry {
            actor: None,
            address: None,
            ..entry("")
        };
        let refused = AuditAction::sign_in_refused(3, Some(&"ann".parse().unwrap()));
        let record = AuditRecord::new(noon, stranger, vec![refused]);
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<AuditRecord>(&line).unwrap(), record);
        let of = |actor: Option<&str>, kind| AuditFilter {
            actor: actor.map(str::to_owned),
            kind,
            ..AuditFilter::default()
        };
        assert!(of(None, Some(AuditKind::SignInRefused)).takes(&record));
        assert!(!of(None, Some(AuditKind::SignedIn)).takes(&record));
        assert!(!of(Some("a"), None).takes(&record));
        assert!(of(Some("ann"), None).takes(&record), "who was tried");
    }

    #[test]
    fn a_line_names_a_limited_number_of_actions_and_counts_the_rest() {
        let noon = at("2026-11-20T12:00:00Z");
        let many = vec![AuditAction::sign_in_refused(u64::MAX, None); AUDIT_ACTIONS + 7];
        let record = AuditRecord::new(noon, entry("a"), many);
        assert_eq!(
            (record.actions.len(), record.more_actions),
            (AUDIT_ACTIONS, 7)
        );
    }
}
