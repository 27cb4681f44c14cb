//! The chain of hashes over an account's log: a changed, added or missing entry changes every hash after it.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

/// The hash before the first entry.
pub(super) const GENESIS: [u8; 32] = [0; 32];

/// What the hash of an entry covers. The image is covered by its own hash, so that the chain holds when the image is
/// forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub position: i64,
    pub kind: &'a str,
    pub record_id: &'a str,
    pub version: i64,
    pub at: DateTime<Utc>,
    pub actor: &'a str,
    pub image_hash: Option<&'a [u8]>,
}

impl Link<'_> {
    /// Numbers are big-endian, times are microseconds since 1970, and texts and hashes come after their length, so that
    /// two different entries never give the same bytes.
    pub(super) fn hash(&self, before: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new();
        let mut part = |bytes: &[u8]| {
            digest.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(bytes);
        };
        part(before);
        part(&self.position.to_be_bytes());
        part(self.kind.as_bytes());
        part(self.record_id.as_bytes());
        part(&self.version.to_be_bytes());
        part(&self.at.timestamp_micros().to_be_bytes());
        part(self.actor.as_bytes());
        part(self.image_hash.unwrap_or_default());
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link<'static> {
        Link {
            position: 1,
            kind: "client",
            record_id: "7",
            version: 1,
            at: DateTime::UNIX_EPOCH,
            actor: "key",
            image_hash: Some(b"image"),
        }
    }

    #[test]
    fn every_part_of_an_entry_and_the_one_before_it_count() {
        let hash = link().hash(&GENESIS);
        let later = DateTime::UNIX_EPOCH + chrono::TimeDelta::microseconds(1);
        let others = [
            Link { position: 2, ..link() },
            Link { kind: "supplier", ..link() },
            Link { record_id: "8", ..link() },
            Link { version: 2, ..link() },
            Link { at: later, ..link() },
            Link { actor: "other", ..link() },
            Link { image_hash: None, ..link() },
            // The same text, divided in another way.
            Link { kind: "client7", record_id: "", ..link() },
        ];
        for other in others {
            assert_ne!(other.hash(&GENESIS), hash, "{other:?}");
        }
        assert_ne!(link().hash(&hash), hash);
        assert_eq!(link().hash(&GENESIS), hash);
    }
}
