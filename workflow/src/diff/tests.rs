use super::{Difference, diff};
use crate::{TemplatePolicy, Workflow, parse};

fn read(yaml: &str) -> Workflow {
    match parse("test.yaml", yaml, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.workflow,
        Err(diagnostics) => panic!("{}", crate::render(&diagnostics, yaml, false)),
    }
}

#[track_caller]
fn check(before: &str, after: &str, expected: &str) -> Difference {
    let difference = diff(&read(before), &read(after));
    let lines: Vec<&str> = expected.lines().map(str::trim_end).collect();
    let found = difference.to_string();
    assert_eq!(found.lines().collect::<Vec<_>>(), lines, "\n{found}");
    difference
}

/// A workflow of one scan that can be dispatched, with one step. `more` has further members of the scan.
fn scan(more: &str) -> String {
    format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{{run: make}}], {more}}}}}")
}

#[test]
fn a_workflow_does_not_differ_from_itself() {
    let yaml = scan("timeout: 1h");
    assert!(check(&yaml, &yaml, "").is_empty());
}

#[test]
fn a_removed_artifact_is_reported_with_its_readers() {
    let reader = "
  report:
    on: {expr: scans.probe.is_available()}
    env: {FROM: '${{ scans.probe[0].id }}'}
    steps: [{run: everscan job artifact download -j \"$FROM\" -a \"out\"}]
  sum:
    on: {expr: 'size(scans.probe) > 0 && scans.probe[0].artifacts.out.size > 3'}
    steps: [{run: echo}]
  other:
    on: {expr: scans.probe.has_diff('log')}
    steps: [{run: cat out}]
";
    let probe = |cron: &str, artifacts: &str| {
        format!(
            "scans:\n  probe:\n    on: {{cron: '{cron}'}}\n    steps: [{{run: probe > out}}]\n    artifacts: [{artifacts}]\n{reader}"
        )
    };
    let log = "{name: log, paths: [log]}";
    check(
        &probe("0 * * * *", &format!("{log}, {{name: out, paths: [out]}}")),
        &probe("0 0 * * *", log),
        "scan `probe`: cron `0 * * * *` → `0 0 * * *`; artifact `out` no longer declared, `report`, `sum` read it",
    );
}

#[test]
fn comparing_all_artifacts_reads_each() {
    let yaml = |artifacts: &str| {
        format!(
            "scans:
  a: {{on: {{dispatch: {{}}}}, steps: [{{run: a}}], artifacts: [{artifacts}]}}
  b: {{on: {{expr: 'scans[\"a\"].has_diff( )'}}, steps: [{{run: b}}]}}
  c: {{on: {{expr: scans.a.has_news()}}, steps: [{{run: c}}]}}
"
        )
    };
    check(
        &yaml("{name: one, paths: [one]}, {name: two, paths: [two]}"),
        &yaml("{name: one, paths: [one]}"),
        "scan `a`: artifact `two` no longer declared, `b`, `c` read it",
    );
}

#[test]
fn triggers_that_come_and_go() {
    check(
        "scans: {a: {on: {cron: 0 3 * * *, timezone: Europe/Berlin, catch_up: all}, steps: [{run: a}]}}",
        "scans: {a: {on: {dispatch: {inputs: {x: {type: bool}}}}, steps: [{run: a}]}}",
        "scan `a`: cron `0 3 * * *` removed; timezone `Europe/Berlin` → `UTC`; catch_up `all` → `latest`; dispatch `{}` \
         added; input `x` added",
    );
}

#[test]
fn inputs_with_their_members() {
    let yaml = |inputs: &str| {
        format!("scans: {{a: {{on: {{dispatch: {{inputs: {{{inputs}}}}}}}, steps: [{{run: a}}]}}}}")
    };
    check(
        &yaml("x: {default: '1'}, y: {required: true}"),
        &yaml("x: {type: bool, default: true}, z: {}"),
        "scan `a`: input `x`: type `string` → `bool`; input `x`: default `1` → `true`; input `y` no longer declared; input \
         `z` added",
    );
}

#[test]
fn scans_that_come_go_and_look_renamed() {
    check(
        "scans:
  old: {on: {cron: 0 3 * * *}, steps: [{run: make all}]}
  gone: {on: {dispatch: {}}, steps: [{run: make some}]}
  reader: {on: {expr: scans.old.has_diff()}, steps: [{run: read}]}
",
        "scans:
  reader: {on: {expr: scans.fresh.has_diff()}, steps: [{run: read}]}
  fresh: {on: {cron: 0 4 * * *}, steps: [{run: make all}]}
  added: {on: {dispatch: {}}, steps: [{run: make other}]}
",
        "scan `reader`: expr `scans.old.has_diff()` → `scans.fresh.has_diff()`
scan `fresh` looks like `old` renamed, but starts without its results unless it has `renamed_from: old`: cron `0 3 * * *` → `0 4 * * *`
scan `added` added
scan `gone` removed",
    );
}

#[test]
fn equal_meanings_written_differently_are_not_a_difference() {
    let yaml = |cron: &str, ok: &str, text: &str| {
        format!(
            "env: {{W: '{text}'}}
scans:
  a:
    on: {{cron: '{cron}', expr: '{ok} || scans.b.is_available()'}}
    env: {{S: 'x{text}'}}
    steps: [{{run: 'echo {text}', if: '{ok}'}}]
    artifacts: [{{name: x, paths: [x], if: '{ok}'}}]
  b: {{on: {{dispatch: {{}}}}, steps: [{{run: b}}]}}
"
        )
    };
    let plain = yaml("0 * * * *", "vars.A == \"\"", "${{ vars.B + vars.C }}");
    let other = yaml(
        "0 */1 */1 1-12 0-6",
        "(vars.A==\"\")",
        "${{(vars.B+vars.C)}}",
    );
    check(&plain, &other, "");
    check(
        &plain,
        &yaml("0 * * * *", "vars.A == \"\"", "${{ vars.C + vars.B }}"),
        "workflow: env `W` `${{ vars.B + vars.C }}` → `${{ vars.C + vars.B }}`
scan `a`: env `S` `x${{ vars.B + vars.C }}` → `x${{ vars.C + vars.B }}`; step 1: run 1 line removed, 1 added
    -echo ${{ vars.B + vars.C }}
    +echo ${{ vars.C + vars.B }}",
    );
}

#[test]
fn a_scan_with_the_same_scripts_and_other_contents_does_not_look_renamed() {
    let old = "on: {dispatch: {inputs: {x: {}}}}, env: {A: '1'}, steps: [{run: make}]";
    let yaml = |name: &str, scan: &str| format!("scans: {{{name}: {{{scan}}}}}");
    for (from, to, is_rename) in [
        ("", "", true),
        ("make}]", "make}], timeout: 1h", true),
        ("dispatch:", "cron: 0 3 * * *, dispatch:", true),
        (
            "dispatch:",
            "cron: 0 3 * * *, timezone: Europe/Berlin, dispatch:",
            false,
        ),
        ("x: {}", "y: {}", false),
        ("x: {}", "x: {default: a}", false),
        ("A: '1'", "A: '2'", false),
        ("make}]", "make, if: ok}]", false),
        ("make}]", "make}, {run: more}]", false),
        (
            "make}]",
            "make}], artifacts: [{name: x, paths: [x]}]",
            false,
        ),
    ] {
        let difference = diff(
            &read(&yaml("old", old)),
            &read(&yaml("new", &old.replacen(from, to, 1))),
        );
        let shown = difference.to_string();
        assert_eq!(shown.contains("renamed"), is_rename, "{shown}");
        assert_eq!(shown.contains("scan `old` removed"), !is_rename, "{shown}");
    }
}

#[test]
fn the_most_similar_scan_with_the_same_scripts_is_renamed() {
    check(
        "scans:
  one: {on: {cron: 0 3 * * *}, steps: [{run: make}], timeout: 1h}
  two: {on: {dispatch: {}}, steps: [{run: make}]}
",
        "scans: {three: {on: {dispatch: {}}, steps: [{run: make}]}}",
        "scan `three` looks like `two` renamed, but starts without its results unless it has `renamed_from: two`\nscan `one` removed",
    );
}

#[test]
fn schedules_of_a_list_are_compared_by_when_they_are_due() {
    let scan =
        |cron: &str| format!("scans: {{a: {{on: {{cron: {cron}}}, steps: [{{run: make}}]}}}}");
    check(&scan("0 3 * * *"), &scan("[0 3 */1 * *]"), "");
    check(
        &scan("0 3 * * *"),
        &scan("[0 3 * * *, 0 12 * * 6]"),
        "scan `a`: cron `0 3 * * *` → `0 3 * * *; 0 12 * * 6`",
    );
}

#[test]
fn an_identical_scan_is_preferred_to_a_similar_scan() {
    let scan = |cron: &str| format!("{{on: {{cron: '{cron}'}}, steps: [{{run: make}}]}}");
    let (one, two) = (scan("0 1 * * *"), scan("0 2 * * *"));
    check(
        &format!("scans: {{a: {one}}}"),
        &format!("scans: {{x: {two}, y: {one}}}"),
        "scan `x` added\nscan `y` looks like `a` renamed, but starts without its results unless it has `renamed_from: a`",
    );
    check(
        &format!("scans: {{a: {one}, b: {two}}}"),
        &format!("scans: {{x: {two}, y: {one}}}"),
        "scan `x` looks like `b` renamed, but starts without its results unless it has `renamed_from: b`\nscan `y` looks like `a` renamed, but starts without its results unless it has `renamed_from: a`",
    );
}

#[test]
fn a_renamed_scan_may_be_written_differently() {
    let yaml = |name: &str, script: &str| {
        format!("scans: {{{name}: {{on: {{dispatch: {{}}}}, steps: [{{run: '{script}'}}]}}}}")
    };
    let old = yaml("old", "make ${{ vars.A }} all");
    check(
        &old,
        &yaml("new", "make ${{(vars.A)}} all"),
        "scan `new` looks like `old` renamed, but starts without its results unless it has `renamed_from: old`",
    );
    check(
        &old,
        &yaml("new", "make ${{ vars.B }} all"),
        "scan `new` added\nscan `old` removed",
    );
}

#[test]
fn a_scan_that_names_itself_does_not_look_renamed() {
    let yaml = |name: &str| {
        format!(
            "scans: {{{name}: {{on: {{dispatch: {{}}}}, steps: [{{run: make, if: 'size(scans.{name}) > 1'}}]}}}}"
        )
    };
    check(
        &yaml("old"),
        &yaml("new"),
        "scan `new` added\nscan `old` removed",
    );
}

#[test]
fn a_change_of_the_workflow_is_reported_once() {
    check(
        "name: A\nenv: {X: '1', Y: '2'}\nscans: {a: {on: {dispatch: {}}, steps: [{run: a}]}, b: {on: {dispatch: {}}, steps: [{run: b}]}}",
        "description: B\nenv: {X: '${{ vars.X }}', Z: '3'}\nscans: {b: {on: {dispatch: {}}, steps: [{run: b}]}, a: {on: {dispatch: {}}, steps: [{run: a}]}}",
        "workflow: name `A` removed; description `B` added; env `X` `1` → `${{ vars.X }}`; env `Y` `2` removed; env `Z` `3` \
         added",
    );
}

#[test]
fn the_other_members_of_a_scan_are_compared() {
    check(
        &scan(
            "env: {A: '1'}, timeout: 1h, log_limit: 1MiB, runs_on: [linux, big], overlap: queue, pass_env: [A], permissions: [], checkout: true, callback: shop, expect: {success_every: 1d}",
        ),
        &scan(
            "env: {A: '2'}, retry: {attempts: 3}, runs_on: [big, linux], overlap: replace, permissions: [job:read, dispatch], checkout: [a, b/], callback: oast, expect: {success_every: 26h, at_most: 30m}",
        ),
        "scan `a`: env `A` `1` → `2`; timeout `1h` removed; log_limit `1MiB` removed; retry `attempts: 3, backoff: 10s` added; runs_on `linux, big` → \
         `big, linux`; overlap `queue` → `replace`; pass_env `A` removed; permissions `none` → `job:read, dispatch`; checkout `true` → `a, b`; callback `shop` → `oast`; expect `success_every: 1d` → `success_every: 1d2h, at_most: 30m`",
    );
}

#[test]
fn a_callback_is_compared_with_its_interval() {
    let yaml = |callback: &str| {
        format!("scans: {{a: {{on: {{callback: {callback}}}, steps: [{{run: x}}]}}}}")
    };
    check(
        &yaml("{server: shop}"),
        &yaml("{server: shop, min_interval: 1h}"),
        "scan `a`: callback `{ server: shop, min_interval: 1m }` → `{ server: shop, min_interval: 1h }`",
    );
    check(
        &yaml("{server: shop}"),
        &yaml("{server: shop, min_interval: 60s}"),
        "",
    );
}

#[test]
fn artifacts_with_their_members_and_their_order() {
    check(
        &scan(
            "artifacts: [{name: x, paths: [x]}, {name: y, paths: [y], expires_in: 1d}, {name: z, paths: [z]}]",
        ),
        &scan(
            "artifacts: [{name: z, paths: [z], notify_on: diff, upload_on: always, strict: true}, {name: x, paths: [x, w], if: ok}, {name: new, paths: [n]}]",
        ),
        "scan `a`: artifact `new` added; artifact `x`: paths `x` → `x, w`; artifact `x`: if `ok` added; artifact `y` no \
         longer declared; artifact `z`: upload_on `success` → `always`; artifact `z`: strict `false` → `true`; artifact `z`: notify_on `never` → `diff`; artifacts `x, z` → `z, x`",
    );
}

#[test]
fn steps_are_matched_by_their_scripts() {
    let yaml = |steps: &str| format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{steps}]}}}}");
    check(
        &yaml("{run: fetch}, {run: build, timeout: 5m}, {run: test}, {run: clean}"),
        &yaml(
            "{run: prepare}, {run: fetch}, {run: build, shell: sh -e 'a b', if: ok, allow_failure: true}, {run: clean}",
        ),
        "scan `a`: step 1 `prepare` added; step 3: shell `sh -e 'a b'` added; step 3: if `ok` added; step 3: allow_failure \
         `false` → `true`; step 3: timeout `5m` removed; step 3 `test` removed",
    );
}

