use super::*;
use crate::moment::SeededEntropy;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_790_000_000 - 1_790_000_000 % 60 + seconds, 0).unwrap()
}

fn tag(number: u64) -> CallbackTag {
    CallbackTag::random(&mut SeededEntropy::new(number))
}

fn server() -> CallbackId {
    CallbackId::random(&mut SeededEntropy::new(7))
}

#[test]
fn ids_and_tags_are_lower_case_base32() {
    for number in 0..50 {
        let tag = tag(number);
        assert_eq!(tag.to_string().parse(), Ok(tag));
        assert_eq!(serde_json::to_value(tag).unwrap(), tag.as_str());
    }
    let good = server().to_string();
    assert_eq!(good.len(), 16);
    assert_eq!(good.to_uppercase().parse(), Ok(server()));
    for bad in [
        "",
        "abc",
        &good[1..],
        "aaaaaaaaaaaaaaa1",
        "aaaaaaaaaaaaaaaä",
    ] {
        assert!(bad.parse::<CallbackId>().is_err(), "{bad}");
    }
}

/// How many of these hits in one minute are kept, and how many are reported as left out.
fn kept(hits: u64, share: Share) -> (u64, u64) {
    let mut sampling = Sampling::default();
    let keep = |hit| sampling.keep(at(i64::try_from(hit % 60).unwrap()), server(), None, share);
    let kept: Vec<u64> = (0..hits).filter_map(keep).collect();
    (kept.len() as u64, kept.iter().sum())
}

#[test]
fn the_first_hundred_hits_of_a_tag_are_kept_each_minute_and_then_samples() {
    // All hits come in one second, so that the minute does not end.
    let mut sampling = Sampling::default();
    let mut keep = |tag| sampling.keep(at(0), server(), Some(tag), Share::Free);
    let loud: Vec<Option<u64>> = (0..2_000).map(|_| keep(tag(1))).collect();
    assert!(loud[..100].iter().all(|kept| *kept == Some(0)));
    let later = loud[100..].iter().flatten().count();
    assert_eq!(later, 90 + 10);
    assert_eq!(keep(tag(2)), Some(0), "a flood costs others nothing");
    let mut next = |tag| sampling.keep(at(60), server(), Some(tag), Share::Free);
    assert_eq!(next(tag(1)), Some(0), "the last of the flood was a sample");
}

#[test]
fn every_hit_is_kept_or_counted_with_the_next_one() {
    let mut sampling = Sampling::default();
    let mut counted = 0;
    for _ in 0..1_234 {
        let kept = sampling.keep(at(0), server(), None, Share::Free);
        counted += kept.map_or(0, |left_out| left_out + 1);
    }
    let last = sampling.keep(at(60), server(), None, Share::Free).unwrap();
    assert_eq!(counted + last + 1, 1_235);
    sampling.lost(server(), None, 3);
    let next = sampling.keep(at(61), server(), None, Share::Free);
    assert_eq!(
        next,
        Some(4),
        "a hit that could not be recorded is counted too"
    );
}

#[test]
fn tags_that_are_not_hit_any_more_are_forgotten() {
    let mut sampling = Sampling::default();
    for number in 0..200 {
        for _ in 0..11 {
            sampling.keep(at(0), server(), Some(tag(number)), Share::NearlyFull);
        }
    }
    assert_eq!(sampling.tags(), 200);
    let mut next = |seconds| {
        sampling.keep(at(seconds), server(), None, Share::Free);
        sampling.tags()
    };
    assert_eq!(
        next(60),
        201,
        "what was left out is shown with the next hit"
    );
    assert_eq!(next(2 * 3_600), 1);
}

#[test]
fn a_single_hit_is_kept_in_a_flood_of_many_tags() {
    let mut sampling = Sampling::default();
    for hit in 0..6_000 {
        sampling.keep(at(0), server(), Some(tag(hit % 40)), Share::Free);
    }
    let single = sampling.keep(at(0), server(), Some(tag(99)), Share::Free);
    assert_eq!(single, Some(0));
    let loud = sampling.keep(at(0), server(), Some(tag(1)), Share::Free);
    assert_eq!(loud, None);
}

#[test]
fn the_last_tenth_is_for_rare_tags() {
    assert_eq!(kept(9, Share::NearlyFull), (9, 0));
    assert_eq!(kept(500, Share::NearlyFull).0, 10);
    assert_eq!(kept(5, Share::Full), (0, 0));
}

#[test]
fn a_page_ends_when_it_is_full_or_large_and_with_its_day() {
    let mut end = Interactions::default();
    let noon = at(0);
    for _ in 1..INTERACTION_PAGE {
        end.turn_page(noon);
        end.add(noon, 100, 10);
    }
    assert_eq!((end.open_page(), end.lines, end.raw), (1, 0, 0));
    end.add(noon, 100, INTERACTION_RAW_PAGE);
    end.turn_page(noon);
    assert_eq!((end.next, end.lines, end.raw), (2 * INTERACTION_PAGE, 0, 0));
    end.turn_page(noon);
    assert_eq!(end.open_page(), 2, "an empty page does not end");
    end.add(noon, 100, 10);
    let tomorrow = noon + chrono::TimeDelta::days(1);
    end.turn_page(noon - chrono::TimeDelta::days(1));
    assert_eq!(end.open_page(), 2, "a clock that was set back ends nothing");
    end.turn_page(tomorrow);
    assert_eq!(end.open_page(), 3);
    assert_eq!(end.count, INTERACTION_PAGE + 1);
    assert_eq!(
        end.bytes,
        110 * INTERACTION_PAGE + 100 + INTERACTION_RAW_PAGE
    );
}

#[test]
fn texts_of_strangers_are_short_and_steer_nothing() {
    let heard = Heard {
        at: at(0),
        peer: "192.0.2.1:1".parse().unwrap(),
        tag: None,
        request: Request::Http {
            method: "GET".to_owned(),
            target: "/\u{1b}[2J\u{202e}".to_owned(),
            host: "\u{fc}".repeat(100_000),
            head_bytes: 1,
            truncated: false,
            malformed: false,
            tls: false,
            sni: None,
        },
        answer: "200".to_owned(),
        rule: None,
    };
    let shown = heard.shown();
    let [method, target, host, _] = shown.request.texts();
    assert_eq!((method, target), ("GET", "/\u{fffd}[2J\u{fffd}"));
    assert!(host.len() <= INTERACTION_TEXT_BYTES && host.starts_with("\u{fc}\u{fc}"));
}
