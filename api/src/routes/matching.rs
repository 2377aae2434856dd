//! Finds the route of a request.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Method;

use super::{ROUTES, Route};

#[derive(Debug)]
pub(crate) enum Matched {
    /// A route, with its percent-decoded parameters in order.
    Route(&'static Route, Vec<String>),
    /// The path exists, with other methods.
    OtherMethods(Vec<&'static Method>),
    Nothing,
}

pub(crate) fn find(method: &Method, path: &str) -> Matched {
    let segments = segments(path);
    let mut others = Vec::new();
    // This coerces the lifetime of the keys to the lifetime of the path.
    let areas: &Areas<'_> = &AREAS;
    for route in areas.get(&area(&segments)).into_iter().flatten() {
        if let Some(parameters) = parameters(route.path, &segments) {
            if route.method == *method {
                return Matched::Route(route, parameters);
            }
            others.push(&route.method);
        }
    }
    // HEAD is answered like GET. The server leaves the body out.
    if *method == Method::HEAD && others.contains(&&Method::GET) {
        return find(&Method::GET, path);
    }
    if others.is_empty() {
        Matched::Nothing
    } else {
        Matched::OtherMethods(others)
    }
}

/// The segments of a path. In the address of a page, the name of a workflow is one of them, whatever slashes it has. It ends
/// before the last `-`.
fn segments(path: &str) -> Vec<&str> {
    let Some(below) = path.strip_prefix("/workflows/") else {
        return path.split('/').collect();
    };
    let (name, rest) = below.rsplit_once("/-/").unwrap_or((below, ""));
    let mut segments = vec!["", "workflows", name];
    if !rest.is_empty() {
        segments.push("-");
        segments.extend(rest.split('/'));
    }
    segments
}

/// Whether a path begins like one of the daemon.
pub(crate) fn has_area(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    let areas: &Areas<'_> = &AREAS;
    first == "v0" || !first.is_empty() && areas.contains_key(&(false, first))
}

type Areas<'a> = HashMap<Area<'a>, Vec<&'static Route>>;

/// Whether a path is below `/v0`, and the next segment. This segment is never a parameter, so a path is compared only with the
/// few routes of its area.
type Area<'a> = (bool, &'a str);

static AREAS: LazyLock<Areas<'static>> = LazyLock::new(|| {
    let mut areas = Areas::new();
    for route in ROUTES.iter() {
        let segments: Vec<&str> = route.path.split('/').collect();
        areas.entry(area(&segments)).or_default().push(route);
    }
    areas
});

fn area<'a>(segments: &[&'a str]) -> Area<'a> {
    match segments {
        ["", "v0", area, ..] => (true, area),
        ["", area, ..] => (false, area),
        [..] => (false, ""),
    }
}

