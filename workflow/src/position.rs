//! Byte offsets, and lines and columns.

/// A half-open range of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

/// Where the lines of a text start.
#[derive(Debug)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        // Editors do not show the byte order mark, so it has no column.
        let first = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let starts = std::iter::once(first)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self { starts }
    }

    /// Line and column, both from 1, with the column in characters. An offset beyond the end means the end.
    pub(crate) fn position(&self, text: &str, offset: usize) -> (u32, u32) {
        let offset = floor_char_boundary(text, offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let column = text
            .get(start..offset)
            .map_or(0, |before| before.chars().count())
            + 1;
        (clamp(line), clamp(column))
    }

    /// The bytes of one line without its end. Empty if the line does not exist.
    pub(crate) fn range(&self, text: &str, line: u32) -> Span {
        Span::new(
            self.offset(text, line, 1),
            self.offset(text, line, u32::MAX),
        )
    }

    /// The byte offset of a line and column. A position outside the text is moved to the nearest position.
    pub(crate) fn offset(&self, text: &str, line: u32, column: u32) -> usize {
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(index).copied() else {
            return text.len();
        };
        let end = self
            .starts
            .get(index + 1)
            .map_or(text.len(), |next| next - 1);
        let column = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
        let content = text.get(start..end).unwrap_or("");
        if content.is_ascii() {
            return start + column.min(content.len());
        }
        start
            + content
                .char_indices()
                .nth(column)
                .map_or(content.len(), |(at, _)| at)
    }
}

/// The last character boundary at or before `offset`, or the end of the text.
pub(crate) fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_positions_are_each_others_inverse() {
        let text = "añb\n\nc\r\nd";
        let lines = Lines::of(text);
        for (offset, _) in text.char_indices() {
            let (line, column) = lines.position(text, offset);
            assert_eq!(lines.offset(text, line, column), offset, "offset {offset}");
        }
        assert_eq!(lines.position(text, 3), (1, 3));
        assert_eq!(lines.position(text, text.len()), (4, 2));
    }

    #[test]
    fn positions_outside_the_text_mean_its_nearest_place() {
        let lines = Lines::of("ab\nc");
        assert_eq!(lines.offset("ab\nc", 1, 99), 2);
        assert_eq!(lines.offset("ab\nc", 9, 1), 4);
        assert_eq!(lines.offset("ab\nc", 0, 0), 0);
        assert_eq!(lines.position("ab\nc", 99), (2, 2));
    }
}
