//! Fonts that are installed beside the program, for the scripts that the embedded ones do not have. Their files are mapped
//! into memory and not read, so that a large font costs only the pages of the glyphs that are drawn.
//!
//! Nothing is looked for until a text needs it. Then every font is looked at once, to know which characters it has.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use fontique::{Collection, CollectionOptions, FamilyId, FontInfo, FontStyle, SourceCache};
use skrifa::raw::TableProvider;
use skrifa::raw::tables::cmap::CmapSubtable;
use skrifa::{FontRef, MetadataProvider};

use super::face::Face;
use super::fonts::Region;

/// Where Linux has the fonts of the system.
const SYSTEM: [&str; 2] = ["/usr/local/share/fonts", "/usr/share/fonts"];
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
        let options = CollectionOptions { shared: false, system_fonts: false };
        let mut collection = Collection::new(options);
        collection.load_fonts_from_paths([folder]);
        // A family can have names in several languages.
        let names: Vec<String> = collection.family_names().map(str::to_owned).collect();
        let families: HashSet<FamilyId> =
            names.iter().filter_map(|name| collection.family_id(name)).collect();
        for id in families {
            let Some(family) = collection.family(id) else { continue };
            let fonts = family.fonts().iter().filter_map(|info| installed(info, family.name()));
            found.extend(fonts.map(|font| (font.rank(rank), font)));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let fonts: Vec<InstalledFont> = found.into_iter().map(|(_, font)| font).collect();
    tracing::info!(
        fonts = fonts.len(),
        "a document needs a script that is not embedded: looked at the installed fonts"
    );
    fonts
}

/// An upright font whose licence allows to embed it. Weights other than regular and bold would look out of place.
fn installed(info: &FontInfo, family: &str) -> Option<InstalledFont> {
    let weight = info.weight().value();
    if info.style() != FontStyle::Normal || !(350.0..=750.0).contains(&weight) {
        return None;
    }
    let file = info.load(Some(&mut SourceCache::default()))?;
    let reference = FontRef::from_index(file.data(), info.index()).ok()?;
    if reference.os2().is_ok_and(|os2| os2.fs_type() & 0xf == RESTRICTED) {
        return None;
    }
    Some(InstalledFont {
        info: info.clone(),
        family: family.to_owned(),
        is_bold: weight >= 550.0,
        blocks: blocks(&reference),
        file: OnceLock::new(),
        face: OnceLock::new(),
    })
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
