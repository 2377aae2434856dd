//! The outputs of a job reach later steps, other scans and people.

use crate::support::World;

const WORKFLOW: &str = "\
scans:
  find:
    on:
      dispatch:
        inputs:
          hosts: { type: number, default: 2 }
          mode: { type: choice, options: [quiet, loud] }
    env:
      HOSTS: ${{ inputs.hosts }}
    steps:
      - name: count
        run: |
          mkdir -p out/deep
          echo \"hosts=$HOSTS\" >> \"$SERVICE_STEP_OUTPUTS\"
          echo a > out/deep/a.txt; echo b > out/b.log
      - name: report
        if: steps.count.outputs.hosts == '3' && inputs.hosts > 2
        run: echo \"mode=${{ inputs.mode }}\" >> \"$SERVICE_STEP_OUTPUTS\"
    artifacts:
      - name: texts
        paths: ['glob:out/**/*.txt']
  probe:
    on:
      expr: scans.find.is_available() && scans.find[0].outputs.hosts != '0'
    env:
      FOUND: ${{ scans.find[0].outputs.hosts }} ${{ scans.find[0].outputs.mode }}
    steps:
      - run: echo \"found $FOUND\"
";

#[test]
fn outputs_reach_later_steps_other_scans_and_people() {
    let world = World::with_workflow("net.yaml", WORKFLOW);
    let none = world.succeed("net", "find", &["hosts=0"]);
    assert!(world.jobs_of("net", "probe").is_empty());
    let shown = world.json(&["job", "show", "-j", &none]);
    assert_eq!(shown["outputs"], serde_json::json!({ "hosts": "0" }));
    assert_eq!(shown["steps"][1]["status"], "skipped");

    let job = world.succeed("net", "find", &["hosts=3.0", "mode=loud"]);
    let shown = world.json(&["job", "show", "-j", &job]);
    assert_eq!(
        shown["inputs"],
        serde_json::json!({ "hosts": 3, "mode": "loud" })
    );
    let outputs = serde_json::json!({ "hosts": "3", "mode": "loud" });
    assert_eq!(shown["outputs"], outputs);
    assert_eq!(shown["steps"][1]["name"], "report");
    let table = world.everscan(&["job", "show", "-j", &job]);
    assert!(
        table.contains("2 report") && table.contains("OUTPUT"),
        "{table}"
    );
    let files: Vec<_> = world.artifact(&job, "texts").into_keys().collect();
    assert_eq!(files, ["out/deep/a.txt"]);

    let probe = world.followed_by("net", "probe");
    assert!(
        world.log(&probe).contains("found 3 loud"),
        "{}",
        world.log(&probe)
    );

    let refused = world.output(
        "everscan",
        &["scan", "dispatch", "net", "find", "-i", "mode=shy"],
    );
    let printed = String::from_utf8(refused.stderr).unwrap();
    assert!(
        printed.contains("expected one of `quiet`, `loud`"),
        "{printed}"
    );
}
