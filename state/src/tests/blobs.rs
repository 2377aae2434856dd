//! Tests blobs on disk: content and record exist together or not at all.

use bytes::Bytes;
use model::decide::{MoveBlob, Refusal, RemoveBlob, StoreBlob};
use model::limits::BLOB_FOLDER_ENTRIES;
use model::{Actor, Blob, BlobCondition, BlobPath, ProjectId};

use super::fixture::{Folder, Opened};
use super::fsck::findings;
use crate::blobs::{BlobEntry, BlobQuery};
use crate::layout::Layout;
use crate::{SubmitError, back_up, restore};

pub(crate) fn path(text: &str) -> BlobPath {
    text.parse().unwrap()
}

fn codes_of(folder: &Folder) -> Vec<&'static str> {
    let findings = findings(folder).into_iter();
    findings.map(|finding| finding.code.name()).collect()
}

fn project() -> ProjectId {
    ProjectId::of_source(&"recon".parse().unwrap())
}

impl Opened {
    pub(crate) async fn store_blob(&self, at: &str, content: &'static str) -> Blob {
        self.try_to_store_blob(at, content, None).await.unwrap()
    }

    async fn try_to_store_blob(
        &self,
        at: &str,
        content: &'static str,
        expires_in: Option<chrono::TimeDelta>,
    ) -> Result<Blob, SubmitError> {
        let state = &self.state;
        let upload = state.begin_upload().await.unwrap();
        let upload = upload.write(Bytes::from(content)).await.unwrap();
        let received = upload.finish().await.unwrap();
        let store = StoreBlob {
            project: project(),
            path: path(at),
            size: received.size(),
            sha256: workflow::hex(&received.sha256()),
            expires_in,
            before: state.blob(project(), &path(at)).await.unwrap(),
            condition: BlobCondition::None,
            quota: None,
            actor: Actor::Daemon,
        };
        state.store_blob(store, Some(received)).await
    }

    async fn blob_text(&self, at: &str) -> Option<String> {
        let opened = self.state.open_blob(project(), &path(at)).await.unwrap();
        let (blob, content) = opened?;
        let size = usize::try_from(blob.size).unwrap();
        let (_, bytes) = content.read(0, size).await.unwrap();
        Some(String::from_utf8(bytes.into()).unwrap())
    }

    async fn blob(&self, at: &str) -> Blob {
        let found = self.state.blob(project(), &path(at)).await.unwrap();
        found.unwrap()
    }

    async fn move_blob(&self, from: &str, to: &str) {
        let blob = self.blob(from).await;
        let shared = self.state.share_blob(&blob).await.unwrap();
        let command = MoveBlob {
            blob,
            to: path(to),
            before: self.state.blob(project(), &path(to)).await.unwrap(),
            condition: BlobCondition::None,
        };
        self.state.move_blob(command, Some(shared)).await.unwrap();
    }

    async fn remove_blob(&self, at: &str) {
        let remove = RemoveBlob {
            blob: self.blob(at).await,
            condition: BlobCondition::None,
        };
        self.state.submit(remove).await.unwrap();
    }

    /// All pages of a list, each entry as text.
    async fn blobs(
        &self,
        folder: &[&str],
        begin: &str,
        is_flat: bool,
        limit: usize,
    ) -> Vec<String> {
        let mut query = BlobQuery {
            project: project(),
            folder: folder.iter().map(|name| (*name).to_owned()).collect(),
            begin: begin.to_owned(),
            is_flat,
            after: None,
            limit,
            now: self.state.now(),
        };
        let mut all = Vec::new();
        loop {
            let page = self.state.list_blobs(&query).await.unwrap();
            assert!(page.entries.len() <= limit);
            query.after = page.entries.last().map(|last| last.path().clone());
            all.extend(page.entries.iter().map(|entry| match entry {
                BlobEntry::Blob(blob) => blob.path.to_string(),
                BlobEntry::Folder(path) => format!("{path}/"),
            }));
            if page.is_last {
                return all;
            }
        }
    }

    fn usage(&self) -> (u64, u64) {
        let usage = self.state.read(|world| world.blob_usage(project()));
        (usage.blobs, usage.bytes)
    }
}

