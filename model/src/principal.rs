//! The credential with which somebody acts, and its present rights.

use uuid::Uuid;

use crate::actor::Actor;
use crate::blob::BlobLink;
use crate::rights::Rights;
use crate::scope::Scopes;
use crate::session::SessionCookie;
use crate::token::{Token, TokenHash};
use crate::world::World;
use crate::{BlobLinkId, JobId, ProjectId, SessionId, Timestamp, TokenId};

/// The actor of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name that people see.
    pub name: String,
    pub credential: Credential,
}

/// What a caller has presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Token(UsedToken),
    /// The cookie of a browser, which was signed in with this token.
    Session(SessionId, UsedToken),
    /// A link to a blob.
    Link(BlobLinkId, LinkMaker),
    /// The token of a job, which its steps have.
    Job(UsedJobToken),
}

/// Who has made a link to a blob. The link has no more rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMaker {
    Token(UsedToken),
    /// A job of the project. Its links for reading stay valid after its end.
    Project(ProjectId),
}

/// The token of a job. The principal loses its rights when the job's worker loses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedJobToken {
    pub job: JobId,
    pub project: ProjectId,
    pub secret: TokenHash,
}

/// A token and one of its secrets. The principal loses its rights when the token does not accept the secret any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedToken {
    pub token: TokenId,
    pub secret: TokenHash,
}

/// Those who share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Share {
    Token(TokenId),
    /// All jobs of a project.
    Project(ProjectId),
}

impl Principal {
    pub fn of_token(token: &Token, secret: TokenHash) -> Self {
        Self::with(token, secret, Credential::Token)
    }

    pub fn of_cookie(world: &World, cookie: &SessionCookie) -> Option<Self> {
        let session = world.session(cookie.session)?;
        let session = Some(session).filter(|session| session.hash == cookie.secret.hash())?;
        let token = world.token(session.token)?;
        Some(Self::with(token, session.made_with, |used| {
            Credential::Session(session.id, used)
        }))
    }

    /// The user of a link, who acts for its maker.
    pub fn of_link(world: &World, link: &BlobLink) -> Option<Self> {
        let Some(token) = link.token else {
            return Some(Self {
                name: format!("link {}", link.id),
                credential: Credential::Link(link.id, LinkMaker::Project(link.project)),
            });
        };
        let token = world.token(token)?;
        Some(Self::with(token, token.hash, |used| {
            Credential::Link(link.id, LinkMaker::Token(used))
        }))
    }

    /// The steps of the job with this token.
    pub fn of_job(world: &World, secret: TokenHash) -> Option<Self> {
        let job = world.job_with_token(&secret)?;
        Some(Self {
            name: format!("job {}", job.id),
            credential: Credential::Job(UsedJobToken {
                job: job.id,
                project: job.project,
                secret,
            }),
        })
    }

    fn with(
        token: &Token,
        secret: TokenHash,
        credential: impl FnOnce(UsedToken) -> Credential,
    ) -> Self {
        Self {
            name: token.name.clone(),
            credential: credential(UsedToken {
                token: token.id,
                secret,
            }),
        }
    }

    /// The token that the principal acts with. None for a job, and for a link that a job has made.
    pub const fn used(&self) -> Option<UsedToken> {
        match self.credential {
            Credential::Token(used)
            | Credential::Session(_, used)
            | Credential::Link(_, LinkMaker::Token(used)) => Some(used),
            Credential::Link(_, LinkMaker::Project(_)) | Credential::Job(_) => None,
        }
    }

    pub const fn token(&self) -> Option<TokenId> {
        match self.used() {
            Some(used) => Some(used.token),
            None => None,
        }
    }

    pub const fn session(&self) -> Option<SessionId> {
        match self.credential {
            Credential::Session(session, _) => Some(session),
            Credential::Token(_) | Credential::Link(..) | Credential::Job(_) => None,
        }
    }

    /// The job whose steps act.
    pub const fn job(&self) -> Option<JobId> {
        match self.credential {
            Credential::Job(used) => Some(used.job),
            Credential::Token(_) | Credential::Session(..) | Credential::Link(..) => None,
        }
    }

    pub const fn is_link(&self) -> bool {
        match self.credential {
            Credential::Link(..) => true,
            Credential::Token(_) | Credential::Session(..) | Credential::Job(_) => false,
        }
    }

    /// The rights of the principal at `now`. None if the credential is not valid any more.
    pub fn rights(&self, world: &World, now: Timestamp) -> Option<Rights> {
        let of_token = |UsedToken { token, secret }: UsedToken| {
            let token = world.token(token)?;
            token.accepts(&secret, now).then(|| Rights::from(&**token))
        };
        match self.credential {
            Credential::Token(used) => of_token(used),
            Credential::Session(session, used) => {
                let is_valid = world.session(session)?.is_valid(now);
                of_token(used).filter(|_| is_valid)
            }
            Credential::Link(link, maker) => {
                let link = world.blob_link(link).filter(|link| !link.is_over(now))?;
                match maker {
                    LinkMaker::Token(used) => of_token(used),
                    LinkMaker::Project(project) => Some(Rights::of_project(
                        Scopes::from_iter([link.use_for.scope()]),
                        project,
                    )),
                }
            }
            Credential::Job(UsedJobToken {
                project, secret, ..
            }) => {
                let run = world.job_with_token(&secret)?.state.run()?;
                let token = run.job_token.as_ref().filter(|_| now < run.expires_at)?;
                Some(Rights::of_project(token.scopes(), project))
            }
        }
    }

    /// When the secret expires. None if it does not expire.
    pub fn ends_at(&self, world: &World) -> Option<Timestamp> {
        if let Credential::Job(used) = self.credential {
            let run = world.job_with_token(&used.secret)?.state.run()?;
            return Some(run.expires_at);
        }
        let UsedToken { token, secret } = self.used()?;
        let token = world.token(token)?;
        let former = token.former.as_ref().filter(|it| it.hash == secret);
        let former = former.map(|it| it.expires_at);
        token.expires_at.into_iter().chain(former).min()
    }

    /// The actor for changes of the principal.
    pub fn actor(&self) -> Actor {
        match (self.credential, self.token()) {
            (Credential::Job(used), _) => Actor::Job { id: used.job },
            (_, Some(id)) => Actor::Token {
                id,
                name: self.name.clone(),
            },
            // A link that a job has made only reads.
            (_, None) => Actor::Daemon,
        }
    }

    /// Whose share of a limit the principal uses.
    pub const fn share(&self) -> Share {
        match self.credential {
            Credential::Token(used)
            | Credential::Session(_, used)
            | Credential::Link(_, LinkMaker::Token(used)) => Share::Token(used.token),
            Credential::Link(_, LinkMaker::Project(project)) => Share::Project(project),
            Credential::Job(used) => Share::Project(used.project),
        }
    }

    /// The id under which the requests of the principal are remembered.
    pub const fn caller(&self) -> Uuid {
        match self.credential {
            Credential::Job(used) => used.job.uuid(),
            Credential::Token(_) | Credential::Session(..) | Credential::Link(..) => {
                match self.share() {
                    Share::Token(token) => token.uuid(),
                    Share::Project(project) => project.uuid(),
                }
            }
        }
    }
}
