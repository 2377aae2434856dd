//! Workflows, and dispatching their scans. `workflow` is always the id, the name, or `source/name`.

use http::Method;
use wire::{
    ChangedJob, DispatchRequest, DispatchResponse, Page, PruneRequest, Pruned, Resume, Revision,
    RevisionDiff, RevisionText, Suspend, SuspensionStatus, Why, Workflow,
};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// The workflows in this state: `active`, or `all` with the retired ones.
    pub async fn workflows(&self, state: &str) -> Result<Vec<Workflow>, Error> {
        self.all(&Route::v0("workflows").with("state", state)).await
    }

    pub async fn workflow(&self, workflow: &str) -> Result<Workflow, Error> {
        self.get(&Route::v0("workflows").name(workflow)?)
            .answer()
            .await
    }

    pub async fn revisions(
        &self,
        workflow: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Revision>, Error> {
        let route = revisions(workflow)?
            .with("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    /// A revision with its text, by number or id, or as `newest`: `GET /workflows/{workflow}/revisions/{revision}`.
    pub async fn revision(&self, workflow: &str, revision: &str) -> Result<RevisionText, Error> {
        let route = revisions(workflow)?.name(revision)?;
        self.get(&route).answer().await
    }

    pub async fn revision_diff(
        &self,
        workflow: &str,
        from: Option<&str>,
        revision: &str,
    ) -> Result<RevisionDiff, Error> {
        let route = revisions(workflow)?
            .name(revision)?
            .then("diff")
            .with_some("from", from);
        self.get(&route).answer().await
    }

    pub async fn why(
        &self,
        workflow: &str,
        scan: &str,
        at: Option<&str>,
        limit: u32,
    ) -> Result<Why, Error> {
        let route = Route::v0("workflows")
            .name(workflow)?
            .then("scans")
            .name(scan)?
            .then("why")
            .with("limit", limit)
            .with_some("at", at);
        self.get(&route).answer().await
    }

    pub async fn prune(&self, workflow: &str, request: &PruneRequest) -> Result<Pruned, Error> {
        let route = Route::v0("workflows").name(workflow)?.then("prune");
        self.call(Method::POST, &route)
            .json(request)?
            .answer()
            .await
    }

    /// Suspends a workflow, or one of its scans: `POST /workflows/{workflow}/suspend` and
    /// `/workflows/{workflow}/scans/{scan}/suspend`.
    pub async fn suspend(
        &self,
        workflow: &str,
        scan: Option<&str>,
        request: &Suspend,
    ) -> Result<SuspensionStatus, Error> {
        let route = part(workflow, scan)?.then("suspend");
        self.call(Method::POST, &route)
            .json(request)?
            .answer()
            .await
    }

    /// Resumes a workflow, or one of its scans: `POST /workflows/{workflow}/resume` and
    /// `/workflows/{workflow}/scans/{scan}/resume`.
    pub async fn resume(
        &self,
        workflow: &str,
        scan: Option<&str>,
        request: &Resume,
    ) -> Result<SuspensionStatus, Error> {
        let route = part(workflow, scan)?.then("resume");
        self.call(Method::POST, &route)
            .json(request)?
            .answer()
            .await
    }

    /// Makes a job of a scan: `POST /workflows/{workflow}/scans/{scan}/dispatch`. Calls with the same idempotency key
    /// make one job, so this call is repeated if the daemon cannot be reached.
    pub async fn dispatch(
        &self,
        workflow: &str,
        scan: &str,
        request: &DispatchRequest,
        idempotency_key: &str,
    ) -> Result<ChangedJob, Error> {
        let route = Route::v0("workflows")
            .name(workflow)?
            .then("scans")
            .name(scan)?
            .then("dispatch");
        let response: DispatchResponse = self
            .call(Method::POST, &route)
            .idempotent(idempotency_key)?
            .json(request)?
            .answer()
            .await?;
        Ok(response.job)
    }
}

fn part(workflow: &str, scan: Option<&str>) -> Result<Route, Error> {
    let route = Route::v0("workflows").name(workflow)?;
    match scan {
        None => Ok(route),
        Some(scan) => route.then("scans").name(scan),
    }
}

fn revisions(workflow: &str) -> Result<Route, Error> {
    Ok(Route::v0("workflows").name(workflow)?.then("revisions"))
}
