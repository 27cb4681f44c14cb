//! Logos: which are accepted, and their drawing. Images that would cost far more memory or time than a logo should are
//! left out.

use std::sync::{Arc, LazyLock};

use krilla::geom::Size;
use krilla::image::Image;
use krilla::surface::Surface;
use krilla_svg::{SurfaceExt, SvgSettings};
use usvg::fontdb::{Database, Source};

use crate::printed::{Logo, LogoFormat};

const MAX_BYTES: usize = 4 << 20;
/// A decoded image of this many pixels takes 64 MB.
const MAX_PIXELS: u64 = 16_000_000;
/// The number of `use` elements in an SVG. Nested ones multiply.
const MAX_USES: usize = 24;

const FAMILY: &str = "Noto Sans";
/// The fonts that texts in an SVG can have: those of this program, whatever the machine has.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for file in [notosans::REGULAR_TTF, notosans::BOLD_TTF] {
        fonts.load_font_source(Source::Binary(Arc::new(file)));
    }
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

/// A logo that can be drawn.
pub(super) enum Picture {
    Raster(Image),
    Svg(Box<usvg::Tree>),
}

impl Picture {
    /// `None` if the logo cannot be drawn or costs too much.
    pub(super) fn new(logo: &Logo) -> Option<Self> {
        if !is_affordable(logo) {
            return None;
        }
        let picture = match logo.format {
            LogoFormat::Png => Self::Raster(Image::from_png(logo.bytes.clone().into(), false).ok()?),
            LogoFormat::Jpeg => Self::Raster(Image::from_jpeg(logo.bytes.clone().into(), false).ok()?),
            LogoFormat::Svg => {
                let mut options = usvg::Options { fontdb: Arc::clone(&FONTS), ..usvg::Options::default() };
                FAMILY.clone_into(&mut options.font_family);
                // It can name no file.
                options.image_href_resolver.resolve_string = Box::new(|_, _| None);
                Self::Svg(Box::new(usvg::Tree::from_data(&logo.bytes, &options).ok()?))
            }
        };
        let (width, height) = picture.size();
        (width > 0.0 && height > 0.0 && (0.001..=1000.0).contains(&(width / height))).then_some(picture)
    }

    /// Width and height, of which only the ratio matters.
    pub(super) fn size(&self) -> (f32, f32) {
        match self {
            Self::Raster(image) => {
                let (width, height) = image.size();
                (length(width), length(height))
            }
            Self::Svg(tree) => (tree.size().width(), tree.size().height()),
        }
    }

    pub(super) fn draw(&self, surface: &mut Surface, size: Size) {
        match self {
            Self::Raster(image) => surface.draw_image(image.clone(), size),
            Self::Svg(tree) => {
                // It draws nothing if a part of it cannot be drawn; the page is right without it.
                let _ = surface.draw_svg(tree, size, SvgSettings::default());
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 16 million pixels")]
fn length(pixels: u32) -> f32 {
    pixels as f32
}

/// Whether it is small enough to be decoded and drawn.
pub(super) fn is_affordable(logo: &Logo) -> bool {
    if logo.bytes.is_empty() || logo.bytes.len() > MAX_BYTES {
        return false;
    }
    let size = match logo.format {
        LogoFormat::Png => png_size(&logo.bytes),
        LogoFormat::Jpeg => jpeg_size(&logo.bytes),
        LogoFormat::Svg => return is_plain_svg(&logo.bytes),
    };
    size.is_some_and(|(width, height)| (1..=MAX_PIXELS).contains(&(u64::from(width) * u64::from(height))))
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

    fn is_affordable(format: LogoFormat, bytes: &[u8]) -> bool {
        super::is_affordable(&Logo { format, bytes: bytes.to_vec() })
    }

    #[test]
    fn an_image_that_would_take_gigabytes_is_left_out() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x10\0\0\0\x10".to_vec();
        assert!(is_affordable(LogoFormat::Png, &png));
        png[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        assert!(!is_affordable(LogoFormat::Png, &png));
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
        assert!(is_affordable(LogoFormat::Svg, b"<svg/>"));
        assert!(!is_affordable(LogoFormat::Svg, b"<!DOCTYPE x [<!ENTITY a 'b'>]><svg/>"));
        assert!(!is_affordable(LogoFormat::Svg, "<use/>".repeat(99).as_bytes()));
        assert!(!is_affordable(LogoFormat::Svg, b"\xff\xfe"));
        for part in
            ["<image href='data:image/png;base64,x'/>", "<g style='filter : blur(9px)'/>", "<s:filter/>"]
        {
            assert!(!is_affordable(LogoFormat::Svg, format!("<svg>{part}</svg>").as_bytes()), "{part}");
        }
        assert!(is_affordable(LogoFormat::Svg, b"<g style='color-interpolation-filters:auto'/>"));
    }
}
