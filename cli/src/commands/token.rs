use std::time::Duration;

use chrono::TimeDelta;
use clap::Subcommand;
use wire::{CreateToken, CreatedToken, Page, RegenerateToken, Token};

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time, time_or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an access token and print it; it is shown only once
    Create {
        /// Name of the token; the audit log shows it with each action
        #[arg(long, env = "SERVICE_NAME")]
        name: String,
        /// What it may do, as in job:read; may be repeated
        #[arg(long, env = "SERVICE_SCOPE", required = true, value_delimiter = ',')]
        scope: Vec<String>,
        /// A project of the token; may be repeated; without it, all projects of your token
        #[arg(long, env = "SERVICE_PROJECT", value_delimiter = ',')]
        project: Vec<String>,
        /// When it ends, as in 30d, or never; no later than the token that makes it
        #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = parse_life, default_value = "90d")]
        expires_in: Life,
        /// A service user that owns it, instead of you; for administrators
        #[arg(long, env = "SERVICE_USER", value_name = "NAME")]
        user: Option<String>,
    },
    /// List your access tokens without their secrets
    List {
        /// The tokens of all users; for administrators
        #[arg(long, env = "SERVICE_ALL", conflicts_with = "user")]
        all: bool,
        /// The tokens of this user; only administrators see the tokens of others
        #[arg(long, env = "SERVICE_USER", value_name = "NAME")]
        user: Option<String>,
    },
    /// Give an access token to another user; for administrators
    Move {
        /// Name or id of the token
        token: String,
        /// Name of the new owner
        user: String,
    },
    /// Give an access token a new secret and print it; it is shown only once
    Regenerate {
        /// Name or id of the token
        token: String,
        /// How long the current secret is still accepted, as in 1h, up to a day; without it, not at all
        #[arg(long, env = "SERVICE_OVERLAP", value_name = "DURATION", value_parser = parse_duration)]
        overlap: Option<Duration>,
        /// When it expires, as in 30d, but not extended beyond the end of the token in use; without it, as before
        #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = parse_new_life)]
        expires_in: Option<Duration>,
    },
    /// Revoke an access token; its open streams end
    Revoke {
        /// Name or id of the token
        token: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Limited(Duration),
    Unlimited,
}

impl Life {
    pub(crate) fn seconds(self) -> Option<u64> {
        match self {
            Self::Limited(life) => Some(life.as_secs()),
            Self::Unlimited => None,
        }
    }

    /// Whether a new token ends before this life. Two clocks of the daemon, which may differ a little, made its two times.
    fn is_cut(self, token: &Token) -> bool {
        let life = match self {
            Self::Limited(life) => TimeDelta::from_std(life).ok(),
            Self::Unlimited => None,
        };
        let given = token.expires_at.map(|end| end - token.created_at);
        given.is_some_and(|given| life.is_none_or(|life| given < life - TimeDelta::minutes(1)))
    }
}

/// A new secret of a token does not make it endless.
fn parse_new_life(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Err(
            "a token that ends is not made endless; `everscan token create --expires-in never` makes one without an end"
                .to_owned(),
        ),
        _ => parse_duration(text),
    }
}

pub(crate) fn parse_life(text: &str) -> Result<Life, String> {
    match text {
        "never" => Ok(Life::Unlimited),
        _ => parse_duration(text).map(Life::Limited),
    }
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Create {
                name,
                scope,
                project,
                expires_in,
                user,
            } => {
                let request = CreateToken {
                    name,
                    scopes: scope,
                    projects: (!project.is_empty()).then_some(project),
                    expires_in_seconds: expires_in.seconds(),
                    never_expires: expires_in == Life::Unlimited,
                    user,
                };
                let created = client.create_token(&request).await?;
                let is_cut = expires_in.is_cut(&created.token);
                show_secret(session, &created, is_cut)?;
            }
            Self::List { all, user } => {
                let user = if all { Some("all") } else { user.as_deref() };
                let tokens = client.tokens(user).await?;
                let warnings: Vec<String> = tokens.iter().filter_map(ends_soon).collect();
                session.show(&Page::all(tokens), table)?;
                for warning in warnings {
                    session.report(&warning);
                }
            }
            Self::Move { token, user } => {
                let token = client.move_token(&token, &user).await?;
                session.report(&format!("token {} belongs to {}", token.name, token.user));
            }
            Self::Regenerate {
                token,
                overlap,
                expires_in,
            } => {
                let request = RegenerateToken {
                    overlap_seconds: overlap.map_or(0, |overlap| overlap.as_secs()),
                    expires_in_seconds: expires_in.map(|duration| duration.as_secs()),
                };
                let created = client.regenerate_token(&token, &request).await?;
                show_secret(session, &created, false)?;
            }
            Self::Revoke { token } => {
                client.revoke_token(&token).await?;
                session.report(&format!("token {token} is revoked"));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn show_secret(
    session: &mut Session<'_>,
    created: &CreatedToken,
    is_cut: bool,
) -> Result<(), Error> {
    session.show(created, |created| format!("{}\n", created.secret))?;
    if let Some(end) = &created.token.expires_at {
        let cut = match is_cut {
            true => ", and not as long as you asked: it ends with the token that made it",
            false => "",
        };
        session.report(&format!("it is valid until {}{cut}", time(end)));
    }
    session.report("keep it in SERVICE_TOKEN or a file; it is not shown again");
    Ok(())
}

fn ends_soon(token: &Token) -> Option<String> {
    let end = token.expires_at.filter(|_| token.expires_soon)?;
    // The command uses the id, because a shell could interpret special characters of a name.
    let (name, id) = (&token.name, token.id);
    Some(format!(
        "token {name} expires at {}; `everscan token regenerate {id} --expires-in 90d` renews it",
        time(&end)
    ))
}

fn table(page: &Page<Token>) -> String {
    let mut table = Table::new(&[
        "NAME", "USER", "SCOPES", "PROJECTS", "CREATED", "EXPIRES", "USED", "ID",
    ]);
    for token in &page.items {
        let projects = token.projects.as_ref();
        let used = token.last_used.map(|day| day.to_string());
        table.row([
            token.name.clone(),
            token.user.clone(),
            token.scopes.join(","),
            projects.map_or("all".to_owned(), |projects| projects.join(",")),
            time(&token.created_at),
            time_or_dash(token.expires_at.as_ref()),
            used.unwrap_or("-".to_owned()),
            token.id.to_string(),
        ]);
    }
    table.text()
}
