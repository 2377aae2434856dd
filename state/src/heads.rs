//! Loads scan heads at the start.
//!
//! A head says where the next line of its scan's history goes. If the history has lost its end, the history continues
//! on a new page. `rebuilt.rs` rebuilds lost heads.

use std::sync::Arc;

use model::{Digests, Repeats, ScanHead, TailEnd, digests_of};
use store::{Key, Length};

use crate::error::ReadError;
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// Moves a head to the next page if the last page of the history or ledger is too short. Otherwise the scan's next job
/// could not end, because the store refuses an append behind the end of a file.
pub(crate) async fn with_ends(
    reader: &StoreReader,
    heads: Vec<Arc<ScanHead>>,
) -> Result<Vec<Arc<ScanHead>>, ReadError> {
    let pages = |head: &Arc<ScanHead>| {
        let scan = head.key();
        [
            (Layout::history(&scan, head.history.page), head.history),
            (Layout::ledger(&scan, head.ledger.page), head.ledger),
        ]
    };
    let pages: Vec<(Key, TailEnd)> = heads.iter().flat_map(pages).collect();
    let keys = pages.iter().map(|(key, _)| key.clone()).collect();
    let lengths = reader.lengths(keys).await?;
    let ends = pages.into_iter().zip(lengths);
    let mut ends = ends.map(|((key, tail), length)| {
        let end = end_of(&key, tail, length);
        if end != tail {
            reader.warned().note_cut(&key);
        }
        end
    });
    let with_end = |head: Arc<ScanHead>| {
        let (Some(history), Some(ledger)) = (ends.next(), ends.next()) else {
            return head;
        };
        if (history, ledger) == (head.history, head.ledger) {
            return head;
        }
        Arc::new(ScanHead {
            history,
            ledger,
            ..ScanHead::clone(&head)
        })
    };
    Ok(heads.into_iter().map(with_end).collect())
}

/// Where the next line goes if the last page has this length.
fn end_of(key: &Key, tail: TailEnd, length: Length) -> TailEnd {
    let length = match length {
        Ok(length) => length,
        Err(error) => {
            tracing::error!(%key, %error, "a file cannot be read");
            None
        }
    };
    if length.unwrap_or(0) >= tail.bytes {
        return tail;
    }
    tracing::error!(%key, length, expected = tail.bytes, "a file has lost its end; the next page continues it");
    TailEnd {
        page: tail.page + 1,
        bytes: 0,
    }
}

/// The consequence of losing the record of processed successes.
pub(crate) const PROCESSED_LOST: &str = "the processed successes of other scans are lost: `has_news()` is true for their newest successes until a job of the scan succeeds";

/// Records that are stored next to a head but are part of the head in memory.
#[derive(Default)]
pub(crate) struct ScanRecords {
    pub(crate) digests: Option<Arc<Digests>>,
    pub(crate) repeats: Option<Repeats>,
}

/// A head with the records stored next to it. Lost digests of successes are restored from the job records. Lost
/// processed successes are not restored.
pub(crate) async fn whole(
    reader: &StoreReader,
    head: Arc<ScanHead>,
    records: ScanRecords,
) -> Arc<ScanHead> {
    let mut head = Arc::unwrap_or_clone(head);
    head.repeats = records.repeats;
    if let Some(digests) = &records.digests {
        head.processed = digests.processed.clone();
    }
    if head.lacks_processed() {
        tracing::error!(workflow = %head.workflow, scan = %head.scan, "{PROCESSED_LOST}");
    }
    head.has_processed = !head.processed.is_empty();
    for success in &mut head.successes {
        let known = records.digests.as_ref();
        if let Some(known) = known.and_then(|known| known.successes.get(&success.job)) {
            success.digests = known.clone();
        }
        if success.lacks_digests() {
            match settled_job(reader, success.job).await {
                Ok(Some(job)) => success.digests = digests_of(&job),
                Ok(None) => {
                    tracing::error!(job = %success.job, "the digests of a success are lost");
                }
                Err(error) => {
                    tracing::error!(job = %success.job, %error, "the digests of a success are lost");
                }
            }
        }
    }
    Arc::new(head)
}
