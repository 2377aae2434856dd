//! The accept loop of every listener, for HTTP/1.1 with or without TLS. It limits connections, heads and the drain. It serves any
//! hyper service and does not depend on routes.
//!
//! Each request has its [`Connection`] as an extension.

mod accept;
mod addresses;
mod limits;
mod tls;

pub use accept::{Bounds, Connection, Stop, serve};
pub use addresses::{Cidr, network};
pub use tls::{ServerTls, Tls, TlsError, TlsFiles};
