//! The colours of a document, derived from the seller's own so that text stays readable.

use crate::color::{BLACK, Color, WHITE};

/// Used when the seller has chosen no valid colour.
const DEFAULT: Color = Color(0x16, 0x4e, 0x63);
/// The contrast that WCAG requires for text of ordinary size.
const MIN_CONTRAST: f64 = 4.5;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Palette {
    /// For headings and totals: the seller's colour, darkened as far as needed to read it on white.
    pub text: Color,
    /// For bars and lines: the seller's colour as it is.
    pub bar: Color,
    /// For the second, smaller bar.
    pub second: Color,
    /// A faint background for text.
    pub soft: Color,
}

impl Palette {
    pub(super) fn new(primary: &str, secondary: &str) -> Self {
        let bar = Color::parse(primary).unwrap_or(DEFAULT);
        let second = Color::parse(secondary).unwrap_or(bar);
        Self { text: readable(bar), bar, second, soft: bar.mix(WHITE, 0.94) }
    }
}

/// The seller's colours on a screen, each as `#rrggbb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// For bars: the seller's colour as it is, and the second one.
    pub bar: String,
    pub second: String,
    pub light: Tones,
    pub dark: Tones,
}

/// What reads well on one kind of background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tones {
    /// For text on the background and on `soft`, and behind text that has the colour of the background.
    pub brand: String,
    /// A faint background for text.
    pub soft: String,
}

impl Screen {
    /// `dark` is the background for readers who prefer a dark one; the light background is white.
    pub fn new(primary: &str, secondary: &str, dark: &str) -> Self {
        let palette = Palette::new(primary, secondary);
        let bar = Color::parse(primary).unwrap_or(DEFAULT);
        let dark = Color::parse(dark).unwrap_or(BLACK);
        Self {
            bar: palette.bar.hex(),
            second: palette.second.hex(),
            light: tones(bar, WHITE, BLACK),
            dark: tones(bar, dark, WHITE),
        }
    }
}

/// `target` is black or white: the colour is mixed towards it until it has enough contrast with the background.
fn tones(color: Color, background: Color, target: Color) -> Tones {
    let soft = color.mix(background, 0.92);
    let reads = |color: &Color| color.contrast(background).min(color.contrast(soft)) >= MIN_CONTRAST;
    let brand = (0..=20).map(|step| color.mix(target, f64::from(step) * 0.05)).find(reads);
    Tones { brand: brand.unwrap_or(target).hex(), soft: soft.hex() }
}

fn readable(color: Color) -> Color {
    (0..20)
        .map(|step| color.mix(BLACK, f64::from(step) * 0.05))
        .find(|color| color.contrast(WHITE) >= MIN_CONTRAST)
        .unwrap_or(BLACK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_colour_gives_the_default() {
        for text in ["", "red", "#12345", "#12345g", "123456", "#1234567", "#é1234", "#+12345"] {
            assert_eq!(Palette::new(text, text), Palette::new("", ""), "{text}");
        }
        assert_ne!(Palette::new("#aa0000", ""), Palette::new("", ""));
    }

    proptest! {
        #[test]
        fn text_is_readable_in_every_colour(r: u8, g: u8, b: u8) {
            let palette = Palette::new(&Color(r, g, b).hex(), "");
            prop_assert!(palette.text.contrast(WHITE) >= MIN_CONTRAST);
            prop_assert_eq!(palette.bar, Color(r, g, b));
        }

        #[test]
        fn a_screen_is_readable_in_every_colour_light_and_dark(r: u8, g: u8, b: u8) {
            let screen = Screen::new(&Color(r, g, b).hex(), "", "#171b21");
            for (tones, background) in [(screen.light, WHITE), (screen.dark, Color(0x17, 0x1b, 0x21))] {
                let [brand, soft] = [tones.brand, tones.soft].map(|color| Color::parse(&color).unwrap());
                prop_assert!(brand.contrast(background) >= MIN_CONTRAST && brand.contrast(soft) >= MIN_CONTRAST);
            }
        }
    }
}
