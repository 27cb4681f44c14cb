//! Breaks a text into lines where Unicode allows it, and puts each line into the order in which it is seen.

use std::ops::Range;

use unicode_bidi::BidiInfo;

use super::region::Region;
use super::shape::{Piece, shape};
use super::{Line, Paragraph, Run, Style};

/// After these a word that is wider than its line is broken sooner than elsewhere.
const PUNCTUATION: [char; 7] = ['/', '-', '_', '.', '@', ',', ':'];

/// Sets a text of one paragraph in lines of at most this width in points.
pub(crate) fn typeset(text: &str, style: Style, width: f32, region: Region) -> Paragraph {
    let bidi = (!text.is_ascii() && text.chars().any(is_right_to_left)).then(|| BidiInfo::new(text, None));
    let paragraph = bidi.as_ref().and_then(|bidi| bidi.paragraphs.first());
    let is_right_to_left = paragraph.is_some_and(|paragraph| paragraph.level.is_rtl());
    let levels = bidi.as_ref().map(|bidi| bidi.levels.as_slice());
    let pieces = shape(text, style.bold, region, style.tracking / style.size, levels);
    let ruler = Ruler::new(text, &pieces);
    let lines = ruler
        .break_lines(width / style.size)
        .into_iter()
        .map(|range| line(&range, &pieces, bidi.as_ref(), &ruler, style.size))
        .collect();
    Paragraph { text: text.to_owned(), style, is_right_to_left, lines }
}

fn is_right_to_left(char: char) -> bool {
    matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}

/// A place where a text can be cut without cutting a glyph.
struct Stop {
    /// In the text.
    at: usize,
    /// The width of everything before it, in em.
    before: f32,
}

/// Measures parts of a text.
struct Ruler<'a> {
    text: &'a str,
    stops: Vec<Stop>,
}

impl<'a> Ruler<'a> {
    fn new(text: &'a str, pieces: &[Piece]) -> Self {
        let mut stops: Vec<Stop> = Vec::new();
        let mut before = 0.0;
        let mut add = |at: usize, advance: f32| {
            if stops.last().is_none_or(|stop| stop.at < at) {
                stops.push(Stop { at, before });
            }
            before += advance;
        };
        for piece in pieces {
            let glyphs = piece.glyphs.iter().map(|glyph| (glyph.text_range.start, glyph.x_advance));
            if piece.is_right_to_left {
                glyphs.rev().for_each(|(at, advance)| add(at, advance));
            } else {
                glyphs.for_each(|(at, advance)| add(at, advance));
            }
        }
        stops.push(Stop { at: text.len(), before });
        Self { text, stops }
    }

    fn index(&self, at: usize) -> usize {
        self.stops.partition_point(|stop| stop.at < at)
    }

    fn before(&self, at: usize) -> f32 {
        self.stops.get(self.index(at)).or(self.stops.last()).map_or(0.0, |stop| stop.before)
    }

    /// The width of a line, without the space at its end.
    fn width(&self, range: &Range<usize>) -> f32 {
        let seen = range.start + self.text[range.clone()].trim_end().len();
        self.before(seen) - self.before(range.start)
    }

    /// As many words on each line as there is room for. A word that is wider than a line is broken inside.
    fn break_lines(&self, room: f32) -> Vec<Range<usize>> {
        // Sums of fractions differ by a little.
        let room = room + 0.001;
        let end = self.text.len();
        if self.width(&(0..end)) <= room {
            return std::iter::once(0..end).collect();
        }
        let mut lines = Vec::new();
        let (mut from, mut last_fit) = (0, 0);
        for (to, _) in unicode_linebreak::linebreaks(self.text) {
            if self.width(&(from..to)) <= room {
                last_fit = to;
                continue;
            }
            if last_fit > from {
                lines.push(from..last_fit);
                from = last_fit;
            }
            while self.width(&(from..to)) > room {
                let cut = self.cut(from..to, room);
                lines.push(from..cut);
                from = cut;
            }
            last_fit = to;
        }
        if from < end {
            lines.push(from..end);
        }
        lines
    }

    /// Where a word that is too wide ends on this line: after punctuation if there is some, else after any letter. There is
    /// always one letter on a line.
    fn cut(&self, word: Range<usize>, room: f32) -> usize {
        let first = self.index(word.start + 1);
        let inside = self.stops.get(first..).unwrap_or_default();
        let inside = inside.iter().map(|stop| stop.at).take_while(|at| *at < word.end);
        let fitting: Vec<usize> =
            inside.clone().take_while(|at| self.width(&(word.start..*at)) <= room).collect();
        let is_good = |at: &&usize| self.text[..**at].ends_with(PUNCTUATION);
        let good = fitting.iter().rev().find(is_good).or(fitting.last()).copied();
        good.or_else(|| inside.clone().next()).unwrap_or(word.end)
    }
}

