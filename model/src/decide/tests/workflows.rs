//! The activation and retirement of workflows.

use serde_json::json;

use crate::decide::{Activate, Cancel, Refusal, Remedy, Retire, check_dispatch};
use crate::limits::INLINE_PAYLOAD_BYTES;
use crate::testing::{NIGHTLY, TestWorld, activate};
use crate::{Actor, Change, RevisionId, WorkflowId, WorkflowStatus, World};

fn changed(number: u32) -> String {
    format!("{NIGHTLY}# {number}\n")
}

#[test]
fn only_a_new_text_creates_a_revision() {
    let mut test = TestWorld::new();
    let id = test.push("nightly", NIGHTLY);
    let (changes, ()) = test.changes(activate("nightly", NIGHTLY)).unwrap();
    assert!(changes.is_empty());

    test.push("nightly", &changed(2));
    test.push("nightly", NIGHTLY);
    let workflow = test.world.workflow(id).unwrap();
    assert_eq!(workflow.record.revision.number, 3);
    assert_eq!(workflow.record.revision.id, RevisionId::derive(id, 3));
    assert!(test.world.revision(RevisionId::derive(id, 1)).is_none());
}

#[test]
fn changing_only_the_extension_of_a_file_keeps_its_revision() {
    let mut test = TestWorld::new();
    let id = test.push("nightly", NIGHTLY);
    let renamed = Activate {
        file: "workflows/nightly.yml".to_owned(),
        ..activate("nightly", NIGHTLY)
    };
    let (changes, ()) = test.changes(renamed).unwrap();
    assert_eq!(changes.len(), 1);
    let record = &test.world.workflow(id).unwrap().record;
    assert_eq!(record.file, "workflows/nightly.yml");
    assert_eq!(record.revision.number, 1);
}

#[test]
fn retiring_is_recorded_once_and_the_same_text_reactivates_the_workflow() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    test.run(Retire { workflow }).unwrap();
    let status = test.world.workflow_record(workflow).unwrap().status.clone();
    assert_eq!(status, WorkflowStatus::Retired { since: test.now });
    let (changes, ()) = test.changes(Retire { workflow }).unwrap();
    assert!(changes.is_empty());

    test.push("nightly", NIGHTLY);
    let record = test.world.workflow_record(workflow).unwrap();
    assert_eq!(record.status, WorkflowStatus::Active);
    assert_eq!(record.revision.number, 1);

    let unknown = WorkflowId::from_uuid(uuid::Uuid::nil());
    let refusal = test.run(Retire { workflow: unknown });
    assert!(matches!(refusal, Err(Refusal::NoSuchWorkflow { .. })));
}

#[test]
fn a_revision_stays_as_long_as_a_job_needs_it() {
    let mut test = TestWorld::new();
    let id = test.push("nightly", NIGHTLY);
    let job = test.dispatch(id, "probe", json!({})).unwrap();
    test.push("nightly", &changed(2));
    let first = RevisionId::derive(id, 1);
    assert!(test.world.revision(first).is_some());
    let actor = Actor::Daemon;
    test.run(Cancel { job, actor }).unwrap();
    assert!(test.world.revision(first).is_none());
}

#[test]
fn numbers_continue_and_jobs_stay_while_the_newest_revision_is_unreadable() {
    let mut test = TestWorld::new();
    let id = test.push("nightly", NIGHTLY);
    test.push("nightly", &changed(2));
    let job = test.dispatch(id, "probe", json!({})).unwrap();
    // The world after loading the records without the text of the revision.
    let mut world = World::default();
    for change in &test.decided {
        if !matches!(change, Change::Revision(..)) {
            world.apply(change);
        }
    }
    test.world = world;
    assert!(test.world.workflow(id).is_none());
    let unreadable = Refusal::WorkflowUnreadable {
        workflow: "recon/nightly".to_owned(),
        revision: 2,
        remedy: Remedy::Backup,
    };
    let given = Default::default();
    let check = |test: &TestWorld| check_dispatch(&test.world, id, "probe", &given).map(drop);
    assert_eq!(check(&test), Err(unreadable));
    assert!(!test.world.is_orphan(test.world.job(job).unwrap()));
    let runner = test.runner("first", &[]);
    let refusal = test.claim(job, runner);
    assert_eq!(
        refusal,
        Err(Refusal::RevisionUnreadable { job, revision: 2 })
    );
    test.run(Retire { workflow: id }).unwrap();
    let retired = Refusal::Retired {
        workflow: "nightly".to_owned(),
    };
    assert_eq!(check(&test), Err(retired));

    test.push("nightly", &changed(2));
    assert_eq!(test.world.workflow(id).unwrap().record.revision.number, 3);
    test.run(Retire { workflow: id }).unwrap();
}

#[test]
fn a_large_text_is_stored_as_an_object_and_not_in_the_change() {
    let mut test = TestWorld::new();
    let large = format!("{NIGHTLY}# {}\n", "x".repeat(INLINE_PAYLOAD_BYTES));
    for (name, text, is_object) in [("small", NIGHTLY, false), ("large", large.as_str(), true)] {
        let (changes, ()) = test.changes(activate(name, text)).unwrap();
        let [Change::Revision(_, inline), Change::Workflow(_)] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(inline.is_none(), is_object);
    }
}
