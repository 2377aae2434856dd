//! The program `everscan-runner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::main(std::env::args_os().collect())
}
