//! XML read back, to see what was written.

use quick_xml::Reader;
use quick_xml::events::Event;
use rust_decimal::Decimal;

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Tree>,
}

impl Tree {
    pub(crate) fn read(xml: &[u8]) -> Self {
        let xml = std::str::from_utf8(xml).expect("UTF-8");
        let mut reader = Reader::from_str(xml);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().expect("well-formed XML") {
                Event::Start(start) => {
                    let attributes = start.attributes().map(|attribute| {
                        let attribute = attribute.expect("a good attribute");
                        let value = quick_xml::escape::unescape(&attribute.value).expect("known entities");
                        (attribute.key.0.to_owned(), value.into_owned())
                    });
                    let (name, attributes) = (start.name().0.to_owned(), attributes.collect());
                    open.push(Self { name, attributes, ..Self::default() });
                }
                Event::End(_) => {
                    let closed = open.pop().expect("an open element");
                    open.last_mut().expect("an open element").children.push(closed);
                }
                Event::Text(text) => {
                    open.last_mut().expect("an open element").text.push_str(&text.xml10_content());
                }
                Event::GeneralRef(entity) => {
                    let escaped = format!("&{};", &*entity);
                    let text = quick_xml::escape::unescape(&escaped).expect("a known entity").into_owned();
                    open.last_mut().expect("an open element").text.push_str(&text);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let mut root = open.pop().expect("the document");
        assert!(open.is_empty(), "an element is not closed");
        root.children.pop().expect("a root element")
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Tree> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// By names from here, such as `cac:Price/cbc:PriceAmount`.
    pub(crate) fn find(&self, path: &str) -> Option<&Tree> {
        path.split('/').try_fold(self, |at, name| at.children.iter().find(|child| child.name == name))
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.find(path).map_or("", |found| &found.text)
    }

    pub(crate) fn attribute(&self, path: &str, name: &str) -> &str {
        let found = self.find(path).and_then(|at| at.attributes.iter().find(|(key, _)| key == name));
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn number(&self, path: &str) -> Decimal {
        let text = self.text(path);
        text.parse().unwrap_or_else(|_| panic!("{path} is no number: {text:?}"))
    }
}
