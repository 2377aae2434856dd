//! Renders any body with any placeholder. No byte outside the placeholders changes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::payload::{Piece, Template, Variable};

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (placeholder, value, body) = input;
    let variable = |name: &str, placeholder: String| Variable {
        name: name.to_owned(),
        placeholder,
        default: None,
    };
    let variables = [
        variable("A", placeholder.to_owned()),
        variable("B", Variable::placeholder_of("B")),
    ];
    if Variable::check(&variables).is_err() {
        return;
    }
    let template = Template::new(body, &variables);
    let (mut written, mut expected) = (Vec::new(), Vec::new());
    for piece in template.pieces() {
        match piece {
            Piece::Text(text) => {
                written.extend_from_slice(text);
                expected.extend_from_slice(text);
            }
            Piece::Placeholder {
                written: placeholder,
                filters,
                ..
            } => {
                written.extend_from_slice(placeholder);
                let filtered = filters.iter().fold(value.to_owned(), |it, filter| filter.apply(&it));
                expected.extend_from_slice(filtered.as_bytes());
            }
        }
    }
    assert_eq!(written, body);
    assert_eq!(template.render(usize::MAX, |_| Some(value)).ok(), Some(expected));
});
