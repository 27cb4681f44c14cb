//! A record as the log stores it: an encoded message without its secret fields.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{Message, Name};
use proto::policy::{ANSWERS, SECRETS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// The full name of the message.
    pub message: String,
    pub bytes: Vec<u8>,
}

impl Image {
    pub(super) fn of<M: Message + Name>(message: &M) -> Self {
        Self::new(M::full_name(), &message.encode_to_vec())
    }

    fn new(message: String, bytes: &[u8]) -> Self {
        let secret = SECRETS.iter().find(|(name, _)| *name == message).map_or(&[][..], |(_, fields)| *fields);
        let bytes = if secret.is_empty() { bytes.to_vec() } else { without(bytes, secret) };
        Self { message, bytes }
    }
}

/// The records in an rpc's response, each as its kind, its id and its image.
pub(super) fn of_answer(rpc: &str, response: &impl Message) -> Vec<(&'static str, String, Image)> {
    let Ok(index) = ANSWERS.binary_search_by(|answer| answer.path.cmp(rpc)) else { return Vec::new() };
    let answer = &ANSWERS[index];
    let bytes = response.encode_to_vec();
    let records = fields(&bytes).filter(|field| field.number == answer.field);
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
    fn the_answers_are_in_order_and_those_of_creates_are_known() {
        assert!(ANSWERS.is_sorted_by_key(|answer| answer.path));
        for path in ["/admin.billing.v1.ProductService/CreateProduct", "/admin.crm.v1.DealService/MoveDeal"] {
            assert!(ANSWERS.iter().any(|answer| answer.path == path), "{path}");
        }
    }
}
