//! Fonts that are installed beside the program, for the scripts that the embedded ones do not have. Their files are mapped
//! into memory and not read, so that a large font costs only the pages of the glyphs that are drawn.
//!
//! Nothing is looked for until a text needs it. Then every font is looked at once, to know which characters it has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use fontique::{FontInfo, FontStyle, SourceCache, SourceId, SourceInfo, SourceKind};
use skrifa::raw::tables::cmap::CmapSubtable;
use skrifa::raw::{FileRef, TableProvider};
use skrifa::string::StringId;
use skrifa::{FontRef, MetadataProvider};

use super::face::Face;
use super::region::Region;

/// Where Linux has the fonts of the system.
const SYSTEM: [&str; 2] = ["/usr/local/share/fonts", "/usr/share/fonts"];
const EXTENSIONS: [&str; 4] = ["ttf", "otf", "ttc", "otc"];
/// How deep folders are looked into.
const MAX_DEPTH: usize = 6;
/// The licence of a font that may not be embedded, among the permissions of its OS/2 table.
const RESTRICTED: u16 = 0x2;
/// Answers that are remembered. Texts in one script need some thousands at most.
const MAX_REMEMBERED: usize = 20_000;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();
static FONTS: LazyLock<Vec<InstalledFont>> = LazyLock::new(find_fonts);
static REMEMBERED: LazyLock<Mutex<HashMap<Request, Option<usize>>>> = LazyLock::new(Mutex::default);

type Request = (char, bool, Region);

/// Gives a folder whose fonts are preferred over those of the system. Has no effect once a text has needed a font.
pub fn use_fonts_of(folder: PathBuf) {
    // The second folder of a process is ignored, as every one after the first look.
    let _ = FOLDER.set(folder);
}

struct InstalledFont {
    info: FontInfo,
    family: String,
    is_bold: bool,
    /// Blocks of 256 characters of which it has some, sorted.
    blocks: Vec<u32>,
    /// Its file, once a text could need it. `None` inside if it cannot be read.
    file: OnceLock<Option<&'static [u8]>>,
    /// Once a text has needed it.
    face: OnceLock<Option<Face>>,
}

/// The font that draws a character best.
pub(super) fn face(char: char, bold: bool, region: Region) -> Option<&'static Face> {
    let request = (char, bold, region);
    let remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner).get(&request).copied();
    let found = remembered.unwrap_or_else(|| {
        let found = find(char, bold, region);
        let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(request, found);
        found
    });
    FONTS.get(found?)?.face()
}

/// Fonts are in the order of preference; the first that has the character in the right form and weight is the best.
fn find(char: char, bold: bool, region: Region) -> Option<usize> {
    let block = u32::from(char) >> 8;
    let has = |font: &InstalledFont| {
        font.blocks.binary_search(&block).is_ok()
            && font.reference().is_some_and(|it| it.charmap().map(char).is_some())
    };
    let fits = |font: &InstalledFont| {
        let is_of_region = font.region().is_none_or(|of| of == region);
        (!is_of_region, font.is_bold != bold)
    };
    let candidates = FONTS.iter().enumerate().filter(|(_, font)| has(font));
    candidates.min_by_key(|(index, font)| (fits(font), *index)).map(|(index, _)| index)
}

impl InstalledFont {
    /// A font stays mapped as long as the process lives: there are only so many.
    fn file(&self) -> Option<&'static [u8]> {
        *self.file.get_or_init(|| Some(Box::leak(Box::new(self.info.load(None)?)).data()))
    }

    fn reference(&self) -> Option<FontRef<'static>> {
        FontRef::from_index(self.file()?, self.info.index()).ok()
    }

    fn face(&self) -> Option<&Face> {
        self.face.get_or_init(|| Face::new(self.file()?, self.info.index())).as_ref()
    }

    /// The region that a font of Chinese, Japanese and Korean characters draws them for, by its name.
    fn region(&self) -> Option<Region> {
        let suffixes = [
            (" SC", Region::China),
            (" TC", Region::Taiwan),
            (" HK", Region::HongKong),
            (" JP", Region::Japan),
            (" KR", Region::Korea),
        ];
        suffixes.into_iter().find(|(suffix, _)| self.family.ends_with(suffix)).map(|(_, region)| region)
    }

    /// Own fonts before those of the system, then those that look like the embedded ones.
    fn rank(&self, folder: usize) -> impl Ord + use<> {
        let name = &self.family;
        let is_sans = name.contains("Sans");
        let is_noto = name.starts_with("Noto");
        let is_special = ["Mono", "Serif", "Emoji", "Symbol"].iter().any(|word| name.contains(word));
        (folder, is_special, !(is_noto && is_sans), !is_sans, name.len(), name.clone(), self.is_bold)
    }
}

