//! The signed context token: says for which account and with which scopes a call is made. Minted per key and minute,
//! verified once and remembered, so that signatures cost per key and not per request.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use prost::Message;
use proto::api::Context;
use sha2::Sha256;
use uuid::Uuid;

use crate::account::{Account, AccountId};

/// The metadata entry that carries the token.
pub const HEADER: &str = "x-context-token";
/// The scope of processes of the mesh and of internal teams.
pub const MESH_SCOPE: &str = "mesh";
/// The scope of someone who has no key and no account, only the link in the path of a request.
pub const PUBLIC_SCOPE: &str = "public";
/// The end of the scopes for what only internal teams may do in an area, for example `crm.internal`.
const INTERNAL: &str = ".internal";
/// How long a token is valid.
pub const LIFETIME_SECONDS: i64 = 60;
/// A bound on remembered tokens; far more than keys that are active in one minute.
const MAX_REMEMBERED: usize = 10_000;

/// For whom a call is made.
#[derive(Clone, Debug)]
pub struct Identity {
    pub account: Account,
    /// Public id of the key or credential.
    pub actor: String,
    pub actor_name: String,
    pub scopes: Vec<String>,
    /// How many times in a row an event has led to a call; 0 when a person or an integration calls.
    pub depth: u32,
    expires_at: i64,
}

impl Identity {
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|have| have == scope || have == MESH_SCOPE)
    }

    pub fn is_mesh(&self) -> bool {
        self.scopes.iter().any(|have| have == MESH_SCOPE)
    }

    /// Whether the holder may do what internal teams do in an area.
    pub fn is_internal(&self, area: &str) -> bool {
        self.scopes.iter().any(|have| have.strip_suffix(INTERNAL) == Some(area))
    }

    /// Someone of whom nothing is known yet: of no account, good for public rpcs only.
    pub(crate) fn nobody() -> Self {
        let actor = PUBLIC_SCOPE.to_owned();
        let scopes = vec![actor.clone()];
        Self { account: no_account(), actor_name: actor.clone(), actor, scopes, expires_at: 0, depth: 0 }
    }

    /// Whether the call comes from someone without a key. The account is nobody's until the link in the request has
    /// named it; see [`Call::for_account`](crate::call::Call::for_account).
    pub fn is_public(&self) -> bool {
        self.scopes.iter().any(|have| have == PUBLIC_SCOPE)
    }

    /// The same caller with another account.
    pub(crate) fn with_account(&self, account: Account) -> Self {
        Self { account, ..self.clone() }
    }
}

/// The scope of what only internal teams may do in an area.
pub fn internal_scope(area: &str) -> String {
    format!("{area}{INTERNAL}")
}

fn no_account() -> Account {
    Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: chrono_tz::UTC,
        country: String::new(),
        currency: String::new(),
    }
}

/// Mints and verifies tokens. The first secret signs, all of them verify, so that secrets can be rotated.
#[derive(Clone)]
pub struct Tokens {
    secrets: Arc<Vec<Vec<u8>>>,
    verified: Arc<RwLock<HashMap<String, Arc<Identity>>>>,
}

impl Tokens {
    /// `secrets` is a comma-separated list, the current one first.
    pub fn new(secrets: &str) -> Self {
        let secrets = secrets.split(',').map(|secret| secret.trim().as_bytes().to_vec()).collect();
        Self { secrets: Arc::new(secrets), verified: Arc::default() }
    }

    pub fn mint(
        &self,
        account: &Account,
        actor: &str,
        name: &str,
        scopes: &[String],
        now: DateTime<Utc>,
    ) -> String {
        self.mint_at_depth(account, (actor, name), scopes, 0, now)
    }

    /// A token for a call that an event led to, `depth` of them in a row. What the call emits tells of it.
    pub fn mint_caused(
        &self,
        account: &Account,
        actor: (&str, &str),
        depth: u32,
        now: DateTime<Utc>,
    ) -> String {
        self.mint_at_depth(account, actor, &[MESH_SCOPE.to_owned()], depth, now)
    }

