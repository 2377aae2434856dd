//! Runners of projects: who registers and changes them, whose jobs they get, and who learns of them.

use std::collections::BTreeSet;

use serde_json::json;

use crate::condition::Problem;
use crate::decide::{
    Activate, ConfigureSource, CreateRegistration, CreateToken, LimitRunner, Maker, Measure,
    NewRegistration, Refusal, RegisterRunner, RemoveRunner, RevokeToken,
};
use crate::limits::OPEN_REGISTRATIONS;
use crate::testing::{NIGHTLY, TestWorld, activate, register, source};
use crate::{
    JobId, ProjectId, Projects, Reach, Reason, Rights, Runner, RunnerId, Scope, Scopes, SourceName,
    TokenManager, Turns, UserId, WorkflowId, next_job, waiting,
};

fn other() -> SourceName {
    "vault".parse().unwrap()
}

fn own_project() -> ProjectId {
    ProjectId::of_source(&source())
}

fn other_project() -> ProjectId {
    ProjectId::of_source(&other())
}

/// A world with two projects.
fn two_projects() -> TestWorld {
    let mut test = TestWorld::new();
    follow(&mut test, other());
    test
}

fn follow(test: &mut TestWorld, name: SourceName) {
    let source = ConfigureSource {
        name,
        url: "/srv/other.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    test.run(source).unwrap();
}

fn push_to(test: &mut TestWorld, source: SourceName) -> WorkflowId {
    let id = WorkflowId::derive(&source, "nightly");
    let activate = Activate {
        source,
        ..activate("nightly", NIGHTLY)
    };
    test.run(activate).unwrap();
    id
}

fn rights(scope: Scope, projects: impl Into<BTreeSet<ProjectId>>) -> Rights {
    Rights::limited(Scopes::from_iter([scope]), Projects::Only(projects.into()))
}

/// A token with `runner:write` in these projects, as a maker.
fn maker(test: &mut TestWorld, projects: Projects) -> Maker {
    let token = CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::from_iter([Scope::RunnerWrite]),
        projects,
        life: None,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    };
    let token = test.run(token).unwrap().token;
    Maker {
        token: Some(token.id),
        user: UserId::OWNER,
        rights: Rights::limited(token.scopes.clone(), token.projects.clone()),
    }
}

fn of(projects: impl Into<BTreeSet<ProjectId>>) -> CreateRegistration {
    CreateRegistration {
        projects: Some(projects.into()),
        ..CreateRegistration::default()
    }
}

/// Registers a runner with this registration.
fn joins(test: &mut TestWorld, made: &NewRegistration, name: &str, labels: &[&str]) -> RunnerId {
    let register = register(made.secret.hash(), name, labels);
    test.run(register).unwrap().runner.id
}

fn runner_of(
    test: &mut TestWorld,
    name: &str,
    projects: impl Into<BTreeSet<ProjectId>>,
) -> RunnerId {
    let made = test.run(of(projects)).unwrap();
    joins(test, &made, name, &["linux", "gpu"])
}

fn record(test: &TestWorld, runner: RunnerId) -> &Runner {
    test.world.runner(runner).unwrap()
}

fn next(test: &TestWorld, runner: RunnerId) -> Option<JobId> {
    let reach = Reach::of(record(test, runner));
    let next = next_job(&test.world, &reach, &Turns::default(), test.now, |_| false);
    next.map(|(_, job)| job)
}

fn why(test: &TestWorld, job: JobId) -> Option<Reason> {
    let job = test.world.job(job).unwrap();
    waiting(&test.world, job, test.now, |_| true, |_| None)
}

