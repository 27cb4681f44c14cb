//! The file inside a PDF.

/// A file embedded in the PDF: the same document in machine-readable form.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// Such as `factur-x.xml` or `2026-0042.xml`.
    pub name: &'a str,
    /// XML.
    pub bytes: &'a [u8],
}
