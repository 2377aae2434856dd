//! From when until when an X.509 certificate is valid (RFC 5280), without a parser for the rest of it.

use chrono::{DateTime, NaiveDateTime, Utc};

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first and the last moment at which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// `None` if the bytes are no certificate.
pub(crate) fn validity(mut certificate: &[u8]) -> Option<Validity> {
    let (_, mut certificate) = value(&mut certificate)?;
    let (_, mut signed) = value(&mut certificate)?;
    if value(&mut signed)?.0 == VERSION {
        let _serial_number = value(&mut signed)?;
    }
    let _signature_algorithm = value(&mut signed)?;
    let _issuer = value(&mut signed)?;
    let (_, mut validity) = value(&mut signed)?;
    Some(Validity {
        from: time(&mut validity)?,
        until: time(&mut validity)?,
    })
}

fn time(bytes: &mut &[u8]) -> Option<DateTime<Utc>> {
    let (tag, time) = value(bytes)?;
    let time = str::from_utf8(time).ok()?;
    let time = match tag {
        UTC_TIME if time < "50" => format!("20{time}"),
        UTC_TIME => format!("19{time}"),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    let time = NaiveDateTime::parse_from_str(&time, "%Y%m%d%H%M%SZ").ok()?;
    Some(time.and_utc())
}

/// Takes the first DER value of the bytes: its tag and its content.
fn value<'b>(bytes: &mut &'b [u8]) -> Option<(u8, &'b [u8])> {
    let (&[tag, length], rest) = bytes.split_first_chunk()?;
    // A long length has its number of bytes first.
    let (long, rest) = match length {
        0x81..=0x84 => rest.split_at_checked(usize::from(length - 0x80))?,
        _ => ([].as_slice(), rest),
    };
    let length = match long {
        [] => usize::from(length),
        long => long
            .iter()
            .fold(0, |sum, byte| (sum << 8) | usize::from(*byte)),
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_times_of_a_certificate_are_read_and_no_other_bytes_are() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        // The form of a time changes with the year 2050.
        for (year, expected) in [
            (1975, "1975-03-01T00:00:00+00:00"),
            (2026, "2026-03-01T00:00:00+00:00"),
            (2049, "2049-03-01T00:00:00+00:00"),
            (2050, "2050-03-01T00:00:00+00:00"),
            (9999, "9999-03-01T00:00:00+00:00"),
        ] {
            params.not_before = date_time_ymd(year, 2, 1);
            params.not_after = date_time_ymd(year, 3, 1);
            let certificate = params.self_signed(&key).unwrap();
            let der = certificate.der();
            let found = validity(der).unwrap();
            assert_eq!(found.until.to_rfc3339(), expected);
            assert_eq!((found.until - found.from).num_days(), 28);
            for end in 0..der.len() {
                assert_eq!(validity(&der[..end]), None);
            }
        }
        for damaged in [&[0x30, 0x80, 0, 0][..], &[0x30, 0x84, 255, 255, 255, 255]] {
            assert_eq!(validity(damaged), None);
        }
    }
}
