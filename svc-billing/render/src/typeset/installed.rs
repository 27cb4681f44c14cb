//! Fonts that are installed beside the program, for the scripts that the embedded ones do not have. Their files are mapped
//! into memory and not read, so that a large font costs only the pages of the glyphs that are drawn.
//!
//! Nothing is looked for until a text needs it. Then every font is looked at once, to know which characters it has.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use fontique::{Collection, CollectionOptions, FontInfo, FontStyle, SourceCache};
use skrifa::raw::TableProvider;
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
    /// Blocks of 256 characters of which it has some.
    blocks: BTreeSet<u32>,
    /// Its file, once a text has needed it. `None` inside if it cannot be read.
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
    let has = |font: &'static InstalledFont| {
        font.blocks.contains(&block) && font.face().is_some_and(|face| face.has(char))
    };
    let fits = |font: &InstalledFont| {
        let is_of_region = font.region().is_none_or(|of| of == region);
        (!is_of_region, font.is_bold != bold)
    };
    let candidates = FONTS.iter().enumerate().filter(|(_, font)| has(font));
    candidates.min_by_key(|(index, font)| (fits(font), *index)).map(|(index, _)| index)
}

impl InstalledFont {
    fn face(&'static self) -> Option<&'static Face> {
        let load = || {
            // A font stays mapped as long as the process lives: there are only so many.
            let file = Box::leak(Box::new(self.info.load(None)?));
            Face::new(file.data(), self.info.index())
        };
        self.face.get_or_init(load).as_ref()
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
        let names: Vec<String> = collection.family_names().map(str::to_owned).collect();
        for name in names {
            let Some(family) = collection.family_by_name(&name) else { continue };
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
    let blocks = reference.charmap().mappings().map(|(char, _)| char >> 8).collect();
    Some(InstalledFont {
        info: info.clone(),
        family: family.to_owned(),
        is_bold: weight >= 550.0,
        blocks,
        face: OnceLock::new(),
    })
}
