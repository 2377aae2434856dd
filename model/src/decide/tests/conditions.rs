//! Conditions open once and close once, by themselves.

use chrono::TimeDelta;
use serde_json::json;

use crate::condition::{Condition, Ended, Problem, Subject};
use crate::decide::{
    Acknowledge, Complete, CreateToken, DeleteCallback, Look, Measure, Precondition, Refusal,
    Retire, RevokeToken, SetVar, Silence, Suspend,
};
use crate::limits::{OBSERVED, OPEN_CONDITIONS};
use crate::testing::{TestWorld, complete, complete_all, key, source, step, succeeded};
use crate::{
    Actor, Change, ConditionId, JobId, ProjectId, Projects, Reason, Rights, ScanKey, Scope, Scopes,
    StepOutcome, StepStatus, TokenId, TokenManager, UserId,
};

const BACKUP: &str = "
scans:
  backup:
    on: {cron: '0 3 * * *', dispatch: {}}
    expect: {success_every: 26h, starts_within: 5m, at_least: 10s, at_most: 30m}
    steps: [{run: dump}]
  manual:
    on: {dispatch: {}}
    steps: [{run: once}]
";

/// The kinds of the open conditions.
fn open(test: &TestWorld) -> Vec<&'static str> {
    let mut codes: Vec<_> = test
        .world
        .conditions()
        .map(|open| open.problem.code())
        .collect();
    codes.sort_unstable();
    codes
}

/// Lets time pass, and opens what is due.
fn pass(test: &mut TestWorld, by: TimeDelta) {
    test.now += by;
    while let Some(subject) = test.world.conditions_due(test.now).into_iter().next() {
        test.run(Look { subject }).unwrap();
    }
}

fn only(test: &TestWorld) -> &Condition {
    let mut all = test.world.conditions();
    let one = all.next().unwrap();
    assert!(all.next().is_none());
    one
}

/// Runs a job to its end; it takes `seconds`.
fn job(test: &mut TestWorld, scan: &ScanKey, seconds: i64, succeeds: bool) -> JobId {
    let runner = test.world.runners().next().map(|runner| runner.id);
    let runner = runner.unwrap_or_else(|| test.runner("first", &[]));
    let job = test
        .dispatch(scan.workflow, scan.scan.as_str(), json!({}))
        .unwrap();
    let token = test.claim(job, runner).unwrap();
    test.pass(TimeDelta::seconds(seconds));
    let failed = step(0, StepStatus::Failed, Some(StepOutcome::Failed));
    let steps = if succeeds { succeeded(1) } else { vec![failed] };
    let complete = Complete {
        steps,
        ..complete(job, token)
    };
    test.run(complete).unwrap();
    job
}

#[test]
fn failures_are_one_condition_which_a_success_closes() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", BACKUP), "manual");
    let first = job(&mut test, &manual, 1, false);
    let opened = only(&test).clone();
    assert_eq!(
        opened.problem,
        Problem::Failing {
            job: first,
            failures: 1,
            succeeded: None,
            fine_since: None,
        }
    );
    assert_eq!(opened.subject, Subject::from(&manual));
    let second = job(&mut test, &manual, 1, false);
    let now = only(&test);
    assert_eq!(
        now.problem,
        Problem::Failing {
            job: second,
            failures: 2,
            succeeded: None,
            fine_since: None,
        }
    );
    assert_eq!((now.id, now.since), (opened.id, opened.since));
    job(&mut test, &manual, 1, true);
    assert_eq!(open(&test), [""; 0]);
}

#[test]
fn a_failure_says_since_when_the_scan_was_fine() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", BACKUP), "manual");
    let fine_since = |test: &TestWorld| match only(test).problem {
        Problem::Failing { fine_since, .. } => fine_since,
        _ => None,
    };
    for _ in 0..2 {
        job(&mut test, &manual, 1, true);
        let first = test.now;
        job(&mut test, &manual, 1, true);
        job(&mut test, &manual, 1, false);
        job(&mut test, &manual, 1, false);
        assert_eq!(fine_since(&test), Some(first));
    }
}

