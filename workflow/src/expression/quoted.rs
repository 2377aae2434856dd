//! Finds the end of a CEL string.

/// The place after the string whose quote is at `quote`, in an expression that begins at `from` or before. `None` if
/// the string has no end. Triple quotes end with triple quotes.
pub(crate) fn string_end(bytes: &[u8], from: usize, quote: usize) -> Option<usize> {
    let is_raw = is_raw(bytes, from, quote);
    let mark = *bytes.get(quote)?;
    let width = if bytes.get(quote..quote + 3) == Some(&[mark; 3]) {
        3
    } else {
        1
    };
    let mut at = quote + width;
    loop {
        match *bytes.get(at)? {
            b'\\' if !is_raw => at += 2,
            byte if byte == mark && bytes.get(at..at + width)?.iter().all(|byte| *byte == mark) => {
                return Some(at + width);
            }
            _ => at += 1,
        }
    }
}

/// Whether the string whose quote is at `quote` is a raw string (prefix `r`), without escapes.
fn is_raw(bytes: &[u8], from: usize, quote: usize) -> bool {
    let before = bytes.get(from..quote).unwrap_or_default();
    let prefix = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let prefix = &before[before.len() - prefix..];
    matches!(
        prefix,
        [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R'] | [b'r' | b'R', b'b' | b'B']
    )
}
