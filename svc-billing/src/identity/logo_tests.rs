use proptest::prelude::*;

use super::*;

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = PNG.to_vec();
    bytes.extend(13_u32.to_be_bytes());
    bytes.extend(b"IHDR");
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    // Start, an application segment of 4 bytes, fill, a frame header.
    let mut bytes = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x0b\x08".to_vec();
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes
}

fn svg(inside: &str) -> Vec<u8> {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>{inside}</svg>"
    )
    .into_bytes()
}

#[test]
fn a_picture_is_known_by_its_content() {
    assert_eq!(check(&png(100, 50)), Ok(LogoFormat::Png));
    assert_eq!(check(&jpeg(100, 50)), Ok(LogoFormat::Jpeg));
    assert_eq!(jpeg_size(&jpeg(100, 50)), Some((100, 50)));
    assert_eq!(check(&svg("<path d='M0 0'/>")), Ok(LogoFormat::Svg));
    for other in ["", "x", "GIF89a", "<html></html>", "{}", "<svg", "<svg>", "<svg/><svg/>", "<p/><svg/>"] {
        assert!(check(other.as_bytes()).is_err(), "{other}");
    }
    assert_eq!(check(PNG), Err(Refusal::UnknownFormat));
    assert_eq!(check(&jpeg(1, 1)[..10]), Err(Refusal::UnknownFormat));
}

#[test]
fn size_and_pixels_are_limited() {
    let mut large = png(1, 1);
    large.resize(MAX_BYTES, 0);
    assert_eq!(check(&large), Ok(LogoFormat::Png));
    large.push(0);
    assert_eq!(check(&large), Err(Refusal::TooLarge));
    assert_eq!(check(&png(4096, 4096)), Ok(LogoFormat::Png));
    assert_eq!(check(&png(4097, 1)), Err(Refusal::TooManyPixels));
    assert_eq!(check(&jpeg(1, 4097)), Err(Refusal::TooManyPixels));
    assert_eq!(check(&png(0, 1)), Err(Refusal::UnknownFormat));
}

#[test]
fn elements_are_nested_only_so_deep() {
    let nested = |depth: usize| svg(&format!("{}{}", "<g>".repeat(depth), "</g>".repeat(depth)));
    assert_eq!(check(&nested(MAX_DEPTH - 1)), Ok(LogoFormat::Svg));
    assert_eq!(check(&nested(MAX_DEPTH)), Err(Refusal::NotPlain));
}

#[test]
fn a_plain_svg_passes() {
    for inside in [
        "<defs><linearGradient id='g'/></defs><rect fill='url(#g)'/>",
        "<use href='#g'/><use xlink:href='#g'/>",
        "<image href='data:image/png;base64,AAAA'/>",
        "<style>.a { fill: url(\"#g\") }</style><text>A &amp; B &#169;</text>",
        "<!-- a comment --><a/>",
    ] {
        assert_eq!(check(&svg(inside)), Ok(LogoFormat::Svg), "{inside}");
    }
    let whole = b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>\n<svg:svg xmlns:svg='http://www.w3.org/2000/svg'/>";
    assert_eq!(check(whole), Ok(LogoFormat::Svg));
}

#[test]
fn an_svg_that_does_or_fetches_something_is_refused() {
    for inside in [
        "<script>alert(1)</script>",
        "<SCRIPT/>",
        "<svg:script/>",
        "<foreignObject/>",
        "<image href='https://x.example/a.png'/>",
        "<image xlink:href='//x.example/a.png'/>",
        "<image href='file:///etc/passwd'/>",
        "<image href='&#104;ttps://x.example'/>",
        "<a href='javascript:alert(1)'/>",
        "<rect onclick='alert(1)'/>",
        "<rect fill='url(https://x.example/a#b)'/>",
        "<rect style='fill: url( \"//x.example\")'/>",
        "<style>@import 'https://x.example/a.css';</style>",
        "<style><![CDATA[a { fill: url(https://x.example) }]]></style>",
        "<style>a { fill: u\\72l(https://x.example) }</style>",
        "<style>u<!-- -->rl(https://x.example)</style>",
        "<style>a { fill: u<![CDATA[rl(https://x.example)]]> }</style>",
        "<style>a { fill: u&#114;l(https://x.example) }</style>",
        "<rect style='fill: u&#114;l(https://x.example)'/>",
        "<?xml-stylesheet href='https://x.example/a.css'?>",
        "<rect a='1' a='2'/>",
        "<g></p>",
    ] {
        assert_eq!(check(&svg(inside)), Err(Refusal::NotPlain), "{inside}");
    }
    assert!(check(b"<!DOCTYPE svg [<!ENTITY a 'b'>]><svg>&a;</svg>").is_err());
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), head in 0..4) {
        let heads: [&[u8]; 4] = [PNG, JPEG, b"<svg ", b""];
        let all = [heads[usize::try_from(head).unwrap()], &bytes].concat();
        let _ = check(&all);
    }
}
