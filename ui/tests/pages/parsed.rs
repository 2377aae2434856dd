//! A strict HTML parser for our pages: every attribute must be quoted and every element closed.

/// An element with its attributes.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// The markup between its tags.
    pub(crate) content: String,
    /// The names of its ancestors.
    pub(crate) around: Vec<String>,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name)?;
        Some(&found.1)
    }
}

const VOID: &[&str] = &["meta", "link", "input", "br", "hr", "img", "wbr"];

/// All elements, in the order of the page.
pub(crate) fn elements(page: &str) -> Vec<Element> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("no doctype");
    // The open elements: index in `found`, and the page from the start of their content.
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut found: Vec<Element> = Vec::new();
    while let Some(start) = rest.find('<') {
        let before = &rest[start..];
        rest = &before[1..];
        if let Some(closing) = rest.strip_prefix('/') {
            let end = closing.find('>').expect("a tag without its end");
            let (index, content) = open.pop().expect("an end without its start");
            assert_eq!(found[index].name, closing[..end], "elements overlap");
            found[index].content = content[..content.len() - before.len()].to_owned();
            rest = &closing[end + 1..];
            continue;
        }
        let (mut element, after, is_closed) = start_tag(rest);
        rest = after;
        element.around = open
            .iter()
            .map(|(index, _)| found[*index].name.clone())
            .collect();
        let is_closed = is_closed || VOID.contains(&&*element.name);
        found.push(element);
        if !is_closed {
            open.push((found.len() - 1, after));
        }
    }
    assert!(open.is_empty(), "not closed: {:?}", open.last());
    found
}

/// Parses a start tag: the element, the rest of the text, and true if the tag closes itself.
fn start_tag(text: &str) -> (Element, &str, bool) {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let end = text
        .find(|letter| !is_name(letter))
        .expect("a tag without its end");
    let (name, mut rest) = text.split_at(end);
    assert!(
        !name.is_empty(),
        "not a tag: {}",
        &text[..text.len().min(80)]
    );
    let mut element = Element {
        name: name.to_owned(),
        attributes: Vec::new(),
        content: String::new(),
        around: Vec::new(),
    };
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('>') {
            return (element, after, false);
        }
        // Icons close themselves.
        if let Some(after) = rest.strip_prefix("/>") {
            return (element, after, true);
        }
        let end = rest
            .find(['=', ' ', '>', '/'])
            .expect("an attribute without its end");
        let key = &rest[..end];
        assert!(
            !key.is_empty() && key.chars().all(is_name),
            "not an attribute: {key}"
        );
        rest = &rest[end..];
        let mut value = "";
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let end = quoted.find('"').expect("a quote without its end");
            value = &quoted[..end];
            assert!(!value.contains('<'), "an attribute with markup: {value}");
            rest = &quoted[end + 1..];
        }
        element.attributes.push((key.to_owned(), value.to_owned()));
    }
}
