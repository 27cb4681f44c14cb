//! The unguessable part of a public address. It names its account, so that a service finds the record's account, and
//! carries 128 random bits, so that nobody can guess it. The service stores the secret, or a hash of it, with the
//! record.
//!
//! The handler of a public rpc follows its link first:
//!
//! ```text
//! async fn show_page(&self, request: Request<ShowPageRequest>) -> Result<Response<HttpBody>, Status> {
//!     let (call, link) = self.db.follow(Call::open(request)?, |request| &request.token).await?;
//!     let (context, input) = call.valid()?;
//!     let page = store::find(connection, context.account_id(), &link.secret).await?.ok_or_else(unknown_link)?;
//!     …
//! }
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis_base::{AccountId, Error};
use proto::api::Problem;
use uuid::Uuid;

/// The number of characters of a link as text.
pub const LENGTH: usize = 43;

/// The two parts of a link. The account is only a claim until a record with this secret has been found in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub account: AccountId,
    pub secret: [u8; 16],
}

impl Link {
    /// A new link of an account.
    pub fn random(account: AccountId) -> Self {
        Self { account, secret: rand::random() }
    }

    /// 43 characters that need no escape in a path: the 16 bytes of the account, then the secret.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode([*self.account.uuid().as_bytes(), self.secret].concat())
    }

    /// `None` for a text that [`encode`](Self::encode) does not produce.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != LENGTH {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (account, secret) = bytes.split_first_chunk::<16>()?;
        let account = AccountId::trust(Uuid::from_bytes(*account));
        Some(Self { account, secret: secret.try_into().ok()? })
    }
}

/// Leaves out the secret, which is all that a caller needs for access.
impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("account", &self.account).finish_non_exhaustive()
    }
}

/// The error for every link that leads nowhere. It is the same for every reason, so that it reveals nothing.
pub fn unknown_link() -> Error {
    Error::problem(Problem::NotFound, "There is nothing at this address. Check that the link is complete.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let link = Link::random(AccountId::trust(Uuid::from_u128(u128::MAX - 7)));
        let text = link.encode();
        assert_eq!(text.len(), LENGTH);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(Link::parse(&text), Some(link));
        assert_ne!(Link::random(link.account), link);
    }

    #[test]
    fn no_other_text_is_a_link() {
        let text = Link { account: AccountId::trust(Uuid::nil()), secret: [0; 16] }.encode();
        assert_eq!(text, "A".repeat(LENGTH));
        // The last character has two unused bits, which must be 0, so that a link has exactly one text.
        for wrong in [
            "",
            "A",
            &"A".repeat(42),
            &"A".repeat(44),
            &("A".repeat(42) + "B"),
            &("A".repeat(42) + "="),
            &("A".repeat(41) + "é"),
        ] {
            assert_eq!(Link::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_log_line_does_not_show_the_secret() {
        let link = Link { account: AccountId::trust(Uuid::nil()), secret: [77; 16] };
        assert!(!format!("{link:?}").contains("77"));
    }
}
