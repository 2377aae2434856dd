//! The sizes of pages and assets.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ui::assets::ASSETS;

use crate::values::visit;
use crate::{PLAIN, all, lists};

fn packed(bytes: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all").len()
}

#[test]
fn the_sheet_is_small() {
    let sheet = ASSETS
        .iter()
        .find(|asset| asset.name == "everscan.css")
        .unwrap();
    assert!(
        sheet.bytes.len() <= 24 * 1_024,
        "{} bytes",
        sheet.bytes.len()
    );
    assert!(
        packed(&sheet.bytes) <= 6 * 1_024,
        "{} bytes packed",
        packed(&sheet.bytes)
    );
}

#[test]
fn the_modules_are_small() {
    let modules = ASSETS.iter().filter(|asset| asset.name.ends_with(".js"));
    let sizes: Vec<_> = modules
        .map(|asset| (asset.name, packed(&asset.bytes)))
        .collect();
    let sum: usize = sizes.iter().map(|(_, size)| size).sum();
    assert!(sum <= 9 * 1_024, "{sum} bytes: {sizes:?}");
}

#[test]
fn every_page_is_small() {
    let mut pages = all::all(PLAIN);
    let licences: Vec<_> = ui::licences().collect();
    pages.push((
        "about with all licences",
        lists::about(PLAIN, &visit(PLAIN), &licences).into_string(),
    ));
    for (name, page) in pages {
        let size = packed(page.as_bytes());
        assert!(size <= 12 * 1_024, "{name} has {size} bytes packed");
    }
}
