//! A single value of a request: parsed from JSON or from a query parameter, written as wire bytes.

use std::borrow::Cow;

use chrono::{DateTime, Datelike};
use proto::api::Fault;

use super::json::Json;
use super::numbers::{NotWhole, is_number, whole};
use super::plan::{Field, Kind, Names};
use super::wire::{put_bytes, put_nested, put_number, put_varint};

#[derive(Debug)]
pub(crate) enum Scalar<'a> {
    Varint(u64),
    Text(Cow<'a, str>),
    Time { seconds: i64, nanos: u32 },
}

/// The fault of a value; `detail` continues a sentence that begins with the field's name.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub fault: Fault,
    pub detail: Cow<'static, str>,
}

fn wrong<T>(fault: Fault, detail: impl Into<Cow<'static, str>>) -> Result<T, Wrong> {
    Err(Wrong { fault, detail: detail.into() })
}

impl<'a> Scalar<'a> {
    pub(crate) fn from_json(kind: &Kind, json: &'a Json<'a>) -> Result<Self, Wrong> {
        match (kind, json) {
            (Kind::Bool, Json::Bool(value)) => Ok(Self::Varint(u64::from(*value))),
            (Kind::Bool, _) => wrong(Fault::NotABoolean, "must be true or false"),
            (Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64, Json::Number(text)) => {
                Self::from_number(kind, text)
            }
            (Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64, _) => not_an_integer(),
            (Kind::Enum(names), Json::String(text)) => Self::from_name(names, text),
            (Kind::Enum(names), _) => not_allowed(names),
            (Kind::Decimal | Kind::Percentage, Json::Number(text)) => Ok(Self::Text(Cow::Borrowed(text))),
            (Kind::Decimal, Json::String(text)) => Self::from_decimal(text),
            (Kind::Decimal, _) => not_a_number(),
            (Kind::Percentage, json) if !matches!(json, Json::String(_)) => {
                wrong(Fault::NotANumber, proto::percentage::Error::NotANumber.to_string())
            }
            (Kind::Json | Kind::Document, Json::Object(_)) => Self::from_free_json(json),
            (Kind::Json, _) => wrong(Fault::NotAnObject, "must be an object"),
            (Kind::Timestamp, Json::String(text)) => Self::from_time(text),
            (Kind::Timestamp, _) => not_a_time(),
            (Kind::Document, json) if !matches!(json, Json::String(_)) => {
                wrong(Fault::NotAString, "must be a text or an object")
            }
            (_, Json::String(text)) => Ok(Self::Text(Cow::Borrowed(text))),
            _ => wrong(Fault::NotAString, "must be a text"),
        }
    }

