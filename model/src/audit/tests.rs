//! The entries of the audit log for decisions of people.

use chrono::TimeDelta;
use serde_json::{Value, json};
use workflow::notify::{NotifyName, Rule};

use super::{AuditKind, actions};
use crate::blob::{BlobCondition, LinkUse};
use crate::decide::{
    ApproveRemoval, Cancel, Claim, Command, CreateBlobLink, CreateRegistration, CreateToken,
    CreateUser, DeleteJob, DeleteRule, DeleteSecret, DeleteVar, EndJob, EndOfUser, Evaluate, Giver,
    LimitRunner, Loss, MoveBlob, NewRegistration, Precondition, RecordTip, RegenerateToken,
    RemoveArtifacts, RemoveRunner, Resume, RevokeBlobLink, RevokeToken, SetRule, SetSecret, SetVar,
    SignIn, SignOut, SignOutEverywhere, SignedInBy, StoreArtifact, StoreBlob, Suspend,
};
use crate::limits::{AUDIT_TEXT_CHARS, BLOB_LINK_LIFE, SESSION_LIFE, WORKER_LAST_WORDS};
use crate::moment::SeededEntropy;
use crate::plan::{HeldRemoval, Standing};
use crate::restored::UserPart;
use crate::testing::{NIGHTLY, TestWorld, complete, source};
use crate::{
    Actor, ProjectId, Projects, Reason, Rights, Scope, SealingKey, SecretValue, TokenHash, TokenId,
    TokenManager, UsedToken, UserId,
};

/// Decides and applies. Also returns the entries of the audit log.
fn audited<C: Command>(test: &mut TestWorld, command: C) -> (C::Answer, Vec<Value>) {
    let (world, now) = (test.world.clone(), test.steady());
    let (changes, answer) = test.changes(command).unwrap();
    let actions = actions(&world, now, &changes).into_iter();
    let json = actions.map(|action| serde_json::to_value(action).unwrap());
    (answer, json.collect())
}

/// The entries of the audit log for this command.
fn of<C: Command>(test: &mut TestWorld, command: C) -> Vec<Value> {
    audited(test, command).1
}

fn project() -> ProjectId {
    ProjectId::of_source(&source())
}

fn create_token() -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: [Scope::JobRead, Scope::Dispatch].into_iter().collect(),
        projects: Projects::All,
        life: Some(TimeDelta::days(400)),
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    }
}

