//! Any text as the name of a server, as a tag and as the name of a payload. What is read is written as it is read, and no tag is
//! minted by chance.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::callback::{MintKey, mint, read};
use model::payload::name_and_version;
use model::{CallbackId, CallbackTag, Entropy};

struct Fixed;

impl Entropy for Fixed {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fuzz_target!(|input: (&str, u32, u32)| {
    let (text, number, line) = input;
    if let Ok(id) = text.parse::<CallbackId>() {
        assert_eq!(id.to_string(), text.to_ascii_lowercase());
    }
    if let Some((name, version)) = name_and_version(text) {
        assert!(text.starts_with(name.as_str()));
        assert_eq!(version.is_some(), text.contains('@'));
    }
    let (key, server) = (MintKey::random(&mut Fixed), CallbackId::random(&mut Fixed));
    if let Ok(tag) = text.parse::<CallbackTag>() {
        assert_eq!(tag.to_string(), text.to_ascii_lowercase());
        if let Some((number, line)) = read(&key, server, tag) {
            assert_eq!(mint(&key, server, number, line), Some(tag));
        }
    }
    if let Some(tag) = mint(&key, server, number, line) {
        assert_eq!(read(&key, server, tag), Some((number, line)));
    }
});
