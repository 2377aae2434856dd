//! Tables and fields for people. Text from repositories and runners is shown without control characters, so that it
//! cannot steer the terminal.

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::presets::NOTHING;
use uuid::Uuid;

use crate::untrusted::clean;

/// Digits of a job's id in a table. Among 10,000 jobs, the chance that two jobs share these digits is one in a hundred.
const JOB_DIGITS: usize = 8;

pub struct Table(comfy_table::Table);

impl Table {
    pub fn new(headings: &[&str]) -> Self {
        let mut table = plain();
        table.set_header(headings.to_vec());
        Self(table)
    }

    /// Adds a row. Control characters are replaced.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.add_row(cells.map(|cell| clean(&cell)).to_vec());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(mut self) -> String {
        finished(&mut self.0)
    }
}

pub(crate) struct Fields(comfy_table::Table);

impl Fields {
    pub(crate) fn new() -> Self {
        Self(plain())
    }

    pub(crate) fn add(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let name = format!("{name}:");
        self.0.add_row(vec![name, clean(value.as_ref())]);
        self
    }

    pub(crate) fn add_some(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    pub(crate) fn text(mut self) -> String {
        finished(&mut self.0)
    }
}

pub(crate) fn time(time: &DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub(crate) fn time_or_dash(point: Option<&DateTime<Utc>>) -> String {
    point.map_or_else(|| "-".to_owned(), time)
}

/// Ids with commas between them. None for an empty list.
pub(crate) fn ids(ids: &[Uuid]) -> Option<String> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    (!ids.is_empty()).then(|| ids.join(", "))
}

/// A job's id in a table: its last digits. The first digits are the time, so jobs of the same moment share them.
pub(crate) fn short_job(id: &Uuid) -> String {
    let id = id.simple().to_string();
    id.chars().skip(id.len() - JOB_DIGITS).collect()
}

pub(crate) fn short_commit(commit: &str) -> String {
    commit.chars().take(12).collect()
}

pub(crate) fn bytes(count: u64) -> String {
    let mut tenths = u128::from(count) * 10;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if tenths < 10_240 {
            return match unit {
                "B" => format!("{count} B"),
                _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
            };
        }
        tenths /= 1024;
    }
    format!("{}.{} TiB", tenths / 10, tenths % 10)
}

fn plain() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING);
    table
}

fn finished(table: &mut comfy_table::Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["a".to_owned(), "running".to_owned()]);
        table.row(["longer".to_owned(), "ok".to_owned()]);
        assert_eq!(table.text(), "NAME    STATE\na       running\nlonger  ok\n");
    }

    #[test]
    fn bytes_have_a_fitting_unit() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (40 * 1024 * 1024, "40.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = Fields::new().add("a", "x\u{1b}[2Jy\nz").text();
        assert_eq!(text, "a:  x\u{fffd}[2Jy\u{fffd}z\n");
    }
}
