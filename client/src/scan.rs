//! Scans: their status, jobs, ledger and slots. `workflow` is always the id, the name, or `source/name`.

use wire::{JobLine, LedgerRecord, Page, ScanStatus, Slot};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn scans(&self, workflow: Option<&str>) -> Result<Vec<ScanStatus>, Error> {
        let route = Route::v0("scans").with_some("workflow", workflow);
        self.all(&route).await
    }

    pub async fn scan(&self, workflow: &str, scan: &str) -> Result<ScanStatus, Error> {
        self.get(&route(workflow, scan)?).answer().await
    }

    pub async fn scan_history(
        &self,
        workflow: &str,
        scan: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<JobLine>, Error> {
        let route = route(workflow, scan)?
            .then("history")
            .with("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    pub async fn ledger(
        &self,
        workflow: &str,
        scan: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<LedgerRecord>, Error> {
        let route = route(workflow, scan)?
            .then("ledger")
            .with("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    pub async fn schedule(
        &self,
        workflow: Option<&str>,
        scan: Option<&str>,
        limit: u32,
    ) -> Result<Page<Slot>, Error> {
        let route = Route::v0("schedule")
            .with("limit", limit)
            .with_some("workflow", workflow)
            .with_some("scan", scan);
        self.get(&route).answer().await
    }
}

fn route(workflow: &str, scan: &str) -> Result<Route, Error> {
    Route::v0("workflows")
        .name(workflow)?
        .then("scans")
        .name(scan)
}
