//! A problem inside an expression points at the exact characters, for every place and spelling of the expression.

use super::problems;
use crate::position::Lines;

/// The characters of the file's only problem.
fn pointed_at(text: &str) -> String {
    let found = problems(text);
    let [problem] = found.as_slice() else {
        panic!("{text}\n{found:?}")
    };
    let lines = Lines::of(text);
    let start = lines.offset(text, problem.line, problem.column);
    let end = lines.offset(text, problem.end_line, problem.end_column);
    text.get(start..end).unwrap().to_owned()
}

/// Files that each have `value` (a whole YAML value) at one of the places where an expression may stand.
fn files(value: &str, template: &str) -> Vec<String> {
    let indented =
        |text: &str, spaces: usize| text.replace('\n', &format!("\n{}", " ".repeat(spaces)));
    vec![
        format!(
            "# ünïcode\nscans:\n  b: {{ on: {{ dispatch: {{}} }}, steps: [ {{ run: ls }} ] }}\n  a:\n    on:\n      expr: {}\n    steps:\n      - run: ls\n",
            indented(value, 8)
        ),
        format!(
            "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: ls ä\n        if: {}\n",
            indented(value, 10)
        ),
        format!(
            "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: ls\n    artifacts:\n      - name: x\n        paths: [x]\n        if: {}\n",
            indented(value, 10)
        ),
        format!(
            "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: {}\n",
            indented(template, 10)
        ),
        format!(
            "env:\n  ONE: {}\nscans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: ls\n",
            indented(template, 4)
        ),
        format!(
            "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    env:\n      AHM: x\n      TWO: {}\n    steps:\n      - run: ls\n",
            indented(template, 8)
        ),
    ]
}

#[test]
fn in_every_place_style_and_line_end() {
    for (value, template) in [
        ("scans.nope.is_available()", "x ${{ scans.nope[0].id }} ä"),
        (
            "vars.A == 'äöü 😀' && scans.nope.is_available()",
            "äöü '😀' ${{ scans.nope[0].id }}",
        ),
        (
            "'vars.A == ''ä'' && scans.nope.is_available()'",
            "'it''s ${{ scans.nope[0].id }}'",
        ),
        (
            r#""vars.A == \"\u00e4\\t\" && scans.nope.is_available()""#,
            r#""\ta \"b\" \u00e4 \U0001F600 ${{ scans.nope[0].id }}""#,
        ),
        (
            "vars.A == 'ä'\n  && scans.nope.is_available()",
            "ä and\n  then\n\n  ${{ scans.nope[0].id }}\n",
        ),
        (
            "\"vars.A == 'ä'\n  && \\\n  scans.nope.is_available()\"",
            "\"ä and\n  then\n\n  ${{ scans.nope[0].id }}\"",
        ),
        (
            "'vars.A == ''ä''\n\n  && scans.nope.is_available()'",
            "'ä and ''\n  then\n\n  ${{ scans.nope[0].id }}'",
        ),
        (
            "|\n  vars.A == 'ä' &&\n    scans.nope.is_available()\n",
            "|\n  ä\n\n    echo ${{ scans.nope[0].id }}\n  end\n",
        ),
        (
            "|-\n\n  vars.A == 'ä' &&\n  scans.nope.is_available()",
            "|2+\n   ä\n  echo ${{ scans.nope[0].id }}\n\n",
        ),
        (
            ">\n  vars.A == 'ä' &&\n  scans.nope.is_available()\n",
            ">\n  ä\n  echo\n\n    more ${{ id }}\n  ${{ scans.nope[0].id }}\n  end\n",
        ),
        (
            ">-\n\n  vars.A == 'ä'\n\n  && scans.nope.is_available()",
            ">+\n  ä\n  ${{\n  scans.nope[0].id\n  }}\n\n",
        ),
    ] {
        for file in files(value, template) {
            assert_eq!(pointed_at(&file), "nope", "{file}");
            assert_eq!(pointed_at(&file.replace('\n', "\r\n")), "nope", "{file}");
            assert_eq!(pointed_at(&format!("\u{feff}{file}")), "nope", "{file}");
        }
    }
}

/// A fault in the middle of an expression, with multi-byte text before and after it.
#[test]
fn each_kind_of_problem_points_at_its_own_characters() {
    for (condition, expected) in [
        ("'ä' == 'ö' && nope", "nope"),
        ("'ä' == 'ö' && vars.A.nope", "nope"),
        ("'ä' == 'ö' && nope('ä')", "nope"),
        ("'ä' == vars.A && vars.A.matches('ä(')", "'ä('"),
        ("'ä' == 'ö' && scans.a-b.is_available()", "a-b"),
        ("'ä' == 'ö' && !scans.a-b-c.is_available()", "a-b-c"),
        ("'ä' == 'ö' && inputs.nope == 'ä'", "nope"),
        ("'ä' == 'ö' && ok == 'ä'", "ok == 'ä'"),
        ("'ä' == 'ö' && secrets == null", "secrets"),
        ("'ä' == 'ö' && scans.a.has_diff('nöpe')", "'nöpe'"),
        ("'ä' + vars.A", "'ä' + vars.A"),
        ("'ä' == 'ö' && && ok", "&&"),
        ("'ä' == vars.A)", ")"),
    ] {
        for quoted in [
            format!("'{}'", condition.replace('\'', "''")),
            format!("\"{condition}\""),
        ] {
            let file = format!(
                "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: ls ä\n        if: {quoted}\n"
            );
            let found = pointed_at(&file).replace("''", "'");
            assert_eq!(found, expected, "{file}");
        }
    }
}

#[test]
fn a_cron_field_is_found_in_a_quoted_text() {
    for value in [
        "'0 99 * * *'",
        "\"0\\t99 * * *\"",
        ">\n  0 99\n  * * *\n",
        "0 99 * * *",
        "[0 3 * * *, '0 99 * * *']",
        "\n- 0 3 * * *\n- >\n  0 99\n  * * *\n",
    ] {
        let value = value.replace('\n', "\n      ");
        let file =
            format!("scans:\n  a:\n    on:\n      cron: {value}\n    steps:\n      - run: ls\n");
        assert_eq!(pointed_at(&file), "99", "{file}");
    }
}
