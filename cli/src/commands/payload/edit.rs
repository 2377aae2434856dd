//! `everscan payload edit`

use std::io::Write;
use std::path::Path;

use client::{Client, Expected};
use wire::{Payload, PayloadGroup};

use crate::error::Error;
use crate::limits;
use crate::reading::read_bytes;

/// Stores a version from a file, or the newest version after $EDITOR has changed it.
pub(super) async fn edit(
    client: &Client,
    group: &PayloadGroup,
    name: &str,
    file: Option<&Path>,
    media_type: Option<String>,
) -> Result<Payload, Error> {
    let detail = client.payload_group(group.id).await?;
    let mut known = detail.payloads.into_iter().filter(|it| it.name == name);
    let known = known.next().ok_or_else(|| Error::Missing {
        what: format!("the group has no payload `{name}`"),
        hint: "`everscan payload create` adds it".to_owned(),
    })?;
    let (version, body) = match file {
        Some(file) => (known.version, read_bytes(file, limits::PAYLOAD_FILE)?),
        None => {
            let (version, body) = client.payload(group.id, name, None).await?;
            (version, edited(name, &body)?)
        }
    };
    // Who edits a version replaces only that one.
    let expected = Expected::Version(version);
    let media_type = media_type.unwrap_or(known.media_type);
    let store = client.store_payload(group.id, name, body, &media_type, expected);
    Ok(store.await?)
}

/// The body as the person leaves it. The file has the name of the payload, so that an editor knows its kind.
fn edited(name: &str, body: &[u8]) -> Result<Vec<u8>, Error> {
    let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
    let editor = editor.map_err(|_| Error::Usage {
        what: "no editor is set".to_owned(),
        hint: "set $EDITOR, or name a file with the new version",
    })?;
    let folder = tempfile::tempdir().map_err(Error::writing(&std::env::temp_dir()))?;
    let path = folder.path().join(name);
    let written = open_new(&path).and_then(|mut file| file.write_all(body));
    written.map_err(Error::writing(&path))?;
    // As Git does: the variable may have arguments.
    let status = editor_command(&editor).arg(&path).status();
    match status {
        Ok(status) if status.success() => read_bytes(&path, limits::PAYLOAD_FILE),
        Ok(_) | Err(_) => Err(Error::Usage {
            what: format!("the editor `{editor}` has failed; nothing is stored"),
            hint: "set $EDITOR, or name a file with the new version",
        }),
    }
}

fn open_new(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(path)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the editor of the person who runs this command"
)]
fn editor_command(editor: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), "editor"]);
    command
}
