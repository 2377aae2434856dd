//! Copies made beside the writer while a hold lasts, in the worst order, and beside the holds of others.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::busy::{Busy, Files, names, restless};
use super::world::{
    World, adopt, copy, files, put, replace_journal, segments, staged, temporary_folder, tiny,
};
use crate::batch::{Epoch, Seq};
use crate::copy::{Copying, back_up};
use crate::disk::{Action, Disk};
use crate::hold::Hold;
use crate::limits::COPY_EPOCHS;
use crate::look::{Look, Part};
use crate::mend::Mending;
use crate::restored::forget_restored;
use crate::{Engine, OpenError};

#[tokio::test]
async fn a_copy_in_any_order_is_whole_when_the_journal_comes_last() {
    let parts = [
        "tmp",
        "job",
        "lines",
        "head.json",
        "history.jsonl",
        "side.log",
        "index",
    ];
    for first in 0..parts.len() {
        let mut busy = Busy::new().await;
        busy.steps(9).await;
        let hold = Hold::take(&busy.root()).unwrap();
        let last = hold.last();
        assert_eq!(last, busy.world.last);
        let copied = busy.folder("copy");
        fs::create_dir_all(copied.join("index")).unwrap();
        fs::copy(busy.root().join("FORMAT"), copied.join("FORMAT")).unwrap();
        for part in parts.iter().cycle().skip(first).take(parts.len()) {
            let from = busy.root().join(part);
            if from.is_dir() {
                copy(&from, &copied.join(part));
            } else {
                // A file may follow its commit only after this.
                drop(fs::copy(from, copied.join(part)));
            }
            // Several segments and checkpoints pass between two files.
            busy.steps(12).await;
        }
        copy(&busy.root().join("journal"), &copied.join("journal"));
        assert!(hold.lasts().unwrap());
        busy.steps(3).await;
        assert!(hold.release().unwrap());
        busy.assert_whole(&copied, last).await;
        busy.assert_let_go();
    }
}

/// Objects get their places late on it.
fn slow() -> Disk {
    Disk::with_hook(|action, path: &Path| {
        if action == Action::Rename && path.ends_with("a.zip") {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Ok(())
    })
}

#[tokio::test]
async fn copies_made_while_it_is_written_are_whole() {
    copies_are_whole(Disk::new(), false).await;
}

#[tokio::test]
async fn copies_made_behind_its_commits_and_beside_other_holds_are_whole() {
    copies_are_whole(slow(), true).await;
}

async fn copies_are_whole(disk: Disk, beside_others: bool) {
    let mut busy = Busy::on(disk).await;
    busy.steps(5).await;
    for round in 0..6 {
        let another = beside_others.then(|| Hold::take(&busy.root()).unwrap());
        busy.steps(3).await;
        let hold = Hold::take(&busy.root()).unwrap();
        let (root, copied) = (busy.root(), busy.folder(&format!("copy-{round}")));
        let (from, to) = (root.clone(), copied.clone());
        let copying = std::thread::spawn(move || {
            copy(&from, &to);
            replace_journal(&from, &to);
        });
        while !copying.is_finished() {
            busy.step().await;
        }
        copying.join().unwrap();
        let last = hold.last();
        assert!(hold.release().unwrap());
        another.map(|another| another.release().unwrap());
        busy.assert_whole(&copied, last).await;
    }
}

#[tokio::test]
async fn an_object_that_was_copied_while_it_was_written_is_not_taken_for_whole() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let mut object = busy.world.engine.objects().create().unwrap();
    object.write(b"half").unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    let listed = names(&busy.root(), "journal");
    object.write(b" of it").unwrap();
    let adopt = vec![adopt("late.zip", object.finish().unwrap())];
    let late = |files: &mut Files| drop(files.insert("late.zip".into(), "half of it".into()));
    busy.commit(adopt, late).await;
    // The names in `journal/` were listed before the object got its second name, and the segment was read after it. Other
    // objects may have theirs: the applier can be behind.
    replace_journal(&busy.root(), &copied);
    for name in names(&copied, "journal") {
        if name.starts_with("held-") && !listed.contains(&name) {
            fs::remove_file(copied.join("journal").join(name)).unwrap();
        }
    }
    let last = hold.last();
    assert!(hold.release().unwrap());
    busy.assert_whole(&copied, last).await;
}

