//! The colours of a document, derived from the seller's own so that text stays readable.

use serde::Serialize;

/// Used when the seller has chosen no valid colour.
const DEFAULT: Rgb = Rgb(0x16, 0x4e, 0x63);
const WHITE: Rgb = Rgb(0xff, 0xff, 0xff);
const BLACK: Rgb = Rgb(0, 0, 0);
/// The contrast that WCAG requires for text of ordinary size.
const MIN_CONTRAST: f64 = 4.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rgb(u8, u8, u8);

/// As `#rrggbb`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Palette {
    /// For headings and totals: the seller's colour, darkened as far as needed to read it on white.
    text: String,
    /// For bars and lines: the seller's colour as it is.
    bar: String,
    /// For the second, smaller bar.
    second: String,
    /// A faint background for text.
    soft: String,
}

impl Palette {
    pub(super) fn new(primary: &str, secondary: &str) -> Self {
        let bar = Rgb::parse(primary).unwrap_or(DEFAULT);
        let second = Rgb::parse(secondary).unwrap_or(bar);
        Self {
            text: bar.readable().hex(),
            bar: bar.hex(),
            second: second.hex(),
            soft: bar.mix(WHITE, 0.94).hex(),
        }
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
        let bar = Rgb::parse(primary).unwrap_or(DEFAULT);
        let dark = Rgb::parse(dark).unwrap_or(BLACK);
        Self {
            bar: palette.bar,
            second: palette.second,
            light: bar.tones(WHITE, BLACK),
            dark: bar.tones(dark, WHITE),
        }
    }
}

impl Rgb {
    /// `target` is black or white: the colour is mixed towards it until it has enough contrast with the background.
    fn tones(self, background: Self, target: Self) -> Tones {
        let soft = self.mix(background, 0.92);
        let reads = |color: &Self| color.contrast(background).min(color.contrast(soft)) >= MIN_CONTRAST;
        let brand = (0..=20).map(|step| self.mix(target, f64::from(step) * 0.05)).find(reads);
        Tones { brand: brand.unwrap_or(target).hex(), soft: soft.hex() }
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some(Self(channel(0)?, channel(2)?, channel(4)?))
    }

    fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    fn mix(self, other: Self, share: f64) -> Self {
        let channel = |a: u8, b: u8| {
            let mixed = f64::from(a) * (1.0 - share) + f64::from(b) * share;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
            let mixed = mixed.round().clamp(0.0, 255.0) as u8;
            mixed
        };
        Self(channel(self.0, other.0), channel(self.1, other.1), channel(self.2, other.2))
    }

    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// As WCAG measures it, from 1 to 21.
    fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance() + 0.05, other.luminance() + 0.05);
        a.max(b) / a.min(b)
    }

    fn readable(self) -> Self {
        (0..20)
            .map(|step| self.mix(BLACK, f64::from(step) * 0.05))
            .find(|color| color.contrast(WHITE) >= MIN_CONTRAST)
            .unwrap_or(BLACK)
    }
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
            let palette = Palette::new(&Rgb(r, g, b).hex(), "");
            let text = Rgb::parse(&palette.text).unwrap();
            prop_assert!(text.contrast(WHITE) >= MIN_CONTRAST);
            prop_assert_eq!(palette.bar, Rgb(r, g, b).hex());
        }

        #[test]
        fn a_screen_is_readable_in_every_colour_light_and_dark(r: u8, g: u8, b: u8) {
            let screen = Screen::new(&Rgb(r, g, b).hex(), "", "#171b21");
            for (tones, background) in [(screen.light, WHITE), (screen.dark, Rgb(0x17, 0x1b, 0x21))] {
                let [brand, soft] = [tones.brand, tones.soft].map(|color| Rgb::parse(&color).unwrap());
                prop_assert!(brand.contrast(background) >= MIN_CONTRAST && brand.contrast(soft) >= MIN_CONTRAST);
            }
        }
    }
}
