//! Interactions of a callback server that start scans.

use std::sync::Arc;

use super::*;
use crate::callback::{
    Callback, CallbackId, CallbackTag, Heard, Interaction, NewInteraction, Planted, PlantedBy,
    Request, RequestType,
};
use crate::decide::{
    Again, CreateCallback, DeleteCallback, Dispatch, Hear, RecordInteractions, Resume, Suspend,
};
use crate::event::What;
use crate::job::Trigger;
use crate::limits::{ANNOUNCED_NAMES, CALLBACK_LISTENERS};
use crate::testing::source;
use crate::{CallbackCause, Change, ProjectId};

const TEXT: &str = "
scans:
  plant:
    on: {dispatch: {}}
    steps: [{run: x}]
  report:
    on: {callback: {server: shop}, dispatch: {}}
    steps: [{run: 'echo ${{ callback.count }}'}]
  slow:
    on: {callback: {server: shop, min_interval: 1h}}
    steps: [{run: x}]
";

fn dns() -> Request {
    Request::Dns {
        transport: "udp".to_owned(),
        name: "k3v9.example".to_owned(),
        qtype: "A".to_owned(),
        client_subnet: None,
    }
}

fn http() -> Request {
    Request::Http {
        method: "GET".to_owned(),
        target: "/".to_owned(),
        host: "k3v9.example".to_owned(),
        head_bytes: 10,
        tls: false,
        sni: None,
        truncated: false,
        malformed: false,
    }
}

impl Scene {
    fn server(&mut self, name: &str) -> CallbackId {
        let create = CreateCallback {
            project: ProjectId::of_source(&source()),
            name: workflow::notify::NotifyName::new(name).unwrap(),
            keep_days: None,
            actor: Actor::Daemon,
        };
        self.test.run(create).unwrap().id
    }

    /// Records interactions, each with the job that made its name.
    fn hear(&mut self, server: CallbackId, hits: &[(Request, Option<PlantedBy>)]) {
        self.hear_with(server, None, hits);
    }

    fn hear_tag(&mut self, server: CallbackId, tag: Option<CallbackTag>) {
        self.hear_with(server, tag, &[(dns(), None)]);
    }

    fn hear_with(
        &mut self,
        server: CallbackId,
        tag: Option<CallbackTag>,
        hits: &[(Request, Option<PlantedBy>)],
    ) {
        let new = hits.iter().map(|(request, job)| NewInteraction {
            heard: Heard {
                at: self.test.now,
                peer: "203.0.113.9:5353".parse().unwrap(),
                tag,
                request: request.clone(),
                answer: "NOERROR".to_owned(),
                rule: None,
            },
            planted: Planted {
                job: job.clone(),
                ..Planted::default()
            },
            left_out: 0,
            repeats: 0,
            raw: vec![0; 40],
        });
        let new = Arc::new(new.collect());
        let record = RecordInteractions {
            server,
            new,
            left_out: 0,
            unknown_tags: 0,
        };
        self.test.run(record).unwrap();
    }

    /// Considers everything that is due, as the daemon's task does.
    fn considered(&mut self) -> Vec<JobId> {
        let (due, _) = self.test.world.heard(self.test.now);
        let made = due
            .into_iter()
            .filter_map(|scan| self.test.run(Hear { scan }).unwrap());
        let made: Vec<JobId> = made.collect();
        assert!(self.test.world.heard(self.test.now).0.is_empty());
        made
    }

    fn cause(&self, job: JobId) -> CallbackCause {
        let job = self.test.world.job(job).unwrap();
        CallbackCause::clone(job.callback.as_ref().unwrap())
    }

    fn range(&self, job: JobId) -> (u64, u64, u64) {
        let cause = self.cause(job);
        (cause.first, cause.last, cause.count)
    }

    fn by(&self, job: JobId) -> PlantedBy {
        PlantedBy::from(&**self.test.world.job(job).unwrap())
    }

    /// What people are told of, since the last question: the first and the last interaction and how many there were.
    fn told(&mut self) -> Vec<(u64, u64, u64)> {
        let decided = std::mem::take(&mut self.test.decided);
        let told = decided.iter().filter_map(|change| match change {
            Change::Event(event) => match &event.what {
                What::Interaction {
                    announcement: it, ..
                } => Some((it.first, it.last, it.count)),
                _ => None,
            },
            _ => None,
        });
        told.collect()
    }

    fn callback(&self, server: CallbackId) -> &Callback {
        self.test.world.callback(server).unwrap()
    }
}

