//! `/v0/projects`, with their vars and secrets.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::decide::{DeleteSecret, DeleteVar, Precondition, SetVar};
use model::{
    ProjectId, ProjectSecrets, ProjectVars, SecretValue, Seen, Source, StoredSecret, Uses, Var,
};
use tokio::sync::Semaphore;
use warp::reply::Response;
use wire::{ErrorCode, Page, SetValue};

use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::limits::MASKING_AT_ONCE;
use crate::page::Window;
use crate::precondition::precondition;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

/// Limits concurrent checks, because each blocks a thread.
static MASKING: Semaphore = Semaphore::const_new(MASKING_AT_ONCE);

pub(crate) fn list(user: &Visible, window: &Window) -> Page<wire::Project> {
    user.read(|seen| {
        window.cut(
            seen.sources(),
            |source| source.name.to_string(),
            |source| convert::sources::project(seen, source),
        )
    })
}

/// One project, with the vars and secrets that scans use but that are not set.
pub(crate) fn show(user: &Visible, project: &str) -> Result<wire::Project, Failure> {
    let (mut shown, vars, secrets, workflows) = user.read(|seen| {
        let source = find(seen, project)?;
        let project = source.project;
        let shown = convert::sources::project(seen, source);
        let (vars, secrets) = (seen.vars(project).cloned(), seen.secrets(project).cloned());
        Ok::<_, Failure>((shown, vars, secrets, seen.workflows_of(project)))
    })?;
    let uses = Uses::of(&workflows);
    let has_var = |name: &str| vars.as_ref().is_some_and(|it| it.vars.contains_key(name));
    let has_secret = |name: &str| {
        secrets
            .as_ref()
            .is_some_and(|it| it.secrets.contains_key(name))
    };
    shown.missing_vars = convert::sources::missing(&shown.name, &uses.vars, has_var);
    shown.missing_secrets = convert::sources::missing(&shown.name, &uses.secrets, has_secret);
    Ok(shown)
}

/// The vars or secrets of a project, with the scans that use them.
pub(super) struct WithUses<R> {
    source: Arc<Source>,
    /// Its vars or secrets, if it ever had any.
    record: Option<R>,
    uses: Uses,
}

/// Finds a project and a record of it. The search for the scans that use vars and secrets is slow, so it runs after the world
/// was unlocked.
fn with_uses<R>(
    user: &Visible,
    project: &str,
    record: impl FnOnce(Seen<'_>, ProjectId) -> Option<R>,
) -> Result<WithUses<R>, Failure> {
    let (source, record, workflows) = user.read(|seen| {
        let source = find(seen, project)?;
        let record = record(seen, source.project);
        Ok::<_, Failure>((source.clone(), record, seen.workflows_of(source.project)))
    })?;
    Ok(WithUses {
        source,
        record,
        uses: Uses::of(&workflows),
    })
}

impl<R> WithUses<R> {
    fn var(&self, name: &str, var: &Var) -> wire::Var {
        convert::sources::var(&self.source, name, var, &self.uses.vars)
    }

    fn secret(&self, user: &Visible, name: &str, secret: &StoredSecret) -> wire::Secret {
        let key_state = user.key_state(&secret.sealed.key);
        convert::sources::secret(&self.source, name, secret, key_state, &self.uses.secrets)
    }
}

pub(super) fn vars(user: &Visible, project: &str) -> Result<WithUses<Arc<ProjectVars>>, Failure> {
    with_uses(user, project, |seen, id| seen.vars(id).cloned())
}

pub(super) fn secrets(
    user: &Visible,
    project: &str,
) -> Result<WithUses<Arc<ProjectSecrets>>, Failure> {
    with_uses(user, project, |seen, id| seen.secrets(id).cloned())
}

impl WithUses<Arc<ProjectVars>> {
    pub(super) fn list(&self, window: &Window) -> Page<wire::Named> {
        window.cut(
            self.record.iter().flat_map(|record| &record.vars),
            |(name, _)| (*name).clone(),
            |(name, var)| convert::sources::named(&self.source, name, &var.edit, &self.uses.vars),
        )
    }
}

impl WithUses<Arc<ProjectSecrets>> {
    pub(super) fn list(&self, user: &Visible, window: &Window) -> Page<wire::Secret> {
        window.cut(
            self.record.iter().flat_map(|record| &record.secrets),
            |(name, _)| (*name).clone(),
            |(name, secret)| self.secret(user, name, secret),
        )
    }
}

pub(crate) fn all_vars(user: &Visible, project: &str) -> Result<Vec<wire::Var>, Failure> {
    let found = vars(user, project)?;
    let vars = found.record.iter().flat_map(|record| &record.vars);
    Ok(vars.map(|(name, var)| found.var(name, var)).collect())
}

pub(crate) fn all_secrets(user: &Visible, project: &str) -> Result<Vec<wire::Secret>, Failure> {
    let found = secrets(user, project)?;
    let secrets = found.record.iter().flat_map(|record| &record.secrets);
    let secrets = secrets.map(|(name, secret)| found.secret(user, name, secret));
    Ok(secrets.collect())
}

pub(super) fn show_var(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let name = request.parameter(1);
    let found = vars(user, request.parameter(0))?;
    let record = found.record.as_ref();
    let var = record.and_then(|record| record.vars.get(name));
    let var = var.ok_or_else(|| Failure::not_found("var", name))?;
    Ok(reply::versioned(&found.var(name, var), var.edit.version))
}

/// Reads the value from the body. Errors never quote the body, which may hold a secret.
async fn value_of(request: &mut Request) -> Result<String, Failure> {
    body::is_json(&request.headers)?;
    let bytes = request.body.bytes().await?;
    if body::is_list(&bytes) {
        return Err(Failure::invalid("body", "write {\"value\": \"…\"}"));
    }
    let SetValue { value } = serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let problem = format!("line {line}, column {column}: write {{\"value\": \"…\"}}");
        Failure::invalid("body", problem)
    })?;
    Ok(value)
}

