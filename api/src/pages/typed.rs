//! The fields of a submitted form.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use wire::ErrorCode;

use crate::failure::Failure;
use crate::request::Request;

#[derive(Default)]
pub(super) struct Typed(Vec<(String, String)>);

impl Typed {
    pub(super) async fn read(request: &mut Request) -> Result<Self, Failure> {
        let kind = request.header(CONTENT_TYPE).unwrap_or("");
        let essence = kind.split(';').next().unwrap_or("").trim();
        let is_form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        let bytes = request.body.bytes().await?;
        if bytes.is_empty() || is_form {
            return Ok(Self::parse(&bytes));
        }
        Err(Failure::new(
            ErrorCode::UnsupportedMediaType,
            "this takes a form",
        ))
    }

    fn parse(bytes: &[u8]) -> Self {
        // Browsers end lines with CR LF, but workflows and jobs expect LF.
        let text = |text: Cow<'_, str>| text.replace("\r\n", "\n");
        let pairs = form_urlencoded::parse(bytes);
        Self(
            pairs
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
        )
    }

    /// The last value of a field: a checkbox sends `false` before its `true`.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut newest_first = self.0.iter().rev();
        let (_, value) = newest_first.find(|(found, _)| found == name)?;
        Some(value)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let fields = self.0.iter().filter(move |(found, _)| found == name);
        fields.map(|(_, value)| value.as_str())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// All fields but `secret`. Several values of a field are separated by spaces.
    pub(super) fn kept(&self) -> BTreeMap<String, String> {
        let mut kept = BTreeMap::new();
        for (name, value) in self.0.iter().filter(|(name, _)| name != "secret") {
            let more = |before: &mut String| *before += &format!(" {value}");
            let field = kept.entry(name.clone()).and_modify(more);
            field.or_insert_with(|| value.clone());
        }
        kept
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.get("idempotency_key").filter(|key| !key.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_decoded_and_the_last_value_counts() {
        let typed = Typed::parse(b"a=1+2&b=%0D%0Ax%3D%26&a=%C3%A9&c&=d&&idempotency_key=k");
        assert_eq!(typed.get("a"), Some("é"));
        assert_eq!(typed.all("a").collect::<Vec<_>>(), ["1 2", "é"]);
        assert_eq!(typed.text("b"), "\nx=&");
        assert_eq!(typed.get("c"), Some(""));
        assert_eq!(typed.get("d"), None);
        assert_eq!(typed.key(), Some("k"));
    }

    #[test]
    fn any_bytes_are_a_form() {
        for bytes in [&b"%"[..], b"%zz=%f", b"\xff=\xfe", b"==&=&="] {
            drop(Typed::parse(bytes));
        }
    }
}
