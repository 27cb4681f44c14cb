//! Merges pages of the logs of several services by time. The order of one service never changes.

use std::collections::{BTreeMap, VecDeque};

use proto::log::{LogEntry, ReadLogResponse};

use super::cursor::Cursor;

/// The most bytes of records that one answer shows, unless its first one is longer.
const MAX_BYTES: usize = 4 << 20;

/// An entry of a service's log, and where to go on after it.
#[derive(Debug, PartialEq)]
pub(super) struct Merged {
    pub entry: LogEntry,
    pub cursor: Cursor,
}

/// What one answer shows.
#[derive(Debug, Default)]
pub(super) struct Merge {
    pub entries: Vec<Merged>,
    /// Where to go on after all of them.
    pub cursor: Cursor,
    /// Whether there are entries that are not shown.
    pub more: bool,
}

/// What is left of one service's page.
struct Source {
    entries: VecDeque<LogEntry>,
    /// The page is complete up to here.
    position: i64,
    /// Whether the log goes on after the page.
    more: bool,
}

/// Merges at most `limit` entries of these pages, by service, that begin at `cursor`.
pub(super) fn merge(mut cursor: Cursor, pages: BTreeMap<String, ReadLogResponse>, limit: usize) -> Merge {
    let source = |(service, page): (String, ReadLogResponse)| {
        let ReadLogResponse { entries, position, more } = page;
        (service, Source { entries: entries.into(), position, more })
    };
    let mut sources: BTreeMap<String, Source> = pages.into_iter().map(source).collect();
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while entries.len() < limit {
        // What follows a page that was read to its end may be older than what the other pages have.
        if sources.values().any(|source| source.entries.is_empty() && source.more) {
            break;
        }
        let oldest = sources
            .iter_mut()
            .filter_map(|(service, source)| Some((time(source.entries.front()?), service, source)))
            .min_by_key(|(time, ..)| *time);
        let Some((_, service, source)) = oldest else { break };
        bytes += source.entries.front().map_or(0, |entry| entry.image.len());
        if bytes > MAX_BYTES && !entries.is_empty() {
            break;
        }
        let Some(entry) = source.entries.pop_front() else { break };
        cursor.advance(service, entry.position);
        entries.push(Merged { entry, cursor: cursor.clone() });
    }
    for (service, source) in &sources {
        if source.entries.is_empty() {
            cursor.advance(service, source.position);
        }
    }
    let more = sources.values().any(|source| source.more || !source.entries.is_empty());
    Merge { entries, cursor, more }
}

fn time(entry: &LogEntry) -> (i64, i32) {
    entry.at.as_ref().map_or((0, 0), |at| (at.seconds, at.nanos))
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    fn entry(position: i64, seconds: i64) -> LogEntry {
        LogEntry { position, at: Some(Timestamp { seconds, nanos: 0 }), ..LogEntry::default() }
    }

    fn page(entries: Vec<LogEntry>, position: i64, more: bool) -> ReadLogResponse {
        ReadLogResponse { entries, position, more }
    }

    fn seconds(merge: &Merge) -> Vec<i64> {
        merge.entries.iter().map(|merged| time(&merged.entry).0).collect()
    }

    fn pages(pages: [(&str, ReadLogResponse); 2]) -> BTreeMap<String, ReadLogResponse> {
        pages.map(|(service, page)| (service.to_owned(), page)).into()
    }

    #[test]
    fn entries_are_merged_by_time_and_keep_the_order_of_their_service() {
        // The clock of `a` was set back between its entries.
        let a = page(vec![entry(1, 10), entry(4, 5), entry(5, 30)], 9, false);
        let b = page(vec![entry(1, 7), entry(2, 20)], 2, false);
        let merge = merge(Cursor::default(), pages([("a", a), ("b", b)]), 10);
        assert_eq!(seconds(&merge), [7, 10, 5, 20, 30]);
        let cursors: Vec<(i64, i64)> =
            merge.entries.iter().map(|it| (it.cursor.position("a"), it.cursor.position("b"))).collect();
        assert_eq!(cursors, [(0, 1), (1, 1), (4, 1), (4, 2), (5, 2)]);
        // Nothing that the reader wants is between 5 and 9.
        assert_eq!((merge.cursor.position("a"), merge.cursor.position("b"), merge.more), (9, 2, false));
    }

    #[test]
    fn the_rest_is_left_for_the_next_answer() {
        let a = page(vec![entry(1, 1), entry(2, 4)], 2, false);
        let b = page(vec![entry(1, 2), entry(2, 3)], 2, false);
        let merge = merge(Cursor::default(), pages([("a", a), ("b", b)]), 3);
        assert_eq!(seconds(&merge), [1, 2, 3]);
        assert_eq!((merge.cursor.position("a"), merge.cursor.position("b"), merge.more), (1, 2, true));
    }

    #[test]
    fn nothing_overtakes_what_a_cut_page_does_not_show() {
        let a = page(vec![entry(1, 1)], 1, true);
        let b = page(vec![entry(1, 2)], 1, false);
        let merge = merge(Cursor::default(), pages([("a", a), ("b", b)]), 10);
        assert_eq!((seconds(&merge), merge.more), (vec![1], true));
        assert_eq!((merge.cursor.position("a"), merge.cursor.position("b")), (1, 0));
    }

    #[test]
    fn an_answer_is_bounded_in_bytes_but_shows_one_entry() {
        let long =
            |position, seconds| LogEntry { image: vec![0; MAX_BYTES].into(), ..entry(position, seconds) };
        let a = page(vec![long(1, 1), long(2, 2)], 2, false);
        let merge = merge(Cursor::default(), pages([("a", a), ("b", page(Vec::new(), 0, false))]), 10);
        assert_eq!((merge.entries.len(), merge.more, merge.cursor.position("a")), (1, true, 1));
    }
}
