//! TLS by the daemon itself: everything over https, and a certificate that is replaced while it runs.

use std::fs;
use std::process::Output;

use chrono::{Datelike, TimeDelta, Utc};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

use crate::support::{World, eventually};

const WORKFLOW: &str = "\
scans:
  hello:
    on: { dispatch: {} }
    steps:
      - run: everscan job show --output json > shown.json
    artifacts:
      - { name: shown, paths: [shown.json] }
";

/// Makes a certificate for this machine and this many days, signed by a new authority, and puts it in place of the last one.
fn certify(world: &World, authority: &str, days: i64) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let end = Utc::now() + TimeDelta::days(days);
    let [month, day] = [end.month(), end.day()].map(|number| u8::try_from(number).unwrap());
    params.not_after = date_time_ymd(end.year(), month, day);
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let write = |name: &str, text: String| {
        let fresh = world.path("fresh.pem");
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, world.path(name)).unwrap();
    };
    write(authority, issuer.pem());
    write("key.pem", key.serialize_pem());
    write("cert.pem", certificate.pem());
}

fn trusting(world: &World, authority: &str, arguments: &[&str]) -> Output {
    let mut command = world.command("everscan");
    command.env("SERVICE_CA_FILE", world.path(authority));
    command.args(arguments).output().unwrap()
}

fn expect(world: &World, arguments: &[&str]) -> String {
    let output = trusting(world, "first.pem", arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_job_runs_over_https_and_a_new_certificate_is_used_without_a_restart() {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("tls.yaml", Some(WORKFLOW))]);
    certify(&world, "first.pem", 5);
    let home = world.path("").display().to_string();
    world.daemon_config = Some(format!(
        "tls: {{ cert: {home}/cert.pem, key: {home}/key.pem }}\nbackup_within: 26h\n"
    ));
    world.start_daemon();
    assert!(world.url().starts_with("https://"), "{}", world.url());

    // Without the authority's certificate the client refuses, and its hint names the missing option.
    let refused = world.output("everscan", &["source", "list"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("--ca-file"),
        "{said}"
    );

    for code in ["certificate_expires", "backup_old"] {
        eventually(code, || {
            expect(&world, &["condition", "list"]).contains(code)
        });
    }

    expect(&world, &["source", "sync", "main", "--wait"]);
    let token = expect(&world, &["runner", "register-token"]);
    let configured = world
        .command("everscan-runner")
        .env("SERVICE_REGISTRATION_TOKEN", token.trim())
        .args(["configure", "--name", "story", "--ca-file"])
        .arg(world.path("first.pem"))
        .output()
        .unwrap();
    assert!(configured.status.success(), "{configured:?}");
    world.run_runner();
    // The command in the step trusts the same authority as its runner.
    expect(&world, &["scan", "dispatch", "tls", "hello", "--follow"]);

    certify(&world, "second.pem", 90);
    eventually("the use of the new certificate", || {
        trusting(&world, "second.pem", &["source", "list"])
            .status
            .success()
    });
    let outdated = trusting(&world, "first.pem", &["source", "list"]);
    assert!(!outdated.status.success(), "{outdated:?}");

    // An invalid pair changes nothing.
    fs::write(world.path("key.pem"), "no key").unwrap();
    eventually("the refusal of the new key", || {
        world.daemon_log().contains("is no private key")
    });
    let still = trusting(&world, "second.pem", &["source", "list"]);
    assert!(still.status.success(), "{still:?}");
}