#[test]
fn scripts_are_compared_by_lines() {
    let yaml = |run: &str| {
        format!(
            "scans:\n  a:\n    on: {{dispatch: {{}}}}\n    steps:\n      - run: |\n          {}",
            run.replace('\n', "\n          ")
        )
    };
    check(
        &yaml("set -e\nfetch one\nfetch two\nbuild\n"),
        &yaml("set -e\nfetch both\nbuild\ntest\n"),
        "scan `a`: step 1: run 2 lines removed, 2 added
    -fetch one
    -fetch two
    +fetch both
    +test",
    );
    check(
        "scans: {a: {on: {dispatch: {}}, steps: [{run: make}]}}",
        &yaml("make\n"),
        "scan `a`: step 1: run differs in its line ends",
    );
}

#[test]
fn long_values_are_shortened_for_people_and_whole_for_programs() {
    let long = "x".repeat(100);
    let difference = check(
        &scan(""),
        &scan(&format!("env: {{A: \"{long}\", B: \"one\\ntwo\"}}")),
        &format!(
            "scan `a`: env `A` `{}…` added; env `B` `one…` added",
            "x".repeat(60)
        ),
    );
    let json = serde_json::to_string(&difference).unwrap();
    assert!(json.contains(&long) && json.contains("one\\ntwo"), "{json}");
}

