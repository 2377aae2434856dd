//! The bodies of payloads: stored, kept by a crash, and removed.

use bytes::Bytes;
use model::decide::{
    ClearPayloadGroup, CreatePayloadGroup, DeletePayload, DeletePayloadGroup, Precondition,
    StorePayload,
};
use model::payload::Variable;
use model::{Actor, PayloadGroupId, PayloadName, ProjectId};
use workflow::hex;
use workflow::notify::NotifyName;

use super::fixture::{Folder, Opened};

async fn group(opened: &Opened) -> PayloadGroupId {
    let create = CreatePayloadGroup {
        project: ProjectId::of_source(&"recon".parse().unwrap()),
        name: NotifyName::new("xss").unwrap(),
        variables: vec![Variable {
            name: "ID".to_owned(),
            placeholder: "{{id}}".to_owned(),
            default: Some("7".to_owned()),
        }],
        serve: true,
        actor: Actor::Daemon,
    };
    opened.state.submit(create).await.unwrap().id
}

fn name() -> PayloadName {
    "img.svg".parse().unwrap()
}

async fn store(opened: &Opened, group: PayloadGroupId, body: &'static [u8]) -> (u64, bool) {
    let upload = opened.state.begin_upload().await.unwrap();
    let upload = upload.write(Bytes::from_static(body)).await.unwrap();
    let staged = upload.finish().await.unwrap();
    let store = StorePayload {
        group,
        name: name(),
        media_type: "image/svg+xml".to_owned(),
        size: staged.size(),
        sha256: hex(&staged.sha256()),
        expects: Precondition::Anything,
        actor: Actor::Daemon,
    };
    let (payload, is_new) = opened.state.store_payload(store, staged).await.unwrap();
    (payload.edit.version, is_new)
}

/// A group with a payload.
pub(super) async fn make_every_file_of_payloads(opened: &Opened) {
    let group = group(opened).await;
    store(opened, group, b"<svg>{{id}}</svg>").await;
}

#[tokio::test]
async fn versions_are_there_after_a_crash_and_gone_with_their_group() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let group = group(&opened).await;
    assert_eq!(store(&opened, group, b"\0\r\n\xff").await, (1, true));
    assert_eq!(store(&opened, group, b"").await, (2, true));
    assert_eq!(store(&opened, group, b"").await, (2, false));
    let mut crashed = folder.crashed();
    let again = crashed.open().await;
    for (version, body) in [
        (1, Some(&b"\0\r\n\xff"[..])),
        (2, Some(b"")),
        (3, None),
        (0, None),
    ] {
        let found = again.state.payload(group, &name(), version).await.unwrap();
        assert_eq!(found.as_deref(), body, "{version}");
    }
    again.close();
    let state = &opened.state;
    let delete = DeletePayload {
        group,
        name: name(),
        expects: Precondition::Anything,
    };
    assert!(!state.submit(delete).await.unwrap());
    assert_eq!(state.payload(group, &name(), 1).await.unwrap(), None);
    store(&opened, group, b"again").await;
    state.submit(DeletePayloadGroup { group }).await.unwrap();
    assert_eq!(state.payload(group, &name(), 1).await.unwrap(), None);
    while state.submit(ClearPayloadGroup { group }).await.unwrap() {}
    state.settled().await.unwrap();
    let files = folder.files().into_iter();
    let files: Vec<_> = files.filter(|path| path.starts_with("payloads/")).collect();
    assert_eq!(files, Vec::<String>::new());
    opened.close();
    folder.open().await.close();
}

#[tokio::test]
async fn a_damaged_body_is_reported() {
    let (folder, opened, _) = Folder::prepared().await;
    let group = group(&opened).await;
    store(&opened, group, b"right").await;
    opened.state.settled().await.unwrap();
    let path = folder
        .root()
        .join(format!("payloads/{group}/bodies/img.svg/1.object"));
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"wrong").unwrap();
    let read = opened.state.payload(group, &name(), 1).await;
    assert!(read.unwrap_err().to_string().contains("img.svg/1.object"));
    opened.close();
}
