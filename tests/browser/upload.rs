//! Files that are dropped on the card of the blobs page are stored, one after the other.

use crate::browser::Browser;
use crate::support::World;

const WORKFLOW: &str = "scans: { one: { on: { dispatch: {} }, steps: [ { run: echo } ] } }\n";

/// Simulates dropping two files on a heading.
const DROP: &str = "const dataTransfer = new DataTransfer();
    for (const name of ['one word.txt', 'two.txt']) dataTransfer.items.add(new File([`of ${name}`], name));
    const event = (kind) => new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
    const heading = document.getElementById('upload-title');
    return !heading.dispatchEvent(event('dragover')) && !heading.dispatchEvent(event('drop'));";

#[test]
fn dropped_files_are_stored() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::with_workflow("one.yaml", WORKFLOW);
    browser.sign_in(&world);
    browser.open(&world, "/blobs?project=main&prefix=lists%2F");
    browser.until("the files are taken", DROP, vec![]);
    browser.click("form[data-upload] button[type=submit]");
    for name in ["one word.txt", "two.txt"] {
        browser.shows(".rows", name);
        let path = format!("lists/{name}");
        assert_eq!(
            world.everscan(&["blob", "cat", &path]),
            format!("of {name}")
        );
    }
}