#[test]
fn interactions_start_one_job_that_knows_what_no_stranger_wrote() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None), (http(), None)]);
    let made = scene.considered();
    let [report, slow] = made[..] else {
        panic!("{made:?}")
    };
    let job = scene.test.world.job(report).unwrap().clone();
    assert_eq!(
        (job.scan.as_str(), job.trigger),
        ("report", Trigger::Callback)
    );
    let heard = Reason::CallbackHeard {
        name: "shop".to_owned(),
        first: 1,
        last: 2,
        count: 2,
    };
    assert_eq!(job.reason, heard);
    assert_eq!(
        scene.range(slow),
        (1, 2, 2),
        "each scan considers each interaction"
    );
    let cause = scene.cause(report);
    assert_eq!(cause.types, [RequestType::Dns, RequestType::Http].into());
    let [record] = scene.ledger("report").try_into().unwrap();
    assert_eq!(record.outcome, Outcome::Made { job: report });
    let expected = Cause::Interactions {
        server,
        name: cause.name,
        first: 1,
        last: 2,
        count: 2,
        own: 0,
    };
    assert_eq!(record.cause, expected);
    scene.test.claim(report, scene.runner).unwrap();
    let job = scene.test.world.job(report).unwrap();
    let read = &job.state.run().unwrap().context.callback;
    assert_eq!(
        (read.server.as_str(), read.count, read.first, read.last),
        ("shop", 2, 1, 2)
    );
    assert_eq!(
        (read.types.join(" ").as_str(), read.job.as_str()),
        ("dns http", "")
    );
    assert!(scene.callback(server).unconsidered.is_empty());
}

#[test]
fn a_flood_is_one_look_per_interval_and_no_interaction_counts_twice() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    for job in scene.considered() {
        scene.succeed(job);
    }
    for _ in 0..5 {
        scene.test.pass(TimeDelta::seconds(10));
        scene.hear(server, &[(dns(), None), (dns(), None)]);
        assert!(scene.considered().is_empty());
    }
    let (_, next) = scene.test.world.heard(scene.test.now);
    assert_eq!(next, Some(scene.test.now + TimeDelta::seconds(10)));
    scene.test.pass(TimeDelta::seconds(10));
    let [second] = scene.considered().try_into().unwrap();
    assert_eq!(scene.range(second), (2, 11, 10));
    scene.succeed(second);
    scene.pass(59);
    let [slow] = scene.considered().try_into().unwrap();
    assert_eq!(
        (
            scene.range(slow),
            scene.test.world.job(slow).unwrap().scan.as_str()
        ),
        ((2, 11, 10), "slow")
    );
    scene.pass(120);
    assert!(scene.considered().is_empty());
}

#[test]
fn interactions_wait_for_the_job_in_the_way_and_for_the_end_of_a_suspension() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    let running = scene.dispatch("report");
    scene.hear(server, &[(dns(), None)]);
    let [slow] = scene.considered().try_into().unwrap();
    scene.succeed(slow);
    scene.succeed(running);
    let workflow = scene.workflow;
    let suspend = Suspend {
        workflow,
        scan: Some("report".to_owned()),
        reason: "x".to_owned(),
        actor: Actor::Daemon,
    };
    scene.test.run(suspend).unwrap();
    scene.hear(server, &[(dns(), None)]);
    scene.pass(10);
    assert!(scene.considered().is_empty());
    let resume = Resume {
        workflow,
        scan: Some("report".to_owned()),
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();
    let [report] = scene.considered().try_into().unwrap();
    assert_eq!(scene.range(report), (1, 2, 2));
}

#[test]
fn a_suspension_holds_a_waiting_job_of_interactions() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    let made = scene.considered();
    let job = scene.test.world.job(made[0]).unwrap();
    assert!(
        !job.ends_with_suspension(),
        "else its interactions would be lost"
    );
}

#[test]
fn a_hit_of_a_scans_own_name_is_considered_and_starts_nothing() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    let report = scene.dispatch("report");
    let own = scene.by(report);
    scene.succeed(report);
    scene.hear(server, &[(dns(), Some(own.clone()))]);
    let [slow] = scene.considered().try_into().unwrap();
    assert_eq!(
        scene.cause(slow).job,
        Some(report),
        "other scans are started"
    );
    let [record] = scene.ledger("report").try_into().unwrap();
    let not_made = Outcome::NotMade {
        reason: Reason::OwnCallbacks,
    };
    assert_eq!(record.outcome, not_made);
    scene.pass(1);
    scene.hear(server, &[(dns(), Some(own)), (http(), None)]);
    let [second] = scene.considered().try_into().unwrap();
    assert_eq!(scene.range(second), (2, 3, 1));
    assert_eq!(scene.cause(second).types, [RequestType::Http].into());
    assert_eq!(scene.cause(second).job, None);
}

