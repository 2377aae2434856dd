//! The accept loop of every listener, for HTTP/1.1 with or without TLS. It limits connections, heads and the drain. It serves any
//! hyper service and does not depend on routes.
//!
//! Each request has its [`Connection`] as an extension.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests write certificates")
)]

mod accept;
mod addresses;
mod limits;
mod tls;
mod validity;

pub use accept::{Bounds, Connection, Stop, serve};
pub use addresses::{Cidr, network};
pub use tls::{ServerTls, Tls, TlsError, TlsFiles};
