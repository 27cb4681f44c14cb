//! Signatures of requests as Standard Webhooks specifies them: over id, time and body, one for each secret that is in use.
//! Pure but for the making of secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// A signing secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    pub(crate) fn random() -> Self {
        Self(rand::random::<[u8; 32]>().to_vec())
    }

    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The form that the receiver is given.
    pub(crate) fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }
}

/// Never shows the secret: whoever knows it can sign.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The headers that Standard Webhooks adds to a request.
pub(super) fn headers(
    id: &str,
    body: &str,
    secrets: &[Secret],
    now: DateTime<Utc>,
) -> [(&'static str, String); 3] {
    let time = now.timestamp();
    let signatures = secrets.iter().filter_map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).ok()?;
        mac.update(format!("{id}.{time}.{body}").as_bytes());
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    });
    let signatures = signatures.collect::<Vec<_>>().join(" ");
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", time.to_string()),
        ("webhook-signature", signatures),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the Standard Webhooks libraries test with.
    #[test]
    fn the_signature_is_the_one_that_receivers_compute() {
        let secret = Secret(STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let now = DateTime::from_timestamp(1_614_265_330, 0).unwrap();
        let [id, time, signature] =
            headers("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#, &[secret], now);
        assert_eq!((id.1.as_str(), time.1.as_str()), ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"));
        assert_eq!(signature.1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_secret_signs_and_none_is_shown() {
        let secrets = [Secret::random(), Secret::random()];
        let [.., signature] = headers("x", "{}", &secrets, DateTime::UNIX_EPOCH);
        assert_eq!(signature.1.split(' ').count(), 2);
        assert_eq!(format!("{:?}", secrets[0]), "Secret");
        assert!(secrets[0].text().starts_with(PREFIX));
    }
}
