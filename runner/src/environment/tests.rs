use super::*;
use chrono::DateTime;
use uuid::Uuid;

fn host(variables: &[(&str, &str)]) -> HostEnvironment {
    variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

fn assignment(pass_env: &[&str]) -> Assignment {
    Assignment {
        job_id: Uuid::from_u128(1),
        project_id: Uuid::from_u128(2),
        workflow_id: Uuid::from_u128(3),
        revision_id: Uuid::from_u128(4),
        scan: "nightly".to_owned(),
        env: Vec::new(),
        job_token: None,
        pass_env: pass_env.iter().map(|name| (*name).to_owned()).collect(),
        steps: Vec::new(),
        checkout: None,
        callback: None,
        artifacts: Vec::new(),
        context: serde_json::Value::Null,
        secrets: BTreeMap::new(),
        missing: BTreeMap::new(),
        retries: false,
        now: DateTime::UNIX_EPOCH,
        expires_at: DateTime::UNIX_EPOCH,
        deadline: None,
        next_log_record: 0,
    }
}

fn names(environment: &Environment) -> Vec<String> {
    environment
        .entries()
        .unwrap()
        .into_iter()
        .map(|(name, _)| name.into_string().unwrap())
        .collect()
}

#[test]
fn only_named_variables_come_from_the_runner() {
    let host = host(&[
        ("PATH", "/bin"),
        ("LC_TIME", "C"),
        ("SERVICE_TOKEN", "t"),
        ("SERVICE_REGISTRATION_TOKEN", "hidden"),
        ("AWS_SECRET", "hidden"),
        ("PROXY", "p"),
        ("SERVICE_JOB_ID", "of the runner"),
    ]);
    let environment = Environment::of_job(
        &host,
        &assignment(&["PROXY", "MISSING", "SERVICE_TOKEN"]),
        "http://d",
        Path::new("/job"),
    );
    assert_eq!(
        names(&environment),
        [
            "GIT_TERMINAL_PROMPT",
            "LC_TIME",
            "PATH",
            "PROXY",
            "SERVICE_JOB_ID",
            "SERVICE_PROJECT_ID",
            "SERVICE_REVISION_ID",
            "SERVICE_SCAN_NAME",
            "SERVICE_URL",
            "SERVICE_WORKFLOW_ID",
        ]
    );
    let value = |name: &str| environment.0[OsStr::new(name)].to_str().unwrap().to_owned();
    assert_eq!(value("SERVICE_JOB_ID"), Uuid::from_u128(1).to_string());
    assert_eq!(value("SERVICE_URL"), "http://d");
}

#[test]
fn the_token_is_the_one_of_the_job_unless_the_operator_or_the_workflow_gives_another() {
    let job = Assignment {
        job_token: Some("of the job".to_owned()),
        ..assignment(&["SERVICE_TOKEN"])
    };
    let host = host(&[("SERVICE_TOKEN", "of the runner")]);
    let token = |host: &HostEnvironment, job: &Assignment| {
        let environment = Environment::of_job(host, job, "http://d", Path::new("/job"));
        environment.0.get(OsStr::new(TOKEN)).cloned()
    };
    assert_eq!(token(&host, &job).unwrap(), "of the job");
    assert_eq!(token(&host, &assignment(&["SERVICE_TOKEN"])), None);
    let passing = host.with_token("of the runner".into());
    assert_eq!(token(&passing, &job).unwrap(), "of the runner");
    let mut environment = Environment::of_job(&passing, &job, "http://d", Path::new("/job"));
    environment.set(TOKEN, "of the workflow".to_owned());
    assert_eq!(environment.0[OsStr::new(TOKEN)], "of the workflow");
}

#[test]
fn steps_talk_to_the_daemon_as_the_runner_does() {
    for (insecure, expected) in [(true, Some(OsStr::new("true"))), (false, None)] {
        let host = host(&[("SERVICE_INSECURE_HTTP", "of the runner")]);
        let host = host.with_connection(None, insecure);
        let environment =
            Environment::of_job(&host, &assignment(&[]), "http://d", Path::new("/job"));
        let value = environment.0.get(OsStr::new("SERVICE_INSECURE_HTTP"));
        assert_eq!(value.map(|value| &**value), expected);
    }
}

#[test]
fn git_does_not_ask_unless_it_is_allowed_to() {
    let host = host(&[("GIT_TERMINAL_PROMPT", "1")]);
    for (passed, expected) in [(&[][..], "0"), (&["GIT_TERMINAL_PROMPT"], "1")] {
        let environment =
            Environment::of_job(&host, &assignment(passed), "http://d", Path::new("/job"));
        assert_eq!(environment.0[OsStr::new("GIT_TERMINAL_PROMPT")], expected);
    }
}

#[test]
fn later_layers_win() {
    let mut environment = Environment::of_job(
        &host(&[("PATH", "/bin")]),
        &assignment(&[]),
        "http://d",
        Path::new("/job"),
    );
    environment.set("PATH", "/opt".to_owned());
    environment.set("SERVICE_URL", "http://other".to_owned());
    assert_eq!(environment.path(), Some(OsStr::new("/opt")));
    assert_eq!(environment.0[OsStr::new("SERVICE_URL")], "http://other");
}

#[test]
fn impossible_entries_are_errors_that_name_them() {
    let refused = |name: &str, value: String| {
        let mut environment =
            Environment::of_job(&host(&[]), &assignment(&[]), "http://d", Path::new("/job"));
        environment.set(name, value);
        environment.entries().unwrap_err()
    };
    let fits = limits::ENVIRONMENT_ENTRY_BYTES - "BIG".len() - 2;
    let mut environment =
        Environment::of_job(&host(&[]), &assignment(&[]), "http://d", Path::new("/job"));
    environment.set("BIG", "x".repeat(fits));
    environment.entries().unwrap();
    assert_eq!(
        refused("BIG", "x".repeat(fits + 1)),
        EnvironmentError::TooLarge {
            name: "BIG".to_owned(),
            bytes: limits::ENVIRONMENT_ENTRY_BYTES + 1
        }
    );
    assert!(matches!(
        refused("A", "\0".to_owned()),
        EnvironmentError::HoldsNul { .. }
    ));
    assert!(matches!(
        refused("A=B", String::new()),
        EnvironmentError::Name { .. }
    ));
    assert!(matches!(
        refused("", String::new()),
        EnvironmentError::Name { .. }
    ));
}

#[test]
fn a_job_with_files_knows_where_they_are_and_which() {
    let with_files = Assignment {
        checkout: Some(wire::Checkout {
            commit: "5".repeat(40),
            reference: "main".to_owned(),
            paths: Vec::new(),
        }),
        ..assignment(&[])
    };
    let value = |assignment: &Assignment, name: &str| {
        let environment =
            Environment::of_job(&host(&[]), assignment, "http://d", Path::new("/job"));
        let entries = environment.entries().unwrap();
        let found = entries.into_iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.into_string().unwrap())
    };
    for (name, expected) in [
        ("SERVICE_SOURCE_DIR", "/job/source"),
        ("SERVICE_SOURCE_COMMIT", &"5".repeat(40)),
        ("SERVICE_SOURCE_REF", "main"),
    ] {
        assert_eq!(value(&with_files, name).as_deref(), Some(expected));
        assert_eq!(value(&assignment(&[]), name), None);
    }
}

#[test]
fn steps_have_the_name_of_a_callback_server() {
    let job = Assignment {
        callback: Some("a-b.oast.example".to_owned()),
        ..assignment(&[])
    };
    let environment = Environment::of_job(&host(&[]), &job, "http://d", Path::new("/job"));
    assert_eq!(environment.0[OsStr::new(CALLBACK_HOST)], "a-b.oast.example");
}