#[tokio::test]
async fn a_blob_is_a_file_in_real_folders_and_survives_a_restart() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.store_blob("reports/2026/a b.json", "{}").await;
    opened.state.settled().await.unwrap();
    let place = format!("blobs/{}/reports/2026/a%20b.json", project());
    assert_eq!(std::fs::read(folder.root().join(place)).unwrap(), b"{}");
    opened.store_blob("reports/2026/a b.json", "more").await;
    assert_eq!(opened.usage(), (1, 4));
    let mut crashed = folder.crashed();
    drop(opened);
    // Without the index, all record files are read.
    crashed.remove_index();
    let folder = &mut crashed;
    let opened = folder.open().await;
    let text = opened.blob_text("reports/2026/a b.json").await;
    assert_eq!(text.unwrap(), "more");
    assert_eq!(opened.usage(), (1, 4));
    opened.remove_blob("reports/2026/a b.json").await;
    assert_eq!(opened.usage(), (0, 0));
    opened.close();
    let left = folder.files();
    assert!(
        !left.iter().any(|path| path.starts_with("blob")),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_file_of_a_user_never_counts_as_a_record() {
    let (mut folder, opened, _) = Folder::prepared().await;
    opened.make_owner().await;
    opened.store_blob("token.json", "{\"live\": true}").await;
    opened.close();
    let folder_of_tokens = folder.root().join("tokens");
    let token = std::fs::read_dir(folder_of_tokens).unwrap().next();
    let record = std::fs::read(token.unwrap().unwrap().path()).unwrap();
    let place = folder.path(&Layout::blob(project(), &path("token.json")));
    std::fs::write(place, &record).unwrap();
    folder.remove_index();
    let opened = folder.open().await;
    assert_eq!(opened.state.read(|world| world.tokens().count()), 1);
    assert_eq!(opened.blob("token.json").await.size, 14);
}

#[tokio::test]
async fn a_move_moves_content_and_record() {
    let (mut folder, opened, _) = Folder::prepared().await;
    opened.store_blob("a/one", "1").await;
    opened.store_blob("b/two", "22").await;
    opened.move_blob("a/one", "a/three").await;
    opened.move_blob("a/three", "b/two").await;
    assert_eq!(opened.blobs(&[], "", false, 10).await, ["b/two"]);
    assert_eq!(opened.usage(), (1, 1));
    drop(opened);
    let opened = folder.open().await;
    assert_eq!(opened.blob_text("b/two").await.unwrap(), "1");
    assert_eq!(opened.blob_text("a/one").await, None);
    opened.close();
    assert_eq!(codes_of(&folder), [] as [&str; 0]);
}

#[tokio::test]
async fn lists_are_in_the_same_order_for_every_page_size() {
    let (_folder, opened, _) = Folder::prepared().await;
    let long = "long-".repeat(40);
    let deep = format!("{long}/x");
    let all = [
        "a", "b/1", "b/2/x", "b/2/y", "b/3", "b-c", "d%2Fe", ".hidden", "ä/ö", &deep,
    ];
    for blob in all {
        opened
            .store_blob(Box::leak(blob.to_owned().into_boxed_str()), "x")
            .await;
    }
    let whole = opened.blobs(&[], "", false, 100).await;
    assert_eq!(whole.len(), all.len(), "{whole:?}");
    for limit in 1..=all.len() {
        assert_eq!(opened.blobs(&[], "", false, limit).await, whole, "{limit}");
    }
    let inside = ["b/1", "b/2/x", "b/2/y", "b/3"];
    for limit in [1, 2, 10] {
        assert_eq!(opened.blobs(&["b"], "", false, limit).await, inside);
        let flat = opened.blobs(&["b"], "", true, limit).await;
        assert_eq!(flat, ["b/1", "b/2/", "b/3"]);
        let flat = opened.blobs(&[], "", true, limit).await;
        let top = [
            ".hidden",
            "ä/",
            "a",
            "b/",
            "b-c",
            "d%2Fe",
            &format!("{long}/"),
        ];
        let mut wanted = top.map(str::to_owned).to_vec();
        let mut found = flat.clone();
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "{flat:?}");
    }
    assert_eq!(opened.blobs(&[], "b", true, 10).await, ["b/", "b-c"]);
    assert_eq!(
        opened.blobs(&["b"], "2", false, 10).await,
        ["b/2/x", "b/2/y"]
    );
    assert_eq!(opened.blobs(&[], "long", false, 10).await, [deep]);
    assert_eq!(opened.blobs(&["x"], "", false, 10).await, [] as [&str; 0]);
}

#[tokio::test]
async fn the_longest_allowed_path_can_be_stored() {
    let (_folder, opened, _) = Folder::prepared().await;
    // Each `!` takes three characters on disk, and each of these names is too short to be split.
    let widest = vec!["!".repeat(31); 32].join("/");
    let longest = "ä".repeat(512);
    for text in [&widest, &longest] {
        let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
        opened.store_blob(text, "x").await;
        opened.state.settled().await.unwrap();
        assert_eq!(opened.blob_text(text).await.unwrap(), "x");
    }
    assert_eq!(opened.blobs(&[], "", false, 1).await.len(), 2);
}

