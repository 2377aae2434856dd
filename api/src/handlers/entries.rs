//! `/v0/jobs/{job}/artifacts/{artifact}/entries` and `…/diff`

use std::collections::BTreeMap;

use model::Artifact;
use state::{ZipEntry, ZipProblem};
use wire::{ArtifactDiff, ArtifactEntry, ErrorCode, FileChange, Page};

use super::artifacts;
use crate::failure::Failure;
use crate::limits::{ENTRIES_PAGE, ZIPS_AT_ONCE, ZIPS_OF_SHARE};
use crate::page::Window;
use crate::request::Query;
use crate::turns::Turns;
use crate::visible::{ShownJob, Visible};

/// Reading a large directory takes much memory, so few are read at once.
static TURNS: Turns = Turns::new(ZIPS_AT_ONCE, ZIPS_OF_SHARE);

pub(crate) async fn list(
    user: &Visible,
    job: &ShownJob,
    name: &str,
    window: &Window,
) -> Result<Page<ArtifactEntry>, Failure> {
    let artifact = artifact(user, job, name)?;
    let _turn = TURNS.wait(user.principal().share()).await;
    let listed = user
        .artifact_entries(
            job,
            &artifact.name,
            window.begin(),
            |page, entry: ZipEntry| {
                page.add(entry.name.clone(), entry);
            },
        )
        .await?;
    let page = readable(job, artifact, listed)?;
    Ok(page.end(|entry| ArtifactEntry {
        name: entry.name.clone(),
        size: entry.size,
        packed_size: entry.packed,
        crc32: format!("{:08x}", entry.crc32),
    }))
}

pub(crate) struct DiffQuery {
    against: Option<String>,
    window: Window,
}

impl DiffQuery {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        Ok(Self {
            against: query.owned("against"),
            window: Window::up_to(query, ENTRIES_PAGE)?,
        })
    }
}

pub(crate) async fn diff(
    user: &Visible,
    job: &ShownJob,
    name: &str,
    query: &DiffQuery,
) -> Result<ArtifactDiff, Failure> {
    let against = query.against.as_deref().ok_or_else(|| {
        Failure::invalid("against", "is missing; it names the job to compare with")
    })?;
    let other = user.job_named(against).await?;
    let to = artifact(user, job, name)?;
    let from = artifact(user, &other, &to.name)?;
    let _turn = TURNS.wait(user.principal().share()).await;
    let after = files(user, job, to).await?;
    let before = files(user, &other, from).await?;
    let (mut added, mut removed, mut changed, mut unchanged) = (0, 0, 0, 0);
    let mut page = query.window.begin();
    let mut differs = |name: &String, from: Option<&File>, to: Option<&File>| {
        let change = FileChange {
            name: name.clone(),
            from_size: from.map(|from| from.size),
            to_size: to.map(|to| to.size),
        };
        page.add(name.clone(), change);
    };
    for (name, from) in &before {
        match after.get(name) {
            Some(to) if from == to => {
                unchanged += 1;
                continue;
            }
            Some(_) => changed += 1,
            None => removed += 1,
        }
        differs(name, Some(from), after.get(name));
    }
    for (name, to) in &after {
        if !before.contains_key(name) {
            added += 1;
            differs(name, None, Some(to));
        }
    }
    let page = page.end(FileChange::clone);
    Ok(ArtifactDiff {
        same: from.content_digest == to.content_digest,
        artifact: to.name.clone(),
        from: other.id.uuid(),
        to: job.id.uuid(),
        added,
        removed,
        changed,
        unchanged,
        files: page.items,
        next_cursor: page.next_cursor,
    })
}

#[derive(PartialEq, Eq)]
struct File {
    size: u64,
    crc32: u32,
}

async fn files(
    user: &Visible,
    job: &ShownJob,
    artifact: &Artifact,
) -> Result<BTreeMap<String, File>, Failure> {
    let collect = |files: &mut BTreeMap<String, File>, entry: ZipEntry| {
        let ZipEntry { size, crc32, .. } = entry;
        files.insert(entry.name, File { size, crc32 });
    };
    let listed = user
        .artifact_entries(job, &artifact.name, BTreeMap::new(), collect)
        .await?;
    readable(job, artifact, listed)
}

fn artifact<'a>(user: &Visible, job: &'a ShownJob, name: &str) -> Result<&'a Artifact, Failure> {
    let artifact = artifacts::find(job, name)?;
    match artifacts::gone(artifact, user.steady()) {
        Some(gone) => Err(gone),
        None => Ok(artifact),
    }
}

fn readable<T>(
    job: &ShownJob,
    artifact: &Artifact,
    listed: Option<Result<T, ZipProblem>>,
) -> Result<T, Failure> {
    let name = &artifact.name;
    let listed = listed.ok_or_else(|| artifacts::missing(name))?;
    listed.map_err(|problem| {
        let text = format!(
            "the artifact `{name}` of job {} cannot be listed: {problem}",
            job.id
        );
        let failure = Failure::new(ErrorCode::ArtifactUnreadable, text);
        match problem {
            ZipProblem::Damaged | ZipProblem::TooMany(_) => {
                failure.hint("`everscan job artifact download` fetches it as it is")
            }
        }
    })
}
