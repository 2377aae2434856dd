//! Hints for cron syntax of other programs that [`Cron`](super::Cron) does not support.

use super::field::{self, DAY, MONTH, WEEKDAY};

/// What to write instead of this part of a field.
pub(super) fn hint(field: &str, part: &str) -> Option<&'static str> {
    if part == "?" {
        return Some("write `*`");
    }
    if is_hash(part) {
        return Some("times are not spread by a hash; choose a number, as in `7` or `2/5`");
    }
    if field == DAY.name {
        of_days(part)
    } else if field == WEEKDAY.name {
        of_weekdays(part)
    } else if field == MONTH.name {
        of_names(part)
    } else {
        None
    }
}

fn of_days(part: &str) -> Option<&'static str> {
    if is_behind_number(part, 'W') || part.eq_ignore_ascii_case("LW") {
        return Some(
            "there is no way to write the nearest working day; `1-5` as day of week is Monday to Friday",
        );
    }
    is_from_the_end(part).then_some(
        "there is no way to write the last day of a month; the first day of the next is `1`",
    )
}

fn of_weekdays(part: &str) -> Option<&'static str> {
    if part.contains('#') {
        return Some(
            "there is no way to write the nth such day of a month; let a script check the date",
        );
    }
    if is_from_the_end(part) {
        return Some(
            "there is no way to write the last such day of a month; let a script check the date",
        );
    }
    of_names(part)
}

fn of_names(part: &str) -> Option<&'static str> {
    let is_name = part.chars().any(char::is_alphabetic) && !is_from_the_end(part);
    is_name.then_some("write months and days of the week as numbers; 0 and 7 are Sunday")
}

/// Jenkins' `H`, `H/5` and `H(0-29)`.
fn is_hash(part: &str) -> bool {
    let rest = part.strip_prefix('H');
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '(']))
}

/// Quartz' `L`, `5L` and `L-3`.
fn is_from_the_end(part: &str) -> bool {
    let offset = part.strip_prefix("L-").or(part.strip_prefix("l-"));
    is_behind_number(part, 'L') || offset.is_some_and(field::is_number)
}

/// Whether the text is this letter, alone or after a number.
fn is_behind_number(part: &str, letter: char) -> bool {
    let number = part.strip_suffix([letter, letter.to_ascii_lowercase()]);
    number.is_some_and(|number| number.is_empty() || field::is_number(number))
}

#[cfg(test)]
mod tests {
    use super::super::field::{HOUR, MINUTE};
    use super::*;

    #[test]
    fn each_field_has_the_hints_that_fit_there() {
        for (field, part, hinted) in [
            (
                DAY,
                "L-3",
                Some("there is no way to write the last day of a month"),
            ),
            (
                DAY,
                "l",
                Some("there is no way to write the last day of a month"),
            ),
            (
                DAY,
                "LW",
                Some("there is no way to write the nearest working day"),
            ),
            (DAY, "JAN", None),
            (DAY, "1#2", None),
            (
                WEEKDAY,
                "L",
                Some("there is no way to write the last such day"),
            ),
            (
                WEEKDAY,
                "L-3",
                Some("there is no way to write the last such day"),
            ),
            (
                WEEKDAY,
                "5#2",
                Some("there is no way to write the nth such day"),
            ),
            (WEEKDAY, "MON-FRI", Some("write months and days")),
            (MONTH, "jul", Some("write months and days")),
            (MONTH, "L", None),
            (MONTH, "L-3", None),
            (MONTH, "H", Some("times are not spread")),
            (MINUTE, "H", Some("times are not spread")),
            (MINUTE, "H/5", Some("times are not spread")),
            (HOUR, "H(0-7)/2", Some("times are not spread")),
            (HOUR, "HH", None),
            (MINUTE, "L-3", None),
            (MINUTE, "L", None),
            (MINUTE, "5W", None),
            (MINUTE, "noon", None),
            (HOUR, "?", Some("write `*`")),
        ] {
            let hint = hint(field.name, part);
            assert_eq!(hint.is_some(), hinted.is_some(), "{} {part}", field.name);
            let is_it = hint
                .zip(hinted)
                .is_none_or(|(hint, start)| hint.starts_with(start));
            assert!(is_it, "{} {part}: {hint:?}", field.name);
        }
    }
}
