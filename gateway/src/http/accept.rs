//! What a caller takes: the weights of `Accept` (RFC 9110, 12.5.1).

use chassis_transcode::TableFormat;
use http::{HeaderMap, header};

/// The media types of JSON with an object in each line. None is registered; all are in use.
const LINES: [&str; 4] = ["x-ndjson", "ndjson", "jsonl", "x-jsonlines"];

/// Whether `Accept` puts a page above JSON. Programs that accept anything get JSON.
pub(super) fn prefers_page(headers: &HeaderMap) -> bool {
    let accept = joined(headers);
    let json = weight(&accept, "application", "problem+json").max(weight(&accept, "application", "json"));
    weight(&accept, "text", "html") > json
}

/// The form in which a caller wants the records of a list; `None` for the envelope, which callers get that accept anything.
pub(super) fn table(headers: &HeaderMap) -> Option<TableFormat> {
    let accept = joined(headers);
    let (csv, lines) = (csv(&accept), lines(&accept));
    if csv.max(lines) <= weight(&accept, "application", "json") {
        return None;
    }
    Some(if lines > csv { TableFormat::Ndjson } else { TableFormat::Csv })
}

/// The form in which a caller wants all of a list: CSV, unless it asks for JSON of any kind.
pub(super) fn export(headers: &HeaderMap) -> TableFormat {
    let accept = joined(headers);
    let json = lines(&accept).max(weight(&accept, "application", "json"));
    if json > csv(&accept) { TableFormat::Ndjson } else { TableFormat::Csv }
}

fn csv(accept: &str) -> u16 {
    weight(accept, "text", "csv")
}

fn lines(accept: &str) -> u16 {
    LINES.iter().map(|subtype| weight(accept, "application", subtype)).max().unwrap_or_default()
}

fn joined(headers: &HeaderMap) -> String {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The weight of a media type (RFC 9110, 12.5.1), in thousandths: that of the range that names it most closely.
fn weight(accept: &str, kind: &str, subtype: &str) -> u16 {
    let mut found = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let (range_kind, range_subtype) =
            parts.next().and_then(|range| range.split_once('/')).unwrap_or_default();
        let closeness = match (range_kind, range_subtype) {
            ("*", "*") => 1,
            (same, "*") if same.eq_ignore_ascii_case(kind) => 2,
            (same, sub) if same.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => 3,
            _ => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        if closeness > found.0 {
            found = (closeness, quality.map_or(1000, thousandths));
        }
    }
    found.1
}

/// `0.8` is 800. What is not a weight counts as 0.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction:0<3}");
    match digits.parse::<u16>() {
        Ok(value) if whole.len() == 1 && fraction.len() <= 3 && value <= 1000 => value,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(accept: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn browsers_get_pages_and_programs_get_json() {
        let prefers = |values: &[&str]| prefers_page(&with(values));
        assert!(prefers(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]));
        assert!(
            prefers(&["text/html"])
                && prefers(&["text/*"])
                && prefers(&["application/json;q=0.5", "TEXT/HTML"])
        );
        assert!(prefers(&["application/json; q=0.899, text/html; q=0.9"]));
        for accept in [
            "",
            "*/*",
            "application/json",
            "text/html;q=0",
            "text/html;q=0.5, application/json",
            "text/html, */*",
            "application/problem+json, text/html",
            "text/html;q=2",
            "text/html;q=.9",
            "text/html;q=0.1234",
            ",;/,",
        ] {
            assert!(!prefers(&[accept]), "{accept}");
        }
        assert!(!prefers(&[]));
    }

    #[test]
    fn a_list_is_a_table_for_whoever_asks_for_one() {
        for (accept, in_list, in_export) in [
            (&["text/csv"][..], Some(TableFormat::Csv), TableFormat::Csv),
            (&["application/x-ndjson"], Some(TableFormat::Ndjson), TableFormat::Ndjson),
            (&["application/jsonl"], Some(TableFormat::Ndjson), TableFormat::Ndjson),
            (&["application/json;q=0.5", "text/csv"], Some(TableFormat::Csv), TableFormat::Csv),
            (&["application/json, text/csv;q=0.9"], None, TableFormat::Ndjson),
            (&["application/json"], None, TableFormat::Ndjson),
            (&["text/csv;q=0.1, application/x-ndjson;q=0.2"], Some(TableFormat::Ndjson), TableFormat::Ndjson),
            (&["*/*"], None, TableFormat::Csv),
            (&["image/png"], None, TableFormat::Csv),
            (&[], None, TableFormat::Csv),
        ] {
            assert_eq!((table(&with(accept)), export(&with(accept))), (in_list, in_export), "{accept:?}");
        }
    }
}
