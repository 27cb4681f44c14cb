//! The protobuf wire format: reads fields from untrusted bytes, and writes them. Does not depend on descriptors.

/// Why bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the message ends inside a field")]
    Truncated,
    #[error("a varint has more than 64 bits")]
    LongVarint,
    #[error("a field has no valid key")]
    BadKey,
    #[error("groups are not supported")]
    Group,
}

/// The encoded value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes, which no kind of the contract uses.
    Fixed,
}

/// Reads the fields of one message in the order in which they were written.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field's number and value; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = u32::try_from(self.varint()?).map_err(|_| WireError::BadKey)?;
        let number = key >> 3;
        if number == 0 {
            return Err(WireError::BadKey);
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.fixed(8)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Value::Bytes(self.take(length)?)
            }
            3 | 4 => return Err(WireError::Group),
            5 => self.fixed(4)?,
            _ => return Err(WireError::BadKey),
        };
        Ok(Some((number, value)))
    }

    /// The next varint of a packed list; `None` at the end.
    pub(crate) fn next_packed(&mut self) -> Result<Option<u64>, WireError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed(&mut self, length: usize) -> Result<Value<'a>, WireError> {
        self.take(length).map(|_| Value::Fixed)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            // The tenth byte has room for one bit only.
            if index == 9 && byte > 1 {
                return Err(WireError::LongVarint);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { WireError::Truncated } else { WireError::LongVarint })
    }
}

pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(crate) fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3, out);
    put_varint(value, out);
}

pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A length-delimited field whose content `write` appends. The length is rotated to the front afterwards, so that the
/// content needs no buffer of its own.
pub(crate) fn put_nested<T>(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    put_varint(u64::from(number) << 3 | 2, out);
    let start = out.len();
    let result = write(out);
    let end = out.len();
    put_varint((end - start) as u64, out);
    let length_bytes = out.len() - end;
    out[start..].rotate_right(length_bytes);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_their_edges() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_number(5, value, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.next(), Ok(Some((5, Value::Varint(value)))));
            assert_eq!(reader.next(), Ok(None));
        }
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let cases: [(&[u8], WireError); 8] = [
            (&[0x08], WireError::Truncated),
            (&[0x12, 5, 1], WireError::Truncated),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], WireError::Truncated),
            (&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], WireError::LongVarint),
            (&[0x00, 1], WireError::BadKey),
            (&[0x0b, 0x0c], WireError::Group),
            (&[0x0e], WireError::BadKey),
            (&[0x0d, 1, 2, 3], WireError::Truncated),
        ];
        for (bytes, error) in cases {
            assert_eq!(Reader::new(bytes).next(), Err(error), "{bytes:?}");
        }
    }

    #[test]
    fn a_nested_field_of_any_length_has_its_length_in_front() {
        for length in [0, 1, 127, 128, 20_000] {
            let content = vec![7_u8; length];
            let (mut nested, mut plain) = (vec![1], vec![1]);
            put_nested(3, &mut nested, |out| out.extend_from_slice(&content));
            put_bytes(3, &content, &mut plain);
            assert_eq!(nested, plain);
        }
    }
}
