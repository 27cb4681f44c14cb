//! A strict JSON parser (RFC 8259) into a tree that borrows from the body. Numbers keep their text.
//!
//! Parsing is linear in the size of the body, and the depth limit bounds its use of the stack.

use std::borrow::Cow;
use std::collections::HashMap;

use super::malformed::Malformed;
use super::numbers::number_length;
use super::text::put_string;

/// A JSON value. Objects keep their entries in order, repeated keys included; the last entry of a key counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Why a body cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Malformed(Malformed),
    /// The body is nested more deeply than allowed; parsing stopped there.
    TooDeep,
}

/// Parses one JSON value. `max_depth` limits the nesting of arrays and objects.
pub(crate) fn parse(body: &[u8], max_depth: usize) -> Result<Json<'_>, Failure> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        Failure::Malformed(Malformed::new(format!(
            "The body is not valid UTF-8: byte {at} begins no character."
        )))
    })?;
    let mut parser = Parser { text, bytes: body, at: 0 };
    parser.skip_space();
    let value = parser.value(max_depth)?;
    parser.skip_space();
    if parser.at < body.len() {
        return Err(parser.expected("the end of the body"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth_left: usize) -> Result<Json<'a>, Failure> {
        match self.peek() {
            Some(b'{') => self.object(depth_left.checked_sub(1).ok_or(Failure::TooDeep)?),
            Some(b'[') => self.array(depth_left.checked_sub(1).ok_or(Failure::TooDeep)?),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn object(&mut self, depth_left: usize) -> Result<Json<'a>, Failure> {
        let mut entries = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(entries));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("`:`"));
            }
            self.skip_space();
            entries.push((key, self.value(depth_left)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(entries));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `}`"));
            }
            self.skip_space();
        }
    }

    fn array(&mut self, depth_left: usize) -> Result<Json<'a>, Failure> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth_left)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `]`"));
            }
            self.skip_space();
        }
    }

    fn number(&mut self) -> Result<Json<'a>, Failure> {
        match number_length(&self.bytes[self.at..]) {
            0 => Err(self.expected("a number")),
            length => {
                let start = self.at;
                self.at += length;
                Ok(Json::Number(&self.text[start..self.at]))
            }
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, Failure> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.expected("a value"))
        }
    }

    /// Parses from the opening quote; borrows unless there is an escape.
    fn string(&mut self) -> Result<Cow<'a, str>, Failure> {
        self.at += 1;
        let mut plain_from = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let plain = &self.text[plain_from..self.at];
                    self.at += 1;
                    return Ok(match unescaped {
                        None => Cow::Borrowed(plain),
                        Some(text) => Cow::Owned(text + plain),
                    });
                }
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(&self.text[plain_from..self.at]);
                    text.push(self.escape()?);
                    plain_from = self.at;
                }
                Some(0..0x20) => return Err(self.expected("an escape instead of a control character")),
                Some(_) => self.at += 1,
                None => return Err(self.expected("the closing quote of a string")),
            }
        }
    }

    /// Parses from the backslash.
    fn escape(&mut self) -> Result<char, Failure> {
        let character = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.expected("a valid escape")),
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char, Failure> {
        let (code, length) = match (self.hex_unit(self.at), self.hex_unit(self.at + 6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
            }
            (Some(unit), _) => (unit, 6),
            (None, _) => return Err(self.expected("four hexadecimal digits after `\\u`")),
        };
        let character =
            char::from_u32(code).ok_or_else(|| self.expected("both halves of a surrogate pair"))?;
        self.at += length;
        Ok(character)
    }

    /// The code of `\uXXXX` at this position, if there is one.
    fn hex_unit(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> Failure {
        // The position is always at the start of a character, because parsing advances by whole characters.
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let found = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(character) => format!("found {character:?}"),
            None => "the body ends there".to_owned(),
        };
        Failure::Malformed(Malformed::new(format!(
            "The body is not JSON: expected {what} at line {line}, column {column}; {found}."
        )))
    }
}

impl Json<'_> {
    /// Appends compact JSON text: each key once (the last entry counts), numbers verbatim.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
            Self::String(text) => put_string(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(entries) => write_object(entries, out),
        }
    }

    /// Whether a key or a text at any depth contains the character U+0000.
    pub(crate) fn has_nul(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
            Self::String(text) => text.contains('\0'),
            Self::Array(items) => items.iter().any(Json::has_nul),
            Self::Object(entries) => entries.iter().any(|(key, value)| key.contains('\0') || value.has_nul()),
        }
    }
}

