//! Everything that the layout can read: the template, its data and the fonts of this program. It has no access to disk,
//! network, clock or packages.

use std::sync::LazyLock;

use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, Source, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World};

/// The fonts that texts are set in: regular and bold.
pub(super) const TYPEFACES: [&[u8]; 2] = [notosans::REGULAR_TTF, notosans::BOLD_TTF];

static LIBRARY: LazyLock<LazyHash<Library>> = LazyLock::new(|| LazyHash::new(Library::builder().build()));
static TEMPLATE: LazyLock<Source> = LazyLock::new(|| Source::detached(include_str!("document.typ")));
static FONTS: LazyLock<Vec<Font>> =
    LazyLock::new(|| TYPEFACES.into_iter().flat_map(|bytes| Font::iter(Bytes::new(bytes))).collect());
static BOOK: LazyLock<LazyHash<FontBook>> =
    LazyLock::new(|| LazyHash::new(FontBook::from_fonts(FONTS.iter())));

/// The files of one document, under the fixed names by which the template reads them.
pub(super) struct Files {
    pub data: Bytes,
    pub logo: Option<Bytes>,
    pub code: Option<Bytes>,
    pub attachment: Option<Bytes>,
}

impl World for Files {
    fn library(&self) -> &LazyHash<Library> {
        &LIBRARY
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &BOOK
    }

    fn main(&self) -> FileId {
        TEMPLATE.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == TEMPLATE.id() { Ok(TEMPLATE.clone()) } else { Err(absent()) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        if *id.root() != VirtualRoot::Project {
            return Err(absent());
        }
        let file = match id.vpath().get_without_slash() {
            "data.json" => Some(&self.data),
            "logo" => self.logo.as_ref(),
            "code.svg" => self.code.as_ref(),
            "attachment" => self.attachment.as_ref(),
            _ => None,
        };
        file.cloned().ok_or_else(absent)
    }

    fn font(&self, index: usize) -> Option<Font> {
        FONTS.get(index).cloned()
    }

    fn today(&self, _offset: Option<Duration>) -> Option<Datetime> {
        None
    }
}

fn absent() -> FileError {
    FileError::Other(Some("a document reads nothing but its own data".into()))
}