#[test]
fn a_hit_counts_as_caused_by_the_job_that_made_its_name() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    let plant = scene.dispatch("plant");
    let by = scene.by(plant);
    scene.succeed(plant);
    scene.hear(server, &[(dns(), Some(by)), (dns(), None)]);
    let made = scene.considered();
    let job = scene.test.world.job(made[0]).unwrap();
    assert_eq!(job.causes, [plant]);
    assert_eq!((job.hops.count, job.hops.by_step), (1, true));
    assert_eq!(scene.cause(made[0]).job, Some(plant));
    // After many such hops, the next job waits.
    let mut far = scene.by(made[0]);
    far.hops.count = crate::limits::HOPS_BY_STEPS;
    far.scan = key(scene.workflow, "plant");
    for job in made {
        scene.succeed(job);
    }
    scene.pass(1);
    scene.hear(server, &[(dns(), Some(far))]);
    let [report] = scene.considered().try_into().unwrap();
    let not_before = scene.test.world.job(report).unwrap().not_before;
    assert!(not_before.is_some_and(|at| at > scene.test.steady()));
}

#[test]
fn only_interactions_after_the_activation_count() {
    let mut scene = Scene::new("scans: {a: {on: {dispatch: {}}, steps: [{run: x}]}}");
    let server = scene.server("shop");
    let other = scene.server("other");
    scene.hear(server, &[(dns(), None)]);
    scene.test.push("loop", TEXT);
    assert!(scene.considered().is_empty());
    // The interactions of a server that no longer starts the scan do not count, and neither after a change back.
    scene.hear(server, &[(dns(), None)]);
    scene
        .test
        .push("loop", &TEXT.replace("server: shop", "server: other"));
    assert!(scene.considered().is_empty());
    scene.test.push("loop", TEXT);
    assert!(scene.considered().is_empty());
    scene.hear(other, &[(dns(), None)]);
    scene.hear(server, &[(dns(), None)]);
    let made = scene.considered();
    assert_eq!(made.len(), 2);
    assert_eq!(scene.range(made[0]), (3, 3, 1));
    // Another change of the scan keeps what waits.
    scene.hear(server, &[(dns(), None)]);
    for job in made {
        scene.succeed(job);
    }
    scene.test.push("loop", &TEXT.replace("run: x", "run: y"));
    scene.pass(1);
    assert_eq!(scene.considered().len(), 1);
}

#[test]
fn a_server_that_does_not_exist_starts_nothing_until_it_does() {
    let mut scene = Scene::new(TEXT);
    let other = scene.server("other");
    scene.hear(other, &[(dns(), None)]);
    assert!(scene.considered().is_empty());
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    for job in scene.considered() {
        scene.succeed(job);
    }
    // A new server with the same name counts from its beginning.
    scene.test.run(DeleteCallback { server }).unwrap();
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    scene.pass(60);
    let made = scene.considered();
    assert_eq!(made.len(), 2);
    assert_eq!(scene.range(made[0]), (1, 1, 1));
}

#[test]
fn a_renamed_scan_considers_what_waited_under_its_former_name() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    let renamed = TEXT.replace("report:\n", "digest:\n    renamed_from: report\n");
    scene.test.push("loop", &renamed);
    scene.hear(server, &[(dns(), None)]);
    let made = scene.considered();
    let job = scene.test.world.job(made[0]).unwrap();
    assert_eq!(
        (job.scan.as_str(), scene.range(made[0])),
        ("digest", (1, 2, 2))
    );
}

#[test]
fn a_clock_that_was_set_back_does_not_hold_up_the_next_look() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    for job in scene.considered() {
        scene.succeed(job);
    }
    scene.test.jump(TimeDelta::hours(-5));
    scene.hear(server, &[(dns(), None)]);
    assert_eq!(scene.considered().len(), 2);
}

#[test]
fn a_newer_job_replaces_an_older_one_and_a_rerun_has_the_same_cause() {
    let mut scene = Scene::new(&TEXT.replace(
        "    steps: [{run: 'echo",
        "    overlap: replace\n    steps: [{run: 'echo",
    ));
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    let made = scene.considered();
    scene.pass(1);
    scene.hear(server, &[(dns(), None)]);
    let [second] = scene.considered().try_into().unwrap();
    assert_eq!(scene.range(second), (2, 2, 1));
    assert_eq!(scene.jobs("report"), [second], "{made:?}");
    let cause = scene.test.world.job(second).unwrap().callback.clone();
    scene.succeed(second);
    let again = Dispatch {
        workflow: scene.workflow,
        scan: key(scene.workflow, "report").scan,
        revision: scene
            .test
            .world
            .workflow(scene.workflow)
            .unwrap()
            .record
            .revision
            .id,
        inputs: crate::Inputs::Inline(std::collections::BTreeMap::new()),
        actor: Actor::Daemon,
        idempotency: None,
        again: Some(Again {
            job: second,
            revision: None,
            source: None,
            callback: cause,
        }),
    };
    let again = scene.test.run(again).unwrap();
    assert_eq!(scene.range(again), (2, 2, 1));
}