fn write_object(entries: &[(Cow<'_, str>, Json<'_>)], out: &mut Vec<u8>) {
    let last: HashMap<&str, usize> =
        entries.iter().enumerate().map(|(index, (key, _))| (key.as_ref(), index)).collect();
    out.push(b'{');
    let mut first = true;
    for (index, (key, value)) in entries.iter().enumerate() {
        if last.get(key.as_ref()) == Some(&index) {
            if !first {
                out.push(b',');
            }
            first = false;
            put_string(key, out);
            out.push(b':');
            value.write(out);
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compact(body: &str) -> Result<String, Failure> {
        let mut out = Vec::new();
        parse(body.as_bytes(), 32)?.write(&mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    fn detail(body: &[u8]) -> String {
        match parse(body, 32) {
            Err(Failure::Malformed(malformed)) => malformed.detail,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_stay_verbatim_and_the_last_of_a_key_counts() {
        let body =
            r#" { "a" : [ 0.1 , 12345678901234567890.123, -0e+10 ] , "b":1, "b":{"x":null,"x":true} } "#;
        assert_eq!(
            compact(body).as_deref(),
            Ok(r#"{"a":[0.1,12345678901234567890.123,-0e+10],"b":{"x":true}}"#)
        );
    }

    #[test]
    fn escapes_are_read() {
        let text = r#""\"\\\/\b\f\n\r\tx\u00e9\u20AC\ud83d\ude00\u0000é""#;
        let expected = "\"\\/\u{8}\u{c}\n\r\txé€😀\0é";
        assert_eq!(parse(text.as_bytes(), 32), Ok(Json::String(expected.into())));
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        assert_eq!(
            detail(b"{\n \"a\": tru}"),
            "The body is not JSON: expected a value at line 2, column 7; found 't'."
        );
        assert_eq!(
            detail("{\"é\" 1}".as_bytes()),
            "The body is not JSON: expected `:` at line 1, column 6; found '1'."
        );
        assert_eq!(
            detail(b"{\"a\":1"),
            "The body is not JSON: expected `,` or `}` at line 1, column 7; the body ends there."
        );
        assert_eq!(detail(b"\"a\xff\""), "The body is not valid UTF-8: byte 2 begins no character.");
        let bad: &[&[u8]] = &[
            b"",
            b" ",
            b"{",
            b"[",
            b"[1,]",
            b"{\"a\":1,}",
            b"{a:1}",
            b"'a'",
            b"01",
            b"1.",
            b"+1",
            b"-",
            b"nul",
            b"\"\x01\"",
            b"\"\\x\"",
            b"\"\\u12\"",
            b"\"\\u12g4\"",
            b"\"\\ud800\"",
            b"\"\\udc00\"",
            b"\"\\ud800\\u0041\"",
            b"\"\\ud800\\\"",
            b"1 2",
            b"{} x",
            b"\xef\xbb\xbf{}",
            b"[1 2]",
            b"\"abc",
            b"\"\\",
            b"NaN",
            b"\x0b1",
        ];
        for body in bad {
            detail(body);
        }
    }

    #[test]
    fn depth_is_limited_and_never_overflows_the_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(32).as_bytes(), 32).is_ok());
        assert_eq!(parse(nested(33).as_bytes(), 32), Err(Failure::TooDeep));
        assert_eq!(parse("[".repeat(1_000_000).as_bytes(), 32), Err(Failure::TooDeep));
        assert_eq!(parse("{\"a\":".repeat(100_000).as_bytes(), 32), Err(Failure::TooDeep));
    }

    #[test]
    fn a_megabyte_of_keys_is_read_and_written() {
        let same = format!("{{{}\"a\":1}}", "\"a\":0,".repeat(300_000));
        assert_eq!(compact(&same).as_deref(), Ok(r#"{"a":1}"#));
        let keys: Vec<String> = (0..100_000).map(|index| format!("\"{index}\":0")).collect();
        let many = format!("{{{}}}", keys.join(","));
        assert_eq!(compact(&many).as_ref(), Ok(&many));
    }

    proptest! {
        #[test]
        fn reading_agrees_with_serde_json(body in r#"[\[\]{}:,"\\u0-9aeE.\-+ tfn]{0,24}"#) {
            let ours = compact(&body).is_ok();
            // serde_json also refuses numbers beyond f64, which are valid JSON.
            match serde_json::from_str::<serde_json::Value>(&body) {
                Ok(_) => prop_assert!(ours, "{}", body),
                Err(error) => prop_assert!(!ours || error.to_string().contains("out of range"), "{}: {}", body, error),
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&body, 32);
        }
    }
}
