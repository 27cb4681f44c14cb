//! The same message in other bytes: fields in another order, messages in parts, lists packed or not, unknown fields.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use prost_reflect::{Kind, MessageDescriptor};

/// A small generator of our own, so that a failing case is named by its seed.
pub(crate) struct Dice(pub u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

type Record = (u32, Vec<u8>);

pub(crate) fn scramble(descriptor: &MessageDescriptor, wire: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut records = Vec::new();
    for (number, kind, content) in split(wire) {
        let field = descriptor.get_field(number).unwrap();
        match field.kind() {
            Kind::Message(inner) => {
                let content = scramble(&inner, &content, dice);
                let parts = split(&content);
                if field.is_list() || dice.roll(2) == 0 {
                    records.push(bytes_record(number, &content));
                } else {
                    let middle = dice.roll(parts.len() + 1);
                    records.push(bytes_record(number, &joined(&parts[..middle])));
                    records.push(bytes_record(number, &joined(&parts[middle..])));
                }
            }
            _ if field.is_packed() && dice.roll(2) == 0 => {
                let mut rest = content.as_slice();
                while !rest.is_empty() {
                    records.push(varint_record(number, decode_varint(&mut rest).unwrap()));
                }
            }
            _ if kind == WireType::LengthDelimited => records.push(bytes_record(number, &content)),
            _ => {
                if !field.is_list() && dice.roll(4) == 0 {
                    // An earlier value that the last one replaces.
                    records.push(varint_record(number, 1));
                }
                records.push(varint_record(number, decode_varint(&mut content.as_slice()).unwrap()));
            }
        }
    }
    for unknown in [varint_record(1990, 7), bytes_record(1991, b"\xff\xff"), fixed_record(1992)] {
        if dice.roll(3) == 0 {
            records.insert(dice.roll(records.len() + 1), unknown);
        }
    }
    shuffle(&mut records, dice);
    records.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// Occurrences of one number keep their order: it has a meaning.
fn shuffle(records: &mut [Record], dice: &mut Dice) {
    for _ in 0..records.len() * records.len() {
        let left = dice.roll(records.len().saturating_sub(1).max(1));
        if left + 1 < records.len() && records[left].0 != records[left + 1].0 {
            records.swap(left, left + 1);
        }
    }
}

/// Number, wire type and content of each field; unknown ones of the inner message come through here again.
fn split(mut wire: &[u8]) -> Vec<(u32, WireType, Vec<u8>)> {
    let mut fields = Vec::new();
    while !wire.is_empty() {
        let (number, kind) = decode_key(&mut wire).unwrap();
        let length = match kind {
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut wire).unwrap()).unwrap(),
            WireType::Varint => wire.iter().position(|byte| *byte < 0x80).unwrap() + 1,
            WireType::ThirtyTwoBit => 4,
            other => panic!("{other:?}"),
        };
        fields.push((number, kind, wire[..length].to_vec()));
        wire = &wire[length..];
    }
    fields
}

fn joined(fields: &[(u32, WireType, Vec<u8>)]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (number, kind, content) in fields {
        encode_key(*number, *kind, &mut wire);
        if *kind == WireType::LengthDelimited {
            encode_varint(content.len() as u64, &mut wire);
        }
        wire.extend_from_slice(content);
    }
    wire
}

fn bytes_record(number: u32, content: &[u8]) -> Record {
    (number, joined(&[(number, WireType::LengthDelimited, content.to_vec())]))
}

fn varint_record(number: u32, value: u64) -> Record {
    let mut content = Vec::new();
    encode_varint(value, &mut content);
    (number, joined(&[(number, WireType::Varint, content)]))
}

fn fixed_record(number: u32) -> Record {
    (number, joined(&[(number, WireType::ThirtyTwoBit, vec![1, 2, 3, 4])]))
}
