//! Tests the inspection of states without a daemon.

use std::path::Path;

use super::everything::make_every_kind_of_record;
use super::fixture::Folder;
use crate::inspect::{InspectError, contents, history, show};

/// The id of some record in a folder or its folders.
fn first_id(folder: &Path) -> String {
    let first = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    if first.path().is_dir() {
        return first_id(&first.path());
    }
    let name = first.file_name().into_string().unwrap();
    name.trim_end_matches(".json").to_owned()
}

#[tokio::test]
async fn records_are_found_by_ids_and_names() {
    let (folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    let ended = opened.running_job(fleet, "check").await;
    opened.complete(ended).await;
    let waiting = opened.new_job(fleet, "check").await;
    // `contents` counts files, and files are written shortly after their commit.
    opened.state.settled().await.unwrap();
    let root = folder.root();

    let seen = contents(root).unwrap();
    assert_eq!(seen.sources.len(), 1);
    assert_eq!(seen.workflows.len(), 4);
    assert_eq!(seen.days.iter().map(|day| day.jobs).sum::<u64>(), 8);
    assert!(
        seen.others
            .iter()
            .any(|(name, size)| name == "tokens" && size.files == 1)
    );
    let format = seen.others.iter().find(|(name, _)| name == "FORMAT");
    let on_disk = std::fs::metadata(root.join("FORMAT")).unwrap().len();
    assert_eq!(format.unwrap().1.bytes, on_disk);

    let known = seen
        .workflows
        .iter()
        .find(|known| known.id == fleet.workflow.to_string());
    let named = known.unwrap().name.clone().unwrap();
    let names = [
        ended.to_string(),
        fleet.workflow.to_string(),
        fleet.runner.to_string(),
        "recon".to_owned(),
        "check".to_owned(),
        named.clone(),
    ];
    for name in names {
        let shown = show(root, &name).unwrap();
        assert!(!shown.is_empty(), "{name}");
    }
    let folders = [
        "sessions",
        "registrations",
        "conditions",
        "channels",
        "outbox",
        "rules",
        "tokens",
    ];
    let mut id = String::new();
    for folder in folders {
        id = first_id(&root.join(folder));
        assert!(!show(root, &id).unwrap().is_empty(), "{folder}");
    }
    let hash = show(root, &id).unwrap()[0].record["body"]["hash"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(hash.ends_with('…') && hash.chars().count() == 9, "{hash}");
    assert!(matches!(
        show(root, "nothing"),
        Err(InspectError::Unknown { .. })
    ));

    let states = |name: &str| -> Vec<String> {
        let steps = history(root, name, 10).unwrap().into_iter();
        steps.map(|step| step.state).collect()
    };
    assert_eq!(
        states(&ended.to_string()),
        ["scheduled", "running", "succeeded"]
    );
    assert_eq!(states(&waiting.to_string()), ["scheduled"]);
    assert_eq!(states("check"), ["succeeded", "failed"]);
    assert_eq!(states(&fleet.workflow.to_string()).len(), 3);
    assert_eq!(states(&named).len(), 3);
    assert!(matches!(
        history(root, "nothing", 10),
        Err(InspectError::Unknown { .. })
    ));
    opened.close();
}
