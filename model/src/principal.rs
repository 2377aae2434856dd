//! The credential with which somebody acts, and its present rights.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::actor::Actor;
use crate::blob::BlobLink;
use crate::rights::{Rights, TokenManager};
use crate::scope::{Projects, Scopes};
use crate::session::{BrowserSession, SessionCookie};
use crate::token::{Token, TokenHash};
use crate::world::World;
use crate::{BlobLinkId, JobId, ProjectId, SessionId, Timestamp, TokenId, UserId};

/// The actor of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name that people see: of the token, or of the person who has signed in without one.
    pub name: String,
    /// Who acts. Limits count by it.
    pub share: Share,
    pub credential: Credential,
}

/// What a caller has presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Token(UsedToken),
    /// The session of a browser or device. A session that was made with a token may do what the token may; others are
    /// the whole person.
    Session(SessionId, Option<UsedToken>),
    /// A link to a blob.
    Link(BlobLinkId),
    /// The token of a job, which its steps have.
    Job(UsedJobToken),
}

/// The token of a job. The principal loses its rights when the job's worker loses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedJobToken {
    pub job: JobId,
    pub project: ProjectId,
    pub secret: TokenHash,
}

/// A token and one of its secrets. The principal loses its rights when the token does not accept the secret any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedToken {
    pub token: TokenId,
    #[serde(rename = "made_with")]
    pub secret: TokenHash,
}

/// Those who share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Share {
    User(UserId),
    /// All jobs of a project.
    Project(ProjectId),
}

impl Principal {
    pub fn of_token(token: &Token, secret: TokenHash) -> Self {
        Self {
            name: token.name.clone(),
            share: Share::User(token.owner),
            credential: Credential::Token(UsedToken {
                token: token.id,
                secret,
            }),
        }
    }

    pub fn of_cookie(world: &World, cookie: &SessionCookie) -> Option<Self> {
        let session = world.session(cookie.session)?;
        let is_its = session.hash == cookie.secret.hash();
        is_its.then(|| Self::of_session(world, session)).flatten()
    }

    pub fn of_session(world: &World, session: &BrowserSession) -> Option<Self> {
        let name = match &session.with {
            Some(used) => world.token(used.token)?.name.clone(),
            None => world.user(session.user)?.name.to_string(),
        };
        Some(Self {
            name,
            share: Share::User(session.user),
            credential: Credential::Session(session.id, session.with),
        })
    }

    /// The user of a link, who acts for its maker. The links of a job stay valid after its end.
    pub fn of_link(world: &World, link: &BlobLink) -> Option<Self> {
        let (name, share) = match (link.token, link.user) {
            (Some(token), _) => {
                let token = world.token(token)?;
                (token.name.clone(), Share::User(token.owner))
            }
            (None, Some(user)) => (world.user(user)?.name.to_string(), Share::User(user)),
            (None, None) => (format!("link {}", link.id), Share::Project(link.project)),
        };
        Some(Self {
            name,
            share,
            credential: Credential::Link(link.id),
        })
    }

    /// The steps of the job with this token.
    pub fn of_job(world: &World, secret: TokenHash) -> Option<Self> {
        let job = world.job_with_token(&secret)?;
        Some(Self {
            name: format!("job {}", job.id),
            share: Share::Project(job.project),
            credential: Credential::Job(UsedJobToken {
                job: job.id,
                project: job.project,
                secret,
            }),
        })
    }

    /// The person or service who acts. None for a job, and for a link that a job has made.
    pub const fn user(&self) -> Option<UserId> {
        match self.share {
            Share::User(user) => Some(user),
            Share::Project(_) => None,
        }
    }

    /// The token that the principal has presented, or with which its session was made.
    pub const fn used(&self) -> Option<UsedToken> {
        match self.credential {
            Credential::Token(used) => Some(used),
            Credential::Session(_, used) => used,
            Credential::Link(_) | Credential::Job(_) => None,
        }
    }

    pub fn token(&self) -> Option<TokenId> {
        self.used().map(|used| used.token)
    }

    pub const fn session(&self) -> Option<SessionId> {
        match self.credential {
            Credential::Session(session, _) => Some(session),
            Credential::Token(_) | Credential::Link(_) | Credential::Job(_) => None,
        }
    }

