//! The style of a page, and the content security policy that allows exactly this style. The sheet is the same for
//! everyone; the seller's colours are a second, small one.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use render::Screen;
use render::printed::Look;
use sha2::{Digest, Sha256};

/// The style sheet that all pages share.
pub(super) const SHEET: &str = include_str!("page.css");
/// The dark background, as in the sheet.
const DARK: &str = "#171b21";

/// The seller's colours as a style sheet. Only values that were parsed as colours get into it.
pub(super) fn colors(look: &Look) -> String {
    let Screen { bar, second, light, dark } = Screen::new(&look.primary_color, &look.secondary_color, DARK);
    format!(
        ":root{{--bar:{bar};--second:{second};--brand:{};--soft:{}}}\
         @media screen and (prefers-color-scheme:dark){{:root{{--brand:{};--soft:{}}}}}",
        light.brand, light.soft, dark.brand, dark.soft
    )
}

/// No scripts, no other hosts, no frames, forms to this site only. A form that leads to a payment provider may end
/// `elsewhere`: browsers apply `form-action` to redirects too, and a provider redirects on to the payer's bank.
pub(super) fn policy(colors: &str, elsewhere: bool) -> String {
    static OF_SHEET: OnceLock<String> = OnceLock::new();
    let forms = if elsewhere { "'self' https:" } else { "'self'" };
    let sheet = OF_SHEET.get_or_init(|| hash(SHEET));
    let colors = hash(colors);
    format!(
        "default-src 'none'; style-src 'sha256-{sheet}' 'sha256-{colors}'; img-src data:; base-uri 'none'; \
         form-action {forms}; frame-ancestors 'none'"
    )
}

fn hash(style: &str) -> String {
    STANDARD.encode(Sha256::digest(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_loads_nothing_and_cannot_end_early() {
        for word in ["url(", "@import", "://", "<"] {
            assert!(!SHEET.contains(word), "{word}");
        }
        assert!(SHEET.contains(DARK));
    }

    #[test]
    fn a_text_that_is_not_a_colour_never_gets_into_the_page() {
        let hostile = Look { primary_color: "red}</style><script>".to_owned(), ..Look::default() };
        assert_eq!(colors(&hostile), colors(&Look::default()));
        let own = Look { primary_color: "#aa0000".to_owned(), ..Look::default() };
        assert!(colors(&own).contains("--bar:#aa0000"));
        assert_ne!(policy(&colors(&own), false), policy(&colors(&hostile), false));
    }
}