#[tokio::test]
async fn a_refusal_names_what_is_in_the_way_of_a_blob() {
    let (_folder, opened, _) = Folder::prepared().await;
    opened.store_blob("a/b/c", "x").await;
    opened.store_blob("d", "x").await;
    for (at, problem) in [
        ("a", Some("`a` is a folder")),
        ("a/b", Some("`a/b` is a folder")),
        (
            "a/b/c/d/e",
            Some("`a/b/c` is a blob, so nothing can be in it"),
        ),
        ("d/e", Some("`d` is a blob, so nothing can be in it")),
        ("a/b/d", None),
        ("e/f/g", None),
    ] {
        let found = opened.state.in_the_way_of_blob(project(), &path(at)).await;
        let found = found.unwrap().map(|refusal| refusal.to_string());
        assert_eq!(found.as_deref(), problem, "{at}");
    }
}

#[tokio::test]
async fn a_full_folder_takes_no_new_blob() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.store_blob("full/first", "x").await;
    opened.state.settled().await.unwrap();
    let record = folder.path(&Layout::blob_record(project(), &path("full/first")));
    for number in 1..BLOB_FOLDER_ENTRIES {
        std::fs::write(record.with_file_name(format!("{number}~.json")), "").unwrap();
    }
    let in_the_way = async |at: &str| {
        let found = opened.state.in_the_way_of_blob(project(), &path(at)).await;
        found.unwrap()
    };
    let refusal = in_the_way("full/new").await;
    let is_full = |entries: &usize| *entries == BLOB_FOLDER_ENTRIES;
    assert!(
        matches!(&refusal, Some(Refusal::BlobFolderFull { entries, .. }) if is_full(entries)),
        "{refusal:?}"
    );
    assert_eq!(in_the_way("other/new").await, None);
}

#[tokio::test]
async fn blobs_that_expire_are_known_after_a_restart() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let hour = chrono::TimeDelta::hours(1);
    let stored = opened.try_to_store_blob("tmp/x", "x", Some(hour)).await;
    let end = stored.unwrap().expires_at.unwrap();
    opened.store_blob("kept", "x").await;
    opened.close();
    let opened = folder.open().await;
    let over = |now| {
        opened
            .state
            .read(|world| world.expired_blobs(now, 10).len())
    };
    assert_eq!((over(end - hour), over(end)), (0, 1));
    assert_eq!(opened.blobs(&[], "", false, 10).await, ["kept", "tmp/x"]);
    folder.advance(3_600_000);
    assert_eq!(opened.blobs(&[], "", false, 10).await, ["kept"]);
    // Now it is stored without an expiry time.
    opened.store_blob("tmp/x", "y").await;
    assert_eq!(over(end), 0);
}

#[tokio::test]
async fn a_lost_count_of_blobs_is_counted_again() {
    let (mut folder, opened, _) = Folder::prepared().await;
    opened.store_blob("a/b", "four").await;
    opened.store_blob("c", "x").await;
    opened.close();
    folder.remove_index();
    let count = folder.path(&Layout::blob_usage(project()));
    std::fs::write(count, "not a record").unwrap();
    let opened = folder.open().await;
    assert_eq!(opened.usage(), (2, 5));
}

#[tokio::test]
async fn a_check_compares_blobs_with_their_records() {
    let (folder, opened, _) = Folder::prepared().await;
    for blob in ["same", "short", "gone", "lost"] {
        opened.store_blob(blob, "content").await;
    }
    opened.close();
    assert_eq!(codes_of(&folder), [] as [&str; 0]);
    let content = |at: &str| folder.path(&Layout::blob(project(), &path(at)));
    std::fs::write(content("short"), "cont").unwrap();
    std::fs::write(content("same"), "CONTENT").unwrap();
    std::fs::remove_file(content("gone")).unwrap();
    folder.remove_index();
    std::fs::remove_file(folder.path(&Layout::blob_record(project(), &path("lost")))).unwrap();
    let mut codes = codes_of(&folder);
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["blob_differs", "blob_differs", "blob_missing", "orphan"]
    );
}

#[tokio::test]
async fn a_backup_of_a_running_daemon_has_every_blob() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.store_blob("a/b", "before").await;
    opened.state.settled().await.unwrap();
    opened.store_blob("c", "not in its place yet, maybe").await;
    let copy = folder.root().with_file_name("copy");
    back_up(folder.root(), &copy, &|| false).unwrap();
    opened.close();
    let mut restored = folder.empty_twin();
    restore(&copy, restored.root(), &|| false).unwrap();
    assert_eq!(codes_of(&restored), [] as [&str; 0]);
    let opened = restored.open().await;
    assert_eq!(opened.blobs(&[], "", false, 10).await, ["a/b", "c"]);
    assert_eq!(opened.blob_text("a/b").await.unwrap(), "before");
}
