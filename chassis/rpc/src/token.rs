//! The signed context token, which states the account, the scopes and the audience of a call. A token is minted per
//! key, process and minute, verified once and cached, so that signatures cost per key and not per request.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis_base::{Account, AccountId, Timezone};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use moka::sync::Cache;
use prost::Message;
use proto::api::{Access, Context};
use proto::policy::{ANY_SCOPE, Rpc, missing_scope};
use ring::hkdf;
use sha2::Sha256;
use uuid::Uuid;

/// The metadata entry that carries the token.
pub const HEADER: &str = "x-context-token";
/// The scope of processes of the mesh and of internal teams.
pub const MESH_SCOPE: &str = "mesh";
/// The scope of a caller without a key or account, who has only the link in the path of a request.
pub const PUBLIC_SCOPE: &str = "public";
/// The suffix of the scopes that only internal teams hold for an area, for example `crm.internal`.
const INTERNAL: &str = ".internal";
/// How long a token is valid.
pub const LIFETIME_SECONDS: i64 = 60;
/// The most verified tokens in the cache; far more than keys that are active in one minute.
const MAX_CACHED: u64 = 10_000;
/// The HKDF info text of the key for links.
const LINK_KEY: &[u8] = b"administration link v1";

/// The account and the actor that a call is made for.
#[derive(Clone, Debug)]
pub struct Identity {
    pub account: Account,
    /// Public id of the key or credential.
    pub actor: String,
    pub actor_name: String,
    pub scopes: Vec<String>,
    /// The length of the chain of events that led to the call; 0 when a person or an integration calls.
    pub depth: u32,
    /// The process that the token is for; empty for any.
    audience: String,
    expires_at: i64,
}

impl Identity {
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|have| have == scope || have == MESH_SCOPE)
    }

    pub fn is_mesh(&self) -> bool {
        self.scopes.iter().any(|have| have == MESH_SCOPE)
    }

    /// Whether the holder may call the internal rpcs of an area.
    pub fn is_internal(&self, area: &str) -> bool {
        self.scopes.iter().any(|have| have.strip_suffix(INTERNAL) == Some(area))
    }

    /// A caller that is not authenticated yet: without an account, valid for public rpcs only.
    pub(crate) fn nobody() -> Self {
        let actor = PUBLIC_SCOPE.to_owned();
        let scopes = vec![actor.clone()];
        Self {
            account: no_account(),
            actor_name: actor.clone(),
            actor,
            scopes,
            audience: String::new(),
            expires_at: 0,
            depth: 0,
        }
    }

    /// A process that works for an account on its own behalf.
    pub fn internal(account: &Account, actor: &str) -> Self {
        Self {
            account: account.clone(),
            actor: actor.to_owned(),
            actor_name: actor.to_owned(),
            scopes: vec![MESH_SCOPE.to_owned()],
            audience: String::new(),
            expires_at: 0,
            depth: 0,
        }
    }

    /// Whether the caller has no key. The account is nil until the link in the request has named it; see
    /// [`Call::for_account`](crate::call::Call::for_account).
    pub fn is_public(&self) -> bool {
        self.scopes.iter().any(|have| have == PUBLIC_SCOPE)
    }

    /// The same caller with another account.
    pub(crate) fn with_account(&self, account: Account) -> Self {
        Self { account, ..self.clone() }
    }
}

/// Whether a caller with these scopes may call an rpc.
pub fn allows(scopes: &[String], rpc: &Rpc) -> bool {
    let has = |scope: &str| scopes.iter().any(|have| have == scope || have == MESH_SCOPE);
    match rpc.access {
        // The handler checks what the request carries: a link in its path, or a credential.
        Access::Public | Access::Credential => true,
        // A caller without a key has no account, so only public rpcs are open to it.
        _ if scopes.iter().any(|have| have == PUBLIC_SCOPE) => false,
        Access::Key => {
            let is_team = rpc.internal && rpc.area().is_some_and(|area| has(&internal_scope(area)));
            is_team || missing_scope(rpc.scope, rpc.and_scope, rpc.or_scope, has).is_none()
        }
        Access::Mesh => rpc.area().map_or_else(|| has(MESH_SCOPE), |area| has(&internal_scope(area))),
        Access::Unspecified => has(MESH_SCOPE),
    }
}

/// The scopes that [`allows`] requires.
pub fn needed_scopes(rpc: &Rpc) -> Vec<String> {
    match rpc.area() {
        _ if rpc.scope == ANY_SCOPE => Vec::new(),
        _ if !rpc.scope.is_empty() => {
            let scopes = [rpc.scope, rpc.and_scope].into_iter().filter(|scope| !scope.is_empty());
            scopes.map(str::to_owned).collect()
        }
        Some(area) => vec![internal_scope(area)],
        None => vec![MESH_SCOPE.to_owned()],
    }
}

