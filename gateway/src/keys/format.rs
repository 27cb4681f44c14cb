//! The format of a key: `ba_<public id>_<secret>_<checksum>`, all letters and digits. The credential of an internal team has
//! the same format and begins with `bt_`.

use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};

const KEY: &str = "ba_";
const CREDENTIAL: &str = "bt_";
const PUBLIC_ID_LENGTH: usize = 16;
/// 43 characters out of 62 hold 256 random bits.
const SECRET_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;
/// What the checksum is computed from.
const BODY_LENGTH: usize = KEY.len() + PUBLIC_ID_LENGTH + 1 + SECRET_LENGTH;
const LENGTH: usize = BODY_LENGTH + 1 + CHECKSUM_LENGTH;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key that was just made. The only value that ever holds a whole key of ours.
pub struct NewKey {
    /// The whole key, to be shown once.
    pub text: String,
    pub public_id: String,
    pub secret_hash: [u8; 32],
}

impl NewKey {
    pub fn generate() -> Self {
        Self::with_prefix(KEY)
    }

    /// A credential of an internal team.
    pub fn credential() -> Self {
        Self::with_prefix(CREDENTIAL)
    }

    fn with_prefix(prefix: &str) -> Self {
        let mut random = rand::rng();
        let public_id = Alphanumeric.sample_string(&mut random, PUBLIC_ID_LENGTH);
        let secret = Alphanumeric.sample_string(&mut random, SECRET_LENGTH);
        let mut text = format!("{prefix}{public_id}_{secret}");
        let checksum = checksum(text.as_bytes());
        text.push('_');
        text.extend(checksum.map(char::from));
        Self { text, public_id, secret_hash: hash(&secret) }
    }
}

/// A key as a caller sent it, with the right format and checksum. It has not been looked up yet.
#[derive(Clone, Copy)]
pub struct PresentedKey<'a> {
    pub public_id: &'a str,
    secret: &'a str,
}

impl<'a> PresentedKey<'a> {
    /// `None` when the format or the checksum is wrong: it cannot be a key, and needs no look-up.
    pub fn parse(text: &'a str) -> Option<Self> {
        Self::parse_with_prefix(KEY, text)
    }

    /// The same for the credential of an internal team.
    pub fn parse_credential(text: &'a str) -> Option<Self> {
        Self::parse_with_prefix(CREDENTIAL, text)
    }

    fn parse_with_prefix(prefix: &str, text: &'a str) -> Option<Self> {
        let body = text.get(..BODY_LENGTH).filter(|_| text.len() == LENGTH)?;
        let (public_id, secret) = body.strip_prefix(prefix)?.split_once('_')?;
        let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if public_id.len() != PUBLIC_ID_LENGTH || !is_word(public_id) || !is_word(secret) {
            return None;
        }
        let sent = text.get(BODY_LENGTH..)?.strip_prefix('_')?;
        (sent.as_bytes() == checksum(body.as_bytes())).then_some(Self { public_id, secret })
    }

    pub fn secret_hash(&self) -> [u8; 32] {
        hash(self.secret)
    }
}

/// The public id in a text that is a whole key, a whole credential or a public id.
pub fn public_id_of(key_or_public_id: &str) -> Option<&str> {
    let text = key_or_public_id.trim();
    for prefix in [KEY, CREDENTIAL] {
        if text.starts_with(prefix) {
            return PresentedKey::parse_with_prefix(prefix, text).map(|key| key.public_id);
        }
    }
    let is_public_id =
        text.len() == PUBLIC_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_public_id.then_some(text)
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Detects a mistyped key without a look-up. It is not a protection: anybody can compute it.
fn checksum(body: &[u8]) -> [u8; CHECKSUM_LENGTH] {
    let digest: [u8; 32] = Sha256::digest(body).into();
    let mut number = digest[..8].iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    std::array::from_fn(|_| {
        let digit = DIGITS[usize::try_from(number % 62).unwrap_or_default()];
        number /= 62;
        digit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_new_key_can_be_read_back() {
        let key = NewKey::generate();
        let read = PresentedKey::parse(&key.text).unwrap();
        assert_eq!(key.text.len(), LENGTH);
        assert_eq!(read.public_id, key.public_id);
        assert_eq!(read.secret_hash(), key.secret_hash);
        assert_eq!(public_id_of(&key.text), Some(key.public_id.as_str()));
        assert_eq!(public_id_of(&key.public_id), Some(key.public_id.as_str()));
        assert_ne!(NewKey::generate().text, key.text);
    }

    #[test]
    fn a_credential_is_not_a_key_and_a_key_is_not_a_credential() {
        let (key, credential) = (NewKey::generate(), NewKey::credential());
        assert!(PresentedKey::parse(&credential.text).is_none());
        assert!(PresentedKey::parse_credential(&key.text).is_none());
        let read = PresentedKey::parse_credential(&credential.text).unwrap();
        assert_eq!(read.secret_hash(), credential.secret_hash);
        assert_eq!(public_id_of(&credential.text), Some(credential.public_id.as_str()));
    }

    #[test]
    fn a_changed_character_anywhere_is_refused() {
        let key = NewKey::generate().text;
        for index in 0..key.len() {
            for other in ['0', 'z', '_', ' ', 'é'] {
                let changed: String = key
                    .chars()
                    .enumerate()
                    .map(|(at, have)| if at == index { other } else { have })
                    .collect();
                assert!(changed == key || PresentedKey::parse(&changed).is_none(), "{index} to {other}");
            }
            let mut shorter = key.clone();
            shorter.remove(index);
            assert!(PresentedKey::parse(&shorter).is_none());
        }
        assert!(PresentedKey::parse(&format!("{key}0")).is_none());
    }

    #[test]
    fn something_else_is_not_a_public_id() {
        for wrong in ["", "ba_", "short", "sixteen chars!!!", "ba_aaaaaaaaaaaaaaaa"] {
            assert_eq!(public_id_of(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_a_key_fail_in_another_way(text in ".*") {
            prop_assert!(PresentedKey::parse(&text).is_none());
        }
    }
}