    fn mint_at_depth(
        &self,
        account: &Account,
        (actor, name): (&str, &str),
        scopes: &[String],
        depth: u32,
        now: DateTime<Utc>,
    ) -> String {
        let context = Context {
            account_id: account.id.uuid().as_bytes().to_vec().into(),
            actor: actor.to_owned(),
            actor_name: name.to_owned(),
            scopes: scopes.to_vec(),
            timezone: account.timezone.name().to_owned(),
            country: account.country.clone(),
            currency: account.currency.clone(),
            expires_at: now.timestamp() + LIFETIME_SECONDS,
            depth,
        };
        let payload = URL_SAFE_NO_PAD.encode(context.encode_to_vec());
        let tag = self.secrets.first().map(|secret| sign(secret, &payload)).unwrap_or_default();
        format!("{payload}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// A token for work that no caller asked for: relays, workers, the command line.
    pub fn mint_mesh(&self, account: &Account, actor: &str, now: DateTime<Utc>) -> String {
        self.mint(account, actor, actor, &[MESH_SCOPE.to_owned()], now)
    }

    /// A token for requests without a key: of no account, good for public rpcs only.
    pub fn mint_public(&self, now: DateTime<Utc>) -> String {
        self.mint(&no_account(), PUBLIC_SCOPE, PUBLIC_SCOPE, &[PUBLIC_SCOPE.to_owned()], now)
    }

    /// Signs what is no context token. `purpose` keeps signatures of one kind from being taken for another.
    pub(crate) fn seal(&self, purpose: &str, content: &[u8]) -> Vec<u8> {
        let text = sealed_text(purpose, content);
        self.secrets.first().map(|secret| sign(secret, &text)).unwrap_or_default()
    }

    /// Whether `tag`, which may be cut to its first bytes, is the seal of this content.
    pub(crate) fn is_seal(&self, purpose: &str, content: &[u8], tag: &[u8]) -> bool {
        let text = sealed_text(purpose, content);
        self.secrets.iter().any(|secret| begins(secret, &text, tag))
    }

    /// The identity in a genuine token that has not expired.
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Option<Arc<Identity>> {
        let known = self.verified.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned();
        let identity = match known {
            Some(identity) => identity,
            None => self.verify_anew(token)?,
        };
        (now.timestamp() <= identity.expires_at).then_some(identity)
    }

    fn verify_anew(&self, token: &str) -> Option<Arc<Identity>> {
        let (payload, tag) = token.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        if !self.secrets.iter().any(|secret| verifies(secret, payload, &tag)) {
            return None;
        }
        let context = Context::decode(URL_SAFE_NO_PAD.decode(payload).ok()?.as_slice()).ok()?;
        let identity = Arc::new(Identity {
            account: Account {
                id: AccountId::trust(Uuid::from_slice(&context.account_id).ok()?),
                timezone: context.timezone.parse().ok()?,
                country: context.country,
                currency: context.currency,
            },
            actor: context.actor,
            actor_name: context.actor_name,
            scopes: context.scopes,
            depth: context.depth,
            expires_at: context.expires_at,
        });
        let mut verified = self.verified.write().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= MAX_REMEMBERED {
            verified.clear();
        }
        verified.insert(token.to_owned(), Arc::clone(&identity));
        Some(identity)
    }
}

fn mac(secret: &[u8], payload: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(payload.as_bytes());
    Some(mac)
}

fn sign(secret: &[u8], payload: &str) -> Vec<u8> {
    mac(secret, payload).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default()
}

fn verifies(secret: &[u8], payload: &str, tag: &[u8]) -> bool {
    mac(secret, payload).is_some_and(|mac| mac.verify_slice(tag).is_ok())
}

/// Never the payload of a context token: that has no colon.
fn sealed_text(purpose: &str, content: &[u8]) -> String {
    format!("{purpose}:{}", URL_SAFE_NO_PAD.encode(content))
}

/// Whether the signature begins with `tag`.
fn begins(secret: &[u8], text: &str, tag: &[u8]) -> bool {
    mac(secret, text).is_some_and(|mac| mac.verify_truncated_left(tag).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn account() -> Account {
        Account {
            id: AccountId::trust(Uuid::from_u128(7)),
            timezone: chrono_tz::Europe::Amsterdam,
            country: "NL".into(),
            currency: "EUR".into(),
        }
    }

    #[test]
    fn a_token_is_valid_for_its_lifetime_only() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let tokens = Tokens::new("secret");
        let token = tokens.mint(&account(), "pub", "name", &["a.read".into()], now);
        let identity = tokens.verify(&token, now).unwrap();
        assert_eq!(identity.account, account());
        assert!(identity.has_scope("a.read") && !identity.has_scope("a.write"));
        assert!(tokens.verify(&token, now + TimeDelta::seconds(LIFETIME_SECONDS)).is_some());
        assert!(tokens.verify(&token, now + TimeDelta::seconds(LIFETIME_SECONDS + 1)).is_none());
    }

    #[test]
    fn a_token_tells_how_many_events_led_to_the_call() {
        let (now, tokens) = (DateTime::UNIX_EPOCH, Tokens::new("secret"));
        let caused = tokens.verify(&tokens.mint_caused(&account(), ("a", "A"), 3, now), now).unwrap();
        assert!(caused.depth == 3 && caused.is_mesh());
        assert_eq!(tokens.verify(&tokens.mint_mesh(&account(), "a", now), now).unwrap().depth, 0);
    }

    #[test]
    fn a_public_token_has_no_account_and_no_other_scope() {
        let tokens = Tokens::new("secret");
        let now = DateTime::UNIX_EPOCH;
        let identity = tokens.verify(&tokens.mint_public(now), now).unwrap();
        assert!(identity.is_public() && !identity.is_mesh() && !identity.has_scope("a.read"));
        assert!(identity.account.id.uuid().is_nil());
        let keyed = tokens.mint(&account(), "pub", "name", &["a.read".into()], now);
        assert!(!tokens.verify(&keyed, now).unwrap().is_public());
    }

    #[test]
    fn a_changed_or_foreign_token_is_refused() {
        let now = DateTime::UNIX_EPOCH;
        let token = Tokens::new("old").mint(&account(), "pub", "name", &[], now);
        assert!(Tokens::new("new,old").verify(&token, now).is_some(), "the previous secret still verifies");
        assert!(Tokens::new("new").verify(&token, now).is_none());
        for index in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[index] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert!(Tokens::new("old").verify(&changed, now).is_none(), "byte {index}");
        }
    }
}