#[test]
fn each_expectation_opens_a_condition_and_closes_it() {
    let mut test = TestWorld::new();
    let backup = key(test.push("w", BACKUP), "backup");
    let hours = TimeDelta::hours;
    pass(&mut test, hours(26) - TimeDelta::seconds(1));
    assert_eq!(open(&test), [""; 0]);
    pass(&mut test, TimeDelta::seconds(1));
    assert_eq!(open(&test), ["overdue"]);
    job(&mut test, &backup, 9, true);
    assert_eq!(open(&test), ["too_short"]);
    job(&mut test, &backup, 10, true);
    assert_eq!(open(&test), [""; 0]);

    let runner = test.world.runners().next().unwrap().id;
    let waiting = test.dispatch(backup.workflow, "backup", json!({})).unwrap();
    pass(&mut test, TimeDelta::minutes(5));
    assert_eq!(
        only(&test).problem,
        Problem::Late {
            job: waiting,
            within: 300
        }
    );
    let token = test.claim(waiting, runner).unwrap();
    assert_eq!(open(&test), [""; 0]);
    pass(&mut test, TimeDelta::minutes(30));
    assert_eq!(
        only(&test).problem,
        Problem::TooLong {
            job: waiting,
            at_most: 1800
        }
    );
    pass(&mut test, TimeDelta::minutes(1));
    test.run(complete_all(waiting, token)).unwrap();
    assert_eq!(open(&test), ["too_long"]);
    job(&mut test, &backup, 60, true);
    assert_eq!(open(&test), [""; 0]);
    // After this success, nothing is due before the next 26 hours are over.
    assert_eq!(
        test.world.next_condition(test.now),
        Some(test.now + hours(26))
    );
}

#[test]
fn an_expectation_goes_on_while_the_scan_is_suspended_and_ends_with_the_scan() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", BACKUP);
    let suspend = Suspend {
        workflow,
        scan: Some("backup".to_owned()),
        reason: "holidays".to_owned(),
        actor: Actor::Daemon,
    };
    test.run(suspend).unwrap();
    assert_eq!(open(&test), ["suspended"]);
    pass(&mut test, TimeDelta::hours(27));
    assert_eq!(open(&test), ["overdue", "suspended"]);
    test.push(
        "w",
        "scans: {other: {on: {dispatch: {}}, steps: [{run: a}]}}",
    );
    assert_eq!(open(&test), [""; 0]);
    assert_eq!(test.world.next_condition(test.now), None);
}

#[test]
fn an_acknowledgement_stays_until_the_condition_closes() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", BACKUP);
    let backup = key(workflow, "backup");
    job(&mut test, &backup, 20, false);
    let acknowledge = |test: &mut TestWorld| {
        let condition = only(test).id;
        let note = Some("disk ordered".to_owned());
        let actor = Actor::Daemon;
        test.run(Acknowledge {
            condition,
            note,
            actor,
        })
        .unwrap();
    };
    acknowledge(&mut test);
    job(&mut test, &backup, 20, false);
    let note = only(&test).acknowledged.as_ref().unwrap().note.clone();
    assert_eq!(note.as_deref(), Some("disk ordered"));
    job(&mut test, &backup, 20, true);
    job(&mut test, &backup, 20, false);
    assert_eq!(only(&test).acknowledged, None);
    // Nothing would close the failure of a scan that only people start.
    job(&mut test, &backup, 20, true);
    let manual = key(workflow, "manual");
    job(&mut test, &manual, 1, false);
    acknowledge(&mut test);
    assert_eq!(open(&test), [""; 0]);
    let next = job(&mut test, &manual, 1, false);
    assert_eq!(
        only(&test).problem,
        Problem::Failing {
            job: next,
            failures: 1,
            succeeded: None,
            fine_since: None,
        }
    );
}

#[test]
fn a_silence_lasts_for_up_to_a_month() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", BACKUP), "manual");
    job(&mut test, &manual, 1, false);
    let condition = only(&test).id;
    let month = 30 * 24 * 3_600;
    let mut silence = |seconds| {
        let command = Silence { condition, seconds };
        test.run(command).map(|it| it.silenced_until)
    };
    let until = silence(Some(month)).unwrap().unwrap();
    assert!(matches!(
        silence(Some(month + 1)),
        Err(Refusal::InvalidField {
            field: "seconds",
            ..
        })
    ));
    assert!(silence(Some(0)).is_err() && silence(Some(u64::MAX)).is_err());
    assert_eq!(silence(None), Ok(None));
    assert_eq!(until, test.now + TimeDelta::days(30));
    let nobody = ConditionId::from_uuid(uuid::Uuid::nil());
    let unknown = Silence {
        condition: nobody,
        seconds: None,
    };
    assert_eq!(
        test.run(unknown),
        Err(Refusal::NoSuchCondition { condition: nobody })
    );
}

