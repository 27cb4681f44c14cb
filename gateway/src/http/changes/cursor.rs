//! Where a reader of the change feed is: how far it has read the log of each service.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use proto::gateway::ChangesCursor;
use proto::gateway::changes_cursor::Position;

/// The first byte of a cursor. A later form has another.
const FORM: u8 = 1;

/// A decoded cursor. The default is the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The position in the log of each service that was read.
    pub positions: BTreeMap<String, i64>,
    /// Of the history of one record: its last version that was read.
    pub version: i64,
}

impl Cursor {
    /// `None` for a text that is not a cursor. An empty text is the beginning.
    pub(super) fn decode(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let encoded = bytes.strip_prefix(&[FORM])?;
        let ChangesCursor { positions, version } = ChangesCursor::decode(encoded).ok()?;
        let is_valid = |position: &Position| position.position >= 0 && !position.service.is_empty();
        if version < 0 || !positions.iter().all(is_valid) {
            return None;
        }
        let positions = positions.into_iter().map(|of| (of.service, of.position)).collect();
        let cursor = Self { positions, version };
        // Other bytes can mean the same to protobuf; only what we encode is a cursor.
        (cursor.encode() == text).then_some(cursor)
    }

    pub(super) fn encode(&self) -> String {
        let position =
            |(service, position): (&String, &i64)| Position { service: service.clone(), position: *position };
        let positions = self.positions.iter().map(position).collect();
        let mut bytes = vec![FORM];
        // Writing to a vector does not fail for want of room.
        let _ = ChangesCursor { positions, version: self.version }.encode(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn position(&self, service: &str) -> i64 {
        self.positions.get(service).copied().unwrap_or_default()
    }

    pub(super) fn advance(&mut self, service: &str, position: i64) {
        self.positions.insert(service.to_owned(), position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let mut cursor = Cursor { version: 3, ..Cursor::default() };
        cursor.advance("billing", 70_000);
        cursor.advance("work", 1);
        assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor.clone()));
        assert_eq!((cursor.position("work"), cursor.position("crm")), (1, 0));
        assert_eq!(Cursor::decode(""), Some(Cursor::default()));
        let beginning = Cursor::default().encode();
        assert_eq!(Cursor::decode(&beginning), Some(Cursor::default()));
    }

    #[test]
    fn other_texts_are_not_cursors() {
        let mut negative = Cursor::default();
        negative.advance("billing", -1);
        for text in ["1", "AAAA", "nonsense", "AgoA", "AQ==", "AQoH", &negative.encode()] {
            assert_eq!(Cursor::decode(text), None, "{text}");
        }
    }
}
