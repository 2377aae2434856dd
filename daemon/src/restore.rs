//! `everscand restore`: restores a backup, lists the credentials in it, and ends those that were revoked after the backup.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use chrono::{NaiveDate, SecondsFormat};
use cli::Table;
use model::limits::CYCLE_PAUSE;
use model::restored::{Credential, Ending, UserPart, endings, sorted};
use model::{
    Entropy as _, PlainToken, Scope, Timestamp, Token, TokenId, TokenKind, User, UserId, UserState,
    World,
};
use serde::Serialize;
use state::{LaterAudit, Options, State};

use crate::arguments::{OutputForm, RestoreOptions};
use crate::backup::{interruptible, print, print_json};
use crate::error::Error;
use crate::logging;
use crate::system::{SystemClock, SystemEntropy};

#[derive(Serialize)]
struct Report {
    files: u64,
    bytes: u64,
    sequence: u64,
    /// The users who can act, or will when they accept their invitation.
    users: Vec<UserBack>,
    /// The valid tokens.
    tokens: Vec<CameBack>,
    /// Restored credentials that were ended.
    ended: Vec<Ended>,
    #[serde(skip_serializing_if = "is_zero")]
    unreadable_audit_lines: u64,
}

#[derive(Serialize)]
struct UserBack {
    name: String,
    is_administrator: bool,
    has_password: bool,
    has_open_link: bool,
    /// The role in each project.
    roles: BTreeMap<String, &'static str>,
    /// The signed-in browsers and devices of the whole person. Those of tokens are listed there.
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct CameBack {
    id: String,
    name: String,
    scopes: Vec<&'static str>,
    expires_at: Option<Timestamp>,
    last_used: Option<NaiveDate>,
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct Session {
    id: String,
    device: String,
    seen_at: Timestamp,
}

#[derive(Serialize)]
struct Ended {
    credential: &'static str,
    id: String,
    name: String,
    /// The kind of the action in the audit log, or `revoke_tokens`.
    because: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(crate) fn restore(options: RestoreOptions) -> Result<(), Error> {
    logging::to_stderr(logging::LogForm::Text)?;
    // Read this before anything is written.
    let audit = match &options.newer_audit {
        Some(newer) => later_audit(newer, &options.dir)?,
        None => LaterAudit::default(),
    };
    let root = options.state_dir.clone();
    let copied = interruptible(move |is_stopped| state::restore(&options.dir, &root, is_stopped))?;
    let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
    let (state, closing) = runtime.block_on(State::open(Options {
        root: options.state_dir.clone(),
        allow_network: options.allow_network_state,
        clock: Arc::new(SystemClock::new()),
        entropy: Box::new(SystemEntropy),
        cycle_pause: CYCLE_PAUSE,
    }))?;
    let sequence = state.found().0;
    let ended = state.read(|world| endings(world, &audit.later, options.revoke_tokens));
    let request = SystemEntropy.uuid_v4();
    let secret = PlainToken::random(TokenKind::Personal, &mut SystemEntropy);
    let ending = state.end_credentials(&ended, request, &secret);
    runtime.block_on(ending).map_err(Error::EndCredentials)?;
    let now = state.now();
    let tokens = state.read(|world| {
        let valid = sorted(world)
            .into_iter()
            .filter(|token| token.is_valid(now));
        valid.map(|token| CameBack::of(world, token, now)).collect()
    });
    let users = state.read(|world| {
        let able = world.users().filter(|user| match user.state {
            UserState::Invited | UserState::Active => true,
            UserState::Deactivated | UserState::Deleted => false,
        });
        able.map(|user| UserBack::of(world, user, now)).collect()
    });
    let new_admin = state.read(|world| {
        let token = world.token_of(&secret.hash())?;
        Some(world.user(token.owner)?.clone())
    });
    drop(state);
    closing.join().map_err(Error::Close)?;
    let report = Report {
        files: copied.files,
        bytes: copied.bytes,
        sequence,
        users,
        tokens,
        ended: ended.into_iter().map(Ended::of).collect(),
        unreadable_audit_lines: audit.unreadable,
    };
    match options.output {
        OutputForm::Json => print_json(&report),
        OutputForm::Text => {
            print(text(&report, &options.state_dir, new_admin.as_deref()).trim_end())
        }
    }
}

fn later_audit(newer: &Path, backup: &Path) -> Result<LaterAudit, Error> {
    let audit = LaterAudit::read(newer, backup).map_err(Error::LaterAudit)?;
    if audit.is_cut {
        tracing::warn!(
            "the journal of the newer state is damaged: what was revoked last may be missing in its audit log"
        );
    }
    if audit.unreadable > 0 {
        let lines = audit.unreadable;
        tracing::warn!(
            lines,
            "lines of the newer audit log cannot be read: each may have revoked something"
        );
    }
    Ok(audit)
}

fn text(report: &Report, state_dir: &Path, new_admin: Option<&User>) -> String {
    let place = state_dir.display();
    let mut text = format!(
        "{} files with {} bytes are restored to {place}, with every change up to {}. Runners have to \
         register again. The key that seals secrets was not in the backup: give the daemon the file it had.\n",
        report.files, report.bytes, report.sequence
    );
    if !report.users.is_empty() {
        text.push_str("\nThese users came back, as when the backup was made, with their signed-in browsers and devices:\n");
        let mut table = Table::new(&["USER", "ROLES", "PASSWORD", "OPEN LINK", "SESSIONS"]);
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        for user in &report.users {
            let roles = user.roles.iter();
            let roles = roles.map(|(project, role)| format!("{project}={role}"));
            let administrator = user.is_administrator.then(|| "administrator".to_owned());
            let roles: Vec<String> = administrator.into_iter().chain(roles).collect();
            table.row([
                user.name.clone(),
                roles.join(" "),
                yes(user.has_password),
                yes(user.has_open_link),
                user.sessions.len().to_string(),
            ]);
        }
        text.push_str(&table.text());
    }
    if report.tokens.is_empty() {
        text.push_str("\nNo token came back: the next start of the daemon makes a first one.\n");
    } else {
        text.push_str("\nThese tokens let in, as when the backup was made, and the browsers that are signed in with them:\n");
        let mut table = Table::new(&["TOKEN", "ID", "SCOPES", "EXPIRES", "LAST USED", "BROWSERS"]);
        for token in &report.tokens {
            let expires = token.expires_at.map_or_else(|| "never".to_owned(), shown);
            let used = token
                .last_used
                .map_or_else(|| "never".to_owned(), |day| day.to_string());
            table.row([
                token.name.clone(),
                token.id.clone(),
                token.scopes.join(" "),
                expires,
                used,
                token.sessions.len().to_string(),
            ]);
        }
        text.push_str(&table.text());
    }
    if !report.ended.is_empty() {
        text.push_str("\nThese came back and were ended:\n");
        let mut table = Table::new(&["WHAT", "NAME", "ID", "BECAUSE", "AT"]);
        for one in &report.ended {
            table.row([
                one.credential.to_owned(),
                one.name.clone(),
                one.id.clone(),
                one.because.to_owned(),
                one.at.map_or_else(String::new, shown),
            ]);
        }
        text.push_str(&table.text());
    }
    let passwords = report.ended.iter().filter(|one| one.is_password());
    let passwords: Vec<&str> = passwords.map(|one| one.name.as_str()).collect();
    if !passwords.is_empty() {
        text.push_str("\nThese users need a new password, because the backup has an old one. Before the start of the daemon:\n");
        for name in passwords {
            let _infallible = writeln!(text, "  everscand user reset {name} --state-dir {place}");
        }
    }
    if let Some(User { name, .. }) = new_admin {
        let _infallible = writeln!(
            text,
            "\nNo admin token was left. A new one is in {place}/initial-admin-token. It belongs to {name}, who is an administrator."
        );
    }
    text
}

fn shown(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The valid sessions of a user that were made with this token, or without one.
fn sessions(world: &World, user: UserId, with: Option<TokenId>, now: Timestamp) -> Vec<Session> {
    let sessions = world.signed_in(user, now).into_iter();
    let sessions = sessions.filter(|it| it.with.map(|it| it.token) == with);
    let shown = sessions.map(|session| Session {
        id: session.id.uuid().to_string(),
        device: session.device.clone(),
        seen_at: session.seen_at,
    });
    shown.collect()
}

impl UserBack {
    fn of(world: &World, user: &User, now: Timestamp) -> Self {
        let roles = user.roles.iter().map(|(project, role)| {
            let source = world.source_of(project);
            let name = source.map_or_else(|| project.to_string(), |it| it.name.to_string());
            (name, role.name())
        });
        Self {
            name: user.name.to_string(),
            is_administrator: user.is_administrator,
            has_password: user.password().is_some(),
            has_open_link: (user.link.as_ref()).is_some_and(|link| world.is_open(user, link, now)),
            roles: roles.collect(),
            sessions: sessions(world, user.id, None, now),
        }
    }
}

impl CameBack {
    fn of(world: &World, token: &Token, now: Timestamp) -> Self {
        Self {
            id: token.id.uuid().to_string(),
            name: token.name.clone(),
            scopes: token.scopes.iter().map(Scope::name).collect(),
            expires_at: token.expires_at,
            last_used: token.last_used,
            sessions: sessions(world, token.owner, Some(token.id), now),
        }
    }
}

impl Ended {
    fn is_password(&self) -> bool {
        self.credential == UserPart::Password.name()
    }

    fn of(ending: Ending) -> Self {
        let (credential, id) = match ending.credential {
            Credential::Token(token) => ("token", token.uuid()),
            Credential::Session(_, session) => ("session", session.uuid()),
            Credential::OfUser(user, part) => (part.name(), user.uuid()),
            Credential::Link(link) => ("link", link.uuid()),
        };
        Self {
            credential,
            id: id.to_string(),
            name: ending.name,
            because: ending
                .because
                .map_or("revoke_tokens", |(kind, _)| kind.name()),
            at: ending.because.map(|(_, at)| at),
        }
    }
}
