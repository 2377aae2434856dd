//! Tests the past of a scan page by page: history lines and ledger records.

use std::fs;

use model::{HistoryLine, JobId, LedgerRecord, ScanHead, TailEnd};
use store::Key;

use super::fixture::{Fleet, Folder, Opened, WATCHING};
use crate::DamagedLines;
use crate::layout::Layout;

/// Splits page 0 after its third line, as if the page were full. Returns the end of the second page.
fn split(folder: &Folder, page: impl Fn(u64) -> Key) -> TailEnd {
    let text = fs::read_to_string(folder.path(&page(0))).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert!(lines.len() > 3, "{text}");
    let rest = lines[3..].concat();
    fs::write(folder.path(&page(0)), lines[..3].concat()).unwrap();
    fs::write(folder.path(&page(1)), &rest).unwrap();
    TailEnd {
        page: 1,
        bytes: rest.len() as u64,
    }
}

async fn lines(opened: &Opened, fleet: Fleet, limit: usize) -> Vec<HistoryLine> {
    let scan = fleet.scan("build");
    let (mut lines, mut before) = (Vec::new(), None);
    loop {
        let page = opened.state.history(&scan, before, limit).await.unwrap();
        assert!(page.lines.len() <= limit);
        lines.extend(page.lines);
        before = page.next;
        if before.is_none() {
            return lines;
        }
    }
}

async fn records(opened: &Opened, fleet: Fleet, limit: usize) -> Vec<LedgerRecord> {
    let scan = fleet.scan("announce");
    let (mut records, mut before) = (Vec::new(), None);
    loop {
        let page = opened.state.ledger(&scan, None, before, limit).await;
        let page = page.unwrap();
        assert!(page.records.len() <= limit);
        records.extend(page.records);
        before = page.next;
        if before.is_none() {
            return records;
        }
    }
}

#[tokio::test]
async fn lists_go_back_over_the_pages_on_disk() {
    let mut folder = Folder::new();
    let opened = folder.open().await;
    let workflow = opened.activate("watching", WATCHING).await;
    let runner = opened.register("one").await;
    let fleet = Fleet { workflow, runner };
    let mut ended: Vec<JobId> = Vec::new();
    for _ in 0..6 {
        let job = opened.running_job(fleet, "build").await;
        opened.complete(job).await;
        ended.insert(0, job);
        let waiting = fleet.scan("announce");
        let waiting = opened.state.read(|world| {
            let mut jobs = world.jobs_of(&waiting);
            jobs.next().map(|job| job.id)
        });
        if let Some(waiting) = waiting {
            opened.cancel(waiting).await;
        }
    }
    let whole = records(&opened, fleet, 100).await;
    opened.close();

    let (build, announce) = (fleet.scan("build"), fleet.scan("announce"));
    let history = split(&folder, |page| Layout::history(&build, page));
    folder.change(&Layout::head(&build), |head: &mut ScanHead| {
        head.history = history;
    });
    let ledger = split(&folder, |page| Layout::ledger(&announce, page));
    folder.change(&Layout::head(&announce), |head: &mut ScanHead| {
        head.ledger = ledger;
    });
    let opened = folder.open().await;
    for limit in 1..=7 {
        let found: Vec<JobId> = lines(&opened, fleet, limit)
            .await
            .iter()
            .map(|it| it.id)
            .collect();
        assert_eq!(found, ended, "{limit}");
        assert_eq!(records(&opened, fleet, limit).await, whole, "{limit}");
    }

    // A removed job has no line, and unreadable lines are reported.
    opened.delete(ended.remove(1)).await;
    let found: Vec<JobId> = lines(&opened, fleet, 2)
        .await
        .iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(found, ended);
    opened.close();
    let page = Layout::history(&build, 0);
    let text = fs::read_to_string(folder.path(&page)).unwrap();
    fs::write(folder.path(&page), text.replacen('{', "<", 1)).unwrap();
    let opened = folder.open().await;
    let page = opened.state.history(&build, None, 100).await.unwrap();
    assert_eq!(page.lines.len(), 4);
    let file = Layout::history(&build, 0).to_string();
    assert_eq!(page.damaged, [DamagedLines { file, lines: 1 }]);
    opened.close();
}
