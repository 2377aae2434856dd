//! Rules of notifications. Without a project, a rule belongs to the instance.

use http::Method;
use wire::{Page, PreviewedEvent, Rule, RuleDefinition};

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

    /// What a rule, or the rules in force, would have sent in the last week: `POST /rule-previews`.
    pub async fn preview_rule(
        &self,
        project: Option<&str>,
        rule: Option<&RuleDefinition>,
    ) -> Result<Page<PreviewedEvent>, Error> {
        let route = Route::v0("rule-previews").with_some("project", project);
        let call = self.call(Method::POST, &route);
        match rule {
            Some(rule) => call.json(rule)?.answer().await,
            None => call.answer().await,
        }
    }

    /// Deletes a rule: `DELETE /rules/{rule}`.
    pub async fn delete_rule(&self, project: Option<&str>, name: &str) -> Result<(), Error> {
        let route = Route::v0("rules").name(name)?.with_some("project", project);
        self.call(Method::DELETE, &route).done().await
    }
}
