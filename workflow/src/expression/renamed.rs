//! Renames scans in the text of an expression.

use std::collections::BTreeMap;

/// The text of an expression after its scans were renamed. `renames` maps old names to new names. A quoted text may be anything, so
/// a name in brackets counts only after `scans`.
pub fn renamed(expression: &str, renames: &BTreeMap<&str, &str>) -> String {
    const SCANS: &str = "scans";
    let mut text = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(at) = rest.find(SCANS) {
        let (before, behind) = rest.split_at(at + SCANS.len());
        text.push_str(before);
        rest = behind;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_part_of_word = before
            .strip_suffix(SCANS)
            .is_some_and(|before| before.ends_with(|c| is_word(c) || c == '.'));
        let opening = [".", "['", "[\""]
            .into_iter()
            .find(|opening| rest.starts_with(opening));
        let Some(opening) = opening.filter(|_| !is_part_of_word) else {
            continue;
        };
        let (opening, behind) = rest.split_at(opening.len());
        let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        text.push_str(opening);
        text.push_str(renames.get(name).unwrap_or(&name));
        rest = behind;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_scans_are_renamed() {
        let renames = BTreeMap::from([("a", "b"), ("b", "c")]);
        for (before, after) in [
            ("scans.a.is_available()", "scans.b.is_available()"),
            (
                "scans['a'][0].id == scans[\"b\"][0].id",
                "scans['b'][0].id == scans[\"c\"][0].id",
            ),
            (
                "scans.aa.has_diff('a') && vars.a == 'a'",
                "scans.aa.has_diff('a') && vars.a == 'a'",
            ),
            ("myscans.a == vars.scans.a", "myscans.a == vars.scans.a"),
            (
                "scans[vars.X].size() > 0 || scans",
                "scans[vars.X].size() > 0 || scans",
            ),
        ] {
            assert_eq!(renamed(before, &renames), after);
        }
    }
}