#[test]
fn tokens_and_sessions_are_logged_without_their_secrets() {
    let mut test = TestWorld::new();
    let (made, said) = audited(&mut test, create_token());
    let id = made.token.id;
    let end = made.token.expires_at;
    assert_eq!(
        said,
        [json!({
            "kind": "token_created", "id": id, "name": "ci", "scopes": ["job:read", "dispatch"], "expires_at": end,
        })]
    );
    let sign_in = |secret: TokenHash| SignIn {
        by: SignedInBy::token(UsedToken { token: id, secret }),
        is_device: false,
        device: "a browser".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    let (first, said) = audited(&mut test, sign_in(made.secret.hash()));
    let first = first.session.id;
    assert_eq!(said, [json!({"kind": "signed_in", "id": first})]);
    let out = SignOut {
        user: UserId::OWNER,
        session: first,
    };
    assert_eq!(
        of(&mut test, out),
        [json!({"kind": "signed_out", "id": first})]
    );
    test.run(sign_in(made.secret.hash())).unwrap();
    test.pass(SESSION_LIFE);
    // An expired session is removed without an entry.
    let (second, said) = audited(&mut test, sign_in(made.secret.hash()));
    let second = second.session.id;
    assert_eq!(said, [json!({"kind": "signed_in", "id": second})]);
    assert_eq!(
        of(
            &mut test,
            SignOutEverywhere {
                user: UserId::OWNER,
                with: None
            }
        ),
        [json!({"kind": "signed_out_everywhere", "id": UserId::OWNER, "name": "owner"})]
    );
    let regenerate = RegenerateToken {
        token: id,
        overlap: TimeDelta::zero(),
        life: None,
        by: TokenManager::owner(),
        ends_by: None,
    };
    assert_eq!(
        of(&mut test, regenerate),
        [json!({"kind": "token_regenerated", "id": id, "name": "ci", "expires_at": end})]
    );
    let revoke = RevokeToken {
        token: id,
        by: TokenManager::owner(),
    };
    assert_eq!(
        of(&mut test, revoke),
        [json!({"kind": "token_revoked", "id": id, "name": "ci"})]
    );
}

#[test]
fn what_ends_with_all_sessions_is_named() {
    let mut test = TestWorld::new();
    let user = UserId::OWNER;
    let create = CreateUser {
        name: "kim".parse().unwrap(),
        is_service: false,
        is_administrator: true,
        roles: [].into(),
        by: Giver {
            user,
            rights: Rights::admin(),
            token: None,
        },
    };
    let kim = test.run(create).unwrap().user.id;
    let ended = json!({"kind": "user_link_ended", "id": kim, "name": "kim"});
    let before = test.world.clone();
    assert_eq!(
        of(&mut test, SignOutEverywhere { user, with: None }),
        [
            json!({"kind": "signed_out_everywhere", "id": user, "name": "owner"}),
            ended.clone(),
        ]
    );
    // A restore ends it alone.
    test.world = before;
    let (user, part) = (kim, UserPart::Link);
    assert_eq!(of(&mut test, EndOfUser { user, part }), [ended]);
}

#[test]
fn rules_of_the_api_are_logged_by_name() {
    let mut test = TestWorld::new();
    let name = NotifyName::new("nightly").unwrap();
    let set = |project| SetRule {
        project,
        rule: Rule::of(name.clone()),
    };
    assert_eq!(
        of(&mut test, set(Some(project()))),
        [json!({"kind": "rule_set", "project": "recon", "name": "nightly"})]
    );
    assert_eq!(
        of(&mut test, set(None)),
        [json!({"kind": "rule_set", "name": "nightly"})]
    );
    let delete = DeleteRule {
        project: Some(project()),
        name: name.clone(),
    };
    assert_eq!(
        of(&mut test, delete),
        [json!({"kind": "rule_deleted", "project": "recon", "name": "nightly"})]
    );
}

#[test]
fn values_are_logged_by_name_and_version_only() {
    let mut test = TestWorld::new();
    let set = |name: &str, value: &str| SetVar {
        project: project(),
        name: name.to_owned(),
        value: value.to_owned(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    let var = |kind: &str, name: &str, version: u64| json!({"kind": kind, "project": "recon", "name": name, "version": version});
    assert_eq!(
        of(&mut test, set("URL", "hidden")),
        [var("var_set", "URL", 1)]
    );
    assert_eq!(
        of(&mut test, set("HOST", "hidden")),
        [var("var_set", "HOST", 2)]
    );
    assert_eq!(
        of(&mut test, set("URL", "other")),
        [var("var_set", "URL", 3)]
    );
    let delete = DeleteVar {
        project: project(),
        name: "HOST".to_owned(),
        expects: Precondition::Anything,
    };
    assert_eq!(of(&mut test, delete), [var("var_deleted", "HOST", 2)]);
    let secret = SetSecret {
        project: project(),
        name: "KEY".to_owned(),
        value: SecretValue::new("hidden".to_owned()),
        key: SealingKey::random(&mut SeededEntropy::new(9)),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    assert_eq!(of(&mut test, secret), [var("secret_set", "KEY", 1)]);
    let delete = DeleteSecret {
        project: project(),
        name: "KEY".to_owned(),
        expects: Precondition::Anything,
    };
    assert_eq!(of(&mut test, delete), [var("secret_deleted", "KEY", 1)]);
}

#[test]
fn jobs_and_their_artifacts_and_ends_are_logged_with_their_scan() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let runner = test.runner("first", &[]);
    let dispatch = test.dispatch_of(workflow, "probe", json!({})).unwrap();
    let (job, said) = audited(&mut test, dispatch);
    let of_job = |kind: &str, more: Value| {
        let mut action =
            json!({"kind": kind, "workflow": "recon/nightly", "scan": "probe", "job": job});
        let members = action.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        action
    };
    assert_eq!(said, [of_job("job_dispatched", json!({}))]);
    let cancel = Cancel {
        job,
        actor: Actor::Daemon,
    };
    assert_eq!(of(&mut test, cancel), [of_job("job_cancelled", json!({}))]);

    let (job, token) = test.running();
    let store = StoreArtifact {
        job,
        token,
        name: "hosts".to_owned(),
        size: 7,
        sha256: String::new(),
        content_digest: "digest".to_owned(),
    };
    test.run(store).unwrap();
    let done = test.run(complete(job, token)).unwrap();
    let remove = RemoveArtifacts {
        job: done,
        names: vec!["hosts".to_owned()],
        reason: Reason::DeletedByUser,
        actor: Actor::Daemon,
    };
    let (done, said) = audited(&mut test, remove);
    assert_eq!(
        said,
        [json!({"kind": "artifact_deleted", "job": job, "name": "hosts"})]
    );
    test.pass(WORKER_LAST_WORDS);
    let delete = DeleteJob {
        job: done,
        actor: Actor::Daemon,
    };
    let deleted =
        json!({"kind": "job_deleted", "workflow": "recon/nightly", "scan": "probe", "job": job});
    assert_eq!(of(&mut test, delete), [deleted]);

    let (job, _) = test.running();
    let limit = LimitRunner {
        runner,
        projects: [test.world.job(job).unwrap().project].into(),
        by: Rights::admin(),
    };
    assert_eq!(
        of(&mut test, limit),
        [
            json!({"kind": "runner_limited", "id": runner, "name": "first", "reason": "all -> recon"})
        ]
    );
    assert_eq!(
        of(
            &mut test,
            RemoveRunner {
                runner,
                by: Rights::admin()
            }
        ),
        [json!({"kind": "runner_removed", "id": runner, "name": "first"})]
    );
    let ended = json!({
        "kind": "job_ended", "workflow": "recon/nightly", "scan": "probe", "job": job, "reason": "runner_lost",
    });
    assert_eq!(of(&mut test, EndJob::new(job, Loss::RunnerLost)), [ended]);
}

#[test]
fn a_claim_that_gets_secrets_is_logged_with_their_names_once() {
    let mut test = TestWorld::new();
    let using = NIGHTLY.replace(
        "{run: two}",
        "{run: '${{ secrets.KEY }} ${{ secrets.NONE }}'}",
    );
    let workflow = test.push("nightly", &using);
    let set = SetSecret {
        project: project(),
        name: "KEY".to_owned(),
        value: SecretValue::new("hidden".to_owned()),
        key: SealingKey::random(&mut SeededEntropy::new(9)),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    test.run(set).unwrap();
    let runner = test.runner("first", &[]);
    let mut claim = |scan: &str| {
        let job = test
            .dispatch(workflow, scan, json!({"target": "x"}))
            .unwrap();
        let claim = || Claim {
            job,
            runner,
            token: TokenHash::of("worker"),
            job_token: None,
            evaluate: Evaluate::HERE,
        };
        let said = of(&mut test, claim());
        assert_eq!(of(&mut test, claim()), [] as [Value; 0], "a repeat");
        (job, said)
    };
    let (job, said) = claim("probe");
    let read = json!({
        "kind": "secret_read", "name": "KEY", "version": 1, "project": "recon", "workflow": "recon/nightly", "scan": "probe",
        "job": job,
    });
    assert_eq!(said, [read]);
    assert_eq!(claim("strict").1, [] as [Value; 0], "no secret");
}

#[test]
fn suspensions_are_logged_with_their_reasons() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let suspend = |scan: Option<&str>| Suspend {
        workflow,
        scan: scan.map(str::to_owned),
        reason: "the disk is broken".to_owned(),
        actor: Actor::Daemon,
    };
    let resume = |scan: Option<&str>, reason: Option<&str>| Resume {
        workflow,
        scan: scan.map(str::to_owned),
        reason: reason.map(str::to_owned),
        actor: Actor::Daemon,
    };
    assert_eq!(
        of(&mut test, suspend(None)),
        [
            json!({"kind": "workflow_suspended", "workflow": "recon/nightly", "reason": "the disk is broken"})
        ]
    );
    assert_eq!(of(&mut test, suspend(None)), [] as [Value; 0]);
    assert_eq!(
        of(&mut test, resume(None, None)),
        [json!({"kind": "workflow_resumed", "workflow": "recon/nightly"})]
    );
    assert_eq!(
        of(&mut test, suspend(Some("probe")))[0]["kind"],
        "scan_suspended"
    );
    assert_eq!(
        of(&mut test, resume(Some("probe"), Some("it is new"))),
        [
            json!({"kind": "scan_resumed", "workflow": "recon/nightly", "scan": "probe", "reason": "it is new"})
        ]
    );
}

#[test]
fn blobs_and_links_are_logged_with_their_paths() {
    let mut test = TestWorld::new();
    let store = StoreBlob {
        project: project(),
        path: "a".parse().unwrap(),
        size: 1,
        sha256: String::new(),
        expires_in: None,
        before: None,
        condition: BlobCondition::None,
        quota: None,
        actor: Actor::Daemon,
    };
    let (blob, said) = audited(&mut test, store);
    let blob_action =
        |kind: &str, name: &str| json!({"kind": kind, "project": "recon", "name": name});
    assert_eq!(said, [blob_action("blob_stored", "a")]);
    let long = "b".repeat(AUDIT_TEXT_CHARS + 1);
    let to_long = MoveBlob {
        blob,
        to: long.parse().unwrap(),
        before: None,
        condition: BlobCondition::None,
    };
    let said = of(&mut test, to_long);
    let moved = [
        blob_action("blob_stored", &long[..AUDIT_TEXT_CHARS]),
        blob_action("blob_deleted", "a"),
    ];
    assert!(moved.iter().all(|one| said.contains(one)), "{said:?}");
    assert_eq!(said.len(), 2);

    let create = || CreateBlobLink {
        project: project(),
        path: "a".parse().unwrap(),
        use_for: LinkUse::Get,
        life: BLOB_LINK_LIFE,
        token: Some(TokenId::from_uuid(uuid::Uuid::nil())),
        user: None,
    };
    let (made, said) = audited(&mut test, create());
    let link = made.link;
    let created = json!({
        "kind": "blob_link_created", "project": "recon", "name": "a", "id": link.id, "expires_at": link.expires_at,
    });
    assert_eq!(said, [created]);
    let revoke = RevokeBlobLink { link: link.id };
    let revoked =
        json!({"kind": "blob_link_revoked", "project": "recon", "name": "a", "id": link.id});
    assert_eq!(of(&mut test, revoke), [revoked]);
    test.run(create()).unwrap();
    test.pass(BLOB_LINK_LIFE);
    // The expired link is removed without an entry.
    assert_eq!(of(&mut test, create()).len(), 1);
}

#[test]
fn new_registration_tokens_are_logged_but_not_the_removal_of_expired_tokens() {
    let mut test = TestWorld::new();
    test.run(CreateRegistration::default()).unwrap();
    test.pass(TimeDelta::days(1));
    let (made, said) = audited(&mut test, CreateRegistration::default());
    let created = |made: &NewRegistration, reason: &str| json!({"kind": "registration_created", "id": made.id, "expires_at": made.expires_at, "reason": reason});
    assert_eq!(said, [created(&made, "all")]);
    let limited = CreateRegistration {
        projects: Some([project()].into()),
        labels: Some(vec!["gpu".to_owned(), "linux".to_owned()]),
        maker: None,
    };
    let (made, said) = audited(&mut test, limited);
    assert_eq!(said, [created(&made, "recon; labels gpu, linux")]);
}

#[test]
fn of_a_source_only_an_approval_is_logged_with_its_commit() {
    let mut test = TestWorld::new();
    let removal = HeldRemoval {
        workflows: 2,
        names: Vec::new(),
        folder_changed: false,
    };
    let held = RecordTip {
        name: source(),
        commit: "c0ffee".to_owned(),
        summary: String::new(),
        author: String::new(),
        history_rewritten: false,
        skipped: Vec::new(),
        more_skipped: false,
        files: Vec::new(),
        stale_files: Vec::new(),
        rules: None,
        warnings: Vec::new(),
        file_count: 0,
        standing: Standing::Held(removal),
        default_reference: None,
    };
    assert_eq!(of(&mut test, held.clone()), Vec::<Value>::new());
    let approve = ApproveRemoval {
        name: source(),
        commit: "c0ffee".to_owned(),
    };
    let approved = json!({"kind": "source_approved", "name": "recon", "reason": "c0ffee"});
    assert_eq!(of(&mut test, approve.clone()), [approved]);
    assert_eq!(of(&mut test, approve), Vec::<Value>::new());
    assert_eq!(of(&mut test, held), Vec::<Value>::new());
}

#[test]
fn every_kind_is_read_by_its_name() {
    for (kind, name) in AuditKind::ALL.iter().zip(AuditKind::NAMES) {
        assert_eq!(AuditKind::named(name), Some(*kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), json!(name));
    }
    assert_eq!(AuditKind::named("job_"), None);
}

#[test]
fn the_table_of_the_docs_has_every_kind() {
    let docs = include_str!("../../../docs/operating.md");
    let (_, table) = docs.split_once("| kind | names |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let kinds = table.lines().filter_map(|row| row.split('|').nth(1));
    let mut listed: Vec<&str> = kinds.flat_map(|kinds| kinds.split('`')).collect();
    listed.retain(|word| word.ends_with(|last: char| last.is_ascii_lowercase()));
    let mut all = AuditKind::NAMES.to_vec();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}
