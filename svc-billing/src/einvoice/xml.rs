//! A small tree of XML elements that cannot hold an empty element: one without text and children is left out, as Peppol
//! requires.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// The attribute of a coded text, such as the scheme of an identifier.
pub(super) struct Attribute<'a> {
    pub name: &'static str,
    pub value: &'a str,
}

pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Content,
}

enum Content {
    Text(String),
    Children(Vec<Element>),
}

/// `None` when the cleaned text is empty.
pub(super) fn text(name: &'static str, value: impl AsRef<str>) -> Option<Element> {
    let value = clean(value.as_ref());
    (!value.is_empty()).then(|| Element { name, attributes: Vec::new(), content: Content::Text(value) })
}

/// A text with an attribute.
pub(super) fn coded(
    name: &'static str,
    attribute: &Attribute<'_>,
    value: impl AsRef<str>,
) -> Option<Element> {
    let element = text(name, value)?;
    Some(Element { attributes: vec![(attribute.name, clean(attribute.value))], ..element })
}

/// `None` when there are no children.
pub(super) fn group(
    name: &'static str,
    children: impl IntoIterator<Item = Option<Element>>,
) -> Option<Element> {
    let children: Vec<Element> = children.into_iter().flatten().collect();
    (!children.is_empty()).then(|| Element {
        name,
        attributes: Vec::new(),
        content: Content::Children(children),
    })
}

/// The whole document, as UTF-8.
pub(super) fn document(
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Option<Element>>,
) -> Vec<u8> {
    let content = Content::Children(children.into_iter().flatten().collect());
    let root = Element { name, attributes, content };
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to a vector does not fail, so there is no error to report.
    let _: io::Result<()> = writer
        .write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
        .and_then(|()| write_element(&mut writer, &root));
    writer.into_inner()
}

fn write_element(writer: &mut Writer<Vec<u8>>, element: &Element) -> io::Result<()> {
    let attributes = element.attributes.iter().map(|(name, value)| (*name, value.as_str()));
    let start = writer.create_element(element.name).with_attributes(attributes);
    match &element.content {
        Content::Text(text) => start.write_text_content(BytesText::new(text))?,
        Content::Children(children) => start.write_inner_content(|writer| {
            children.iter().try_for_each(|child| write_element(writer, child))
        })?,
    };
    Ok(())
}

/// The text without characters that XML 1.0 forbids, trimmed, and with `\n` as the only line end (XML readers normalise
/// the others to it anyway).
pub(super) fn clean(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let allowed: String = lines.chars().filter(|c| is_allowed(*c)).collect();
    allowed.trim().to_owned()
}

/// The production `Char` of XML 1.0, without the control characters that it discourages.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_removed_and_the_rest_kept() {
        assert_eq!(clean(" a\u{0}b\u{8}c\u{1b}\u{fffe}\u{ffff}d\u{85} "), "abcd");
        assert_eq!(clean("<&>\"' é 😀 \u{10ffff}"), "<&>\"' é 😀 \u{10ffff}");
        assert_eq!(clean("a\r\nb\rc\td"), "a\nb\nc\td");
    }

    #[test]
    fn an_element_without_content_does_not_exist() {
        assert!(text("a", " \u{a0}\u{1}\n").is_none());
        assert!(coded("a", &Attribute { name: "b", value: "c" }, "").is_none());
        assert!(group("a", [text("b", ""), group("c", [])]).is_none());
    }

    #[test]
    fn texts_and_attributes_are_escaped() {
        let xml = document("a", Vec::new(), vec![coded("b", &Attribute { name: "c", value: "\"<&" }, "<&>")]);
        let xml = String::from_utf8(xml).unwrap();
        assert!(xml.ends_with("<a>\n  <b c=\"&quot;&lt;&amp;\">&lt;&amp;&gt;</b>\n</a>"), "{xml}");
    }
}
