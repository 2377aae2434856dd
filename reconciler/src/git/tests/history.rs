//! How a new tip relates to the previous tip.

use super::{read, text};
use crate::git::testing::{Entry, FILE, Fixture};
use crate::git::{CommitId, Relation, limits};

#[test]
fn skipped_commits_are_listed_newest_first() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let old = source.push_text("0");
    let middle: Vec<CommitId> = ["1", "2"].map(|text| source.push_text(text)).to_vec();
    let new = source.push_text("3");
    mirror.fetch(&source.location(), None).unwrap();

    assert_eq!(mirror.relation(&new, &new).unwrap(), Relation::Same);
    assert_eq!(
        mirror.relation(&old, &new).unwrap(),
        Relation::Descendant {
            skipped: vec![middle[1], middle[0]],
            more: false
        }
    );
    assert_eq!(mirror.relation(&new, &old).unwrap(), Relation::Rewritten);
}

#[test]
fn the_list_of_skipped_commits_is_bounded() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let old = source.push_text("old");
    for number in 0..=limits::SKIPPED_COMMITS {
        source.push_text(&number.to_string());
    }
    let new = source.push_text("new");
    mirror.fetch(&source.location(), None).unwrap();
    let Relation::Descendant { skipped, more } = mirror.relation(&old, &new).unwrap() else {
        panic!("the new tip follows the old one");
    };
    assert_eq!((skipped.len(), more), (limits::SKIPPED_COMMITS, true));
}

#[test]
fn a_merge_skips_only_the_merged_commits() {
    let source = Fixture::bare();
    let base = source.push_text("base");
    let old = source.push_text("old");
    let entries: &[Entry<'_>] = &[("workflows/side.yaml", FILE, b"side")];
    let side = source.commit("refs/heads/side", &[base.oid()], entries);
    let new = source.commit("refs/heads/main", &[side.oid(), old.oid()], entries);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    assert_eq!(
        mirror.relation(&old, &new).unwrap(),
        Relation::Descendant {
            skipped: vec![side],
            more: false
        }
    );
}

#[test]
fn a_force_push_rewrites_the_history() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let base = source.push_text("base");
    let old = source.push_text("old");
    mirror.fetch(&source.location(), None).unwrap();

    let entries: &[Entry<'_>] = &[("workflows/a.yaml", FILE, b"new")];
    for parents in [vec![base.oid()], vec![]] {
        let new = source.commit("refs/heads/main", &parents, entries);
        assert_eq!(mirror.fetch(&source.location(), None).unwrap().commit, new);
        assert_eq!(mirror.relation(&old, &new).unwrap(), Relation::Rewritten);
        assert_eq!(text(&read(&mirror, &new), "workflows/a.yaml"), "new");
        assert_eq!(text(&read(&mirror, &old), "workflows/a.yaml"), "old");
    }
}
