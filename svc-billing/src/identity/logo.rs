//! Which pictures can be a logo: rules long enough for a file of their own. The format is detected from the content,
//! never from a name. Pure.

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use render::printed::LogoFormat;

const MAX_BYTES: usize = 512 * 1024;
/// Pixels of a side. A small file can hold a picture that takes gigabytes to draw.
const MAX_SIDE: u32 = 4096;

/// The depth of nested elements. Renderers may walk a picture recursively.
const MAX_DEPTH: usize = 100;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// The reason for which a picture is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("logo must have at most 512 KiB")]
    TooLarge,
    #[error("logo must be a PNG, a JPEG or an SVG")]
    UnknownFormat,
    #[error("logo must have at most {MAX_SIDE} pixels on each side")]
    TooManyPixels,
    #[error(
        "logo must be a plain SVG: well formed, without scripts, document types and references to elsewhere"
    )]
    NotPlain,
}

pub(super) fn check(bytes: &[u8]) -> Result<LogoFormat, Refusal> {
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::TooLarge);
    }
    if bytes.starts_with(PNG) {
        check_size(png_size(bytes)).map(|()| LogoFormat::Png)
    } else if bytes.starts_with(JPEG) {
        check_size(jpeg_size(bytes)).map(|()| LogoFormat::Jpeg)
    } else {
        check_svg(bytes).map(|()| LogoFormat::Svg)
    }
}

fn check_size(size: Option<(u32, u32)>) -> Result<(), Refusal> {
    match size {
        None | Some((0, _) | (_, 0)) => Err(Refusal::UnknownFormat),
        Some((width, height)) if width.max(height) > MAX_SIDE => Err(Refusal::TooManyPixels),
        Some(_) => Ok(()),
    }
}

/// From the header, which is the first chunk.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |from: usize| Some(u32::from_be_bytes(bytes.get(from..from + 4)?.try_into().ok()?));
    if bytes.get(12..16)? == b"IHDR" { Some((number(16)?, number(20)?)) } else { None }
}

/// From the frame header, which comes after any number of other segments.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |from: usize| Some(u16::from_be_bytes(bytes.get(from..from + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Fill bytes may come before a marker.
            0xff => at += 1,
            // A frame header; C4, C8 and CC are other tables.
            marker @ 0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((number(at + 7)?.into(), number(at + 5)?.into()));
            }
            // The picture itself or its end, before any frame header.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::from(number(at + 2)?.max(2)),
        }
    }
}

fn check_svg(bytes: &[u8]) -> Result<(), Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::UnknownFormat)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('<') {
        return Err(Refusal::UnknownFormat);
    }
    let mut reader = Reader::from_str(text);
    let (mut depth, mut has_root) = (0_usize, false);
    // The text of a style element. It may come in pieces, and a rule may span several of them.
    let mut style: Option<String> = None;
    loop {
        let event = reader.read_event().map_err(|_| Refusal::NotPlain)?;
        match (event, &mut style) {
            (Event::Text(text), Some(style)) => style.push_str(&text),
            (Event::CData(text), Some(style)) => style.push_str(&text),
            (Event::End(_), Some(text)) => {
                check_style(text)?;
                style = None;
                depth -= 1;
            }
            // Nothing else is allowed in a style: an element, a comment or a reference could hide a rule.
            (_, Some(_)) | (Event::DocType(_) | Event::PI(_), None) => return Err(Refusal::NotPlain),
            (Event::Start(element), None) => {
                check_root(&element, depth, &mut has_root)?;
                check_element(&element)?;
                style = (element.local_name().as_ref() == "style").then(String::new);
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Refusal::NotPlain);
                }
            }
            (Event::Empty(element), None) => {
                check_root(&element, depth, &mut has_root)?;
                check_element(&element)?;
            }
            (Event::End(_), None) => depth = depth.saturating_sub(1),
            (
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) | Event::Decl(_) | Event::Comment(_),
                None,
            ) => {}
            (Event::Eof, None) if has_root && depth == 0 => return Ok(()),
            (Event::Eof, None) => return Err(Refusal::UnknownFormat),
        }
    }
}

/// A document has one outermost element, and here it is `svg`.
fn check_root(element: &BytesStart<'_>, depth: usize, has_root: &mut bool) -> Result<(), Refusal> {
    if depth > 0 {
        return Ok(());
    }
    if *has_root || element.local_name().as_ref() != "svg" {
        return Err(Refusal::UnknownFormat);
    }
    *has_root = true;
    Ok(())
}

fn check_element(element: &BytesStart<'_>) -> Result<(), Refusal> {
    let name = element.local_name().as_ref().to_ascii_lowercase();
    if matches!(name.as_str(), "script" | "foreignobject" | "iframe" | "embed" | "object" | "handler") {
        return Err(Refusal::NotPlain);
    }
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|_| Refusal::NotPlain)?;
        let name = attribute.key.local_name().as_ref().to_ascii_lowercase();
        // Character references are resolved first, because they could spell a refused word in another way.
        let value = unescape(&attribute.value).map_err(|_| Refusal::NotPlain)?;
        let allowed = match name.as_str() {
            "href" | "src" => is_inside(&value),
            "base" => false,
            name if name.starts_with("on") => false,
            _ => check_style(&value).is_ok(),
        };
        if !allowed {
            return Err(Refusal::NotPlain);
        }
    }
    Ok(())
}

/// Whether a reference points into the picture itself or to an embedded picture.
fn is_inside(reference: &str) -> bool {
    let reference = reference.trim_start().to_ascii_lowercase();
    reference.is_empty() || reference.starts_with('#') || reference.starts_with("data:image/")
}

/// Refuses style rules that point elsewhere. Escapes are refused as well, because one could hide such a rule.
fn check_style(text: &str) -> Result<(), Refusal> {
    let text = text.to_ascii_lowercase();
    let outside = text.split("url(").skip(1).any(|rest| {
        let rest = rest.trim_start().trim_start_matches(['"', '\'']);
        !is_inside(rest) || rest.is_empty()
    });
    if outside || text.contains("@import") || text.contains("javascript:") || text.contains('\\') {
        return Err(Refusal::NotPlain);
    }
    Ok(())
}

#[cfg(test)]
#[path = "logo_tests.rs"]
mod tests;
