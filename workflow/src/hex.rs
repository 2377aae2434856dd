//! Bytes and digests as lower-case hexadecimal digits.

use sha2::{Digest, Sha256};

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)])
        .collect()
}

/// The bytes of hexadecimal digits, in either case; `None` if the text is anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
    Some(bytes.collect())
}

/// SHA-256 as 64 digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_lower_case_digits() {
        assert_eq!(hex(&[0, 1, 0x9f, 0xa0, 0xff]), "00019fa0ff");
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn only_hexadecimal_digits_are_read_back() {
        assert_eq!(unhex("00019fA0ff"), Some(vec![0, 1, 0x9f, 0xa0, 0xff]));
        for bad in ["0", "0g", "+1", "é"] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
