//! Texts in scripts that are not part of the program, with fonts from a folder. A test program of its own, because a process
//! looks for fonts once.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod reader;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod samples;

use std::sync::LazyLock;

use render::pdf::render;
use render::printed::{Kind, Language};
use tempfile::TempDir;

/// A folder with one font that has Hebrew and Arabic, in a subfolder as a distribution has it.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("truetype");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("DejaVuSans.ttf"), dejavu::sans::regular()).unwrap();
    std::fs::write(inner.join("DejaVuSans-Bold.ttf"), dejavu::sans::bold()).unwrap();
    std::fs::write(inner.join("broken.ttf"), b"no font").unwrap();
    folder
});

fn shown(name: &str) -> (String, Vec<char>) {
    render::use_fonts_of(FOLDER.path().to_owned());
    let mut printed = samples::printed(Kind::Invoice, Language::Nl, 1);
    name.clone_into(&mut printed.buyer.name);
    let rendered = render(&printed, None).unwrap();
    (reader::text(&rendered.pdf), rendered.missing_glyphs.into_iter().collect())
}

#[test]
fn installed_fonts_draw_what_the_embedded_ones_do_not_have() {
    let (text, missing) = shown("חברת הצפון בע״מ 12");
    assert!(missing.is_empty(), "{missing:?}");
    // Letters are drawn from left to right, so the words are reversed and the digits are not.
    for part in ["תרבח", "ןופצה", "12"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn letters_are_joined_as_their_script_asks() {
    let (text, missing) = shown("مكتب");
    assert!(missing.is_empty(), "{missing:?}");
    // The reader gets the letters, although other forms of them are drawn.
    assert!(text.contains("بتكم"), "{text}");
}

#[test]
fn what_no_font_has_is_a_box_and_told() {
    // No character, and one that means something else in each font.
    let (text, missing) = shown("a\u{378}b\u{e000}");
    assert!(text.contains("a\u{25a1}b\u{25a1}") || text.contains("a\u{fffd}b\u{fffd}"), "{text}");
    assert_eq!(missing, ['\u{378}', '\u{e000}']);
}
