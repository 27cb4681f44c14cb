//! The structure of a document for readers who do not see it: a tree of elements in reading order, and which element each
//! drawing belongs to. The PDF writer panics on tags that are badly nested, so this is the only place that makes them.

use krilla::surface::Surface;
use krilla::tagging::{
    Artifact, ArtifactType, ContentTag, Identifier, Node, Tag, TagGroup, TagKind, TagTree,
};

/// An element of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element(usize);

/// What a drawing is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// A part of this element.
    Part(Element),
    /// Nothing to be read, such as a line or a repeated heading.
    Artifact(ArtifactType),
}

/// Lines and backgrounds.
pub(super) const DECORATION: Role = Role::Artifact(ArtifactType::Layout);

/// The tree. Elements are made in the order in which they are read; drawings can be added in any order.
pub(super) struct Tags {
    nodes: Vec<(TagKind, Vec<Child>)>,
}

enum Child {
    Element(Element),
    Content(Identifier),
}

impl Tags {
    pub(super) const ROOT: Element = Element(0);

    pub(super) fn new() -> Self {
        Self { nodes: vec![(Tag::Part.into(), Vec::new())] }
    }

    pub(super) fn add(&mut self, parent: Element, kind: impl Into<TagKind>) -> Element {
        let element = Element(self.nodes.len());
        self.nodes.push((kind.into(), Vec::new()));
        self.push(parent, Child::Element(element));
        element
    }

    /// Adds an element that is drawn itself.
    pub(super) fn part(&mut self, parent: Element, kind: impl Into<TagKind>) -> Role {
        Role::Part(self.add(parent, kind))
    }

    /// Draws something in its role.
    pub(super) fn draw(&mut self, role: Role, surface: &mut Surface, draw: impl FnOnce(&mut Surface)) {
        let tag = match role {
            Role::Part(_) => ContentTag::Other,
            Role::Artifact(kind) => ContentTag::Artifact(Artifact::with_kind(kind)),
        };
        let content = surface.start_tagged(tag);
        draw(surface);
        surface.end_tagged();
        if let Role::Part(element) = role {
            self.push(element, Child::Content(content));
        }
    }

    fn push(&mut self, parent: Element, child: Child) {
        if let Some((_, children)) = self.nodes.get_mut(parent.0) {
            children.push(child);
        }
    }

    pub(super) fn into_tree(self, language: &str) -> TagTree {
        let mut tree = TagTree::new().with_lang(Some(language.to_owned()));
        let mut nodes: Vec<Option<(TagKind, Vec<Child>)>> = self.nodes.into_iter().map(Some).collect();
        for child in groups(&mut nodes) {
            tree.push(child);
        }
        tree
    }
}

/// The children of the root. An element comes after its parent, so that going backwards each one finds its own children
/// complete.
fn groups(nodes: &mut [Option<(TagKind, Vec<Child>)>]) -> Vec<Node> {
    let mut done: Vec<Option<Node>> = nodes.iter().map(|_| None).collect();
    for index in (0..nodes.len()).rev() {
        let Some((kind, children)) = nodes[index].take() else { continue };
        let children: Vec<Node> = children
            .into_iter()
            .filter_map(|child| match child {
                Child::Content(content) => Some(Node::Leaf(content)),
                Child::Element(Element(child)) => done.get_mut(child)?.take(),
            })
            .collect();
        if index == 0 {
            return children;
        }
        done[index] = Some(Node::Group(TagGroup::with_children(kind, children)));
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use krilla::Document;
    use krilla::geom::{PathBuilder, Rect};
    use krilla::page::PageSettings;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The writer panics on a tree that it does not understand.
        #[test]
        fn any_elements_drawn_in_any_order_make_a_tree(
            parents in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            pages in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..20), 1..4),
        ) {
            let mut tags = Tags::new();
            let mut elements = vec![Tags::ROOT];
            for parent in parents {
                elements.push(tags.add(*parent.get(&elements), Tag::Div));
            }
            let mut document = Document::new();
            for drawings in pages {
                let mut page = document.start_page_with(PageSettings::from_wh(100.0, 100.0).unwrap());
                let mut surface = page.surface();
                for element in drawings {
                    let element = *element.get(&elements);
                    let role = if element == Tags::ROOT { DECORATION } else { Role::Part(element) };
                    tags.draw(role, &mut surface, |surface| {
                        let mut path = PathBuilder::new();
                        path.push_rect(Rect::from_xywh(0.0, 0.0, 9.0, 9.0).unwrap());
                        surface.draw_path(&path.finish().unwrap());
                    });
                }
                surface.finish();
                page.finish();
            }
            document.set_tag_tree(tags.into_tree("en"));
            prop_assert!(document.finish().is_ok());
        }
    }
}
