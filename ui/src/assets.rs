//! The files that pages load: one style sheet, an icon and two scripts. No other tool builds them.
//!
//! Every address contains one hash over all contents, so browsers may cache a file forever.

use std::sync::LazyLock;

#[derive(Debug, PartialEq, Eq)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../assets/", $name))
    };
}

/// The modules of the main script, each after the modules that it imports. They are valid ES modules, and no two of
/// them declare the same top-level name. So they can be joined to one script, which is half as large when compressed
/// and needs one request.
const MODULES: &[&str] = &[
    file!("dom.js"),
    file!("times.js"),
    file!("morph.js"),
    file!("ansi.js"),
    file!("form.js"),
    file!("live.js"),
    file!("log.js"),
    file!("finder.js"),
    file!("keys.js"),
    file!("upload.js"),
    file!("main.js"),
];

pub static ASSETS: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    let asset = |name, content_type, text: &str| Asset {
        name,
        content_type,
        bytes: lean(text).into_bytes(),
    };
    [
        asset("everscan.css", CSS, &tight(file!("everscan.css"))),
        asset("icon.svg", "image/svg+xml", file!("icon.svg")),
        asset("theme.js", JAVASCRIPT, file!("theme.js")),
        asset("main.js", JAVASCRIPT, &close(&joined(MODULES))),
    ]
});

/// The path of all assets, up to the hash.
pub const PREFIX: &str = "/assets/";

static FOLDER: LazyLock<String> = LazyLock::new(|| format!("{PREFIX}{:016x}/", hash(&*ASSETS)));

/// The hash over all contents. It is also the entity tag of each asset.
pub fn version() -> &'static str {
    FOLDER.trim_start_matches(PREFIX).trim_end_matches('/')
}

pub fn link(name: &str) -> String {
    format!("{}{name}", *FOLDER)
}

/// The asset at an address. None for an address with another hash: its page is from another version.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let name = path.strip_prefix(FOLDER.as_str())?;
    ASSETS.iter().find(|asset| asset.name == name)
}

/// Joins modules to one script: removes the imports, each of which is one line, and the word `export`.
fn joined(modules: &[&str]) -> String {
    let lines = modules.iter().flat_map(|module| module.lines());
    lines
        .filter(|line| !line.starts_with("import "))
        .map(|line| line.strip_prefix("export ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes comments and indentation. A comment fills its line, and no string spans lines.
fn lean(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes spaces around braces and operators, and after commas and semicolons. In strings, only selectors have such
/// spaces, and they mean the same without them.
fn close(script: &str) -> String {
    const OPERATORS: [&str; 16] = [
        "=>", "===", "!==", "=", "&&", "||", "??", "?", ":", "+", "-", ">", "<", ">=", "*", "/",
    ];
    let close = |script: String, operator| script.replace(&format!(" {operator} "), operator);
    OPERATORS
        .into_iter()
        .fold(script.to_owned(), close)
        .replace("; }", "}")
        .replace(" {", "{")
        .replace("{ ", "{")
        .replace(" }", "}")
        .replace("if (", "if(")
        .replace("for (", "for(")
        .replace(", ", ",")
        .replace("; ", ";")
}

/// Removes spaces around braces and `>`, and after punctuation. No string in the sheet has them.
fn tight(sheet: &str) -> String {
    sheet
        .replace("; }", "}")
        .replace(" { ", "{")
        .replace(" {", "{")
        .replace("; ", ";")
        .replace(": ", ":")
        .replace(", ", ",")
        .replace(" > ", ">")
}

/// FNV-1a of names and contents. It distinguishes versions, but gives no protection.
fn hash(assets: &[Asset]) -> u64 {
    let parts = assets
        .iter()
        .flat_map(|asset| [asset.name.as_bytes(), &[0], &asset.bytes, &[0]]);
    parts.flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn assets_have_exactly_one_address() {
        for expected in ASSETS.iter() {
            assert_eq!(asset(&link(expected.name)), Some(expected));
        }
        assert_eq!(asset("/assets/0000000000000000/main.js"), None);
        assert_eq!(asset("/assets/main.js"), None);
        assert_eq!(asset(&link("../Cargo.toml")), None);
        assert_eq!(link("main.js"), format!("/assets/{}/main.js", version()));
    }

    #[test]
    fn comments_and_indentation_are_removed() {
        let text = "// why\n  a(1); // end\n\n/** what */\n\tb('//x');\n";
        assert_eq!(lean(text), "a(1); // end\nb('//x');");
    }

    #[test]
    fn unneeded_spaces_are_removed() {
        let text = "const a = (b) => { if (b && c > 1) { d = b ?? -c + 2; } };";
        assert_eq!(close(text), "const a=(b)=>{if(b&&c>1){d=b??-c+2}};");
    }

    #[test]
    fn no_string_in_a_script_has_spaces_around_operators() {
        let script = lean(&joined(MODULES));
        let quoted = script
            .lines()
            .flat_map(|line| line.split('\'').skip(1).step_by(2));
        let texts: Vec<&str> = quoted.collect();
        assert!(texts.len() > 100);
        for text in texts {
            // A selector means the same without spaces.
            let is_selector = text.contains(":is(") || text.contains("input, textarea");
            let plain = if is_selector {
                text.replace(", ", ",")
            } else {
                text.to_owned()
            };
            assert_eq!(close(text), plain);
        }
    }

    #[test]
    fn modules_share_no_top_level_name() {
        let mut names = HashSet::new();
        for line in joined(MODULES).lines() {
            let declared = ["function ", "async function ", "class ", "const ", "let "];
            let Some(rest) = declared.iter().find_map(|word| line.strip_prefix(word)) else {
                continue;
            };
            // In a declaration of several names, some have a value.
            for part in rest.split(';').next().unwrap_or_default().split(", ") {
                let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let end = part
                    .find(|letter| !is_of_name(letter))
                    .unwrap_or(part.len());
                let name = &part[..end];
                assert!(
                    name.is_empty() || names.insert(name.to_owned()),
                    "{name} is declared twice"
                );
                if !line.starts_with("let ") {
                    break;
                }
            }
        }
        assert!(names.len() > 30);
    }

    #[test]
    fn the_hash_depends_on_names_and_contents() {
        let one = |name, bytes: &str| {
            hash(&[Asset {
                name,
                content_type: CSS,
                bytes: Vec::from(bytes),
            }])
        };
        assert_ne!(one("a", "b"), one("ab", ""));
        assert_ne!(one("a", "b"), one("a", "c"));
    }
}
