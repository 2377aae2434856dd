//! Creates and revokes links to blobs.

use std::sync::Arc;

use chrono::TimeDelta;

use super::values::project_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::blob::{BlobLink, BlobPath, LinkUse};
use crate::change::Change;
use crate::limits::{BLOB_LINK_LIFE, BLOB_LINK_SWEEP, BLOB_LINKS, BLOB_LINKS_OF_PROJECT};
use crate::moment::Moment;
use crate::token::{PlainToken, TokenKind};
use crate::world::World;
use crate::{BlobLinkId, ProjectId, TokenId, UserId};

/// Create a link that allows reading or storing a blob without a token.
#[derive(Debug, Clone)]
pub struct CreateBlobLink {
    pub project: ProjectId,
    pub path: BlobPath,
    pub use_for: LinkUse,
    pub life: TimeDelta,
    /// The token that creates the link. The link has no more rights than this token.
    pub token: Option<TokenId>,
    /// The person who creates the link without a token. Without both it is a job, whose links only read.
    pub user: Option<UserId>,
}

#[derive(Debug, Clone)]
pub struct NewBlobLink {
    pub link: Arc<BlobLink>,
    /// Shown once.
    pub secret: PlainToken,
}

impl Command for CreateBlobLink {
    type Answer = NewBlobLink;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<NewBlobLink>, Refusal> {
        let project = project_name(world, self.project)?;
        if self.life <= TimeDelta::zero() || self.life > BLOB_LINK_LIFE {
            return Err(Refusal::invalid(
                "expires_in",
                format!("must be at most {}d", BLOB_LINK_LIFE.num_days()),
            ));
        }
        if self.token.is_none() && self.user.is_none() && self.use_for == LinkUse::Put {
            return Err(Refusal::invalid(
                "use_for",
                "must be `get`: a job makes no links for uploads".to_owned(),
            ));
        }
        let now = moment.steady;
        let (over, open): (Vec<&Arc<BlobLink>>, Vec<_>) =
            world.blob_links().partition(|link| link.is_over(now));
        let of_project = open.iter().filter(|link| link.project == self.project);
        let links = of_project.count();
        if links >= BLOB_LINKS_OF_PROJECT || open.len() >= BLOB_LINKS {
            let project = (links >= BLOB_LINKS_OF_PROJECT).then_some(project.to_string());
            let links = project.as_ref().map_or(open.len(), |_| links);
            return Err(Refusal::TooManyBlobLinks { links, project });
        }
        let secret = PlainToken::random(TokenKind::BlobLink, moment.entropy);
        let user = self.user.filter(|_| self.token.is_none());
        let link = Arc::new(BlobLink {
            id: BlobLinkId::random(moment.entropy),
            hash: secret.hash(),
            project: self.project,
            path: self.path,
            use_for: self.use_for,
            token: self.token,
            user,
            epoch: world.epoch_of(user),
            created_at: moment.now,
            expires_at: now + self.life,
        });
        let over = over.into_iter().take(BLOB_LINK_SWEEP);
        let mut changes: Vec<Change> = over.map(|link| Change::BlobLinkRemoved(link.id)).collect();
        changes.push(Change::BlobLink(link.clone()));
        Ok(Decision {
            changes,
            answer: NewBlobLink { link, secret },
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RevokeBlobLink {
    pub link: BlobLinkId,
}

impl Command for RevokeBlobLink {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        if world.blob_link(self.link).is_none() {
            return Err(Refusal::NoSuchBlobLink);
        }
        Ok(Decision::of([Change::BlobLinkRemoved(self.link)]))
    }
}