/// The scope of the internal rpcs of an area.
pub fn internal_scope(area: &str) -> String {
    format!("{area}{INTERNAL}")
}

fn no_account() -> Account {
    Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: Timezone::UTC,
        country: String::new(),
        currency: String::new(),
    }
}

/// Mints and verifies tokens. The first secret signs, all of them verify, so that secrets can be rotated.
#[derive(Clone)]
pub struct Tokens {
    secrets: Arc<Vec<Secret>>,
    /// The name of this process; empty for a tool, which accepts only tokens for any process.
    own: &'static str,
    verified: Cache<String, Arc<Identity>>,
}

/// One secret of the mesh, and what is derived from it.
struct Secret {
    /// Signs context tokens.
    context: Vec<u8>,
    /// Signs links. It is a separate key, so that a leak of it does not allow anyone to mint a token.
    link: [u8; 32],
}

impl Secret {
    fn new(text: &str) -> Self {
        let context = text.trim().as_bytes().to_vec();
        let mut link = [0; 32];
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&context);
        let expanded = extracted.expand(&[LINK_KEY], hkdf::HKDF_SHA256);
        // This fails only for more than 255 blocks; the key is one block.
        if expanded.and_then(|key| key.fill(&mut link)).is_err() {
            tracing::error!("the key for links cannot be derived");
        }
        Self { context, link }
    }
}

/// Mints tokens for one process of the mesh.
pub struct Minter<'a> {
    tokens: &'a Tokens,
    audience: &'a str,
    depth: u32,
}

impl Tokens {
    /// `secrets` is a comma-separated list, the current one first.
    pub fn new(secrets: &str) -> Self {
        let secrets = secrets.split(',').map(Secret::new).collect();
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.unsigned_abs());
        let verified = Cache::builder().max_capacity(MAX_CACHED).time_to_live(lifetime).build();
        Self { secrets: Arc::new(secrets), own: "", verified }
    }

    /// Sets the name of this process: tokens for another process are refused.
    #[must_use]
    pub fn of(mut self, own: &'static str) -> Self {
        self.own = own;
        self
    }

    /// Mints tokens that only the process `audience` accepts. An empty name stands for any process.
    pub fn to<'a>(&'a self, audience: &'a str) -> Minter<'a> {
        Minter { tokens: self, audience, depth: 0 }
    }

    /// Mints tokens for calls inside this process.
    pub fn to_self(&self) -> Minter<'_> {
        self.to(self.own)
    }

    /// Signs content other than a context token, with the key for links. `purpose` is part of the signed text, so that
    /// a signature for one purpose is not valid for another.
    pub(crate) fn seal(&self, purpose: &str, content: &[u8]) -> Vec<u8> {
        let text = sealed_text(purpose, content);
        self.secrets.first().map(|secret| sign(&secret.link, &text)).unwrap_or_default()
    }

    /// Whether `tag`, which may be truncated to its first bytes, is the seal of this content.
    pub(crate) fn is_seal(&self, purpose: &str, content: &[u8], tag: &[u8]) -> bool {
        let text = sealed_text(purpose, content);
        // The previous release signed links with the secret itself. Its links are accepted until the next release.
        self.secrets
            .iter()
            .any(|secret| begins(&secret.link, &text, tag) || begins(&secret.context, &text, tag))
    }

    /// The identity of a token that is genuine, for this process and not expired.
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Option<Arc<Identity>> {
        let identity = match self.verified.get(token) {
            Some(identity) => identity,
            None => self.verify_signature(token)?,
        };
        // These checks are not cached: a cached identity may expire, and clones for other processes share the cache.
        // A token of the previous release has no audience.
        let for_us = identity.audience.is_empty() || identity.audience == self.own;
        (for_us && now.timestamp() <= identity.expires_at).then_some(identity)
    }

    fn verify_signature(&self, token: &str) -> Option<Arc<Identity>> {
        let (payload, tag) = token.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        if !self.secrets.iter().any(|secret| verifies(&secret.context, payload, &tag)) {
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
            audience: context.audience,
            expires_at: context.expires_at,
        });
        self.verified.insert(token.to_owned(), Arc::clone(&identity));
        Some(identity)
    }
}

