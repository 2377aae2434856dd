//! Compares `state-layout.md` with the code, and checks that names from users stay in their folders.

use std::collections::BTreeSet;

use bytes::Bytes;
use model::RevisionId;

use super::*;
use crate::tests::everything::make_every_kind_of_record;
use crate::tests::fixture::{Folder, scan_name};

const PAGE: &str = include_str!("../../../state-layout.md");

/// Paths that the store or Git makes.
const ENGINE: [&str; 13] = [
    "sources/<source>/mirror.git/",
    "BACKUP",
    "FORMAT",
    "LOCK",
    "journal/<first>.jnl",
    "journal/spare-<number>",
    "journal/CHECKPOINT",
    "journal/APPLIED",
    "journal/HOLD",
    "journal/LAST_BACKUP",
    "tmp/object-<random>",
    "quarantine/",
    "index/live-<sequence>",
];

/// The paths at the beginning of the page's list items.
fn paths_of_page() -> BTreeSet<&'static str> {
    let (_, lists) = PAGE.split_once("\n## Sources\n").unwrap();
    lists
        .lines()
        .filter_map(|line| {
            let (path, _) = line.strip_prefix("- `")?.split_once("`: ")?;
            Some(path)
        })
        .collect()
}

#[test]
fn the_page_has_no_long_line() {
    for line in PAGE.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

/// Whether a path matches a pattern. `<word>` matches one or more characters except slashes. A pattern with a slash at
/// its end matches a folder and everything in it.
fn fits(pattern: &str, path: &str) -> bool {
    if let Some(folder) = pattern.strip_suffix('/') {
        return path
            .split('/')
            .zip(folder.split('/'))
            .all(|(path, pattern)| segment_fits(pattern, path))
            && path.split('/').count() >= folder.split('/').count();
    }
    path.split('/').count() == pattern.split('/').count()
        && path
            .split('/')
            .zip(pattern.split('/'))
            .all(|(path, pattern)| segment_fits(pattern, path))
}

fn segment_fits(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else {
        return pattern == text;
    };
    let (Some((_, after)), Some(text)) = (rest.split_once('>'), text.strip_prefix(before)) else {
        return false;
    };
    (1..=text.len()).any(|end| text.is_char_boundary(end) && segment_fits(after, &text[end..]))
}

#[test]
fn the_page_names_exactly_the_paths_that_the_code_makes() {
    // The page writes `<word>` for `{word:..}` of a pattern.
    let plain = |pattern: &str| {
        let unpadded = pattern
            .replace(":02", "")
            .replace(":04", "")
            .replace(":07", "");
        unpadded.replace('{', "<").replace('}', ">")
    };
    let ours = RecordPlace::ALL.iter().map(|place| plain(place.pattern()));
    let made: BTreeSet<String> = ours.chain(ENGINE.map(str::to_owned)).collect();
    let page: BTreeSet<String> = paths_of_page().into_iter().map(str::to_owned).collect();
    assert_eq!(page, made);
}

#[tokio::test]
async fn every_file_of_a_busy_state_is_on_the_page_and_every_path_of_the_page_is_made() {
    let (folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    let unfinished = opened.state.begin_upload().await.unwrap();
    let unfinished = unfinished.write(Bytes::from_static(b"half")).await.unwrap();
    opened.state.settled().await.unwrap();
    let running = folder.files();
    drop(unfinished);
    opened.close();
    let stopped = folder.files();

    let page = paths_of_page();
    for path in running
        .iter()
        .chain(&stopped)
        .filter(|path| !path.ends_with("+new"))
    {
        assert!(
            page.iter().any(|pattern| fits(pattern, path)),
            "{path} is not on the page"
        );
    }
    // Git makes the mirrors, repairs fill the quarantine, a long journal has spares, and backups are made elsewhere.
    let made_by_others = [
        "sources/<source>/mirror.git/",
        "quarantine/",
        "journal/spare-<number>",
        "journal/HOLD",
        "journal/LAST_BACKUP",
        "BACKUP",
    ];
    for pattern in page
        .iter()
        .filter(|pattern| !made_by_others.contains(pattern))
    {
        assert!(
            running
                .iter()
                .chain(&stopped)
                .any(|path| fits(pattern, path)),
            "nothing makes {pattern}"
        );
    }
}

#[test]
fn keys_fit_their_patterns() {
    let source: SourceName = "recon".parse().unwrap();
    let workflow = WorkflowId::derive(&source, "main");
    let revision = RevisionRef {
        id: RevisionId::derive(workflow, 7),
        number: 7,
        commit: "0123456789abcdef".to_owned(),
    };
    let scan = ScanKey {
        workflow,
        scan: scan_name("build"),
    };
    let job: JobId = "0198c5f2-7c1e-7000-8000-0000000000a7".parse().unwrap();
    let check = |key: Key, path: &str| assert_eq!(key.as_str(), path);
    check(
        Layout::tip(&source, 12_345, "0123456789abcdef"),
        "sources/recon/tips/0012/0012345-0123456789ab.json",
    );
    check(
        Layout::revision(workflow, &revision),
        &format!("workflows/{workflow}/revisions/7-0123456789ab/revision.json"),
    );
    check(
        Layout::history(&scan, 3),
        &format!("workflows/{workflow}/scans/build/history/3.jsonl"),
    );
    let history = Layout::history(&scan, 3);
    assert_eq!(RecordPlace::parse(&history), Some(RecordPlace::History));
    assert_eq!(RecordPlace::History.word(&history, "page"), Some(3_u64));
    let padded = Key::new(format!("{}03.jsonl", history.folder().as_str())).unwrap();
    assert_eq!(RecordPlace::History.word::<u64>(&padded, "page"), None);
    assert_eq!(
        RecordPlace::History.word(&history, "workflow"),
        Some(workflow)
    );
    assert_eq!(RecordPlace::Head.path_in("a/b"), "a/b/head.json");
    check(
        Layout::job(job),
        &format!("jobs/2025-08-20/05/a7/{job}/job.json"),
    );
    assert!(
        segment_fits("<number>-<commit>.json", "1-a.json")
            && !segment_fits("<number>-<commit>.json", "-a.json")
    );
}

#[test]
fn names_from_users_stay_in_their_folder_and_have_different_keys() {
    let long = "x".repeat(10_000);
    let words = [
        "",
        ".",
        "..",
        "...",
        "../..",
        "/",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "\0",
        "a\0b",
        "a",
        "A",
        "a.zip",
        "a.zip.zip",
        "~",
        "%2F",
        "%252F",
        "a b",
        "ä",
        "a\u{308}",
        "日本",
        "🦀",
        "-",
        "--",
        ".git",
        "job.json",
        "\n",
        "+new",
        "x+new",
        &long,
        &long[1..],
        &"ä".repeat(5_000),
        &format!("{long}/.."),
        &format!(".{long}"),
        "con",
        "CON",
        "\u{202e}",
    ];
    let job = JobId::FIRST;
    let folder = Layout::artifact(job, "a").folder();
    let mut keys = BTreeSet::new();
    for word in words {
        let key = Layout::artifact(job, word);
        assert_eq!(key.folder(), folder, "{word:?} leaves its folder");
        assert!(
            !key.name().starts_with('.') && key.name().len() <= NAME_BYTES + ".zip".len(),
            "{word:?}: {key}"
        );
        assert!(keys.insert(key.clone()), "{word:?} shares {key}");
        assert_eq!(Layout::artifact(job, word), key);
    }
    assert_eq!(
        Layout::artifact(job, "nuclei-results.txt").name(),
        "nuclei-results.txt.zip",
        "a plain name is encoded"
    );
}

#[test]
fn no_folder_of_tips_or_jobs_grows_without_bound() {
    let source: SourceName = "recon".parse().unwrap();
    let folders: BTreeSet<_> = (0..3 * TIPS_PER_FOLDER)
        .map(|n| Layout::tip(&source, n, "abc").folder().as_str().to_owned())
        .collect();
    assert_eq!(folders.len(), 3);
}
