//! A record as the log stores it: an encoded message without its secret fields.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{Message, Name};
use proto::policy::{ANSWERS, SECRETS, VERSIONS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The full name of the message.
    pub message: String,
    pub bytes: Vec<u8>,
    /// `None` if the message does not show the version of its record.
    pub version: Option<i64>,
}

impl Image {
    pub(super) fn of<M: Message + Name>(message: &M) -> Self {
        Self::new(M::full_name(), &message.encode_to_vec())
    }

    /// Whether these bytes are the same record, apart from fields with these numbers.
    pub(super) fn equals(&self, bytes: &[u8], besides: &[u32]) -> bool {
        without(&self.bytes, besides) == without(bytes, besides)
    }

    fn new(message: String, bytes: &[u8]) -> Self {
        let secret = SECRETS.iter().find(|(name, _)| *name == message).map_or(&[][..], |(_, fields)| *fields);
        let version = version(&message, bytes);
        let bytes = if secret.is_empty() { bytes.to_vec() } else { without(bytes, secret) };
        Self { message, bytes, version }
    }
}

/// The version that the record shows.
fn version(message: &str, bytes: &[u8]) -> Option<i64> {
    let index = VERSIONS.binary_search_by(|(name, _)| (*name).cmp(message)).ok()?;
    let (last, path) = VERSIONS[index].1.split_last()?;
    let mut content = bytes;
    for number in path {
        content = fields(content).find(|field| field.number == *number)?.content;
    }
    let mut whole = fields(content).find(|field| field.number == *last)?.whole;
    decode_key(&mut whole).ok()?;
    decode_varint(&mut whole).ok().map(u64::cast_signed)
}

/// The records in an rpc's encoded response, each as its kind, its id and its image.
pub(super) fn of_answer(rpc: &str, response: &[u8]) -> Vec<(&'static str, String, Image)> {
    let Ok(index) = ANSWERS.binary_search_by(|answer| answer.path.cmp(rpc)) else { return Vec::new() };
    let answer = &ANSWERS[index];
    let records = fields(response).filter(|field| field.number == answer.field);
    let read = records.filter_map(|record| {
        let id = fields(record.content).find(|field| field.number == answer.id)?.content;
        let id = std::str::from_utf8(id).ok()?.to_owned();
        Some((answer.entity, id, Image::new(answer.message.to_owned(), record.content)))
    });
    read.collect()
}

fn without(bytes: &[u8], secret: &[u32]) -> Vec<u8> {
    let kept = fields(bytes).filter(|field| !secret.contains(&field.number));
    kept.flat_map(|field| field.whole).copied().collect()
}

struct Field<'a> {
    number: u32,
    /// The encoded field, including its key.
    whole: &'a [u8],
    /// The value of a string, a message or bytes; empty for a number.
    content: &'a [u8],
}

/// The fields of a message in wire order, up to malformed bytes, which our encoder does not produce.
fn fields(bytes: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let start = rest;
        let (number, wire) = decode_key(&mut rest).ok()?;
        let mut content = &[][..];
        if wire == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            (content, rest) = rest.split_at_checked(length)?;
        } else {
            skip_field(wire, number, &mut rest, DecodeContext::default()).ok()?;
        }
        Some(Field { number, whole: &start[..start.len() - rest.len()], content })
    })
}

#[cfg(test)]
mod tests {
    use proto::accounts::{CreateKeyResponse, Key};
    use proto::api::PutMailKeyRequest;
    use proto::crm::{DealDetail, DealDetailMeta, DealSource};

    use super::*;

    #[test]
    fn secrets_are_left_out() {
        let key = Key { public_id: "abc".to_owned(), ..Key::default() };
        let response = CreateKeyResponse { secret: "ba_abc_secret".to_owned(), key: Some(key) };
        let kept = CreateKeyResponse::decode(Image::of(&response).bytes.as_slice()).unwrap();
        assert_eq!(kept, CreateKeyResponse { secret: String::new(), ..response });
        let put = PutMailKeyRequest { private_key: "PEM".to_owned(), ..PutMailKeyRequest::default() };
        assert!(Image::of(&put).bytes.is_empty());
    }

    #[test]
    fn records_are_compared_without_what_differs_at_every_read() {
        let source = |name: &str, order| DealSource { name: name.to_owned(), order, ..DealSource::default() };
        let image = Image::of(&source("Fair", 1));
        assert!(image.equals(&source("Radio", 1).encode_to_vec(), &[1]));
        assert!(!image.equals(&source("Radio", 1).encode_to_vec(), &[2]));
        assert!(!image.equals(&source("Fair", 2).encode_to_vec(), &[1]));
    }

    #[test]
    fn a_record_says_its_version_in_its_meta_or_beside_its_id() {
        let meta = DealDetailMeta { version: 300, ..DealDetailMeta::default() };
        let deal = DealDetail { id: "1".to_owned(), meta: Some(meta), ..DealDetail::default() };
        assert_eq!(Image::of(&deal).version, Some(300));
        assert_eq!(Image::of(&DealSource { version: 7, ..DealSource::default() }).version, Some(7));
        assert_eq!(Image::of(&DealDetail::default()).version, None);
        assert_eq!(Image::of(&Key::default()).version, None);
        assert!(VERSIONS.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn the_answers_are_in_order_and_those_of_creates_are_known() {
        assert!(ANSWERS.is_sorted_by_key(|answer| answer.path));
        for path in
            ["/admin.billing.v1.ProductService/CreateProduct", "/admin.work.v1.ProjectService/UpdateProject"]
        {
            assert!(ANSWERS.iter().any(|answer| answer.path == path), "{path}");
        }
    }
}