impl Minter<'_> {
    /// For a call that a chain of `depth` events led to. The events of the call carry this depth.
    #[must_use]
    pub fn at_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    pub fn mint(
        &self,
        account: &Account,
        actor: &str,
        name: &str,
        scopes: &[String],
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
            depth: self.depth,
            audience: self.audience.to_owned(),
        };
        let payload = URL_SAFE_NO_PAD.encode(context.encode_to_vec());
        let secret = self.tokens.secrets.first();
        let tag = secret.map(|secret| sign(&secret.context, &payload)).unwrap_or_default();
        format!("{payload}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// A token for work that no caller asked for: relays, workers, the command line.
    pub fn mint_mesh(&self, account: &Account, actor: &str, now: DateTime<Utc>) -> String {
        self.mint(account, actor, actor, &[MESH_SCOPE.to_owned()], now)
    }

    /// A token for requests without a key: without an account, valid for public rpcs only.
    pub fn mint_public(&self, now: DateTime<Utc>) -> String {
        self.mint(&no_account(), PUBLIC_SCOPE, PUBLIC_SCOPE, &[PUBLIC_SCOPE.to_owned()], now)
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

/// The text of a seal. The colon keeps it distinct from the payload of a context token, which is base64.
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
            timezone: Timezone::AMSTERDAM,
            country: "NL".into(),
            currency: "EUR".into(),
        }
    }

    #[test]
    fn a_token_is_valid_for_its_lifetime_only() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let tokens = Tokens::new("secret");
        let token = tokens.to_self().mint(&account(), "pub", "name", &["a.read".into()], now);
        let identity = tokens.verify(&token, now).unwrap();
        assert_eq!(identity.account, account());
        assert!(identity.has_scope("a.read") && !identity.has_scope("a.write"));
        assert!(tokens.verify(&token, now + TimeDelta::seconds(LIFETIME_SECONDS)).is_some());
        assert!(tokens.verify(&token, now + TimeDelta::seconds(LIFETIME_SECONDS + 1)).is_none());
    }

    #[test]
    fn a_token_tells_how_many_events_led_to_the_call() {
        let (now, tokens) = (DateTime::UNIX_EPOCH, Tokens::new("secret"));
        let caused = tokens.to_self().at_depth(3).mint_mesh(&account(), "a", now);
        let caused = tokens.verify(&caused, now).unwrap();
        assert!(caused.depth == 3 && caused.is_mesh());
        assert_eq!(tokens.verify(&tokens.to_self().mint_mesh(&account(), "a", now), now).unwrap().depth, 0);
    }

    #[test]
    fn a_token_is_for_one_process_of_the_mesh() {
        let (now, tokens) = (DateTime::UNIX_EPOCH, Tokens::new("secret"));
        let (billing, crm) = (tokens.clone().of("billing"), tokens.clone().of("crm"));
        let token = crm.to("billing").mint_mesh(&account(), "crm", now);
        assert!(billing.verify(&token, now).is_some());
        assert!(crm.verify(&token, now).is_none(), "also when another process has cached it");
        assert!(Tokens::new("secret").of("work").verify(&token, now).is_none());
        let own = billing.to_self().mint_mesh(&account(), "billing", now);
        assert!(billing.verify(&own, now).is_some() && crm.verify(&own, now).is_none());
        let any = tokens.to("").mint(&account(), "team", "Team", &[], now);
        assert!(billing.verify(&any, now).is_some() && crm.verify(&any, now).is_some());
    }

    #[test]
    fn a_link_is_signed_with_another_key_than_a_token() {
        let tokens = Tokens::new("secret");
        let sealed = tokens.seal("file", b"content");
        assert_ne!(sealed, sign(b"secret", &sealed_text("file", b"content")));
        assert!(tokens.is_seal("file", b"content", &sealed));
        assert!(
            !tokens.is_seal("file", b"other", &sealed)
                && !Tokens::new("b").is_seal("file", b"content", &sealed)
        );
        // RFC 5869 with SHA-256 and no salt; the value comes from an independent implementation.
        let link = &tokens.secrets[0].link;
        let hex = link.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        assert_eq!(hex, "b5d0fbe173be75be17108504c582598944164064495445ec8bdf6f5b5cb1fb67");
    }

    #[test]
    fn a_public_token_has_no_account_and_no_other_scope() {
        let tokens = Tokens::new("secret");
        let now = DateTime::UNIX_EPOCH;
        let identity = tokens.verify(&tokens.to_self().mint_public(now), now).unwrap();
        assert!(identity.is_public() && !identity.is_mesh() && !identity.has_scope("a.read"));
        assert!(identity.account.id.uuid().is_nil());
        let keyed = tokens.to_self().mint(&account(), "pub", "name", &["a.read".into()], now);
        assert!(!tokens.verify(&keyed, now).unwrap().is_public());
    }

    #[test]
    fn a_changed_or_foreign_token_is_refused() {
        let now = DateTime::UNIX_EPOCH;
        let token = Tokens::new("old").to_self().mint(&account(), "pub", "name", &[], now);
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
