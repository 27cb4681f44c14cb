//! A public address that expires. It names an account, a record of it and a time of expiry, and is signed with a key
//! derived from the secret of the mesh, so nothing is stored. For a lasting address, see [`Link`](crate::link::Link).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::token::Tokens;

/// Bytes of the truncated signature: 160 bits are too many to guess.
const TAG: usize = 20;
/// The account, the record, the expiry.
const CONTENT: usize = 16 + 16 + 8;

/// The content of a pass. One from [`Pass::read`] is genuine but may have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub account: AccountId,
    pub id: Uuid,
    /// In whole seconds.
    pub until: DateTime<Utc>,
}

impl Pass {
    /// 80 characters that need no escape in a path. A pass is valid only for the `purpose` that it was written for.
    pub fn write(&self, tokens: &Tokens, purpose: &str) -> String {
        let mut content = Vec::with_capacity(CONTENT + TAG);
        content.extend(self.account.uuid().as_bytes());
        content.extend(self.id.as_bytes());
        content.extend(self.until.timestamp().to_be_bytes());
        let tag = tokens.seal(purpose, &content);
        content.extend(tag.iter().take(TAG));
        URL_SAFE_NO_PAD.encode(content)
    }

    /// `None` for a text that the mesh did not sign for this purpose.
    pub fn read(text: &str, tokens: &Tokens, purpose: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == CONTENT + TAG)?;
        let (content, tag) = bytes.split_at(CONTENT);
        if !tokens.is_seal(purpose, content, tag) {
            return None;
        }
        let (account, rest) = content.split_first_chunk::<16>()?;
        let (id, until) = rest.split_first_chunk::<16>()?;
        Some(Self {
            account: AccountId::trust(Uuid::from_bytes(*account)),
            id: Uuid::from_bytes(*id),
            until: DateTime::from_timestamp(i64::from_be_bytes(until.try_into().ok()?), 0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass() -> Pass {
        let until = DateTime::from_timestamp(1_794_744_000, 0).unwrap();
        Pass { account: AccountId::trust(Uuid::from_u128(7)), id: Uuid::from_u128(9), until }
    }

    #[test]
    fn a_pass_is_read_as_it_was_written_also_with_an_older_secret() {
        let text = pass().write(&Tokens::new("secret"), "file");
        assert_eq!(text.len(), 80);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(Pass::read(&text, &Tokens::new("secret"), "file"), Some(pass()));
        assert_eq!(Pass::read(&text, &Tokens::new("newer,secret"), "file"), Some(pass()));
    }

    #[test]
    fn no_other_text_is_a_pass() {
        let tokens = Tokens::new("secret");
        let text = pass().write(&tokens, "file");
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(Pass::read(&changed, &tokens, "file"), None, "{place}");
        }
        for wrong in ["", "A", &text[..79], &format!("{text}A"), &format!("{text}="), &"é".repeat(40)] {
            assert_eq!(Pass::read(wrong, &tokens, "file"), None, "{wrong}");
        }
        assert_eq!(Pass::read(&text, &tokens, "other"), None);
        assert_eq!(Pass::read(&text, &Tokens::new("another"), "file"), None);
    }
}
