//! `everscan user`

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use client::Client;
use wire::{CreateUser, Page, Role, UpdateUser, User, UserLink};

use super::one_of;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List users
    List,
    /// Make a user, and print the link with which a person sets a password
    Invite(Invite),
    /// Show a user
    Show {
        /// Name of the user
        user: String,
    },
    /// Shut a user out, until it is undone
    ///
    /// The user's sessions, tokens and links end, also those that the user gave to others. Runners and running jobs
    /// go on.
    Deactivate {
        /// Name of the user
        user: String,
        /// Let the user sign in again; what has ended stays ended
        #[arg(long, env = "SERVICE_UNDO")]
        undo: bool,
    },
    /// Make a user an administrator
    Administrator {
        /// Name of the user
        user: String,
        /// Make the user an ordinary user again
        #[arg(long, env = "SERVICE_UNDO")]
        undo: bool,
    },
    /// Print a link with which a user sets a new password
    Reset {
        /// Name of the user
        user: String,
    },
    /// Remove a user for ever; nobody gets the name again
    Delete {
        /// Name of the user
        user: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Invite {
    /// Name of the user: small letters, digits, dots, _ and -
    user: String,
    /// A program, which has tokens and neither a password nor sessions
    #[arg(long, env = "SERVICE_SERVICE")]
    service: bool,
    /// An administrator, who may do everything in all projects
    #[arg(long, env = "SERVICE_ADMINISTRATOR")]
    administrator: bool,
    /// A role in a project: viewer, operator or maintainer; may be repeated
    #[arg(long, env = "SERVICE_ROLE", value_name = "PROJECT=ROLE", value_delimiter = ',', value_parser = parse_role)]
    role: Vec<(String, Role)>,
}

fn parse_role(text: &str) -> Result<(String, Role), String> {
    let parts = text.rsplit_once('=').and_then(|(project, role)| {
        let role = Role::ALL.iter().find(|known| known.as_str() == role)?;
        Some((project.to_owned(), *role))
    });
    parts.ok_or_else(|| "write PROJECT=viewer, PROJECT=operator or PROJECT=maintainer".to_owned())
}

/// Parses a role.
pub(super) fn role() -> impl clap::builder::TypedValueParser<Value = Role> {
    one_of(Role::ALL, Role::as_str)
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::List => session.show(&Page::all(client.users().await?), table)?,
            Self::Invite(command) => command.run(&client, session).await?,
            Self::Show { user } => session.show(&client.user(&user).await?, text)?,
            Self::Deactivate { user, undo } => {
                let update = UpdateUser {
                    active: Some(undo),
                    ..UpdateUser::default()
                };
                client.update_user(&user, &update).await?;
                session.report(&match undo {
                    true => format!("{user} may sign in again"),
                    false => format!("{user} is deactivated"),
                });
            }
            Self::Administrator { user, undo } => {
                let update = UpdateUser {
                    administrator: Some(!undo),
                    ..UpdateUser::default()
                };
                client.update_user(&user, &update).await?;
                session.report(&match undo {
                    true => format!("{user} is no administrator any more"),
                    false => format!("{user} is an administrator"),
                });
            }
            Self::Reset { user } => {
                let link = client.create_user_link(&user).await?;
                session.show(&link, |link| address(&client, link))?;
                session.report(&format!(
                    "{user} sets a new password with it, which ends all sessions of {user}; it is good once, until {}",
                    time(&link.expires_at)
                ));
            }
            Self::Delete { user } => {
                client.delete_user(&user).await?;
                session.report(&format!("{user} is deleted"));
            }
        }
        Ok(Exit::Succeeded)
    }
}

impl Invite {
    async fn run(self, client: &Client, session: &mut Session<'_>) -> Result<(), Error> {
        let named = self.role.len();
        let request = CreateUser {
            name: self.user,
            service: self.service,
            administrator: self.administrator,
            roles: self.role.into_iter().collect(),
        };
        if request.roles.len() < named {
            return Err(Error::Usage {
                what: "--role names a project twice".to_owned(),
                hint: "a user has one role in a project; each role includes the weaker ones",
            });
        }
        let created = client.create_user(&request).await?;
        session.show(&created, |created| {
            let link = created.link.as_ref();
            link.map_or_else(String::new, |link| address(client, link))
        })?;
        let name = &created.user.name;
        session.report(&match &created.link {
            Some(link) => format!(
                "send it to {name}; it is good once, until {}",
                time(&link.expires_at)
            ),
            None => format!(
                "{name} is made; `everscan token create --user {name}` makes a token for it"
            ),
        });
        Ok(())
    }
}

fn address(client: &Client, link: &UserLink) -> String {
    format!("{}\n", client.url_of(&link.url_path))
}

fn table(page: &Page<User>) -> String {
    let mut table = Table::new(&["NAME", "KIND", "STATE", "ROLES", "CREATED", "SEEN"]);
    for user in &page.items {
        table.row([
            user.name.clone(),
            user.kind.as_str().to_owned(),
            user.state.as_str().to_owned(),
            roles(user.administrator, &user.roles, ","),
            time(&user.created_at),
            user.last_seen_on
                .map_or("-".to_owned(), |day| day.to_string()),
        ]);
    }
    table.text()
}

/// What a user may do.
pub(super) fn roles(
    is_administrator: bool,
    roles: &BTreeMap<String, Role>,
    separator: &str,
) -> String {
    let administrator = is_administrator.then(|| "administrator".to_owned());
    let roles = roles.iter();
    let roles = roles.map(|(project, role)| format!("{project}={}", role.as_str()));
    let all: Vec<_> = administrator.into_iter().chain(roles).collect();
    match all.is_empty() {
        true => "-".to_owned(),
        false => all.join(separator),
    }
}

fn text(user: &User) -> String {
    let password = if user.has_password { "set" } else { "not set" };
    let seen = user.last_seen_on.map(|day| day.to_string());
    Fields::new()
        .add("user", &user.name)
        .add("kind", user.kind.as_str())
        .add("state", user.state.as_str())
        .add("roles", roles(user.administrator, &user.roles, ", "))
        .add("password", password)
        .add("created", time(&user.created_at))
        .add_some("last seen", seen)
        .add_some("link until", user.link_expires_at.as_ref().map(time))
        .text()
}
