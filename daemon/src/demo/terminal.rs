//! The output of the demonstration: explanations, commands, and what the commands print.

use std::io::{IsTerminal, Write};

use super::error::DemoError;

pub(crate) struct Terminal {
    colours: bool,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self {
            colours: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    pub(crate) fn explain(&self, text: &str) -> Result<(), DemoError> {
        self.write(&format!("\n{}\n", self.emphasis("1", text)))
    }

    pub(crate) fn command(&self, text: &str) -> Result<(), DemoError> {
        self.write(&format!("{}\n", self.emphasis("36", &format!("$ {text}"))))
    }

    pub(crate) fn output(&self, text: &str) -> Result<(), DemoError> {
        let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
        self.write(&indented)
    }

    fn emphasis(&self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn write(&self, text: &str) -> Result<(), DemoError> {
        let mut stdout = std::io::stdout();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(DemoError::Terminal)
    }
}
