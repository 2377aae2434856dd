//! The icons that pages and charts refer to with `<use href="#i-…">`. They are part of each page and not a file, because
//! icons of another address cannot take the colours of the page.

use maud::PreEscaped;

/// All icons, invisible.
pub(crate) fn sprite() -> PreEscaped<String> {
    PreEscaped(include_str!("../assets/sprite.svg").lines().collect())
}