#[test]
fn a_runner_gets_only_jobs_of_its_projects() {
    let mut test = two_projects();
    let (own, others) = (push_to(&mut test, source()), push_to(&mut test, other()));
    let vault = runner_of(&mut test, "vault", [other_project()]);
    let inputs = json!({"target": "x"});
    let peek = test.dispatch(own, "strict", inputs.clone()).unwrap();
    assert_eq!(next(&test, vault), None, "although it has the labels");
    assert_eq!(
        test.claim(peek, vault).map(drop),
        Err(Refusal::NotServed {
            job: peek,
            runner: "vault".to_owned()
        })
    );
    let dump = test.dispatch(others, "strict", inputs).unwrap();
    assert_eq!(next(&test, vault), Some(dump));
    test.claim(dump, vault).unwrap();

    // Another project's runner, its labels and its jobs do not exist for those who wait.
    assert_eq!(why(&test, peek), Some(Reason::NoRunner));
    let text = Reason::NoRunner.to_string();
    assert_eq!(text, "no runner of this project is registered");
    let shared = test.runner("shared", &[]);
    let fits = Reason::NoRunnerFits {
        labels: vec!["linux".to_owned(), "gpu".to_owned()],
    };
    assert_eq!(why(&test, peek), Some(fits));
    let probe = test.dispatch(own, "probe", json!({})).unwrap();
    assert_eq!(next(&test, shared), Some(probe));
}

#[test]
fn waiting_names_no_older_jobs_that_the_own_runners_cannot_take() {
    let mut test = two_projects();
    let (own, others) = (push_to(&mut test, source()), push_to(&mut test, other()));
    test.dispatch(others, "probe", json!({})).unwrap();
    runner_of(&mut test, "own", [own_project()]);
    let probe = test.dispatch(own, "probe", json!({})).unwrap();
    let Some(Reason::NotFetched { ahead }) = why(&test, probe) else {
        panic!("{:?}", why(&test, probe));
    };
    assert_eq!(ahead.jobs, 0);
    test.runner("shared", &[]);
    let Some(Reason::NotFetched { ahead }) = why(&test, probe) else {
        panic!("{:?}", why(&test, probe));
    };
    assert_eq!(ahead.jobs, 1);
}

#[test]
fn a_registration_is_for_the_projects_of_its_maker() {
    let mut test = two_projects();
    let made = test.run(CreateRegistration::default()).unwrap();
    assert_eq!(made.projects, Projects::All, "of the daemon itself");
    let admin = Maker {
        rights: Rights::admin(),
        ..maker(&mut test, Projects::All)
    };
    let everywhere = maker(&mut test, Projects::All);
    let of_one = maker(&mut test, Projects::Only([own_project()].into()));
    let default = |test: &mut TestWorld, maker: &Maker| {
        let create = CreateRegistration {
            maker: Some(maker.clone()),
            ..CreateRegistration::default()
        };
        test.run(create).unwrap().projects
    };
    assert_eq!(default(&mut test, &admin), Projects::All);
    let both = Projects::Only([own_project(), other_project()].into());
    assert_eq!(default(&mut test, &everywhere), both, "no future projects");
    let one = Projects::Only([own_project()].into());
    assert_eq!(default(&mut test, &of_one), one);

    let mut named = |projects: &[ProjectId]| {
        let create = CreateRegistration {
            maker: Some(of_one.clone()),
            ..of(projects.iter().copied().collect::<BTreeSet<_>>())
        };
        test.run(create).map(drop)
    };
    assert_eq!(named(&[own_project()]), Ok(()));
    for projects in [&[other_project()][..], &[own_project(), other_project()]] {
        assert_eq!(named(projects), Err(Refusal::RunnerOfOthers));
    }
    let none = named(&[]);
    assert!(matches!(
        none,
        Err(Refusal::InvalidField {
            field: "projects",
            ..
        })
    ));
}

#[test]
fn a_registration_ends_with_the_rights_of_its_maker() {
    let mut test = two_projects();
    let maker = maker(&mut test, Projects::Only([own_project()].into()));
    let token = maker.token.unwrap();
    let create = CreateRegistration {
        maker: Some(maker),
        ..CreateRegistration::default()
    };
    let made = test.run(create).unwrap();
    let by = TokenManager::owner();
    test.run(RevokeToken { token, by }).unwrap();
    let late = test.run(register(made.secret.hash(), "one", &[]));
    assert_eq!(late.map(drop), Err(Refusal::BadRegistration));
}

