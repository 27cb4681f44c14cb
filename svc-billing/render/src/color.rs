//! Colours, and whether they can be read on each other.

pub(crate) const WHITE: Color = Color(0xff, 0xff, 0xff);
pub(crate) const BLACK: Color = Color(0, 0, 0);

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// Reads `#rrggbb`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some(Self(channel(0)?, channel(2)?, channel(4)?))
    }

    /// The inverse of [`Color::parse`].
    pub(crate) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    pub(crate) fn mix(self, other: Self, share: f64) -> Self {
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
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance() + 0.05, other.luminance() + 0.05);
        a.max(b) / a.min(b)
    }
}
