//! Pages of a list: the requested page and its `meta`.

use proto::api::{PageCut, PageMeta};

const DEFAULT_SIZE: i64 = 25;
/// The most entries of a page.
pub const MAX_SIZE: i64 = 100;
/// The most bytes of a page's entries as they are stored. As JSON they can be six times as long.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// A requested page. Numbers below 1 do not occur here, because the checks of the contract refuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: i64,
    size: i64,
}

impl Page {
    pub fn new(page: Option<i64>, per_page: Option<i64>) -> Self {
        Self { number: page.unwrap_or(1).max(1), size: per_page.unwrap_or(DEFAULT_SIZE).clamp(1, MAX_SIZE) }
    }

    /// The only page of a list without pages, with at most `most` entries.
    pub fn whole(most: i64) -> Self {
        Self { number: 1, size: most.max(1) }
    }

    pub fn size(self) -> i64 {
        self.size
    }

    pub fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }

    pub fn meta(self, total: i64) -> PageMeta {
        PageMeta {
            page: self.number,
            per_page: self.size,
            total,
            pages: total / self.size + i64::from(total % self.size > 0),
            cut: None,
        }
    }

    /// Where a page is cut if only its first `fit` entries fit. The new size divides the old one, so that a caller who
    /// continues with it gets every entry exactly once.
    pub fn cut(self, fit: i64) -> PageCut {
        let divides = |size: &i64| self.size % size == 0;
        let per_page = (1..=fit.clamp(1, MAX_SIZE)).rev().find(divides).unwrap_or(1);
        let steps = (self.number - 1).saturating_mul(self.size / per_page);
        PageCut { per_page, page: steps.saturating_add(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_where_it_stands() {
        let meta = Page::new(Some(3), Some(10)).meta(21);
        assert_eq!((meta.page, meta.per_page, meta.total, meta.pages), (3, 10, 21, 3));
        assert_eq!(Page::new(None, None).meta(0).pages, 0);
        assert_eq!(Page::new(None, None).meta(50).pages, 2);
    }

    #[test]
    fn a_cut_page_ends_where_a_page_of_a_smaller_size_ends() {
        let cut = |page, size, fit| {
            let cut = Page::new(Some(page), Some(size)).cut(fit);
            (cut.per_page, cut.page)
        };
        assert_eq!(cut(1, 100, 70), (50, 2));
        assert_eq!(cut(3, 100, 15), (10, 22), "200 entries before it are 20 pages of 10");
        assert_eq!(cut(2, 97, 96), (1, 99));
        assert_eq!(cut(1, 25, 0), (1, 2), "one entry is always shown");
        assert_eq!(cut(i64::MAX, 100, 1), (1, i64::MAX));
        let whole = Page::whole(10_000).cut(7_000);
        assert_eq!((whole.per_page, whole.page), (100, 2), "no larger than what can be asked for");
    }

    #[test]
    fn the_size_is_brought_down_and_no_page_overflows() {
        assert_eq!(Page::new(None, Some(1000)).size(), 100);
        assert_eq!(Page::new(Some(i64::MAX), Some(100)).offset(), i64::MAX);
    }
}
