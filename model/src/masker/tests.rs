//! The promises of a masker: no part of a secret is shown, no other text is lost, and the cut into pieces does not
//! matter.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

fn masker(secrets: &[&str]) -> Masker {
    Masker::new(secrets.iter().copied()).unwrap()
}

/// The output for these pieces.
fn streamed(masker: &Masker, pieces: &[&[u8]]) -> String {
    let (mut out, mut stream) = (Vec::new(), masker.stream());
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn secrets_are_hidden_and_other_text_is_unchanged() {
    let check = |secrets: &[&str], text: &str, expected: &str| {
        assert_eq!(
            masker(secrets).mask(text),
            expected,
            "{secrets:?} in {text}"
        );
    };
    check(&[], "hunter2", "hunter2");
    check(
        &["hunter2"],
        "the password is hunter2.",
        "the password is ***.",
    );
    check(&["hunter2"], "hunter hunter1 hunte", "hunter hunter1 hunte");
    check(&["hunter2"], "hunterhunter2", "hunter***");
    check(&["hunter2"], "hunter2hunter2", "***");
    check(&["ab", ""], "abab", "abab");
    check(
        &["pass", "password"],
        "pass password passwor",
        "*** *** ***wor",
    );
    check(&["\n hunter2\n  "], "hunter2", "***");
    check(&["abcd", "cdef"], "xabcdefx", "x***x");
    check(
        &["the first\nthe second\nx"],
        "the second\nthe first x\n",
        "***\n*** x\n",
    );
    check(
        &["grün"],
        "grün gr\\u00fcn gr%C3%BCn gr%c3%bcn",
        "*** *** *** ***",
    );
    check(&["a b/c"], "a+b%2Fc a%20b/c", "*** ***");
    check(&["a\"b\nc"], r#"{"x": "a\"b\nc"}"#, r#"{"x": "***"}"#);
    check(&["it's"], r"echo 'it'\''s'", "echo '***'");
    check(&["it's"], r#"echo 'it'"'"'s'"#, "echo '***'");
    check(&["hunter2"], "68756E74657232 68756e74657232", "*** ***");
    check(
        &["hunter2"],
        "aHVudGVyMg== Basic dTpodW50ZXIy",
        "*** Basic dTp***",
    );
}

#[test]
fn short_lines_of_a_secret_are_shown_and_long_values_are_hidden() {
    let secret = "users:\n- name: ci\n  token: s3cr3t-tok3n\n  \"key\": \"0123 4567\",\ndone\n";
    let masker = masker(&[secret]);
    for (text, expected) in [
        (
            "users: 3 online, all done by ci",
            "users: 3 online, all done by ci",
        ),
        ("it is s3cr3t-tok3n, 0123 4567", "it is ***, ***"),
        ("czNjcjN0LXRvazNu", "***"),
        ("- name: ci", "***"),
        (secret, "***\n"),
    ] {
        assert_eq!(masker.mask(text), expected);
    }
    assert_eq!(short_lines(secret), [1, 2, 5]);
    // Numbers are those of an editor. A line that is long enough may have a value that is not.
    assert_eq!(short_lines("\r\nthe first\r\n\r\nuser-name: ci\r\n"), [4]);
    assert_eq!(short_lines("\npass: ci\n"), [0; 0]);
}

#[test]
fn values_of_variables_are_hidden_alone() {
    let secret = "# prod\nexport TOKEN=\"s3cr3t-tok3n\"\nUSER=ci\nQUJDREVGR0hJ\nSktMTU5PUFE==\n";
    let masker = masker(&[secret]);
    assert_eq!(masker.mask("it is s3cr3t-tok3n of ci"), "it is *** of ci");
    // The last line is base64, and not a variable without a value.
    assert_eq!(short_lines(secret), [1, 3]);
}

#[test]
fn base64_in_lines_of_a_line_is_hidden() {
    let long = format!("key: {}", "0123456789".repeat(6));
    let encoded = "a2V5OiAwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAx\nMjM0NTY3ODk=\n";
    let two_lines = masker(&[&format!("users:\n{long}")]);
    assert_eq!(two_lines.mask(encoded), "***\n***\n");
}

#[test]
fn base64_in_lines_is_hidden() {
    let secret = "0123456789".repeat(12);
    let encoded = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2\n\
                   Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\nNDU2Nzg5\n";
    assert_eq!(masker(&[&secret]).mask(encoded), "***\n***\n***\n");
}

#[test]
fn a_stream_keeps_only_possible_beginnings_of_secrets() {
    let masker = masker(&["hunter2", "the first\nsecond"]);
    let (mut out, mut stream) = (Vec::new(), masker.stream());
    let mut push = |piece: &str| {
        out.clear();
        stream.push(piece.as_bytes(), &mut out);
        String::from_utf8(out.clone()).unwrap()
    };
    assert_eq!(push("a line\n"), "a line\n");
    assert_eq!(push("password: hunt"), "password: ");
    assert_eq!(push("er"), "");
    assert_eq!(push("2"), "***");
    assert_eq!(push("\nhunt"), "\n");
    assert_eq!(push("ing\n"), "hunting\n");
    assert_eq!(push("the first\n"), "");
    assert_eq!(push("no\n"), "***\nno\n");
}

#[test]
fn debug_output_shows_no_secret() {
    let masker = masker(&["hunter2"]);
    let mut stream = masker.stream();
    stream.push(b"hunter", &mut Vec::new());
    let shown = format!("{masker:?} {stream:?}");
    assert!(!shown.contains("hunter"), "{shown}");
}

#[test]
fn a_large_set_of_secrets_is_accepted() {
    let secrets: Vec<String> = (0..100_u32)
        .map(|number| format!("{number:03}-{}", "s3cr3t/".repeat(20)))
        .collect();
    let masker = Masker::new(secrets.iter().map(String::as_str)).unwrap();
    assert_eq!(masker.mask(&secrets.concat()), "***");
}

/// Hides every byte of every occurrence of a pattern, found one by one.
fn naive(patterns: &BTreeSet<Vec<u8>>, text: &[u8]) -> Vec<u8> {
    let mut is_hidden = vec![false; text.len()];
    for pattern in patterns {
        for at in 0..text.len() {
            if text[at..].starts_with(pattern) {
                is_hidden[at..at + pattern.len()].fill(true);
            }
        }
    }
    let mut out = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match (is_hidden[at], at > 0 && is_hidden[at - 1]) {
            (false, _) => out.push(*byte),
            (true, false) => out.extend_from_slice(MASK),
            (true, true) => {}
        }
    }
    out
}

#[test]
fn the_cut_into_pieces_does_not_matter_and_no_secret_is_shown() {
    let config = Config {
        cases: 128,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    // Few letters, so that secrets overlap and contain each other.
    let secret = "[abc\n]{3,7}";
    let scene = (
        prop::collection::vec(secret, 1..4),
        prop::collection::vec(prop_oneof![Just(None), (0..4_usize).prop_map(Some)], 0..12),
        "[abc\n]{0,12}",
        prop::collection::vec(1..5_usize, 0..40),
    );
    let outcome = runner.run(&scene, |(secrets, uses, between, cuts)| {
        let masker = Masker::new(secrets.iter().map(String::as_str)).unwrap();
        let text: String = uses
            .iter()
            .map(|one| match one {
                Some(index) => secrets[index % secrets.len()].as_str(),
                None => between.as_str(),
            })
            .collect();
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let whole = masker.mask(&text);
        prop_assert_eq!(&streamed(&masker, &pieces), &whole);
        let mut patterns = BTreeSet::new();
        for secret in &secrets {
            patterns::add(secret, &mut patterns);
        }
        let expected = String::from_utf8(naive(&patterns, text.as_bytes())).unwrap();
        prop_assert_eq!(&whole, &expected);
        for secret in &secrets {
            let core = secret.trim_matches('\n');
            prop_assert!(
                core.len() < 3 || !whole.contains(core),
                "{:?} in {:?}",
                secret,
                whole
            );
        }
        let (mut out, mut stream) = (Vec::new(), masker.stream());
        for piece in pieces {
            stream.push(piece, &mut out);
            let kept = &stream
                .reader
                .as_ref()
                .map_or(&[][..], |reader| &reader.kept);
            let may_begin =
                |pattern: &Vec<u8>| pattern.len() > kept.len() && pattern.starts_with(kept);
            prop_assert!(kept.is_empty() || patterns.iter().any(may_begin));
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
