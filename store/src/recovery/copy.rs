//! A folder that was copied under a hold, beside its writer. Its files are of different moments; the journal is done
//! again from where they were complete when the hold began. The journal's own copy ends somewhere: behind everything
//! that the files can show, since the files were copied first.

use crate::batch::{Epoch, Seq};
use crate::control::{self, Checkpoint, StoreId};
use crate::disk::{Disk, DiskError, Kind};
use crate::engine::OpenError;
use crate::hold::{Holds, Span};
use crate::layout::Layout;
use crate::live;
use crate::overlay::Overlay;
use crate::record::Record;
use crate::recovery::Past;
use crate::replace;
use crate::scan;

/// Reads the past of a copy and makes it ready to be done again. All of this may be done again itself.
pub(super) fn read(
    disk: &Disk,
    layout: &Layout,
    store: StoreId,
    span: Span,
) -> Result<Past, OpenError> {
    let mut records = Vec::new();
    let mut take = |record| records.push(record);
    let mut scan = scan::readable(disk, &layout.journal, store, span.after, &mut take)?;
    cut(disk, layout, &mut records, span)?;
    scan.last = records.last().map_or(span.after, |record| record.seq);
    let damaged = |last: Seq, what: &str| OpenError::Damaged {
        path: layout.journal.clone(),
        offset: 0,
        what: format!(
            "this folder is a copy, and its journal ends with record {}, but record {last} {what}",
            scan.last
        ),
    };
    if scan.last < span.last {
        return Err(damaged(span.last, "was there when the copy began"));
    }
    // The files are at least as new as the hold, and the mark may have come with the journal, later than they.
    let mut index = live::newest(disk, &layout.index, store, span.after)?;
    if let Some(index) = index.as_ref().filter(|index| index.at.seq > scan.last) {
        return Err(damaged(index.at.seq, "was applied"));
    }
    let marked = control::read_checkpoint(disk, &layout.checkpoint, store)?;
    let epoch = marked.map_or_else(Epoch::default, |marked| marked.epoch);
    replace::replace_durably(disk, &layout.restored, b"")?;
    Holds::new(disk, &layout.root).return_objects()?;
    tracing::info!(from = %span.after, to = %scan.last, "this folder is a copy; its journal is done again");
    let base = Checkpoint {
        seq: span.after,
        epoch,
    };
    let mut overlay = Overlay::default();
    for record in &records {
        overlay.add(record.seq, &record.batch);
        index.iter_mut().for_each(|index| index.follow(record));
    }
    Ok(Past {
        base,
        scan,
        overlay,
        index,
    })
}

/// Ends the journal before the first record whose object was not copied. An object gets a second name in `journal/`
/// before anything of its batch is in a file, so one that is missing was given its key after `journal/` was listed:
/// later than everything in the files. What the copy has of it in `tmp/` may have been copied while it was being written.
fn cut(
    disk: &Disk,
    layout: &Layout,
    records: &mut Vec<Record>,
    span: Span,
) -> Result<(), DiskError> {
    let held = Holds::new(disk, &layout.root).objects()?;
    loop {
        let mut overlay = Overlay::default();
        records
            .iter()
            .for_each(|record| overlay.add(record.seq, &record.batch));
        let mut missing = None;
        for (key, seq, staged) in overlay.adoptions() {
            let name = staged.name().as_str();
            let is_there =
                held.contains(name) || disk.kind(&layout.root.join(key.as_str()))? == Kind::File;
            // One of a record from before the hold was whole, or is told of by the redo.
            if !is_there && seq > span.last {
                missing = Some(missing.map_or(seq, |least: Seq| least.min(seq)));
            }
        }
        let Some(missing) = missing else {
            return Ok(());
        };
        records.retain(|record| record.seq < missing);
    }
}
