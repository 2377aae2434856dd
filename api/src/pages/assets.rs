//! The assets that pages load.

use std::collections::HashMap;
use std::io::Write;
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use ui::assets::{ASSETS, PREFIX, version};
use warp::reply::Response;
use wire::ErrorCode;

use crate::failure::{Failure, shorten};
use crate::reply;
use crate::request::Request;

/// The hash of all assets is in each address.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

static SENT: LazyLock<HashMap<&'static str, (Bytes, Bytes)>> = LazyLock::new(|| {
    let both = ASSETS.iter().map(|asset| {
        let plain = Bytes::from_static(&asset.bytes);
        let packed = packed(&plain).unwrap_or_else(|| plain.clone());
        (asset.name, (plain, packed))
    });
    both.collect()
});

fn packed(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    Some(Bytes::from(encoder.finish().ok()?))
}

pub(crate) fn asset(request: &Request) -> Result<Response, Failure> {
    let path = format!("{PREFIX}{}", request.parameters.join("/"));
    let found = ui::assets::asset(&path);
    let found = found.and_then(|asset| Some((asset, SENT.get(asset.name)?)));
    let Some((asset, (plain, packed))) = found else {
        let text = format!("there is no asset {}", shorten(&path));
        return Err(Failure::new(ErrorCode::NotFound, text));
    };
    let is_packed = packed.len() < plain.len() && accepts_gzip(request);
    let etag = match is_packed {
        true => format!("\"{}-gzip\"", version()),
        false => format!("\"{}\"", version()),
    };
    let mut response = if request.has_already(&etag) {
        reply::not_modified(&etag)
    } else {
        let bytes = if is_packed { packed } else { plain };
        let mut response = Response::new(bytes.clone().into());
        reply::set_static(&mut response, CONTENT_TYPE, asset.content_type);
        reply::set(&mut response, ETAG, &etag);
        if is_packed {
            reply::set_static(&mut response, CONTENT_ENCODING, "gzip");
        }
        response
    };
    reply::set_static(&mut response, CACHE_CONTROL, FOR_EVER);
    reply::set_static(&mut response, VARY, "accept-encoding");
    Ok(response)
}

fn accepts_gzip(request: &Request) -> bool {
    let accept = request.header(ACCEPT_ENCODING).unwrap_or("");
    accept.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}