/// The parameters of a path, if it matches `pattern`. A test checks that two patterns with the same method never differ only in
/// the names of their parameters.
fn parameters(pattern: &str, path: &[&str]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = path.iter().copied();
    for wanted in pattern.split('/') {
        let segment = rest.next()?;
        if wanted.starts_with("{*") {
            found.push(segment);
            found.extend(rest.by_ref());
        } else if wanted.starts_with('{') && !segment.is_empty() {
            found.push(segment);
        } else if wanted != segment {
            return None;
        }
    }
    if rest.next().is_some() {
        return None;
    }
    let decode = |segment: &str| {
        let decoded = percent_encoding::percent_decode_str(segment);
        Some(decoded.decode_utf8().ok()?.into_owned())
    };
    found.into_iter().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::routes::{Access, LocalRoute, NAMED, PublicRoute, UserRoute};

    #[test]
    fn paths_are_matched_whole_and_decoded() {
        let Matched::Route(route, parameters) = find(
            &Method::POST,
            "/v0/workflows/src%2Fdeep%2Fa/scans/b/dispatch",
        ) else {
            panic!("no route")
        };
        assert!(matches!(route.access, Access::User(UserRoute::Dispatch, _)));
        assert_eq!(parameters, ["src/deep/a", "b"]);
        assert!(matches!(
            find(&Method::GET, "/v0/jobs/x/y/z"),
            Matched::Nothing
        ));
        assert!(matches!(find(&Method::GET, "/v0/jobs/"), Matched::Nothing));
        assert!(
            matches!(find(&Method::PUT, "/v0/jobs"), Matched::OtherMethods(methods) if methods == [&Method::GET])
        );
    }

    #[test]
    fn the_last_divider_ends_the_name_of_a_workflow() {
        for (path, pattern, parameters) in [
            ("/workflows", "/workflows", &[][..]),
            ("/workflows/a/b", "/workflows/{workflow}", &["a/b"]),
            ("/workflows/a/b%20c/-/", "/workflows/{workflow}", &["a/b c"]),
            ("/workflows/a/b/-", "/workflows/{workflow}", &["a/b/-"]),
            (
                "/workflows/a/b/c/-/scans/x",
                "/workflows/{workflow}/-/scans/{scan}",
                &["a/b/c", "x"],
            ),
            (
                "/workflows/s/a/-/scans/-/scans/x",
                "/workflows/{workflow}/-/scans/{scan}",
                &["s/a/-/scans", "x"],
            ),
            (
                "/workflows/s/a/-/revisions/-/",
                "/workflows/{workflow}",
                &["s/a/-/revisions"],
            ),
        ] {
            let Matched::Route(route, found) = find(&Method::GET, path) else {
                panic!("{path}")
            };
            assert_eq!(
                (route.path, &found[..]),
                (
                    pattern,
                    &parameters
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>()[..]
                ),
                "{path}"
            );
        }
        for path in [
            "/workflows/",
            "/workflows//-/scans/x",
            "/workflows/a/b/-/nothing",
        ] {
            assert!(
                matches!(find(&Method::GET, path), Matched::Nothing),
                "{path}"
            );
        }
    }

    #[test]
    fn the_area_of_a_route_is_a_literal() {
        for route in ROUTES.iter() {
            let segments: Vec<&str> = route.path.split('/').collect();
            assert!(!area(&segments).1.starts_with('{'), "{}", route.path);
        }
    }

    #[test]
    fn the_rest_of_a_path_is_decoded_segment_by_segment() {
        let names = |path: &str| match find(&Method::GET, path) {
            Matched::Route(_, parameters) => parameters,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(names("/v0/blobs/a%20b/c%2Fd"), ["a b", "c/d"]);
        assert_eq!(names("/v0/blobs//a/"), ["", "a", ""]);
        assert_eq!(names("/v0/blobs"), [] as [&str; 0]);
    }

    #[test]
    fn all_paths_are_below_v0_and_name_a_job_only_by_its_id() {
        for route in ROUTES.iter() {
            let is_probe = matches!(
                route.access,
                Access::Public(PublicRoute::Healthz | PublicRoute::Readyz)
                    | Access::Local(LocalRoute::Metrics, _)
            );
            let is_of_api = !is_probe && !route.access.is_for_browsers();
            assert_eq!(route.path.starts_with("/v0/"), is_of_api, "{}", route.path);
            if route.path.contains("{job}") || route.path.contains("{artifact}") {
                let after = route
                    .path
                    .trim_start_matches("/v0")
                    .strip_prefix("/jobs/{job}")
                    .unwrap_or_else(|| {
                        panic!("{} names a job by more than its id", route.path);
                    });
                let other = after.replace("{artifact}", "");
                assert!(!other.contains('{'), "{}", route.path);
            }
        }
    }

    #[test]
    fn every_name_belongs_to_one_route_and_routes_for_programs_are_documented() {
        let names: HashSet<String> = ROUTES
            .iter()
            .map(|route| format!("{:?}", route.access))
            .collect();
        assert_eq!(names.len(), ROUTES.len());
        assert_eq!(ROUTES.len(), NAMED);
        for route in ROUTES.iter() {
            let is_described = route.operation.is_some();
            assert_ne!(
                is_described,
                route.access.is_for_browsers(),
                "{}",
                route.path
            );
        }
    }

    #[test]
    fn every_request_matches_at_most_one_route() {
        let mut seen = HashSet::new();
        for route in ROUTES.iter() {
            let shape: Vec<&str> = route
                .path
                .split('/')
                .map(|part| if part.starts_with('{') { "{}" } else { part })
                .collect();
            assert!(
                seen.insert((route.method.clone(), shape)),
                "{} {} stands twice",
                route.method,
                route.path
            );
        }
    }
}
