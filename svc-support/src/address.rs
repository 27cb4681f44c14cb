//! The addresses that mail comes in for. The part before the `@` names the account, so that a mail, which brings no
//! other hint of it, finds its way: `reply+…` leads to a ticket, `in+…` to a channel. Letters and digits of one case
//! only, because some systems on the way change it. Pure.

use chassis::AccountId;
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const REPLY: &str = "reply";
const INBOUND: &str = "in";

/// What tells a ticket's reply address from others: nobody finds one by trying.
pub type ReplySecret = [u8; 12];
/// What tells a channel's inbound address from others.
pub type InboundKey = [u8; 8];

/// Where an address of ours leads. The account is a claim until it has such a ticket or channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Ticket(ReplySecret),
    Channel(InboundKey),
}

/// The domain of our addresses; may be none, and then there are none.
#[derive(Clone, Debug, Default)]
pub struct OwnDomain(String);

impl OwnDomain {
    pub fn new(domain: &str) -> Self {
        Self(domain.trim().trim_end_matches('.').to_ascii_lowercase())
    }

    /// `None` when none is configured.
    pub fn name(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|name| !name.is_empty())
    }

    /// The address that leads to a ticket.
    pub fn reply(&self, account: AccountId, secret: &ReplySecret) -> Option<String> {
        self.address(REPLY, account, secret)
    }

    /// The address that leads to a channel.
    pub fn inbound(&self, account: AccountId, key: &InboundKey) -> Option<String> {
        self.address(INBOUND, account, key)
    }

    fn address(&self, kind: &str, account: AccountId, rest: &[u8]) -> Option<String> {
        let bytes = [account.uuid().as_bytes().as_slice(), rest].concat();
        Some(format!("{kind}+{}@{}", encode(&bytes), self.name()?))
    }

    /// Where an address leads, if it is one of ours.
    pub fn parse(&self, address: &str) -> Option<(AccountId, Place)> {
        let (local, domain) = address.trim().rsplit_once('@')?;
        if self.name() != Some(domain.to_ascii_lowercase().as_str()) {
            return None;
        }
        let (kind, token) = local.split_once('+')?;
        let bytes = decode(token)?;
        let (account, rest) = bytes.split_first_chunk::<16>()?;
        let account = AccountId::trust(Uuid::from_bytes(*account));
        let place = if kind.eq_ignore_ascii_case(REPLY) {
            Place::Ticket(rest.try_into().ok()?)
        } else if kind.eq_ignore_ascii_case(INBOUND) {
            Place::Channel(rest.try_into().ok()?)
        } else {
            return None;
        };
        Some((account, place))
    }
}

/// Five bits a character, the first bits first.
fn encode(bytes: &[u8]) -> String {
    let (mut text, mut held, mut bits) = (String::new(), 0_u32, 0);
    let mut push = |value: u32| {
        let letter = usize::try_from(value & 31).unwrap_or_default();
        text.push(char::from(ALPHABET[letter]));
    };
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push(held >> bits);
        }
        held &= 31;
    }
    if bits > 0 {
        push(held << (5 - bits));
    }
    text
}

/// `None` for what [`encode`] does not write, in whatever case.
fn decode(text: &str) -> Option<Vec<u8>> {
    // Longer than any of ours.
    if text.len() > 64 {
        return None;
    }
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().map(|letter| letter.to_ascii_lowercase()) {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 255).ok()?);
        }
        held &= (1 << bits) - 1;
    }
    // What is left over is padding, and less than a character.
    (held == 0 && bits < 5).then_some(bytes)
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
    fn other_addresses_lead_nowhere() {
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
            prop_assert_eq!(chassis::formats::email::normalise(&reply), Some(reply.clone()));
            let expected = Some((account, Place::Ticket(secret)));
            prop_assert_eq!(own().parse(&reply), expected);
            prop_assert_eq!(own().parse(&reply.to_ascii_uppercase()), expected);
            let inbound = own().inbound(account, &key).unwrap();
            prop_assert_eq!(own().parse(&inbound), Some((account, Place::Channel(key))));
        }

        #[test]
        fn no_text_makes_the_reader_fail(text in any::<String>()) {
            let _ = own().parse(&text);
            let _ = own().parse(&format!("reply+{text}@mail.example.com"));
        }
    }
}
