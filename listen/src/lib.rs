//! The accept loop of every listener. It limits connections, in all and by address.
//!
//! [`serve`] serves HTTP/1.1 with or without TLS: any hyper service, independent of routes, with limits of heads and of the drain.
//! Each request has its [`Connection`] as an extension. [`accept`] leaves the connection to the caller.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests write certificates")
)]

mod accept;
mod addresses;
mod limits;
mod tls;
mod validity;

pub use accept::{Bounds, Connection, Stop, accept, serve};
pub use addresses::{Addresses, Cidr, Place, network};
pub use tls::{Certificate, ServerTls, Tls, TlsError, TlsFiles};
pub use validity::Validity;
