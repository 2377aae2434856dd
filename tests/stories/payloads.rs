//! Payloads in use: a step renders what a person has stored, and a kill loses no version.

use crate::support::World;

const WORKFLOW: &str = r#"
scans:
  probe:
    on: {dispatch: {}}
    steps:
      - run: |
          printf 'one.example\ntwo&three.example\n' > targets.txt
          everscan payload render xss --for-each targets.txt > rendered.txt
          everscan blob upload -s rendered.txt -d results/
          ! everscan payload delete xss img.html
"#;

#[test]
fn a_step_renders_payloads_for_its_targets() {
    let mut world = World::with_workflow("probe.yaml", WORKFLOW);
    world.everscan(&[
        "payload",
        "group",
        "create",
        "xss",
        "--project",
        "main",
        "--variable",
        "TARGET",
        "--variable",
        "ID=7",
        "--placeholder",
        "ID={{id}}",
    ]);
    let body = "<img src=\"//%%TARGET|url%%/{{id}}?${{ x }}\">\r\n";
    let file = world.path("img.html");
    std::fs::write(&file, body).unwrap();
    let file = file.to_str().unwrap();
    let create = ["payload", "create", "xss", "img.html", file];
    assert_eq!(world.everscan(&create), "img.html@1\n");
    assert!(!world.output("everscan", &create).status.success());
    let run = world.output(
        "everscan",
        &["scan", "dispatch", "probe", "probe", "--follow"],
    );
    assert!(run.status.success(), "{run:?}");
    assert_eq!(
        world.everscan(&["blob", "cat", "results/rendered.txt"]),
        "<img src=\"//one.example/7?${{ x }}\">\r\n\n<img src=\"//two%26three.example/7?${{ x }}\">\r\n\n"
    );
    std::fs::write(file, "second").unwrap();
    assert_eq!(
        world.everscan(&["payload", "edit", "xss", "img.html", file]),
        "img.html@2\n"
    );
    world.kill_daemon();
    world.start_daemon();
    assert_eq!(
        world.everscan(&["payload", "show", "xss", "img.html"]),
        "second"
    );
    assert_eq!(
        world.everscan(&["payload", "show", "xss", "img.html@1"]),
        body
    );
    world.everscan(&["payload", "group", "delete", "xss"]);
    assert_eq!(
        world.json(&["payload", "group", "list"])["items"],
        serde_json::json!([])
    );
}
