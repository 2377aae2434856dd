# The verbs of this repository. `just` lists them.

_default:
    @just --list --unsorted

# Show the whole path in a temporary folder.
demo:
    cargo run --release --bin everscand -- demo

# Run every test.
test *ARGS:
    cargo test --workspace {{ ARGS }}

# Run the tests of one package.
test-package PACKAGE *ARGS:
    cargo test --package {{ PACKAGE }} {{ ARGS }}

# Take pictures of every page in light, in dark and on a phone: target/pictures.
pictures:
    EVERSCAN_PICTURES="{{ justfile_directory() }}/target/pictures" cargo test --package daemon --test browser every_page

# Take the pictures that the documents show anew: docs/pictures.
pictures-of-docs:
    EVERSCAN_SHOWN_PICTURES="{{ justfile_directory() }}/docs/pictures" cargo test --package daemon --test browser every_page

# Format and lint, as a change must pass it.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format the code.
fmt:
    cargo fmt --all

# Print the figures of the benches.
bench:
    cargo bench --package daemon
    cargo bench --package workflow --bench language
    cargo bench --package ui

# Look at licences, advisories and origins of the dependencies; needs cargo-deny.
deny:
    cargo deny check

# Everything that is checked before a change lands.
ci:
    .ci/run