    /// The job whose steps act.
    pub const fn job(&self) -> Option<JobId> {
        match self.credential {
            Credential::Job(used) => Some(used.job),
            Credential::Token(_) | Credential::Session(..) | Credential::Link(_) => None,
        }
    }

    pub const fn is_link(&self) -> bool {
        match self.credential {
            Credential::Link(_) => true,
            Credential::Token(_) | Credential::Session(..) | Credential::Job(_) => false,
        }
    }

    /// True for a session of the whole person.
    pub const fn is_person(&self) -> bool {
        matches!(self.credential, Credential::Session(_, None))
    }

    /// The rights of the principal at `now`. None if the credential is not valid any more.
    pub fn rights(&self, world: &World, now: Timestamp) -> Option<Rights> {
        match self.credential {
            Credential::Token(_) => {}
            Credential::Session(id, _) => {
                let session = world.session(id)?;
                if Some(session.user) != self.user() || !world.is_signed_in(session, now) {
                    return None;
                }
            }
            Credential::Link(link) => {
                let link = world.blob_link(link).filter(|link| !link.is_over(now))?;
                return match self.share {
                    Share::User(_) => world.rights_of_maker(link.token, link.user, link.epoch, now),
                    Share::Project(project) => {
                        let scopes = Scopes::from_iter([link.use_for.scope()]);
                        Some(Rights::of_project(scopes, project))
                    }
                };
            }
            Credential::Job(used) => {
                let run = world.job_with_token(&used.secret)?.state.run()?;
                let token = run.job_token.as_ref().filter(|_| now < run.expires_at)?;
                return Some(Rights::of_project(token.scopes(), used.project));
            }
        }
        let user = world.user(self.user()?).filter(|user| user.is_active())?;
        let Some(used) = self.used() else {
            return Some(Rights::of(user, None));
        };
        let token = world.token(used.token)?;
        let is_its = token.owner == user.id && token.accepts(&used.secret, now);
        is_its.then(|| Rights::of(user, Some(token)))
    }

    /// Which tokens the principal manages, if `rights` are its present rights. None for a job.
    pub fn token_manager(&self, world: &World, rights: &Rights) -> Option<TokenManager> {
        let (scopes, projects) = match self.used() {
            Some(used) => {
                let token = world.token(used.token)?;
                (token.scopes.clone(), token.projects.clone())
            }
            None => (Scopes::admin(), Projects::All),
        };
        Some(TokenManager {
            user: self.user()?,
            is_administrator: rights.is_administrator(),
            scopes,
            projects,
        })
    }

    /// When the credential expires. None if it does not expire.
    pub fn ends_at(&self, world: &World) -> Option<Timestamp> {
        if let Credential::Job(used) = self.credential {
            let run = world.job_with_token(&used.secret)?.state.run()?;
            return Some(run.expires_at);
        }
        let session = self.session().and_then(|session| world.session(session));
        let session = session.map(|session| session.expires_at());
        let used = self.used();
        let token = used.and_then(|used| Some((world.token(used.token)?, used.secret)));
        let former = token.and_then(|(token, secret)| {
            let former = token.former.as_ref()?;
            (former.hash == secret).then_some(former.expires_at)
        });
        let token = token.and_then(|(token, _)| token.expires_at);
        [session, former, token].into_iter().flatten().min()
    }

    /// The actor for changes of the principal.
    pub fn actor(&self) -> Actor {
        let name = || self.name.clone();
        match (self.credential, self.user(), self.token()) {
            (Credential::Job(used), _, _) => Actor::Job { id: used.job },
            (_, Some(user), Some(id)) => Actor::Token {
                id,
                name: name(),
                user,
            },
            (_, Some(id), None) => Actor::User { id, name: name() },
            // A link that a job has made only reads.
            (_, None, _) => Actor::Daemon,
        }
    }

    /// Whose share of a limit the principal uses.
    pub const fn share(&self) -> Share {
        self.share
    }

    /// The id under which the requests of the principal are remembered.
    pub fn caller(&self) -> Uuid {
        let job = self.job().map(JobId::uuid);
        let token = self.token().map(TokenId::uuid);
        job.or(token).unwrap_or(match self.share {
            Share::User(user) => user.uuid(),
            Share::Project(project) => project.uuid(),
        })
    }
}