#[test]
fn measured_problems_are_open_until_they_are_not_reported() {
    let mut test = TestWorld::new();
    let report = |problems| Measure {
        subject: Subject::Instance,
        problems,
    };
    assert!(!report(Vec::new()).is_news(&test.world));
    let old = Problem::BackupOld { newest: None };
    let all = vec![Problem::DiskLow, old.clone()];
    assert!(report(all.clone()).is_news(&test.world));
    test.run(report(all.clone())).unwrap();
    assert_eq!(open(&test), ["backup_old", "disk_low"]);
    assert!(!report(all).is_news(&test.world));
    test.run(report(vec![old])).unwrap();
    assert_eq!(open(&test), ["backup_old"]);
}

#[test]
fn a_measured_problem_names_the_newest_report() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", BACKUP);
    let mut dispatch = || test.dispatch(workflow, "manual", json!({})).unwrap();
    let (first, second) = (dispatch(), dispatch());
    let report = |job| Measure {
        subject: Subject::from(&key(workflow, "manual")),
        problems: vec![Problem::Stuck {
            job,
            reason: Reason::NoRunner,
        }],
    };
    test.run(report(first)).unwrap();
    let opened = only(&test).id;
    assert!(report(second).is_news(&test.world));
    test.run(report(second)).unwrap();
    assert_eq!(
        (only(&test).id, only(&test).problem.job()),
        (opened, Some(second))
    );
}

#[test]
fn a_workflow_with_more_conditions_than_fit_into_a_commit_closes_the_others_afterwards() {
    let mut test = TestWorld::new();
    let scan = |n: usize| {
        format!(
            "  s{n}: {{on: {{dispatch: {{}}}}, expect: {{success_every: 1h}}, steps: [{{run: a}}]}}\n"
        )
    };
    let text: String = (0..OBSERVED * 3).map(scan).collect();
    test.push("w", &format!("scans:\n{text}"));
    pass(&mut test, TimeDelta::hours(1));
    assert_eq!(open(&test).len(), OBSERVED * 3);
    test.push(
        "w",
        "scans: {other: {on: {dispatch: {}}, steps: [{run: a}]}}",
    );
    assert!(!open(&test).is_empty());
    pass(&mut test, TimeDelta::zero());
    assert_eq!(open(&test), [""; 0]);
}

#[test]
fn a_thousand_conditions_of_one_subject_open_and_close_in_parts() {
    let mut test = TestWorld::new();
    let step = |name: usize| format!("{{run: 'echo ${{{{ vars.V{name} }}}}'}}, ");
    let steps: String = (0..OPEN_CONDITIONS).map(step).collect();
    let text = |steps: &str| format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{steps}]}}}}");
    test.push("w", &text(&steps));
    assert_eq!(open(&test).len(), OBSERVED, "the push opens the first");
    pass(&mut test, TimeDelta::zero());
    assert_eq!(open(&test).len(), OPEN_CONDITIONS);
    test.push("w", &text("{run: ls}"));
    assert_eq!(open(&test).len(), OPEN_CONDITIONS - OBSERVED);
    pass(&mut test, TimeDelta::zero());
    assert_eq!(open(&test), [""; 0]);
}

#[test]
fn names_that_no_workflow_uses_any_more_are_not_missing() {
    let mut test = TestWorld::new();
    let text =
        |run: &str| format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{{run: '{run}'}}]}}}}");
    test.push("one", &text("${{ vars.A }} ${{ secrets.B }}"));
    test.push("two", &text("${{ vars.A }}"));
    assert_eq!(open(&test), ["missing_secret", "missing_var"]);
    let set = SetVar {
        project: ProjectId::of_source(&source()),
        name: "A".to_owned(),
        value: "1".to_owned(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    test.run(set).unwrap();
    assert_eq!(open(&test), ["missing_secret"]);
    let workflow = test.push("one", &text("ls"));
    assert_eq!(open(&test), [""; 0]);
    test.push("one", &text("${{ vars.C }}"));
    assert_eq!(open(&test), ["missing_var"]);
    test.run(Retire { workflow }).unwrap();
    assert_eq!(open(&test), [""; 0]);
}

#[test]
fn a_callback_server_that_a_scan_names_is_missing_until_somebody_creates_it() {
    let mut test = TestWorld::new();
    let scan = "scans: {a: {on: {dispatch: {}}, callback: shop, steps: [{run: ls}]}}";
    test.push("one", scan);
    assert_eq!(open(&test), ["missing_callback"]);
    let server = test.run(super::callbacks::create("shop")).unwrap().id;
    assert_eq!(open(&test), [""; 0]);
    test.run(DeleteCallback { server }).unwrap();
    assert_eq!(open(&test), ["missing_callback"]);
    test.push("one", &scan.replace("callback: shop, ", ""));
    assert_eq!(open(&test), [""; 0]);
}

fn token_for_eight_days(test: &mut TestWorld) -> TokenId {
    let create = CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::from_iter([Scope::JobRead]),
        projects: Projects::All,
        life: Some(TimeDelta::days(8)),
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    };
    test.run(create).unwrap().token.id
}

