//! The settings of the configuration file for access to a private repository.

use std::fs;
use std::path::{Path, PathBuf};

use reconciler::{Access, Location, Login, TokenSource, Username};

pub(super) struct FileAccess {
    pub(super) token_file: Option<PathBuf>,
    pub(super) token_command: Option<Vec<String>>,
    pub(super) username: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
}

impl FileAccess {
    /// Checks the keys. Files may be missing, because they are read at each attempt. Relative paths are relative to `base`.
    pub(super) fn check(self, location: &Location, base: &Path) -> Result<Access, String> {
        let named = [
            ("token_file", self.token_file.is_some()),
            ("token_command", self.token_command.is_some()),
            ("username", self.username.is_some()),
            ("ca_file", self.ca_file.is_some()),
        ];
        let is_https = matches!(location, Location::Remote(url) if url.is_https());
        if !is_https && let Some((key, _)) = named.iter().find(|(_, is_named)| *is_named) {
            return Err(format!(
                "{key}: is for https:// only, and this is {location}"
            ));
        }
        let token = match (self.token_file, self.token_command) {
            (Some(_), Some(_)) => {
                return Err("token_file and token_command: name one of them".to_owned());
            }
            (Some(path), None) => Some(TokenSource::File(absolute("token_file", base, &path)?)),
            (None, Some(words)) => Some(command(words, base)?),
            (None, None) => None,
        };
        let username = self
            .username
            .map(|text| Username::parse(&text).map_err(|error| format!("username: {error}")))
            .transpose()?;
        let login = match (token, username) {
            (Some(token), username) => Some(Login {
                username: username.unwrap_or_default(),
                token,
            }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(
                    "username: there is no token for it\nhint: name one with `token_file` or `token_command`"
                        .to_owned(),
                );
            }
        };
        let ca_file = self.ca_file.map(|path| absolute("ca_file", base, &path));
        Ok(Access {
            login,
            ca_file: ca_file.transpose()?,
        })
    }
}

/// Refuses a token inside the state folder, because copies of the state must not contain it.
pub(super) fn check_place(access: &Access, state: &Path) -> Result<(), String> {
    let Some(TokenSource::File(path)) = access.login.as_ref().map(|login| &login.token) else {
        return Ok(());
    };
    // A path that does not exist yet is not inside the state folder.
    let place = fs::canonicalize(path);
    let state = fs::canonicalize(state);
    if let (Ok(place), Ok(state)) = (place, state)
        && place.starts_with(state)
    {
        return Err(format!(
            "token_file: {} lies in the state folder, and every copy of the state would hold it\nhint: move it elsewhere",
            path.display()
        ));
    }
    Ok(())
}

/// A program without a slash in its name is searched in the daemon's `PATH`.
fn command(words: Vec<String>, base: &Path) -> Result<TokenSource, String> {
    let mut words = words.into_iter();
    let program = match words.next() {
        Some(program) if !program.is_empty() => program,
        Some(_) | None => {
            return Err(
                "token_command: names no program\nhint: write a list of words, as in [gh, auth, token]"
                    .to_owned(),
            );
        }
    };
    let program = match program.contains('/') {
        true => absolute("token_command", base, Path::new(&program))?
            .to_string_lossy()
            .into_owned(),
        false => program,
    };
    Ok(TokenSource::Command {
        program,
        arguments: words.collect(),
    })
}

fn absolute(key: &str, base: &Path, path: &Path) -> Result<PathBuf, String> {
    let path = base.join(path);
    std::path::absolute(&path).map_err(|error| format!("{key}: {}: {error}", path.display()))
}