    /// Parses a query parameter, which must not be empty.
    pub(crate) fn from_parameter(kind: &Kind, text: &'a str) -> Result<Self, Wrong> {
        match kind {
            Kind::Bool => match text {
                "true" | "1" => Ok(Self::Varint(1)),
                "false" | "0" => Ok(Self::Varint(0)),
                _ => wrong(Fault::NotABoolean, "must be true or false"),
            },
            Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return not_an_integer();
                }
                Self::from_number(kind, text)
            }
            Kind::Enum(names) => Self::from_name(names, text),
            Kind::Decimal => Self::from_decimal(text),
            Kind::Timestamp => Self::from_time(text),
            _ => Ok(Self::Text(Cow::Borrowed(text))),
        }
    }

    fn from_number(kind: &Kind, text: &str) -> Result<Self, Wrong> {
        let (min, max) = match kind {
            Kind::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Kind::Uint32 => (0, u32::MAX.into()),
            Kind::Uint64 => (0, i64::MAX),
            _ => (i64::MIN, i64::MAX),
        };
        match whole(text) {
            Ok(value) if (min..=max).contains(&value) => Ok(Self::Varint(value.cast_unsigned())),
            Ok(_) | Err(NotWhole::OutOfRange) => {
                wrong(Fault::OutOfRange, format!("must be between {min} and {max}"))
            }
            Err(NotWhole::Fraction) => not_an_integer(),
        }
    }

    fn from_name(names: &Names, text: &str) -> Result<Self, Wrong> {
        match names.number(text) {
            Some(number) => Ok(Self::Varint(i64::from(number).cast_unsigned())),
            None => not_allowed(names),
        }
    }

    /// A text may have leading zeros, which a JSON number may not; the service removes them.
    fn from_decimal(text: &'a str) -> Result<Self, Wrong> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let zeros = unsigned.bytes().take_while(|byte| *byte == b'0').count();
        let padding = match unsigned.as_bytes().get(zeros) {
            Some(digit) if digit.is_ascii_digit() => zeros,
            _ => zeros.saturating_sub(1),
        };
        if unsigned.starts_with('-') || !is_number(&unsigned[padding..]) {
            return not_a_number();
        }
        Ok(Self::Text(Cow::Borrowed(text)))
    }

    /// The check for U+0000 happens here, because the service would see only its escape.
    fn from_free_json(json: &Json<'_>) -> Result<Self, Wrong> {
        if json.has_nul() {
            return wrong(Fault::BadText, "must not contain the character U+0000");
        }
        let mut text = Vec::new();
        json.write(&mut text);
        Ok(Self::Text(Cow::Owned(String::from_utf8_lossy(&text).into_owned())))
    }

    fn from_time(text: &str) -> Result<Self, Wrong> {
        match DateTime::parse_from_rfc3339(text) {
            Ok(time) if (1..=9999).contains(&time.to_utc().year()) => Ok(Self::Time {
                seconds: time.timestamp(),
                // Chrono represents a leap second with nanos above one second, which protobuf does not allow.
                nanos: time.timestamp_subsec_nanos().min(999_999_999),
            }),
            _ => not_a_time(),
        }
    }

    /// Appends the field. A default value is left out unless `keep_default` is set.
    pub(crate) fn put(&self, field: &Field, keep_default: bool, out: &mut Vec<u8>) {
        match self {
            Self::Varint(0) if !keep_default => {}
            Self::Varint(value) => put_number(field.number, *value, out),
            Self::Text(text) if text.is_empty() && !keep_default => {}
            Self::Text(text) => put_bytes(field.number, text.as_bytes(), out),
            Self::Time { seconds, nanos } => put_nested(field.number, out, |out| {
                if *seconds != 0 {
                    put_number(1, seconds.cast_unsigned(), out);
                }
                if *nanos != 0 {
                    put_number(2, (*nanos).into(), out);
                }
            }),
        }
    }

    /// Stands for a list entry that could not be parsed, so that later entries keep their index.
    pub(crate) fn placeholder(kind: &Kind) -> Self {
        match kind {
            kind if kind.is_varint() => Self::Varint(0),
            Kind::Timestamp => Self::Time { seconds: 0, nanos: 0 },
            _ => Self::Text(Cow::Borrowed("")),
        }
    }
}

/// Appends a list of scalars; numbers are packed, as in proto3.
pub(crate) fn put_list(field: &Field, items: &[Scalar<'_>], out: &mut Vec<u8>) {
    if !field.kind.is_varint() {
        for item in items {
            item.put(field, true, out);
        }
    } else if !items.is_empty() {
        put_nested(field.number, out, |out| {
            for item in items {
                if let Scalar::Varint(value) = item {
                    put_varint(*value, out);
                }
            }
        });
    }
}

fn not_an_integer<T>() -> Result<T, Wrong> {
    wrong(Fault::NotAnInteger, "must be a whole number")
}

fn not_a_number<T>() -> Result<T, Wrong> {
    wrong(Fault::NotANumber, "must be a number")
}

fn not_a_time<T>() -> Result<T, Wrong> {
    wrong(Fault::NotATime, "must be an RFC 3339 timestamp, for example 2026-11-14T09:30:00Z")
}

fn not_allowed<T>(names: &Names) -> Result<T, Wrong> {
    wrong(Fault::NotAllowed, format!("must be one of: {}", names.list))
}