#[test]
fn json_has_each_change_with_its_place() {
    let difference = diff(
        &read(&scan("artifacts: [{name: x, paths: [x]}], timeout: 1h")),
        &read(
            "scans: {a: {on: {dispatch: {}}, steps: [{run: remake}], timeout: 2h}, b: {on: {dispatch: {}}, steps: [{run: b}]}}",
        ),
    );
    let expected = serde_json::json!({
        "workflow": [],
        "scans": [
            {
                "scan": "a",
                "fate": "changed",
                "changes": [
                    {
                        "part": "step", "position": 1, "member": "run",
                        "edit": "rewritten", "removed": 1, "added": 1, "lines": ["-make", "+remake"],
                    },
                    { "part": "artifact", "name": "x", "edit": "removed", "from": "x" },
                    { "part": "itself", "member": "timeout", "edit": "changed", "from": "1h", "to": "2h" },
                ],
            },
            { "scan": "b", "fate": "added" },
        ],
    });
    assert_eq!(serde_json::to_value(&difference).unwrap(), expected);
}

/// With `renamed_from`, more than the name may differ.
#[test]
fn a_scan_with_its_former_name_is_renamed() {
    check(
        "scans:
  old: {on: {dispatch: {}}, steps: [{run: make}]}
  other: {on: {dispatch: {}}, steps: [{run: make}]}
",
        "scans:
  new: {renamed_from: old, on: {dispatch: {}}, steps: [{run: make more}], timeout: 1h}
  another: {on: {dispatch: {}}, steps: [{run: make}]}
",
        "scan `new` is `old` renamed, and keeps its results: step 1: run 1 line removed, 1 added; timeout `1h` added
    -make
    +make more
scan `another` looks like `other` renamed, but starts without its results unless it has `renamed_from: other`",
    );
    check(
        "scans: {new: {renamed_from: old, on: {dispatch: {}}, steps: [{run: make}]}}",
        "scans: {new: {on: {dispatch: {}}, steps: [{run: make}]}}",
        "scan `new`: renamed_from `old` removed",
    );
    // A misspelled former name.
    check(
        "scans: {old: {on: {dispatch: {}}, steps: [{run: make}]}}",
        "scans: {new: {renamed_from: odl, on: {dispatch: {}}, steps: [{run: make}], timeout: 1h}}",
        "scan `new` looks like `old` renamed, but starts without its results unless it has `renamed_from: old`: timeout `1h` added",
    );
}
