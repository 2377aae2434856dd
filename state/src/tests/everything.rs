//! Fills a state with one record of every kind.

use model::blob::LinkUse;
use model::callback::{AskedCertificate, CertificateSecret};
use model::decide::{
    Complete, CreateBlobLink, CreateRegistration, CreateUser, Dispatch, EndAttempt, Giver,
    KeepCertificate, LimitRunner, Maker, NoteClocks, PlanDeliveries, RecordTip, SignIn, SignedInBy,
    Suspend,
};
use model::outbox::{DeliveryRecord, SendResult};
use model::plan::Standing;
use model::{
    Actor, AuditAction, IdempotencyKey, JobId, ProjectId, Rights, Role, SealingKey, StepOutcome,
    StepStatus, TokenId, UsedToken, UserId,
};
use uuid::Uuid;
use workflow::notify::{NotifyName, Rule};

use super::fixture::{Fleet, Opened, Seeded, WATCHING, completion, large_inputs, line};
use super::interactions::make_every_file_of_interactions;
use super::news;
use super::payloads::make_every_file_of_payloads;
use super::removal::{EXPIRING, finished};
use crate::{AuditActor, AuditEntry};

pub(crate) async fn make_every_kind_of_record(opened: &Opened, fleet: Fleet) {
    let state = &opened.state;
    opened.make_owner().await;
    let (token, secret) = state.read(|world| {
        let first = world.tokens().next().unwrap();
        (first.id, first.hash)
    });
    let sign_in = SignIn {
        by: SignedInBy::token(UsedToken { token, secret }),
        is_device: false,
        device: "a browser".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    state.submit(sign_in).await.unwrap();
    let project = ProjectId::of_source(&"recon".parse().unwrap());
    let registration = CreateRegistration {
        projects: Some([project].into()),
        labels: Some(vec!["linux".to_owned()]),
        maker: Some(Maker {
            token: Some(token),
            user: UserId::OWNER,
            rights: Rights::admin(),
        }),
    };
    state.submit(registration).await.unwrap();
    let limit = LimitRunner {
        runner: fleet.runner,
        projects: [project].into(),
        by: Rights::admin(),
    };
    state.submit(limit).await.unwrap();
    let invite = CreateUser {
        name: "kim".parse().unwrap(),
        is_service: false,
        is_administrator: false,
        roles: [(project, Role::Operator)].into(),
        by: Giver {
            user: UserId::OWNER,
            rights: Rights::admin(),
            token: Some(token),
        },
    };
    state.submit(invite).await.unwrap();
    opened.set_values().await;
    let entry = AuditEntry {
        actor: Some(AuditActor {
            user: Some("owner".to_owned()),
            token: Some(TokenId::from_uuid(Uuid::from_u128(1))),
            name: "somebody".to_owned(),
            ..AuditActor::default()
        }),
        address: Some("192.0.2.1".parse().unwrap()),
        method: "POST".to_owned(),
        path: "/v0/sources/recon/sync".to_owned(),
        request: Uuid::from_u128(2),
    };
    let synced = AuditAction::source_synced(&"recon".parse().unwrap());
    let request = state.audited(entry);
    request.note_request(synced).await.unwrap();
    let tip = RecordTip {
        name: "recon".parse().unwrap(),
        commit: "0123456789abcdef".to_owned(),
        summary: "a first tip".to_owned(),
        author: "somebody".to_owned(),
        history_rewritten: false,
        skipped: Vec::new(),
        more_skipped: false,
        files: Vec::new(),
        stale_files: Vec::new(),
        warnings: Vec::new(),
        rules: Some(vec![Rule::of(NotifyName::new("ops").unwrap())]),
        file_count: 1,
        standing: Standing::Applied,
        default_reference: None,
    };
    state.submit(tip).await.unwrap();
    let caller = TokenId::from_uuid(Uuid::nil());
    let key = IdempotencyKey::new(caller.uuid(), "dispatch", "key", b"body");
    let dispatch = Dispatch {
        idempotency: Some(key),
        inputs: large_inputs(),
        ..opened.dispatch(fleet, "build")
    };
    let job = state.dispatch(dispatch).await.unwrap();
    opened.announce_job_tokens(fleet).await;
    opened.claim(fleet, job).await;
    opened.append(job, 0, vec![line("hello")]).await;
    opened.store_artifact(job, "report", "zip").await;
    state.complete(completion(job, 1)).await.unwrap();
    let watching = Fleet {
        workflow: opened.activate("watching", WATCHING).await,
        ..fleet
    };
    let waking = opened.running_job(watching, "build").await;
    opened.complete(waking).await;
    let expiring = Fleet {
        workflow: opened.activate("expiring", EXPIRING).await,
        ..fleet
    };
    finished(opened, expiring, &["cache"]).await;
    let news = Fleet {
        workflow: opened.activate("news", news::WATCHING).await,
        ..fleet
    };
    news::process(opened, news).await;
    let blob = opened.store_blob("notes.json", "{}").await;
    let link = CreateBlobLink {
        project: blob.project,
        path: blob.path,
        use_for: LinkUse::Get,
        life: chrono::TimeDelta::days(1),
        token: Some(caller),
        user: None,
    };
    state.submit(link).await.unwrap();
    for scan in [None, Some("build".to_owned())] {
        let suspend = Suspend {
            workflow: watching.workflow,
            scan,
            reason: "the machine is serviced".to_owned(),
            actor: Actor::Daemon,
        };
        state.submit(suspend).await.unwrap();
    }
    opened.make_channel().await;
    make_every_file_of_interactions(opened).await;
    make_every_file_of_payloads(opened).await;
    keep_certificate(opened).await;
    let failed = opened.running_job(fleet, "check").await;
    state.complete(failure(failed)).await.unwrap();
    fail_to_send(opened).await;
    let deleted = finished(opened, expiring, &[]).await;
    opened.delete(deleted).await;
    state.submit(NoteClocks).await.unwrap();
}

async fn keep_certificate(opened: &Opened) {
    let at = opened.state.now();
    let keep = KeepCertificate {
        asked: AskedCertificate {
            directory: "https://ca.example/directory".to_owned(),
            email: "ops@example.com".to_owned(),
            zones: vec!["cb.example.com".to_owned()],
        },
        secret: CertificateSecret {
            account: Some("{}".to_owned()),
            ..CertificateSecret::default()
        },
        valid: Some((at, at + chrono::TimeDelta::days(90))),
        failed: Some("no answer".to_owned()),
        key: SealingKey::random(&mut Seeded(9)),
    };
    opened.state.submit(keep).await.unwrap();
}

/// A completion in which the only step failed.
pub(crate) fn failure(job: JobId) -> Complete {
    let mut complete = completion(job, 0);
    complete.steps[0].status = StepStatus::Failed;
    complete.steps[0].outcome = Some(StepOutcome::Failed);
    complete
}

/// Begins the message of the only channel, which does not answer.
async fn fail_to_send(opened: &Opened) {
    let state = &opened.state;
    let plan = PlanDeliveries { at_start: false };
    let channel = state.submit(plan).await.unwrap().remove(0);
    let sending = channel.sending.as_ref().unwrap();
    let end = EndAttempt {
        record: DeliveryRecord {
            at: sending.at,
            message: sending.message,
            channel: channel.id,
            channel_name: channel.name.clone(),
            project: channel.project,
            attempt: sending.attempt,
            is_repeated: sending.is_repeated,
            result: SendResult::Retry {
                reason: "503".to_owned(),
                at: sending.at,
            },
            title: "Failed: recon/main check".to_owned(),
            events: Vec::new(),
            event_count: 1,
            jobs: Vec::new(),
        },
        after: None,
        is_gone: false,
        spread: 0.5,
    };
    state.submit(end).await.unwrap();
}