/// A store that was left before the object of its last commit had its place.
async fn left_before_a_place(root: &Path) -> Hold {
    let disk = Disk::with_hook(|action, path: &Path| {
        if action == Action::Rename && path.ends_with("late.zip") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    let mut world = World::open_on(disk, root, tiny()).await.unwrap();
    world.round(0).await.unwrap();
    let earlier = Hold::take(root).unwrap();
    let object = staged(&world.engine.objects(), "whole");
    world
        .commit([adopt("late.zip", object), put("late", "named")])
        .await
        .unwrap();
    drop(world);
    earlier
}

#[tokio::test]
async fn the_hold_of_somebody_else_cuts_no_copy() {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    let earlier = left_before_a_place(&root).await;
    let by_another = folder.path().join("by-another");
    let hold = Hold::take(&root).unwrap();
    assert!(earlier.last() < hold.last());
    // With all holds that there are, and what the objects got as a second name a moment later.
    copy(&root, &by_another);
    for name in names(&by_another, "journal") {
        if name.starts_with("held-") {
            fs::remove_file(by_another.join("journal").join(name)).unwrap();
        }
    }
    let last = hold.last();
    assert!(hold.release().unwrap());
    let by_itself = folder.path().join("by-itself");
    let copying = Copying {
        leave_out: &|_| false,
        is_stopped: &|| false,
    };
    assert_eq!(back_up(&root, &by_itself, copying).unwrap().sequence, last);
    for copied in [by_another, by_itself] {
        let look = Look::at(&copied).unwrap();
        assert_eq!((look.damage(), look.position().last), (&[][..], last));
        let opened = World::open(&copied).await.unwrap();
        assert_eq!(opened.last, last);
        drop(opened);
        let found = files(&copied);
        assert_eq!((&*found["late"], &*found["late.zip"]), ("named", "whole"));
    }
}

/// A copy whose journal has a commit behind its end: one whose object was not copied.
async fn copy_with_a_tail(busy: &mut Busy, copied: &Path) -> Seq {
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    copy(&busy.root(), copied);
    let object = staged(&busy.world.engine.objects(), "late");
    let name = object.name().as_str().to_owned();
    busy.commit(vec![adopt("late.zip", object)], |_| ()).await;
    busy.commit(vec![put("behind", "it")], |_| ()).await;
    replace_journal(&busy.root(), copied);
    drop(fs::remove_file(copied.join(format!("journal/held-{name}"))));
    let last = hold.last();
    assert!(hold.release().unwrap());
    last
}

#[tokio::test]
async fn what_lies_behind_the_end_of_a_copy_does_not_come_back_after_a_crash() {
    let mut busy = Busy::new().await;
    let copied = busy.folder("copy");
    let last = copy_with_a_tail(&mut busy, &copied).await;
    let root = copied.clone();
    let disk = Disk::with_hook(move |action, path: &Path| {
        let is_held = || {
            let mut names = names(&root, "journal").into_iter();
            names.any(|name| name.starts_with("HOLD."))
        };
        if action == Action::SyncFolder && path == root.join("journal") && !is_held() {
            return Err(io::ErrorKind::Other.into());
        }
        Ok(())
    });
    assert!(World::open_on(disk, &copied, tiny()).await.is_err());
    busy.assert_whole(&copied, last).await;
}

#[tokio::test]
async fn a_copy_of_a_copy_has_what_was_committed_since_that_one_was_opened() {
    let mut busy = Busy::new().await;
    let (copied, again) = (busy.folder("copy"), busy.folder("again"));
    copy_with_a_tail(&mut busy, &copied).await;
    let hold = Hold::take(&copied).unwrap();
    copy(&copied, &again);
    let mut opened = World::open(&copied).await.unwrap();
    let last = opened.commit([put("since", "then")]).await.unwrap();
    replace_journal(&copied, &again);
    assert!(hold.release().unwrap());
    let again = World::open(&again).await.unwrap();
    assert_eq!(again.last, last);
}

#[tokio::test]
async fn a_hold_that_ends_while_the_journal_is_copied_spoils_no_copy() {
    for keeps_its_first in [false, true] {
        let mut busy = Busy::new().await;
        busy.steps(9).await;
        let another = Hold::take(&busy.root()).unwrap();
        busy.steps(30).await;
        let hold = Hold::take(&busy.root()).unwrap();
        let copied = busy.folder("copy");
        copy(&busy.root(), &copied);
        busy.steps(5).await;
        // The holds were copied by now, and of the segments the first at most.
        for path in segments(&copied).iter().skip(usize::from(keeps_its_first)) {
            fs::remove_file(path).unwrap();
        }
        assert!(another.release().unwrap());
        busy.steps(60).await;
        copy_without_holds(&busy.root(), &copied);
        let last = hold.last();
        assert!(hold.release().unwrap());
        busy.assert_whole(&copied, last).await;
    }
}

#[tokio::test]
async fn a_hold_that_was_taken_while_the_journal_was_copied_says_nothing_of_the_copy() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    // The segments were copied before this one was there, and its own file after it.
    busy.steps(60).await;
    let later = Hold::take(&busy.root()).unwrap();
    assert!(later.last() > hold.last());
    let name = format!("journal/HOLD.{}", later.id());
    fs::copy(busy.root().join(&name), copied.join(&name)).unwrap();
    let last = hold.last();
    assert!(later.release().unwrap() && hold.release().unwrap());
    busy.assert_whole(&copied, last).await;
}

/// Copies what is left of a journal over what a copy has of it.
fn copy_without_holds(root: &Path, copied: &Path) {
    for name in names(root, "journal") {
        if !name.starts_with("HOLD.") {
            let (from, to) = (root.join("journal"), copied.join("journal"));
            let copied = fs::copy(from.join(&name), to.join(&name));
            // What gets another name meanwhile is copied by nobody.
            let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            assert!(copied.as_ref().err().is_none_or(is_gone), "{copied:?}");
        }
    }
}

#[tokio::test]
async fn a_hold_on_a_copy_that_nobody_has_opened_begins_where_that_one_does() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let (copied, again) = (busy.folder("copy"), busy.folder("again"));
    copy(&busy.root(), &copied);
    busy.steps(60).await;
    replace_journal(&busy.root(), &copied);
    assert!(hold.release().unwrap());

    let hold = Hold::take(&copied).unwrap();
    copy(&copied, &again);
    let opened = World::open(&copied).await.unwrap();
    assert_eq!(opened.last, hold.last());
    opened.engine.close().unwrap();
    replace_journal(&copied, &again);
    let last = hold.last();
    assert!(hold.release().unwrap());
    busy.assert_whole(&again, last).await;
}

