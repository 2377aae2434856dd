//! Tests that damaged records are kept aside and all other records stay usable.

use std::fs;
use std::io::Read;
use std::path::Path;

use model::World;
use model::decide::{Precondition, SetVar};
use model::{Actor, ProjectId};
use store::Key;

use super::fixture::{Fleet, Folder, Opened};
use crate::OpenError;
use crate::damaged::loss;
use crate::envelope::resealed;
use crate::fsck::repair;
use crate::jobs::JobFilter;
use crate::layout::Layout;

/// Turns a record into invalid JSON and deletes the index, so the next start reads the files.
fn damage(root: &Path, key: &Key) -> String {
    let path = root.join(key.as_str());
    let text = fs::read_to_string(&path).unwrap();
    let damaged = text.replacen('{', "[", 1);
    fs::write(&path, &damaged).unwrap();
    let _ = fs::remove_dir_all(root.join("index"));
    damaged
}

fn kept(root: &Path, key: &Key) -> String {
    fs::read_to_string(root.join("quarantine").join(key.as_str())).unwrap()
}

fn tokens(opened: &Opened) -> usize {
    opened.state.read(|world| world.tokens().count())
}

#[tokio::test]
async fn removing_the_file_of_a_token_revokes_it_although_the_index_has_it() {
    let (mut folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    let token = opened
        .state
        .read(|world| world.tokens().next().map(|token| token.id));
    let runners = |opened: &Opened| opened.state.read(|world| world.runners().count());
    assert_eq!((tokens(&opened), runners(&opened)), (1, 1));
    let root = folder.root().to_owned();
    opened.close();
    fs::remove_file(root.join(Layout::token(token.unwrap()).as_str())).unwrap();
    for _ in 0..2 {
        let opened = folder.open().await;
        assert_eq!((tokens(&opened), runners(&opened)), (0, 1));
        opened.close();
    }
}

#[tokio::test]
async fn no_admin_token_is_created_while_a_token_is_in_quarantine() {
    let (mut folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    let lost = opened
        .state
        .read(|world| world.tokens().next().map(|token| token.id));
    let key = Layout::token(lost.unwrap());
    opened.close();
    let root = folder.root().to_owned();
    let damaged = damage(&root, &key);
    fs::remove_file(root.join("initial-admin-token")).unwrap();

    for _ in 0..2 {
        let opened = folder.open().await;
        opened.make_owner().await;
        assert_eq!(tokens(&opened), 0);
        assert_eq!(kept(&root, &key), damaged);
        opened.close();
    }
    assert!(!root.join(key.as_str()).exists() && !root.join("initial-admin-token").exists());

    fs::remove_dir_all(root.join("quarantine/tokens")).unwrap();
    let opened = folder.open().await;
    opened.make_owner().await;
    assert_eq!(tokens(&opened), 1);
    opened.close();
    assert!(root.join("initial-admin-token").exists());
}

#[tokio::test]
async fn lost_values_are_kept_aside_and_versions_are_not_reused() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let project = opened.set_values().await;
    opened.close();
    let root = folder.root().to_owned();
    let keys = [Layout::vars(project), Layout::secrets(project)];
    let damaged = keys.each_ref().map(|key| damage(&root, key));

    for _ in 0..2 {
        let opened = folder.open().await;
        let is_empty = |world: &World| {
            let vars = world.vars(project).unwrap();
            let secrets = world.secrets(project).unwrap();
            vars.vars.is_empty() && secrets.secrets.is_empty()
        };
        assert!(opened.state.read(is_empty));
        opened.close();
    }
    assert_eq!(keys.each_ref().map(|key| kept(&root, key)), damaged);
    let opened = folder.open().await;
    assert!(set_var(&opened, project).await > 1);
    opened.close();
    assert_eq!(kept(&root, &keys[0]), damaged[0]);
}

/// Sets a var and returns its version.
async fn set_var(opened: &Opened, project: ProjectId) -> u64 {
    let set = SetVar {
        project,
        name: "URL".to_owned(),
        value: "https://example.com".to_owned(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    opened.state.submit(set).await.unwrap();
    opened
        .state
        .read(|world| world.vars(project).unwrap().vars["URL"].edit.version)
}

#[tokio::test]
async fn history_is_not_overwritten_when_the_head_is_lost() {
    type Change = fn(&str) -> Option<String>;
    let changes: [(&str, Change); 3] = [
        ("damaged", |text| Some(text.replacen('{', "[", 1))),
        ("wrong", |text| {
            Some(text.replace("\"succeeded\": 1", "\"succeeded\": 7"))
        }),
        ("missing", |_| None),
    ];
    for (what, change) in changes {
        let (mut folder, opened, fleet) = Folder::prepared().await;
        let first = opened.running_job(fleet, "build").await;
        opened.complete(first).await;
        opened.close();
        let path = folder.path(&Layout::head(&fleet.scan("build")));
        match change(&fs::read_to_string(&path).unwrap()) {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        folder.remove_index();
        // The daemon may start several times before the scan has another job.
        for _ in 0..2 {
            folder.open().await.close();
        }
        let opened = folder.open().await;
        let second = opened.running_job(fleet, "build").await;
        opened.complete(second).await;
        let page = opened.state.jobs(&JobFilter::default(), None, 10).await;
        let listed: Vec<_> = page.unwrap().jobs.iter().map(|job| job.id).collect();
        assert_eq!(listed, [second, first], "{what}");
        let head = opened.head(fleet, "build");
        assert_eq!(
            head.totals.succeeded, 2,
            "{what}: the history is not counted"
        );
        assert_eq!(
            head.successes.len(),
            1,
            "successes that the history cannot restore are kept"
        );
    }
}

/// A workflow with a scan whose name is too long for a path.
async fn with_long_name(opened: &Opened, fleet: Fleet) -> (Fleet, String) {
    let name = "n".repeat(workflow::limits::SCAN_NAME_BYTES);
    let text =
        format!("scans:\n  {name}:\n    on: {{dispatch: {{}}}}\n    steps: [{{run: make}}]\n");
    let workflow = opened.activate("long", &text).await;
    (Fleet { workflow, ..fleet }, name)
}

#[tokio::test]
async fn history_of_a_long_scan_name_survives_a_lost_head() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let (fleet, name) = with_long_name(&opened, fleet).await;
    let first = opened.running_job(fleet, &name).await;
    opened.complete(first).await;
    opened.close();
    let root = folder.root().to_owned();
    let scan = fleet.scan(&name);
    damage(&root, &Layout::head(&scan));
    let opened = folder.open().await;
    let second = opened.running_job(fleet, &name).await;
    opened.complete(second).await;
    assert_eq!(opened.head(fleet, &name).totals.succeeded, 2);
    opened.close();
    let first_page = fs::read_to_string(root.join(Layout::history(&scan, 0).as_str())).unwrap();
    assert!(first_page.contains(&first.to_string()), "{first_page}");

    // A repair also restores the head.
    damage(&root, &Layout::head(&scan));
    repair(&root, false, &mut |_| ()).await.unwrap();
    let opened = folder.open().await;
    let head = opened.head(fleet, &name);
    assert_eq!((head.totals.succeeded, head.latest_job), (2, second));
    assert!(head.history.page > 1, "{:?}", head.history);
}

#[tokio::test]
async fn an_unreadable_history_is_not_overwritten_after_a_lost_head() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let first = opened.running_job(fleet, "build").await;
    opened.complete(first).await;
    opened.close();
    let scan = fleet.scan("build");
    let page = folder.path(&Layout::history(&scan, 0));
    // This is more than the store reads at once.
    let file = fs::OpenOptions::new().write(true).open(&page).unwrap();
    file.set_len(1 << 30).unwrap();
    damage(folder.root(), &Layout::head(&scan));
    let opened = folder.open().await;
    let second = opened.running_job(fleet, "build").await;
    opened.complete(second).await;
    opened.state.settled().await.unwrap();
    let mut line = vec![0; 500];
    file_start(&page, &mut line);
    assert!(String::from_utf8_lossy(&line).contains(&first.to_string()));
    assert_eq!(opened.head(fleet, "build").history.page, 1);
}

fn file_start(path: &Path, bytes: &mut [u8]) {
    fs::File::open(path).unwrap().read_exact(bytes).unwrap();
}

#[tokio::test]
async fn the_daemon_does_not_start_with_a_record_of_a_newer_program() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.new_job(fleet, "build").await;
    opened.close();
    let path = folder.path(&Layout::job(job));
    let newest = crate::envelope::VERSION + 1;
    let newer = resealed(&fs::read(&path).unwrap(), newest);
    fs::write(&path, &newer).unwrap();
    folder.remove_index();
    for _ in 0..2 {
        let error = folder.try_open().await.err().unwrap();
        assert!(
            matches!(error, OpenError::Newer { version, .. } if version == newest),
            "{error}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), newer);
}

#[test]
fn a_loss_message_exists_exactly_for_live_records() {
    for (key, expected) in [
        ("tokens/a.json", true),
        ("jobs/2026-11-20/12/8b/a/job.json", true),
        ("workflows/a/scans/b/head.json", true),
        ("tokens/a", false),
        ("workflows/a/revisions/1-a/revision.json", false),
        ("sources/a/tips/0000/0000001-a.json", false),
        ("sources/a/mirror.git/refs/heads/job.json", false),
        ("notes.json", false),
    ] {
        let loss = loss(&Key::new(key).unwrap());
        assert_eq!(loss.is_some(), expected, "{key}");
    }
}
