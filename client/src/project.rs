//! Projects, their vars and their secrets. `project` is always the name or the id.

use http::Method;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use wire::{Masking, Named, Project, Secret, SetValue, Var};

use crate::call::Call;
use crate::route::Route;
use crate::{Client, Error};

/// The value that an edit expects to replace or remove. The daemon refuses any other value with
/// [`wire::ErrorCode::PreconditionFailed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any value, or none.
    Anything,
    /// There is no value.
    Nothing,
    /// The value has this version.
    Version(u64),
}

impl Expected {
    pub(crate) fn header(self, call: Call<'_>) -> Result<Call<'_>, Error> {
        match self {
            Self::Anything => Ok(call),
            Self::Nothing => call.header(IF_NONE_MATCH, "*"),
            Self::Version(version) => call.header(IF_MATCH, &format!("\"{version}\"")),
        }
    }
}

impl Client {
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        self.all(&Route::v0("projects")).await
    }

    pub async fn project(&self, project: &str) -> Result<Project, Error> {
        self.get(&Route::v0("projects").name(project)?)
            .answer()
            .await
    }

    pub async fn vars(&self, project: &str) -> Result<Vec<Named>, Error> {
        self.all(&below(project, "vars")?).await
    }

    pub async fn var(&self, project: &str, name: &str) -> Result<Var, Error> {
        let route = below(project, "vars")?.name(name)?;
        self.get(&route).answer().await
    }

    pub async fn set_var(
        &self,
        project: &str,
        name: &str,
        set: &SetValue,
        expected: Expected,
    ) -> Result<Var, Error> {
        let route = below(project, "vars")?.name(name)?;
        let call = expected.header(self.call(Method::PUT, &route))?;
        call.json(set)?.answer().await
    }

    pub async fn delete_var(
        &self,
        project: &str,
        name: &str,
        expected: Expected,
    ) -> Result<(), Error> {
        let route = below(project, "vars")?.name(name)?;
        let call = expected.header(self.call(Method::DELETE, &route))?;
        call.done().await
    }

    pub async fn secrets(&self, project: &str) -> Result<Vec<Secret>, Error> {
        self.all(&below(project, "secrets")?).await
    }

    pub async fn set_secret(
        &self,
        project: &str,
        name: &str,
        set: &SetValue,
        expected: Expected,
    ) -> Result<Secret, Error> {
        let route = below(project, "secrets")?.name(name)?;
        let call = expected.header(self.call(Method::PUT, &route))?;
        call.json(set)?.answer().await
    }

    pub async fn masking(&self, project: &str, name: &str) -> Result<Masking, Error> {
        let route = below(project, "secrets")?.name(name)?.then("masking");
        self.get(&route).answer().await
    }

    pub async fn delete_secret(
        &self,
        project: &str,
        name: &str,
        expected: Expected,
    ) -> Result<(), Error> {
        let route = below(project, "secrets")?.name(name)?;
        let call = expected.header(self.call(Method::DELETE, &route))?;
        call.done().await
    }
}

fn below(project: &str, kind: &str) -> Result<Route, Error> {
    Ok(Route::v0("projects").name(project)?.then(kind))
}