/// A tool that copies syncs nothing, and the hold that tells of the copy goes with its first start.
#[tokio::test]
async fn the_first_start_of_a_copy_syncs_it() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    busy.open_again().await;
    let hold = Hold::take(&busy.root()).unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    hold.release().unwrap();
    let is_synced = Arc::new(AtomicBool::new(false));
    let synced = is_synced.clone();
    let disk = Disk::with_hook(move |action, path: &Path| {
        if path.ends_with("CHECKPOINT") && action == Action::Rename {
            assert!(
                synced.load(Ordering::SeqCst),
                "a mark over files that are not durable"
            );
        }
        synced.fetch_or(action == Action::SyncFileSystem, Ordering::SeqCst);
        Ok(())
    });
    let world = World::open_on(disk, &copied, restless()).await.unwrap();
    assert!(is_synced.load(Ordering::SeqCst));
    world.engine.close().unwrap();
}

#[tokio::test]
async fn a_copy_is_told_until_somebody_heard_it() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    hold.release().unwrap();
    for _ in 0..2 {
        assert!(World::open(&copied).await.unwrap().engine.is_restored());
    }
    forget_restored(&copied).unwrap();
    forget_restored(&copied).unwrap();
    assert!(!World::open(&copied).await.unwrap().engine.is_restored());
}

