//! The program `everscand`, which also contains the programs `everscan` and `everscan-runner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    daemon::main(std::env::args_os().collect())
}
