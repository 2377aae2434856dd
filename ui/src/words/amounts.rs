//! Numbers for people.

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun in singular or plural.
pub fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", grouped(number))
}

/// The number of entries on a page of a list.
pub fn hits(shown: usize, has_more: bool) -> String {
    let shown = grouped(shown as u64);
    if has_more {
        format!("{shown} shown, more follow")
    } else {
        shown
    }
}

/// A size in the largest unit in which it is at least 1. Below 10 it has one decimal.
pub fn bytes(size: u64) -> String {
    const UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if size < 1_024 {
        return format!("{size} B");
    }
    let mut unit = 1_024_u128;
    let mut names = UNITS.iter();
    let mut name = names.next();
    while let Some(next) = names.as_slice().first()
        && u128::from(size) >= unit * 1_024
    {
        unit *= 1_024;
        name = Some(next);
        names.next();
    }
    let name = name.copied().unwrap_or_default();
    // Rounded tenths of the unit.
    let tenths = (u128::from(size) * 10 + unit / 2) / unit;
    if tenths < 100 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", tenths / 10)
    }
}

/// A part of a whole in percent, at most 100.
pub fn percent_of(part: u64, whole: u64) -> u64 {
    let part = u128::from(part.min(whole)) * 100;
    let percent = part.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(percent).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let text = [0, 999, 1_000, 18_204, 1_000_000].map(grouped);
        assert_eq!(text, ["0", "999", "1,000", "18,204", "1,000,000"]);
    }

    #[test]
    fn nouns_fit_their_numbers() {
        assert_eq!(count(1, "job", "jobs"), "1 job");
        assert_eq!(count(0, "job", "jobs"), "0 jobs");
    }

    #[test]
    fn sizes_have_two_digits_or_more() {
        let text = [
            0,
            1_023,
            1_024,
            1_536,
            10_240,
            1_048_575,
            1_258_291,
            u64::MAX,
        ]
        .map(bytes);
        assert_eq!(
            text,
            [
                "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 KiB", "1024 KiB", "1.2 MiB", "16 EiB"
            ]
        );
    }

    #[test]
    fn a_part_is_at_most_the_whole() {
        assert_eq!(percent_of(1, 3), 33);
        assert_eq!(percent_of(9, 3), 100);
        assert_eq!(percent_of(1, 0), 0);
    }
}