#[test]
fn a_token_that_expires_within_a_week_is_a_condition_of_the_instance() {
    let mut test = TestWorld::new();
    let expires_at = test.now + TimeDelta::days(8);
    let token = token_for_eight_days(&mut test);
    assert_eq!(open(&test), [""; 0]);
    pass(&mut test, TimeDelta::days(1));
    assert_eq!(
        only(&test).problem,
        Problem::TokenExpires { at: expires_at }
    );
    assert_eq!(only(&test).project, None);
    let by = TokenManager::owner();
    test.run(RevokeToken { token, by }).unwrap();
    assert_eq!(open(&test), [""; 0]);
}

#[test]
fn the_warning_before_the_end_of_a_token_ends_with_the_token() {
    let mut test = TestWorld::new();
    let end = test.now + TimeDelta::days(8);
    let token = token_for_eight_days(&mut test);
    pass(&mut test, TimeDelta::days(1));
    assert_eq!(open(&test), ["token_expires"]);
    assert_eq!(test.world.next_condition(test.now), Some(end));
    test.now = end;
    let subject = Subject::Token { token };
    let (changes, ()) = test.changes(Look { subject }).unwrap();
    let ended = changes.iter().find_map(|change| match change {
        Change::ConditionClosed(_, ended) => Some(ended),
        _ => None,
    });
    assert_eq!(ended, Some(&Ended::Expired));
    assert_eq!(open(&test), [""; 0]);
    // It stays closed, and nobody looks again.
    assert_eq!(test.world.conditions_due(test.now), []);
    assert_eq!(test.world.next_condition(test.now), None);
}

#[test]
fn the_bound_of_open_conditions_counts_for_each_project_and_room_is_used_again() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", BACKUP);
    let report = |number: usize, problems| Measure {
        subject: Subject::from(&key(workflow, &format!("s{number}"))),
        problems,
    };
    for number in 0..OPEN_CONDITIONS + 5 {
        test.run(report(number, vec![Problem::HistoryDamaged]))
            .unwrap();
    }
    assert_eq!(open(&test).len(), OPEN_CONDITIONS);
    pass(&mut test, TimeDelta::hours(27));
    assert_eq!(open(&test).len(), OPEN_CONDITIONS);
    test.run(report(0, Vec::new())).unwrap();
    pass(&mut test, TimeDelta::zero());
    assert_eq!(open(&test).len(), OPEN_CONDITIONS);
    assert!(open(&test).contains(&"overdue"));
}

#[test]
fn a_clock_step_opens_what_is_due_by_the_clock_and_the_step_back_ends_it() {
    let mut test = TestWorld::new();
    let backup = key(test.push("w", BACKUP), "backup");
    job(&mut test, &backup, 60, true);
    let runner = test.world.runners().next().unwrap().id;
    let dispatch = |test: &mut TestWorld| {
        let job = test.dispatch(backup.workflow, "backup", json!({}));
        job.unwrap()
    };
    let running = dispatch(&mut test);
    let token = test.claim(running, runner).unwrap();
    dispatch(&mut test);
    let step = |test: &mut TestWorld, hours| {
        test.jump(TimeDelta::hours(hours));
        let subject = Subject::from(&backup);
        test.run(Look { subject }).unwrap();
        pass(test, TimeDelta::zero());
    };
    for _ in 0..2 {
        step(&mut test, 27);
        assert_eq!(open(&test), ["late", "overdue", "too_long"]);
        step(&mut test, -27);
        assert_eq!(open(&test), [""; 0]);
        step(&mut test, -3);
        assert_eq!(open(&test), [""; 0]);
        step(&mut test, 3);
        assert_eq!(open(&test), [""; 0]);
    }
    test.run(complete_all(running, token)).unwrap();
    pass(&mut test, TimeDelta::minutes(5));
    assert!(open(&test).contains(&"late"), "the deadline is still known");
}
