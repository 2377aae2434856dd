//! A folder that was copied under a hold, beside its writer. Its files are of different moments; the journal is done
//! again from where they were complete when the hold began. The journal's own copy ends somewhere: behind everything
//! that the files can show, since the files were copied first.

use std::collections::BTreeSet;

use crate::batch::{Epoch, Seq};
use crate::control::{Checkpoint, StoreId};
use crate::disk::{Disk, DiskError, DiskFile};
use crate::engine::OpenError;
use crate::holds::{Holds, Span};
use crate::key::Key;
use crate::layout::Layout;
use crate::live;
use crate::objects::Object;
use crate::overlay::Overlay;
use crate::record::Record;
use crate::scan::{self, Scan};
use crate::staged::Staged;
use crate::tree::Tree;

/// What the journal of a copy says.
pub(crate) struct CopiedJournal {
    /// It ends with the last of the records.
    pub(crate) scan: Scan,
    /// From the hold on, in order and without a gap.
    pub(crate) records: Vec<Record>,
    /// Up to here it must reach.
    least: Seq,
    /// The last record that is known of, which may be one that is not readable or has not got its object.
    known: Seq,
}

/// Commits that a copy should have, and has not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    pub(crate) what: String,
}

impl Shortfall {
    /// Why such a copy is not opened.
    pub(crate) fn refusal(self, layout: &Layout) -> OpenError {
        OpenError::Damaged {
            path: layout.journal.clone(),
            offset: 0,
            what: self.what,
        }
    }
}

impl CopiedJournal {
    /// Reads the journal of the copy that `tree` is, and changes nothing.
    pub(crate) fn read(
        tree: &Tree,
        layout: &Layout,
        store: StoreId,
        span: Span,
    ) -> Result<Self, DiskError> {
        let mut records = Vec::new();
        let mut take = |record| records.push(record);
        let mut scan = scan::readable(&tree.disk, &layout.journal, store, span.after, &mut take)?;
        let cut_off = scan::last_cut_off(&tree.disk, &scan, store)?;
        let known = cut_off.map_or(scan.last, |last| last.max(scan.last));
        cut(tree, &mut records, span)?;
        scan.last = records.last().map_or(span.after, |record| record.seq);
        Ok(Self {
            scan,
            records,
            least: span.last,
            known,
        })
    }

    /// What is missing of what the hold promises, or of what was applied up to `indexed`. The mark in `CHECKPOINT` may have
    /// been copied later than the journal, so it tells only how much is missing, not whether anything is.
    pub(crate) fn shortfall(
        &self,
        indexed: Option<Seq>,
        marked: Option<Checkpoint>,
    ) -> Option<Shortfall> {
        let end = self.scan.last;
        let promised = (self.least, "was there when the copy began");
        let applied = indexed.map(|indexed| (indexed, "was applied"));
        let reasons = [Some(promised), applied].into_iter().flatten();
        let (last, why) = reasons.max_by_key(|(last, _)| *last)?;
        (last > end).then(|| Shortfall {
            first: end.next(),
            last: last
                .max(self.known)
                .max(marked.map_or(last, |marked| marked.seq)),
            what: format!(
                "this folder is a copy, and its journal ends with record {end}, but record {last} {why}"
            ),
        })
    }
}

/// Where the journal must be done again when the folder is a copy. Several holds may have been copied with it, and only
/// one of them is the one it was made under. Those that cannot be the one are passed over. Of the rest the earliest is the
/// right one or an earlier one, which does no harm, and the least that one of them promises is no more than what the right
/// one does.
pub(crate) fn span(
    disk: &Disk,
    layout: &Layout,
    store: StoreId,
) -> Result<Option<Span>, DiskError> {
    let spans = Holds::new(disk, &layout.root).spans_of_copy(store)?;
    if let [] | [_] = spans[..] {
        return Ok(spans.first().copied());
    }
    let index = live::survey(disk, &layout.index, store, Seq(0))?.newest;
    let indexed = index.map(|index| index.at.seq);
    let mut possible = Vec::new();
    for span in &spans {
        let scan = scan::readable(disk, &layout.journal, store, span.after, &mut drop)?;
        let may_be_it = match indexed {
            // The index was copied under the hold, before the journal: it is as new as the hold, and the journal is newer.
            // A hold that ended while the journal was copied may not come so far, and one that was taken then is later.
            Some(indexed) => (span.after..=scan.last).contains(&indexed),
            None => scan.comes_to_the_last,
        };
        possible.extend(may_be_it.then_some(*span));
    }
    let told = if possible.is_empty() { spans } else { possible };
    Ok(told.into_iter().reduce(|one, other| Span {
        after: one.after.min(other.after),
        last: one.last.min(other.last),
    }))
}

/// Where a copy begins, given what its `CHECKPOINT` says: that one may have come with the journal, later than the files.
pub(crate) fn base(span: Span, marked: Option<Checkpoint>) -> Checkpoint {
    Checkpoint {
        seq: span.after,
        epoch: marked.map_or_else(Epoch::default, |marked| marked.epoch),
    }
}

/// Ends the journal before the first record whose object was not copied. An object gets a second name in `journal/`
/// before anything of its batch is in a file, so one that is missing was given its key after `journal/` was listed:
/// later than everything in the files. What the copy has of it in `tmp/` may have been copied while it was being written.
fn cut(tree: &Tree, records: &mut Vec<Record>, span: Span) -> Result<(), DiskError> {
    let mut whole = tree.holds.objects()?;
    loop {
        let mut overlay = Overlay::default();
        records
            .iter()
            .for_each(|record| overlay.add(record.seq, &record.batch));
        let mut missing = None;
        for (key, seq, staged) in overlay.adoptions() {
            // One of a record from before the hold was whole, or is told of by the redo.
            if seq <= span.last || is_there(tree, key, staged, &mut whole)? {
                continue;
            }
            missing = Some(missing.map_or(seq, |least: Seq| least.min(seq)));
        }
        let Some(missing) = missing else {
            return Ok(());
        };
        records.retain(|record| record.seq < missing);
    }
}

/// Whether an object is whole: among those that are known to be, or in `tmp/`, or at its key. In `tmp/` it was whole when
/// its record was written, and the hold in question may be a later one than the span tells of. Only a part there was
/// copied while the object was written, and then its key has at most an earlier one.
fn is_there(
    tree: &Tree,
    key: &Key,
    staged: &Staged,
    whole: &mut BTreeSet<String>,
) -> Result<bool, DiskError> {
    let name = staged.name().as_str();
    if whole.contains(name) {
        return Ok(true);
    }
    if let Some(file) = tree.open_staged(staged.name())? {
        let is_whole = is_object(&file, staged)?;
        if is_whole {
            whole.insert(name.to_owned());
        }
        return Ok(is_whole);
    }
    // Last, since an object goes there when somebody opens the copy meanwhile.
    let file = tree.open(key)?;
    file.map_or(Ok(false), |file| is_object(&file, staged))
}

/// Whether a file is that object, and not another one or a part of it.
fn is_object(file: &DiskFile, staged: &Staged) -> Result<bool, DiskError> {
    let expected = Object {
        sha256: staged.sha256(),
        size: staged.size(),
    };
    Ok(file.len()? == expected.size && Object::read(file)? == expected)
}
