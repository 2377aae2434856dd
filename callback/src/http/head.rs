//! The parts of a request's head, as the sender wrote them.

/// Longest method: the longest registered one has 17 letters.
const METHOD: usize = 32;

/// Parts of a head. All are empty if it does not begin like a request.
#[derive(Default)]
pub(crate) struct Head<'h> {
    pub(crate) method: &'h [u8],
    pub(crate) target: &'h [u8],
    pub(crate) host: &'h [u8],
}

impl<'h> Head<'h> {
    pub(crate) fn read(head: &'h [u8]) -> Self {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let mut words = first.split(|byte| *byte == b' ');
        let method = words.next().unwrap_or_default();
        let is_method = method.iter().all(|it| it.is_ascii_graphic()) && method.len() <= METHOD;
        let Some(target) = words.next().filter(|_| is_method) else {
            return Self::default();
        };
        Self {
            method,
            target,
            host: named(lines, b"host"),
        }
    }
}

/// The first value of a header, or nothing.
pub(crate) fn value<'h>(head: &'h [u8], name: &[u8]) -> &'h [u8] {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    named(lines, name)
}

fn named<'h>(mut lines: impl Iterator<Item = &'h [u8]>, wanted: &[u8]) -> &'h [u8] {
    let found = lines.find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..)?.trim_ascii();
        name.eq_ignore_ascii_case(wanted).then_some(value)
    });
    found.unwrap_or_default()
}

/// The length of a head with the empty line after it, once it has arrived. Empty lines before it belong to it, as for hyper.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let start = bytes
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let mut line = start;
    loop {
        let end = line + bytes.get(line..)?.iter().position(|byte| *byte == b'\n')?;
        if matches!(&bytes[line..end], b"" | b"\r") {
            return Some(end + 1);
        }
        line = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_sent() {
        let head = b"\r\nPoSt /A%20b?c HTTP/1.1\r\nX: host: no\r\nHOST:  Name.Zone:80 \r\nHost: second\r\n\r\n";
        let read = Head::read(head);
        assert_eq!(read.method, b"PoSt");
        assert_eq!(read.target, b"/A%20b?c");
        assert_eq!(read.host, b"Name.Zone:80");
        for other in [
            &b"\n"[..],
            b"\x16\x03 /\nhost: x\n",
            b"GET\nhost: x",
            &[b'A'; 99],
        ] {
            let read = Head::read(other);
            assert!([read.method, read.target, read.host].concat().is_empty());
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        for (bytes, expected) in [
            (&b"GET / HTTP/1.1\r\nhost: x\r\n\r\nbody"[..], Some(27)),
            (b"GET / HTTP/1.1\n\nbody", Some(16)),
            (b"\r\n\r\nGET / HTTP/1.1\r\n\r\nbody", Some(22)),
            (b"GET / HTTP/1.1\r\n", None),
            (b"\r\n\r\n", None),
            (b"", None),
        ] {
            assert_eq!(length(bytes), expected);
        }
    }
}