#[test]
fn a_registration_may_fix_the_labels() {
    let mut test = two_projects();
    let fixed = CreateRegistration {
        labels: Some(vec!["gpu".to_owned(), "linux".to_owned()]),
        ..of([own_project()])
    };
    let made = test.run(fixed.clone()).unwrap();
    let others = test.run(register(made.secret.hash(), "one", &["vault"]));
    let Err(Refusal::InvalidField { field, problem }) = others.map(drop) else {
        panic!("other labels are accepted");
    };
    assert_eq!(field, "labels");
    assert_eq!(problem, "the registration token fixes them: gpu, linux");
    let same = joins(&mut test, &made, "one", &["linux", "gpu"]);
    assert_eq!(record(&test, same).labels, ["gpu", "linux"]);
    let made = test.run(fixed).unwrap();
    let silent = joins(&mut test, &made, "two", &[]);
    assert_eq!(record(&test, silent).labels, ["gpu", "linux"]);
    let none = CreateRegistration {
        labels: Some(Vec::new()),
        ..of([own_project()])
    };
    let made = test.run(none).unwrap();
    let refused = test.run(register(made.secret.hash(), "three", &["gpu"]));
    assert!(refused.is_err());
}

#[test]
fn a_runner_replaces_only_one_of_the_same_projects() {
    let mut test = two_projects();
    let vault = runner_of(&mut test, "box", [other_project()]);
    let mut replace = |create: CreateRegistration| {
        let made = test.run(create).unwrap();
        let register = RegisterRunner {
            replace: true,
            ..register(made.secret.hash(), "box", &[])
        };
        test.run(register).map(|new| new.replaced)
    };
    let name = "box".to_owned();
    let taken = Refusal::NameTaken { name };
    assert_eq!(taken.to_string(), "the runner name `box` is taken");
    for create in [
        of([own_project()]),
        of([own_project(), other_project()]),
        CreateRegistration::default(),
    ] {
        assert_eq!(replace(create), Err(taken.clone()));
    }
    assert_eq!(replace(of([other_project()])), Ok(Some(vault)));
}

#[test]
fn open_registrations_are_counted_for_each_project() {
    let mut test = two_projects();
    for _ in 0..OPEN_REGISTRATIONS {
        test.run(of([own_project()])).unwrap();
    }
    let refused = Err(Refusal::TooManyRegistrations {
        waiting: OPEN_REGISTRATIONS,
        project: Some(source().to_string()),
    });
    for full in [of([own_project()]), of([own_project(), other_project()])] {
        assert_eq!(test.run(full).map(drop), refused);
    }
    assert!(test.run(of([other_project()])).is_ok());
    assert!(test.run(CreateRegistration::default()).is_ok());
}

#[test]
fn a_runner_is_changed_by_those_who_have_the_right_in_all_of_its_projects() {
    let mut test = two_projects();
    let shared = runner_of(&mut test, "shared", [own_project(), other_project()]);
    let old = test.runner("old", &[]);
    let own = || rights(Scope::RunnerWrite, [own_project()]);
    let limit = |runner, by| LimitRunner {
        runner,
        projects: [own_project()].into(),
        by,
    };
    let readers = rights(Scope::RunnerRead, [own_project(), other_project()]);
    for by in [own(), readers] {
        for runner in [shared, old] {
            let (removed, limited) = (
                test.run(RemoveRunner {
                    runner,
                    by: by.clone(),
                }),
                test.run(limit(runner, by.clone())),
            );
            assert_eq!(removed, Err(Refusal::RunnerOfOthers));
            assert_eq!(limited, Err(Refusal::RunnerOfOthers));
        }
    }
    let both = || rights(Scope::RunnerWrite, [own_project(), other_project()]);
    let refused = test.run(limit(old, both()));
    assert_eq!(
        refused,
        Err(Refusal::RunnerOfOthers),
        "it also serves others"
    );
    test.run(limit(shared, both())).unwrap();
    let one = Projects::Only([own_project()].into());
    assert_eq!(record(&test, shared).projects, one);

    // Nobody gives a runner a project in which he has no right.
    let widened = LimitRunner {
        projects: [own_project(), other_project()].into(),
        ..limit(shared, own())
    };
    assert_eq!(test.run(widened), Err(Refusal::RunnerOfOthers));
    let by = own();
    test.run(RemoveRunner { runner: shared, by }).unwrap();
    test.run(limit(old, Rights::admin())).unwrap();
    assert_eq!(record(&test, old).projects, one);
}