/// A fresh file system may give the copy of a file the number that the file has.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "a check that is left out says so")]
async fn a_copy_is_told_by_when_its_hold_was_made_too() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    let path = format!("journal/HOLD.{}", hold.id());
    let mut file: serde_json::Value =
        serde_json::from_slice(&fs::read(copied.join(&path)).unwrap()).unwrap();
    if file.get("born").is_none() {
        return println!("SKIP: this file system does not know when a file was made");
    }
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(copied.join(&path)).unwrap());
    assert_ne!(file["inode"], inode);
    file["inode"] = inode.into();
    fs::write(copied.join(&path), file.to_string()).unwrap();
    hold.release().unwrap();
    assert!(World::open(&copied).await.unwrap().engine.is_restored());
}

#[tokio::test]
async fn a_copy_whose_hold_was_ended_too_early_is_refused() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let (root, copied) = (busy.root(), busy.folder("copy"));
    copy(&root, &copied);
    assert!(hold.release().unwrap());
    // The segments go while the journal is still being copied.
    busy.steps(200).await;
    let pending = busy.world.engine.reader().pending;
    pending.wait_for_checkpoint().unwrap();
    for name in names(&copied, "journal") {
        if name.ends_with(".jnl") {
            fs::remove_file(copied.join("journal").join(name)).unwrap();
        }
    }
    copy(&root.join("journal"), &copied.join("journal"));
    let before = files(&copied);
    match World::open(&copied).await.err() {
        Some(OpenError::Damaged { what, .. }) => assert!(what.contains("is a copy"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&copied), before);
    let look = Look::at(&copied).unwrap();
    let [damage] = look.damage() else {
        panic!("{:?}", look.damage());
    };
    assert!(damage.what.contains("is a copy"), "{}", damage.what);
    let Part::Journal { first, last } = damage.part else {
        panic!("{damage:?}");
    };
    // What lies behind the gap tells how far it had come.
    assert_eq!(last, busy.world.last);

    // A copy of it would fall short as well, and not know it.
    let hold = Hold::take(&copied).err();
    assert!(matches!(hold, Some(OpenError::Damaged { .. })), "{hold:?}");

    // A file may be newer than all that the journal tells of, and may say what cannot be. Some tools copy no empty folder.
    let ahead = Seq(last.0 + 1_000);
    for sequence in [ahead.0, u64::MAX] {
        let record = format!(r#"{{"live":false,"sequence":{sequence}}}"#);
        fs::write(copied.join(format!("{sequence}.json")), record).unwrap();
    }
    fs::remove_dir_all(copied.join("tmp")).unwrap();
    let mending = Mending::begin(&copied).unwrap();
    let (loss, moved) = mending.accept_loss().unwrap().unwrap();
    drop(mending);
    assert_eq!((loss.first, loss.last), (first, ahead));
    assert!(moved.iter().any(|moved| moved.from.contains("HOLD.")));
    let opened = World::open(&copied).await.unwrap();
    assert!(opened.engine.is_restored() && opened.epoch > Epoch(COPY_EPOCHS));
    assert_eq!(opened.last, ahead.next());
}

#[tokio::test]
async fn what_a_whole_copy_has_is_not_given_up() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let copied = busy.folder("copy");
    copy(&busy.root(), &copied);
    busy.steps(9).await;
    replace_journal(&busy.root(), &copied);
    let last = hold.last();
    assert!(hold.release().unwrap());
    let mending = Mending::begin(&copied).unwrap();
    assert_eq!(mending.accept_loss().unwrap(), None);
    drop(mending);
    busy.assert_whole(&copied, last).await;
}
