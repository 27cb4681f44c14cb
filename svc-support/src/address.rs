//! The addresses of this installation that receive mail. The part before the `@` contains the account, because nothing
//! else in a mail identifies it: `reply+…` is the address of a ticket, `in+…` that of a channel. The encoding uses one
//! case only, because some mail systems change the case. Pure.

use chassis_base::AccountId;
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const REPLY: &str = "reply";
const INBOUND: &str = "in";

/// The part of a ticket's reply address that identifies the ticket. It is long enough that it cannot be guessed.
pub type ReplySecret = [u8; 12];
/// The part of a channel's inbound address that identifies the channel.
pub type InboundKey = [u8; 8];

/// What an address of this installation stands for. Anyone can write such an address, so the account is a claim until
/// it turns out to have that ticket or channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    pub account: AccountId,
    pub target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Ticket(ReplySecret),
    Channel(InboundKey),
}

/// The domain of the addresses. Without a domain there are no addresses.
#[derive(Clone, Debug, Default)]
pub struct OwnDomain(String);

impl OwnDomain {
    pub fn new(domain: &str) -> Self {
        Self(domain.trim().trim_end_matches('.').to_ascii_lowercase())
    }

    /// `None` when no domain is configured.
    pub fn name(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|name| !name.is_empty())
    }

    /// The reply address of a ticket.
    pub fn reply(&self, account: AccountId, secret: &ReplySecret) -> Option<String> {
        self.address(REPLY, account, secret)
    }

    /// The inbound address of a channel.
    pub fn inbound(&self, account: AccountId, key: &InboundKey) -> Option<String> {
        self.address(INBOUND, account, key)
    }

    fn address(&self, kind: &str, account: AccountId, rest: &[u8]) -> Option<String> {
        let bytes = [account.uuid().as_bytes().as_slice(), rest].concat();
        Some(format!("{kind}+{}@{}", encode(&bytes), self.name()?))
    }

    /// What an address stands for, if it is one of this installation.
    pub fn parse(&self, address: &str) -> Option<Destination> {
        let (local, domain) = address.trim().rsplit_once('@')?;
        if self.name() != Some(domain.to_ascii_lowercase().as_str()) {
            return None;
        }
        let (kind, token) = local.split_once('+')?;
        let bytes = decode(token)?;
        let (account, rest) = bytes.split_first_chunk::<16>()?;
        let account = AccountId::trust(Uuid::from_bytes(*account));
        let target = if kind.eq_ignore_ascii_case(REPLY) {
            Target::Ticket(rest.try_into().ok()?)
        } else if kind.eq_ignore_ascii_case(INBOUND) {
            Target::Channel(rest.try_into().ok()?)
        } else {
            return None;
        };
        Some(Destination { account, target })
    }
}

/// An address in lower case and without its subaddress (RFC 5233): `support+x@…` becomes `support@…`.
pub fn without_subaddress(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_lowercase() };
    let local = local.split('+').next().unwrap_or_default();
    format!("{local}@{domain}").to_lowercase()
}

/// Base 32: five bits per character, the most significant bits first.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    // The bits that are not written yet, and their number.
    let mut pending = 0_u32;
    let mut bits = 0;
    let mut push = |value: u32| {
        let index = usize::try_from(value & 31).unwrap_or_default();
        text.push(char::from(ALPHABET[index]));
    };
    for byte in bytes {
        pending = (pending << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push(pending >> bits);
        }
        pending &= 31;
    }
    if bits > 0 {
        push(pending << (5 - bits));
    }
    text
}

/// The opposite of [`encode`], in either case. `None` for any text that [`encode`] does not produce.
fn decode(text: &str) -> Option<Vec<u8>> {
    // Longer than any address that is made here.
    if text.len() > 64 {
        return None;
    }
    let mut bytes = Vec::new();
    let mut pending = 0_u32;
    let mut bits = 0;
    for byte in text.bytes().map(|byte| byte.to_ascii_lowercase()) {
        let value = ALPHABET.iter().position(|character| *character == byte)?;
        pending = (pending << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((pending >> bits) & 255).ok()?);
        }
        pending &= (1 << bits) - 1;
    }
    // The remaining bits are padding: zero, and fewer than a character has.
    (pending == 0 && bits < 5).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> OwnDomain {
        OwnDomain::new("Mail.Example.com.")
    }

    #[test]
    fn an_address_without_a_domain_is_not_made() {
        let account = AccountId::trust(Uuid::from_u128(7));
        assert_eq!(OwnDomain::new(" ").reply(account, &[1; 12]), None);
        assert_eq!(OwnDomain::default().parse("reply+aaaa@"), None);
    }

    #[test]
    fn other_addresses_have_no_destination() {
        let account = AccountId::trust(Uuid::from_u128(7));
        let right = own().reply(account, &[1; 12]).unwrap();
        let token =
            right.strip_prefix("reply+").unwrap().strip_suffix("@mail.example.com").unwrap().to_owned();
        for wrong in [
            right.replace("mail.example.com", "example.com"),
            right.replace("reply+", "in+"),
            right.replace("reply+", "other+"),
            right.replace('+', "-"),
            format!("reply+{}@mail.example.com", &token[1..]),
            format!("reply+{token}a@mail.example.com"),
            format!("reply+{token}é@mail.example.com"),
            "reply+@mail.example.com".to_owned(),
            "@".to_owned(),
            String::new(),
        ] {
            assert_eq!(own().parse(&wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn an_address_is_read_as_it_was_written_in_any_case(
            account in any::<u128>(), secret in any::<[u8; 12]>(), key in any::<[u8; 8]>(),
        ) {
            let account = AccountId::trust(Uuid::from_u128(account));
            let reply = own().reply(account, &secret).unwrap();
            prop_assert!(reply.split('@').next().unwrap().len() <= 64, "{}", reply);
            prop_assert_eq!(chassis_base::formats::email::normalise(&reply), Some(reply.clone()));
            let expected = Some(Destination { account, target: Target::Ticket(secret) });
            prop_assert_eq!(own().parse(&reply), expected);
            prop_assert_eq!(own().parse(&reply.to_ascii_uppercase()), expected);
            let inbound = own().inbound(account, &key).unwrap();
            let expected = Some(Destination { account, target: Target::Channel(key) });
            prop_assert_eq!(own().parse(&inbound), expected);
        }

        #[test]
        fn any_text_can_be_parsed(text in any::<String>()) {
            let _ = own().parse(&text);
            let _ = own().parse(&format!("reply+{text}@mail.example.com"));
        }
    }
}
