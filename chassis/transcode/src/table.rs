//! The records of a list as lines: CSV (RFC 4180), or a JSON object in each line.

use std::borrow::Cow;

use super::plan::Shape;
use super::render::{RenderError, Renderer, ResponsePlan, Slot};
use super::wire::Value;

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A column for each field. Fields of an object in the record have the name of both, `meta.version`; a list is its JSON.
    Csv,
    /// One record in each line.
    Ndjson,
}

impl TableFormat {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

impl ResponsePlan {
    /// Appends the line of names, if the form has one.
    pub fn put_names(&self, format: TableFormat, out: &mut Vec<u8>) {
        let Some((_, record)) = self.record().filter(|_| format == TableFormat::Csv) else { return };
        let mut names = Vec::new();
        collect_names(record, "", &mut names);
        out.extend_from_slice(names.join(",").as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Appends a line for each record of the response.
    pub fn put_rows(&self, format: TableFormat, wire: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        let Some((_, shape)) = self.record() else { return Ok(()) };
        for record in self.records(wire)? {
            let content = Slot::One(Value::Bytes(record));
            match format {
                TableFormat::Ndjson => {
                    Renderer::new(out).message(shape, content)?;
                    out.push(b'\n');
                }
                TableFormat::Csv => {
                    Renderer::new(out).leaves(shape, content, &mut end_cell)?;
                    // What follows the last cell is the end of the line.
                    out.pop();
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        Ok(())
    }
}

fn collect_names(shape: &Shape, above: &str, names: &mut Vec<String>) {
    for field in &shape.fields {
        let name = format!("{above}{}", field.name);
        match field.inner() {
            Some(inner) => collect_names(inner, &format!("{name}."), names),
            None => names.push(name),
        }
    }
}

/// Makes a cell of the JSON from `start` on: a text without its quotes, nothing of `null`, and everything else as it is.
fn end_cell(start: usize, out: &mut Vec<u8>) {
    let text = match &out[start..] {
        b"null" => Some(String::new()),
        // What was written by the renderer is a JSON text.
        json @ [b'"', ..] => {
            let text: String = serde_json::from_slice(json).unwrap_or_default();
            Some(harmless(&text).into_owned())
        }
        json @ [b'[' | b'{', ..] => Some(String::from_utf8_lossy(json).into_owned()),
        _ => None,
    };
    if let Some(text) = text {
        out.truncate(start);
        out.extend_from_slice(quoted(&text).as_bytes());
    }
    out.push(b',');
}

/// A spreadsheet takes a cell that begins like a formula for one, and carries it out. Texts come from strangers too, so such
/// a text gets an apostrophe in front, which makes it a text there. A telephone number such as `+31 6 1234` is none.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_formula = match text.as_bytes() {
        [b'=' | b'@' | b'\t' | b'\r' | b'\n', ..] => true,
        [b'+' | b'-', rest @ ..] => {
            rest.iter().any(|byte| !(byte.is_ascii_digit() || b" .()/-".contains(byte)))
        }
        _ => false,
    };
    if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

fn quoted(text: &str) -> Cow<'_, str> {
    let needs_quotes = text.contains([',', '"', '\r', '\n']) || text.starts_with(' ') || text.ends_with(' ');
    if needs_quotes { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(json: &str) -> String {
        let mut out = json.as_bytes().to_vec();
        end_cell(0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cell_is_the_value_and_quoted_where_that_is_needed() {
        for (json, expected) in [
            ("null", ","),
            (r#""""#, ","),
            ("12.50", "12.50,"),
            ("-3", "-3,"),
            ("true", "true,"),
            (r#""plain""#, "plain,"),
            (r#""a,b""#, "\"a,b\","),
            (r#""say \"hi\"""#, "\"say \"\"hi\"\"\","),
            (r#""two\nlines""#, "\"two\nlines\","),
            (r#"" x""#, "\" x\","),
            (r#""caf\u00e9""#, "café,"),
            ("[]", "[],"),
            (r#"["a",1]"#, "\"[\"\"a\"\",1]\","),
            (r#"{"a":1}"#, "\"{\"\"a\"\":1}\","),
        ] {
            assert_eq!(cell(json), expected, "{json}");
        }
    }

    #[test]
    fn a_text_never_becomes_a_formula() {
        for formula in ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\\t=1", "-x"] {
            assert!(cell(&format!("\"{formula}\"")).trim_start_matches('"').starts_with('\''), "{formula}");
        }
        for text in ["+31 6 12345678", "-", "a=b", "1+1", "-12.50"] {
            assert_eq!(cell(&format!("\"{text}\"")), format!("{text},"), "{text}");
        }
    }
}