#[test]
fn a_limited_runner_gets_no_offers_of_other_projects_and_keeps_its_jobs() {
    let mut test = two_projects();
    let others = push_to(&mut test, other());
    let runner = test.runner("old", &[]);
    let running = test.dispatch(others, "probe", json!({})).unwrap();
    let offered = test.dispatch(others, "probe", json!({})).unwrap();
    let token = test.claim(running, runner).unwrap();
    let limit = LimitRunner {
        runner,
        projects: [own_project()].into(),
        by: Rights::admin(),
    };
    test.run(limit).unwrap();
    assert_eq!(next(&test, runner), None);
    assert!(matches!(
        test.claim(offered, runner),
        Err(Refusal::NotServed { .. })
    ));
    assert_eq!(test.claim(running, runner), Ok(token), "a repeat");
}

#[test]
fn nobody_sees_runners_that_serve_only_other_projects() {
    let mut test = two_projects();
    let vault = runner_of(&mut test, "vault", [other_project()]);
    let shared = runner_of(&mut test, "shared", [own_project(), other_project()]);
    let old = test.runner("old", &[]);
    for runner in [vault, shared, old] {
        let lost = Measure {
            subject: crate::condition::Subject::Runner { runner },
            problems: vec![Problem::RunnerLost],
        };
        test.run(lost).unwrap();
    }
    let reader = rights(Scope::RunnerRead, [own_project()]);
    let seen = test.world.seen_by(&reader);
    let mut names: Vec<_> = seen.runners().map(|runner| &*runner.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["old", "shared"]);
    assert!(seen.runner(vault).is_none() && seen.runner(shared).is_some());
    assert_eq!(seen.conditions().count(), 2);
    assert!(!seen.may_manage(record(&test, shared)));

    // A limited runner and its condition disappear for the readers of the other projects.
    let limit = LimitRunner {
        runner: old,
        projects: [other_project()].into(),
        by: Rights::admin(),
    };
    test.run(limit).unwrap();
    let seen = test.world.seen_by(&reader);
    assert_eq!((seen.runners().count(), seen.conditions().count()), (1, 1));
}

#[test]
fn projects_take_turns_before_their_workflows_do() {
    let mut test = two_projects();
    let quiet = push_to(&mut test, other());
    let busy: Vec<WorkflowId> = (0..4)
        .map(|number| test.push(&format!("busy{number}"), NIGHTLY))
        .collect();
    for workflow in &busy {
        test.dispatch(*workflow, "probe", json!({})).unwrap();
    }
    for _ in 0..2 {
        test.dispatch(quiet, "probe", json!({})).unwrap();
    }
    let (mut turns, mut taken, mut order) = (Turns::default(), BTreeSet::new(), Vec::new());
    let reach = Reach::default();
    while let Some((turn, job)) = next_job(&test.world, &reach, &turns, test.now, |job| {
        taken.contains(&job)
    }) {
        taken.insert(job);
        turns.serve(turn);
        order.push(turn.project == other_project());
    }
    assert_eq!(order, [false, true, false, true, false, false]);
}

/// The jobs that a look visits, for a runner of one project and for a runner of all projects.
fn visited(projects: usize) -> [usize; 2] {
    let mut test = TestWorld::new();
    let own = push_to(&mut test, source());
    for number in 1..projects {
        let name: SourceName = format!("s{number}").parse().unwrap();
        follow(&mut test, name.clone());
        let workflow = push_to(&mut test, name);
        let inputs = json!({"target": "x"});
        test.dispatch(workflow, "strict", inputs).unwrap();
        test.dispatch(workflow, "probe", json!({})).unwrap();
    }
    test.dispatch(own, "probe", json!({})).unwrap();
    let limited = runner_of(&mut test, "own", [own_project()]);
    // It takes no job of the other projects' labels.
    let labelled = Reach {
        projects: Projects::All,
        ..Reach::labelled(&[])
    };
    [Reach::of(record(&test, limited)), labelled].map(|reach| {
        let seen = std::cell::Cell::new(0);
        next_job(&test.world, &reach, &Turns::default(), test.now, |_| {
            seen.set(seen.get() + 1);
            false
        });
        seen.get()
    })
}

#[test]
fn a_look_for_a_project_visits_no_jobs_of_others() {
    let [limited, all] = visited(100);
    assert_eq!(limited, 1);
    assert_eq!(
        all, 100,
        "one of each workflow that waits, as without projects"
    );
}
