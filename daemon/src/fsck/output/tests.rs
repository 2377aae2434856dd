//! The exact output of a check and of a repair.

use state::fsck::Code;
use store::look::Position;
use store::{Epoch, Owner, Seq};

use super::*;

fn finding(code: Code, path: &str, what: &str) -> Finding {
    Finding {
        severity: code.severity(),
        code,
        path: path.to_owned(),
        what: what.to_owned(),
        hint: code.hint(),
    }
}

fn error() -> Finding {
    let path = "workflows/w/scans/s/head.json";
    finding(
        Code::RecordChecksum,
        path,
        "its checksum does not fit its content",
    )
}

fn warning() -> Finding {
    finding(
        Code::Mode,
        "tokens",
        "others than its owner may use it: its mode is 0755",
    )
}

fn note() -> Finding {
    finding(Code::Leftover, "tmp/object-1", "a write never ended")
}

fn checked() -> Checked {
    Checked {
        counts: Counts {
            files: 12,
            bytes: 3_456,
            records: 10,
            jobs: 3,
        },
        position: Position {
            checkpoint: Seq(7),
            last: Seq(9),
            epoch: Epoch::default(),
        },
        user: None,
        unsettled: 0,
    }
}

/// Returns the output and the exit code.
fn output(
    form: OutputForm,
    checked: &Checked,
    is_repair: bool,
    write: impl FnOnce(&mut Output<&mut Vec<u8>>, &mut ProgressLine),
) -> (String, u8) {
    let mut written = Vec::new();
    let mut output = Output::new(form, Path::new("/srv/state"), &mut written);
    write(&mut output, &mut ProgressLine::new());
    let code = output.end(checked, is_repair).unwrap();
    (String::from_utf8(written).unwrap(), code)
}

#[test]
fn a_clean_state() {
    let (text, code) = output(OutputForm::Text, &checked(), false, |_, _| ());
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "checked 12 files with 3456 bytes: 10 records, 3 jobs; the last commit is 9\n\
         clean: 0 errors, 0 warnings, 0 notes\n"
    );
}

#[test]
fn a_state_with_notes_only_is_clean() {
    let (text, code) = output(OutputForm::Text, &checked(), false, |output, line| {
        output.finding(Section::Findings, &note(), line);
    });
    assert_eq!(code, 0);
    assert!(
        text.ends_with("clean: 0 errors, 0 warnings, 1 notes\n"),
        "{text}"
    );
}

#[test]
fn findings_of_a_state_in_use() {
    let user = Owner {
        pid: Some(77),
        host: Some("moon".to_owned()),
        boot: None,
        since: None,
    };
    let checked = Checked {
        user: Some(user),
        unsettled: 2,
        ..checked()
    };
    let (text, code) = output(OutputForm::Text, &checked, false, |output, line| {
        for finding in [error(), warning(), note()] {
            output.finding(Section::Findings, &finding, line);
        }
    });
    assert_eq!(code, 1);
    assert_eq!(
        text,
        "error  workflows/w/scans/s/head.json: its checksum does not fit its content [record_checksum]; bring the file \
         back from a backup, or let `everscand fsck --repair` put it aside\n\
         warning  tokens: others than its owner may use it: its mode is 0755 [mode]; `everscand fsck --repair` corrects it\n\
         note  tmp/object-1: a write never ended [leftover]; `everscand fsck --repair` puts it aside\n\
         checked 12 files with 3456 bytes: 10 records, 3 jobs; the last commit is 9\n\
         the state is in use by process 77 on moon\n\
         2 parts kept changing and were not checked; stop the daemon to check them\n\
         not clean: 1 errors, 1 warnings, 1 notes\n"
    );
}

fn repair(output: &mut Output<&mut Vec<u8>>, line: &mut ProgressLine) {
    output.finding(Section::Findings, &error(), line);
    let path = "workflows/w/scans/s/head.json";
    let repairs = [
        Repair::Lost(Loss {
            first: Seq(3),
            last: Seq(4),
        }),
        Repair::Moved(Moved {
            from: path.to_owned(),
            to: format!("quarantine/{path}"),
        }),
        Repair::Closed {
            path: "tokens".to_owned(),
            mode: "0755".to_owned(),
        },
        Repair::Recounted {
            path: path.to_owned(),
        },
    ];
    for done in &repairs {
        output.repair(done, line);
    }
    output.finding(Section::Left, &note(), line);
}

#[test]
fn a_repair_prints_how_to_undo_it() {
    let (text, code) = output(OutputForm::Text, &checked(), true, repair);
    assert_eq!(code, 0, "the exit code depends on the remaining findings");
    assert_eq!(
        text,
        "error  workflows/w/scans/s/head.json: its checksum does not fit its content [record_checksum]; bring the file \
         back from a backup, or let `everscand fsck --repair` put it aside\n\
         repaired: gave up the changes 3 to 4\n\
         repaired: moved workflows/w/scans/s/head.json to quarantine/workflows/w/scans/s/head.json\n\
         repaired: closed tokens to others than its owner; its mode was 0755\n\
         repaired: rewrote workflows/w/scans/s/head.json\n\
         left: note  tmp/object-1: a write never ended [leftover]; `everscand fsck --repair` puts it aside\n\
         to undo it, while no daemon runs:\n  \
         rm -f '/srv/state/workflows/w/scans/s/head.json'\n  \
         chmod 0755 '/srv/state/tokens'\n  \
         mkdir -p '/srv/state/workflows/w/scans/s' && mv '/srv/state/quarantine/workflows/w/scans/s/head.json' \
         '/srv/state/workflows/w/scans/s/head.json'\n  \
         rm -f '/srv/state/index'/live-*\n\
         checked 12 files with 3456 bytes: 10 records, 3 jobs; the last commit is 9\n\
         clean: 0 errors, 0 warnings, 1 notes\n"
    );
}

#[test]
fn json_output_is_one_object() {
    let (text, code) = output(OutputForm::Json, &checked(), true, repair);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["state"], "/srv/state");
    assert_eq!(json["findings"][0]["code"], "record_checksum");
    assert_eq!(json["left"][0]["severity"], "note");
    assert_eq!(json["repaired"]["repairs"][0]["repair"], "lost");
    assert_eq!(json["repaired"]["undo"].as_array().unwrap().len(), 4);
    let summary = serde_json::json!({
        "clean": true, "errors": 0, "warnings": 0, "notes": 1,
        "looked_at": {"files": 12, "bytes": 3456, "records": 10, "jobs": 3},
        "checkpoint": 7, "last_commit": 9, "epoch": 0, "in_use": false, "unsettled": 0,
    });
    assert_eq!(json["summary"], summary);
}

#[test]
fn control_characters_in_a_path_are_not_printed() {
    let (text, _) = output(OutputForm::Text, &checked(), false, |output, line| {
        let finding = finding(Code::UnknownFile, "a\u{1b}[31m", "not a file of Everscan");
        output.finding(Section::Findings, &finding, line);
    });
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
