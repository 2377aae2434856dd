//! The program `everscand`, which is also the other two programs when it is called by their names.

use std::process::ExitCode;

fn main() -> ExitCode {
    daemon::main(std::env::args_os().collect())
}
