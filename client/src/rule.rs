//! Rules of notifications. Without a project, a rule belongs to the instance.

use http::Method;
use wire::{Rule, RuleDefinition};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// The rules of a project, or of all projects and the instance: `GET /rules`.
    pub async fn rules(&self, project: Option<&str>) -> Result<Vec<Rule>, Error> {
        self.all(&Route::v0("rules").with_some("project", project))
            .await
    }

    /// Sets a rule: `PUT /rules/{rule}`.
    pub async fn set_rule(
        &self,
        project: Option<&str>,
        name: &str,
        rule: &RuleDefinition,
    ) -> Result<Rule, Error> {
        let route = Route::v0("rules").name(name)?.with_some("project", project);
        self.call(Method::PUT, &route).json(rule)?.answer().await
    }

    /// Deletes a rule: `DELETE /rules/{rule}`.
    pub async fn delete_rule(&self, project: Option<&str>, name: &str) -> Result<(), Error> {
        let route = Route::v0("rules").name(name)?.with_some("project", project);
        self.call(Method::DELETE, &route).done().await
    }
}