pub(super) async fn set_var(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(user, request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    let value = value_of(&mut request).await?;
    let name = request.parameter(1);
    let var = set_var_to(user, &project, name, value, expects).await?;
    let found = with_uses(user, request.parameter(0), |_, _| Some(()))?;
    Ok(reply::versioned(&found.var(name, &var), var.edit.version))
}

pub(super) async fn delete_var(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let project = project(user, request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    let name = request.parameter(1);
    remove_var(user, &project, name, expects).await?;
    Ok(reply::empty())
}

/// Sets a secret, if it has the version that the request expects. No response contains its value.
pub(super) async fn set_secret(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(user, request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    let value = SecretValue::new(value_of(&mut request).await?);
    let name = request.parameter(1);
    let secret = user.set_secret(&project, name, value, expects).await?;
    let found = with_uses(user, request.parameter(0), |_, _| Some(()))?;
    let shown = found.secret(user, name, &secret);
    Ok(reply::versioned(&shown, secret.edit.version))
}

/// Lists which encodings and lines of a secret are masked. The answer contains no part of its value.
pub(super) async fn masking(
    user: &Visible,
    project: &str,
    name: &str,
) -> Result<wire::Masking, Failure> {
    let no_secret = || Failure::not_found("secret", name);
    let secrets = user.read(|seen| {
        let source = find(seen, project)?;
        let secrets = seen.secrets(source.project).cloned();
        let secrets = secrets.filter(|record| record.secrets.contains_key(name));
        secrets.ok_or_else(no_secret)
    })?;
    let _room = MASKING.acquire().await;
    let check = user.check_masking(&secrets, name).await?;
    Ok(convert::sources::masking(
        name,
        check.ok_or_else(no_secret)?,
    ))
}

pub(super) async fn delete_secret(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let project = project(user, request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    let name = request.parameter(1);
    remove_secret(user, &project, name, expects).await?;
    Ok(reply::empty())
}

pub(crate) async fn set_var_to(
    user: &Visible,
    project: &Shown<ProjectId>,
    name: &str,
    value: String,
    expects: Precondition,
) -> Result<Var, Failure> {
    let set = project.map(|project| SetVar {
        project: *project,
        name: name.to_owned(),
        value,
        actor: user.actor(),
        expects,
    });
    user.submit(set).await
}

pub(crate) async fn remove_var(
    user: &Visible,
    project: &Shown<ProjectId>,
    name: &str,
    expects: Precondition,
) -> Result<(), Failure> {
    let delete = project.map(|project| DeleteVar {
        project: *project,
        name: name.to_owned(),
        expects,
    });
    user.submit(delete).await
}

pub(crate) async fn remove_secret(
    user: &Visible,
    project: &Shown<ProjectId>,
    name: &str,
    expects: Precondition,
) -> Result<(), Failure> {
    let delete = project.map(|project| DeleteSecret {
        project: *project,
        name: name.to_owned(),
        expects,
    });
    user.submit(delete).await
}

pub(crate) fn project(user: &Visible, named: &str) -> Result<Shown<ProjectId>, Failure> {
    user.find(|seen| find(seen, named).map(|source| source.project))
}

/// The projects with these names or ids.
pub(super) fn named(seen: Seen<'_>, names: &[String]) -> Result<BTreeSet<ProjectId>, Failure> {
    let names = names.iter();
    names.map(|name| Ok(find(seen, name)?.project)).collect()
}

pub(crate) fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Arc<Source>, Failure> {
    let named = text.parse().ok().and_then(|name| seen.source(&name));
    let by_id = || text.parse().ok().and_then(|id| seen.source_of(id));
    named.or_else(by_id).ok_or_else(|| {
        Failure::not_found("project", text)
            .coded(ErrorCode::ProjectNotFound)
            .hint("`everscan project list` shows the projects that the token sees")
    })
}
