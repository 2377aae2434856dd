//! Links the runner at a fixed address. Otherwise each start has to write 1.5 MB of addresses, page by page, and every idle
//! runner and supervisor of steps (`src/supervisor.rs`) holds them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
