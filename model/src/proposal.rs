//! Proposes expectations from what a scan has done.

use chrono::TimeDelta;
use workflow::Expect;

use crate::history::HistoryLine;
use crate::job::EndState;

/// Fewer successes say too little.
const LEAST: usize = 5;

/// What 90 of 100 successes have done, with room for a usual change. `lines` are the newest finished jobs of a scan, newest
/// first. None if there are too few successes.
pub fn propose(lines: &[HistoryLine]) -> Option<Expect> {
    let successes: Vec<&HistoryLine> = lines
        .iter()
        .filter(|line| line.state == EndState::Succeeded)
        .collect();
    if successes.len() < LEAST {
        return None;
    }
    let took = successes
        .iter()
        .filter_map(|line| Some(line.finished_at - line.started_at?));
    let waited = successes
        .iter()
        .filter_map(|line| Some(line.started_at? - line.created_at));
    let gaps = successes
        .windows(2)
        .filter_map(|pair| Some(pair.first()?.finished_at - pair.last()?.finished_at));
    let (shortest, longest) = percentiles(took.collect())?;
    let (_, slowest) = percentiles(waited.collect())?;
    let (_, rarest) = percentiles(gaps.collect())?;
    Some(Expect {
        success_every: Some(rounded_up(rarest + longest)),
        starts_within: Some(rounded_up(slowest * 2)),
        at_least: whole_seconds(shortest / 2),
        at_most: Some(rounded_up(longest * 2)),
    })
}

/// The fifth and the ninety-fifth of a hundred.
fn percentiles(mut times: Vec<TimeDelta>) -> Option<(TimeDelta, TimeDelta)> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    Some((*times.get(last * 5 / 100)?, *times.get(last * 95 / 100)?))
}

fn whole_seconds(time: TimeDelta) -> Option<TimeDelta> {
    let seconds = time.num_seconds();
    (seconds > 0).then(|| TimeDelta::seconds(seconds))
}

/// The next time that people write: whole seconds, minutes from a minute on, hours from two hours on.
fn rounded_up(time: TimeDelta) -> TimeDelta {
    let seconds = time.num_seconds().max(0) + 1;
    let unit = match seconds {
        ..60 => 1,
        60..7_200 => 60,
        _ => 3_600,
    };
    TimeDelta::seconds((seconds + unit - 1) / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    fn success(number: u128, took: i64) -> HistoryLine {
        let created_at = crate::Timestamp::UNIX_EPOCH - TimeDelta::days(number as i64);
        let started_at = created_at + TimeDelta::seconds(3);
        HistoryLine {
            created_at,
            started_at: Some(started_at),
            finished_at: started_at + TimeDelta::seconds(took),
            ..line(number, EndState::Succeeded)
        }
    }

    #[test]
    fn a_daily_backup_of_ten_minutes() {
        let mut lines: Vec<HistoryLine> = (0..20).map(|day| success(day, 600)).collect();
        lines.insert(3, line(99, EndState::Failed));
        let proposed = propose(&lines).unwrap();
        assert_eq!(proposed.success_every, Some(TimeDelta::hours(25)));
        assert_eq!(proposed.starts_within, Some(TimeDelta::seconds(7)));
        assert_eq!(proposed.at_least, Some(TimeDelta::minutes(5)));
        assert_eq!(proposed.at_most, Some(TimeDelta::minutes(21)));
    }

    #[test]
    fn too_few_successes_say_nothing_and_the_shortest_have_no_least_time() {
        let lines: Vec<HistoryLine> = (0..5).map(|day| success(day, 1)).collect();
        assert!(propose(&lines[..4]).is_none());
        assert_eq!(propose(&lines).unwrap().at_least, None);
    }
}
