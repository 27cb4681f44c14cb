//! Which logos are passed to the layout, where they are decoded. Images that would cost far more memory or time than a
//! logo should are left out here.

use crate::printed::{Logo, LogoFormat};

const MAX_BYTES: usize = 4 << 20;
/// A decoded image of this many pixels takes 64 MB.
const MAX_PIXELS: u64 = 16_000_000;
/// The number of `use` elements in an SVG. Nested ones multiply.
const MAX_USES: usize = 24;

/// The layout's name of the format, or `None` when the logo is to be left out.
pub(super) fn format(logo: &Logo) -> Option<&'static str> {
    if logo.bytes.is_empty() || logo.bytes.len() > MAX_BYTES {
        return None;
    }
    let size = match logo.format {
        LogoFormat::Png => png_size(&logo.bytes),
        LogoFormat::Jpeg => jpeg_size(&logo.bytes),
        LogoFormat::Svg => return is_plain_svg(&logo.bytes).then_some("svg"),
    };
    let (width, height) = size?;
    let pixels = u64::from(width) * u64::from(height);
    let name = if logo.format == LogoFormat::Png { "png" } else { "jpg" };
    (1..=MAX_PIXELS).contains(&pixels).then_some(name)
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?.get(8..16)?;
    let (width, height) = header.split_at(4);
    Some((u32::from_be_bytes(width.try_into().ok()?), u32::from_be_bytes(height.try_into().ok()?)))
}

/// Walks the segments to the one that starts the frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let &[0xff, marker, high, low, ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let &[h1, h2, w1, w2] = rest.get(5..9)? else { return None };
            return Some((u16::from_be_bytes([w1, w2]).into(), u16::from_be_bytes([h1, h2]).into()));
        }
        rest = rest.get(length + 2..)?;
    }
}

/// Filters and images are drawn as pixels, of which an SVG can ask for any number; entities multiply text. A logo
/// needs none of them.
fn is_plain_svg(bytes: &[u8]) -> bool {
    const REFUSED: [&str; 7] = ["<!ENTITY", "<filter", ":filter", "filter:", "filter=", "<image", ":image"];
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let text: String = text.split_whitespace().collect();
    let uses = text.matches("<use").count() + text.matches(":use").count();
    uses <= MAX_USES && REFUSED.iter().all(|part| !text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(format: LogoFormat, bytes: &[u8]) -> Option<&'static str> {
        super::format(&Logo { format, bytes: bytes.to_vec() })
    }

    #[test]
    fn an_image_that_would_take_gigabytes_is_left_out() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x10\0\0\0\x10".to_vec();
        assert_eq!(of(LogoFormat::Png, &png), Some("png"));
        png[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        assert_eq!(of(LogoFormat::Png, &png), None);
    }

    #[test]
    fn the_size_of_a_jpeg_is_found_behind_other_segments() {
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x20\x00\x40\x01\x01\x11\x00";
        assert_eq!(jpeg_size(jpeg), Some((64, 32)));
        assert_eq!(jpeg_size(&jpeg[..12]), None);
        assert_eq!(jpeg_size(b"\xff\xd8\xff\xe0\x00\x00\xff\xe0"), None);
    }

    #[test]
    fn an_svg_that_multiplies_itself_or_asks_for_pixels_is_left_out() {
        assert_eq!(of(LogoFormat::Svg, b"<svg/>"), Some("svg"));
        assert_eq!(of(LogoFormat::Svg, b"<!DOCTYPE x [<!ENTITY a 'b'>]><svg/>"), None);
        assert_eq!(of(LogoFormat::Svg, "<use/>".repeat(99).as_bytes()), None);
        assert_eq!(of(LogoFormat::Svg, b"\xff\xfe"), None);
        for part in
            ["<image href='data:image/png;base64,x'/>", "<g style='filter : blur(9px)'/>", "<s:filter/>"]
        {
            assert_eq!(of(LogoFormat::Svg, format!("<svg>{part}</svg>").as_bytes()), None, "{part}");
        }
        assert_eq!(of(LogoFormat::Svg, b"<g style='color-interpolation-filters:auto'/>"), Some("svg"));
    }
}