/// The glyphs of a line from left to right.
fn line(range: &Range<usize>, pieces: &[Piece], bidi: Option<&BidiInfo>, ruler: &Ruler, size: f32) -> Line {
    let mut line = Line::default();
    let mut x = 0.0;
    let mut add = |part: &Range<usize>, piece: &Piece| {
        let glyphs = piece.glyphs_of(part);
        if !glyphs.is_empty() {
            line.runs.push(Run { face: piece.face, x, glyphs: glyphs.to_vec() });
            x += glyphs.iter().map(|glyph| glyph.x_advance).sum::<f32>() * size;
        }
    };
    match bidi.and_then(|bidi| bidi.paragraphs.first().map(|paragraph| (bidi, paragraph))) {
        Some((bidi, paragraph)) if !range.is_empty() => {
            let (levels, parts) = bidi.visual_runs(paragraph, range.clone());
            for part in parts {
                let pieces = pieces_of(pieces, &part).iter();
                if levels.get(part.start).is_some_and(unicode_bidi::Level::is_rtl) {
                    pieces.rev().for_each(|piece| add(&part, piece));
                } else {
                    pieces.for_each(|piece| add(&part, piece));
                }
            }
        }
        _ => pieces_of(pieces, range).iter().for_each(|piece| add(range, piece)),
    }
    line.width = ruler.width(range) * size;
    line.hanging = x - line.width;
    line
}

/// The pieces that have something of this part of the text; pieces are in its order.
fn pieces_of<'a>(pieces: &'a [Piece], part: &Range<usize>) -> &'a [Piece] {
    let first = pieces.partition_point(|piece| piece.range.end <= part.start);
    let last = pieces.partition_point(|piece| piece.range.start < part.end);
    pieces.get(first..last).unwrap_or_default()
}

impl Piece {
    /// The glyphs of this part of the text. They are in its order, or from right to left in the reverse of it.
    fn glyphs_of(&self, part: &Range<usize>) -> &[krilla::text::KrillaGlyph] {
        let bounds = |is_before: &dyn Fn(usize) -> bool, is_until: &dyn Fn(usize) -> bool| {
            let first = self.glyphs.partition_point(|glyph| is_before(glyph.text_range.start));
            let last = self.glyphs.partition_point(|glyph| is_until(glyph.text_range.start));
            first..last
        };
        let range = if self.is_right_to_left {
            bounds(&|at| at >= part.end, &|at| at >= part.start)
        } else {
            bounds(&|at| at < part.start, &|at| at < part.end)
        };
        self.glyphs.get(range).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::color::BLACK;

    fn lines(text: &str, width: f32) -> Vec<String> {
        let pieces = shape(text, false, Region::default(), 0.0, None);
        let ruler = Ruler::new(text, &pieces);
        ruler.break_lines(width / 10.0).into_iter().map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(lines("kort", 100.0), ["kort"]);
        assert_eq!(lines("een twee drie", 45.0), ["een twee ", "drie"]);
        assert_eq!(lines("", 45.0), [""]);
    }

    #[test]
    fn a_word_wider_than_its_line_breaks_after_punctuation_or_anywhere() {
        assert_eq!(lines("aan info@voorbeeld-winkel.nl", 80.0)[..2], ["aan ", "info@voorbeeld-"]);
        let broken = lines(&"W".repeat(255), 50.0);
        assert!(broken.len() > 40, "{broken:?}");
        assert_eq!(broken.concat().len(), 255);
        assert_eq!(lines("WWW", 1.0), ["W", "W", "W"]);
    }

    #[test]
    fn a_letter_stays_with_its_marks() {
        let text = "e\u{301}\u{323}".repeat(30);
        assert!(lines(&text, 20.0).iter().all(|line| line.starts_with('e')));
    }

    #[test]
    fn what_reads_from_right_to_left_is_drawn_so() {
        let style = Style::new(10.0, BLACK);
        let paragraph = typeset("שלום 12", style, 200.0, Region::default());
        assert!(paragraph.is_right_to_left);
        let drawn: String = paragraph.lines[0]
            .runs
            .iter()
            .flat_map(|run| &run.glyphs)
            .map(|glyph| &paragraph.text[glyph.text_range.clone()])
            .collect();
        assert_eq!(drawn, "12 םולש");
    }

    proptest! {
        #[test]
        fn lines_have_all_of_the_text_and_fit(text in "(\\PC| |[a-zא-ת]){0,60}", width in 5.0..300.0_f32) {
            let style = Style::new(10.0, BLACK);
            let paragraph = typeset(&text, style, width, Region::default());
            let drawn: usize = paragraph.lines.iter().flat_map(|line| &line.runs).map(|run| run.glyphs.len()).sum();
            let shaped: usize = {
                let bidi = text.chars().any(is_right_to_left).then(|| BidiInfo::new(&text, None));
                let levels = bidi.as_ref().map(|bidi| bidi.levels.as_slice());
                shape(&text, false, Region::default(), 0.0, levels).iter().map(|piece| piece.glyphs.len()).sum()
            };
            prop_assert_eq!(drawn, shaped);
            for line in &paragraph.lines {
                let stops = line.runs.iter().flat_map(|run| &run.glyphs).map(|glyph| glyph.text_range.start);
                let is_one_letter = stops.collect::<std::collections::BTreeSet<_>>().len() <= 1;
                prop_assert!(line.width <= width + 0.1 || is_one_letter, "{} in {}", line.width, width);
            }
        }
    }
}