fn find_fonts() -> Vec<InstalledFont> {
    let own = FOLDER.get().into_iter().cloned();
    let mut found = Vec::new();
    for (rank, folder) in own.chain(SYSTEM.map(PathBuf::from)).enumerate() {
        let mut files = Vec::new();
        find_files(&folder, MAX_DEPTH, &mut files);
        let fonts = files.into_iter().flat_map(fonts_of);
        found.extend(fonts.map(|font| (font.rank(rank), font)));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let fonts: Vec<InstalledFont> = found.into_iter().map(|(_, font)| font).collect();
    tracing::info!(
        fonts = fonts.len(),
        "a document needs a script that is not embedded: looked at the installed fonts"
    );
    fonts
}

/// The files of fonts in a folder. What cannot be read is no font.
fn find_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if depth > 0 {
                find_files(&path, depth - 1, files);
            }
        } else if path
            .extension()
            .is_some_and(|it| EXTENSIONS.iter().any(|known| it.eq_ignore_ascii_case(known)))
        {
            files.push(path);
        }
    }
}

/// The fonts in a file: one, or those of a collection.
fn fonts_of(path: PathBuf) -> Vec<InstalledFont> {
    let source = SourceInfo::new(SourceId::new(), SourceKind::Path(path.into()));
    let Some(file) = SourceCache::default().get(&source) else { return Vec::new() };
    let count = match FileRef::new(file.data()) {
        Ok(FileRef::Collection(collection)) => collection.len(),
        Ok(FileRef::Font(_)) => 1,
        Err(_) => 0,
    };
    (0..count)
        .filter_map(|index| {
            let info = FontInfo::from_source(source.clone(), index)?;
            installed(info, &FontRef::from_index(file.data(), index).ok()?)
        })
        .collect()
}

/// An upright font whose licence allows to embed it. Weights other than regular and bold would look out of place.
fn installed(info: FontInfo, font: &FontRef) -> Option<InstalledFont> {
    let weight = info.weight().value();
    let is_bold = weight > 600.0;
    let is_restricted = font.os2().is_ok_and(|os2| os2.fs_type() & 0xf == RESTRICTED);
    if info.style() != FontStyle::Normal || is_restricted || !(is_bold || (350.0..=450.0).contains(&weight)) {
        return None;
    }
    let family = [StringId::TYPOGRAPHIC_FAMILY_NAME, StringId::FAMILY_NAME]
        .into_iter()
        .find_map(|name| font.localized_strings(name).english_or_first())
        .map(|name| name.to_string())
        .unwrap_or_default();
    let (file, face) = (OnceLock::new(), OnceLock::new());
    Some(InstalledFont { info, family, is_bold, blocks: blocks(font), file, face })
}

/// From the ranges of its tables of characters, because going through all characters of all fonts would take seconds.
fn blocks(font: &FontRef) -> Vec<u32> {
    const LAST: u32 = char::MAX as u32;
    let mut blocks = Vec::new();
    let mut add = |first: u32, last: u32| {
        let (first, last) = (first.min(LAST) >> 8, last.min(LAST) >> 8);
        // Most ranges are within the block of the one before.
        if blocks.last() != Some(&first) || first != last {
            blocks.extend(first..=last);
        }
    };
    let Ok(cmap) = font.cmap() else { return blocks };
    for record in cmap.encoding_records() {
        match record.subtable(cmap.offset_data()) {
            Ok(CmapSubtable::Format4(table)) => {
                let ranges = table.start_code().iter().zip(table.end_code());
                ranges.for_each(|(first, last)| add(first.get().into(), last.get().into()));
            }
            Ok(CmapSubtable::Format12(table)) => {
                let groups = table.groups().iter();
                groups.for_each(|group| add(group.start_char_code(), group.end_char_code()));
            }
            _ => {}
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    blocks.shrink_to_fit();
    blocks
}