#[test]
fn as_many_scans_listen_to_a_server_as_fit_into_its_record() {
    let scans = (0..=CALLBACK_LISTENERS).map(|number| {
        format!("  s{number:03}: {{on: {{callback: {{server: shop}}}}, steps: [{{run: x}}]}}\n")
    });
    let text = format!("scans:\n{}", scans.collect::<String>());
    let mut scene = Scene::new(&text);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None)]);
    assert_eq!(scene.considered().len(), CALLBACK_LISTENERS);
    let is_unheard = |name| {
        let scan = key(scene.workflow, name);
        scene.test.world.is_unheard(scene.callback(server), &scan)
    };
    assert_eq!(
        ["s000", "s099", "s100"].map(is_unheard),
        [false, false, true]
    );
}

#[test]
fn people_are_told_of_the_first_use_of_a_name_and_how_often_it_was_used_since() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    scene.hear(server, &[(dns(), None), (http(), None)]);
    assert_eq!(scene.told(), [(1, 2, 2)]);
    for _ in 0..5 {
        scene.test.pass(TimeDelta::minutes(1));
        scene.hear(server, &[(dns(), None)]);
    }
    assert_eq!(scene.told(), []);
    let tag = |digit: &str| digit.repeat(20).parse().unwrap();
    scene.hear_tag(server, Some(tag("a")));
    assert_eq!(scene.told(), [(3, 8, 6)], "another name");
    scene.hear_tag(server, Some(tag("a")));
    scene.test.pass(TimeDelta::minutes(6));
    scene.hear(server, &[(dns(), None)]);
    assert_eq!(scene.told(), [(9, 10, 2)], "after ten minutes");
    scene.test.jump(TimeDelta::hours(-3));
    scene.hear(server, &[(dns(), None)]);
    assert_eq!(
        scene.told(),
        [(11, 11, 1)],
        "a clock that was set back holds up nothing"
    );
}

#[test]
fn a_flood_of_names_is_told_so_many_times_only() {
    let mut scene = Scene::new(TEXT);
    let server = scene.server("shop");
    let tags: Vec<CallbackTag> = (0..ANNOUNCED_NAMES as u32 + 50)
        .map(|_| CallbackTag::random(&mut scene.test.entropy))
        .collect();
    for tag in tags {
        scene.hear_tag(server, Some(tag));
    }
    assert_eq!(scene.told().len(), ANNOUNCED_NAMES);
    scene.test.pass(TimeDelta::minutes(10));
    scene.hear_tag(server, None);
    assert_eq!(scene.told(), [(101, 151, 51)]);
}

#[test]
fn a_job_hears_what_has_started_it_and_its_own_names() {
    let mut scene = Scene::new(TEXT);
    let (server, other) = (scene.server("shop"), scene.server("other"));
    let earlier = scene.dispatch("report");
    let of_scan = scene.by(earlier);
    scene.succeed(earlier);
    scene.hear(
        server,
        &[(dns(), None), (dns(), Some(of_scan.clone())), (dns(), None)],
    );
    let report = scene.considered()[0];
    assert_eq!(scene.range(report), (1, 3, 2));
    let own = scene.by(report);
    let job = scene.test.world.job(report).unwrap();
    let hears = |server, number, by: Option<&PlantedBy>| {
        let heard = Heard {
            at: scene.test.now,
            peer: "203.0.113.9:5353".parse().unwrap(),
            tag: None,
            request: dns(),
            answer: String::new(),
            rule: None,
        };
        let planted = Planted {
            job: by.cloned(),
            ..Planted::default()
        };
        let it = Interaction {
            number,
            heard,
            planted,
            left_out: 0,
            repeats: 0,
            raw_at: 0,
            raw_bytes: 0,
        };
        job.hears(server, &it)
    };
    assert!(hears(server, 1, None) && hears(server, 3, None));
    assert!(!hears(server, 4, None) && !hears(other, 1, None));
    assert!(
        !hears(server, 2, Some(&of_scan)),
        "it did not start the job"
    );
    assert!(hears(server, 9, Some(&own)) && hears(other, 9, Some(&own)));
    assert_eq!((job.hears_from(server), job.hears_from(other)), (1, 0));
}
