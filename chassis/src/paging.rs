//! Pages of a list: which one is asked for, and what its `meta` says.

use proto::api::PageMeta;

const DEFAULT_SIZE: i64 = 25;
const MAX_SIZE: i64 = 100;

/// A page that was asked for. Numbers below 1 never get here: the contract's checks refuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: i64,
    size: i64,
}

impl Page {
    pub fn new(page: Option<i64>, per_page: Option<i64>) -> Self {
        Self { number: page.unwrap_or(1).max(1), size: per_page.unwrap_or(DEFAULT_SIZE).clamp(1, MAX_SIZE) }
    }

    /// The one page of a list that has no pages, bounded all the same.
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
        }
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
    fn the_size_is_brought_down_and_no_page_overflows() {
        assert_eq!(Page::new(None, Some(1000)).size(), 100);
        assert_eq!(Page::new(Some(i64::MAX), Some(100)).offset(), i64::MAX);
    }
}
