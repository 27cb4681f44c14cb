//! Prepares lists, so that their pages and totals cost the same however long they grow.
//!
//! A deep page begins in a segment: a run of about [`SEGMENT`] consecutive entries, whose number is stored. The position of
//! an entry from the oldest one is known (the total less the offset), and the numbers of the segments lead to the segment
//! that it is in, on two levels, so that few are added up. A filter by a value of a closed set has a counter like the list
//! itself. Writes keep both, in the transaction that changes the record ([`Listing`](crate::Listing)).
//!
//! Segments are not made by writes: reading notices that a page was too far from the end of its segment, or that a filter has
//! no counter ([`notice`]), and afterwards the process makes them ([`background`]), a few in each transaction ([`step`]). So
//! a list that nobody reads deeply has none.
//!
//! Programs of the release before write `audit` and keep neither segments nor counters of filters. A list is used as prepared
//! as long as `audit` has no entry since it was prepared; then it is prepared anew. Runs of flows, which they do not write to
//! `audit`, are the reason why nothing is prepared within an hour after an upgrade.

mod background;
mod notice;
mod restriction;
mod step;

use chassis_base::AccountId;
use chrono::TimeDelta;

pub(crate) use background::Preparing;
pub(crate) use notice::{notice, noticing};
pub(crate) use restriction::Restriction;

/// How many entries a new segment has. Skipping an entry takes about a microsecond, adding up a segment about three.
pub(crate) const SEGMENT: i64 = 1_000;
/// How many segments one of the next level has.
pub(crate) const GROUP: i64 = 32;
/// A page that skips more entries asks for segments.
pub(crate) const MAX_SKIPPED: i64 = 2 * SEGMENT;
/// Entries get into a segment when they are this old. Much more than the longest write takes: none can still add an entry of
/// that time that is not seen.
pub(crate) const SETTLED: TimeDelta = TimeDelta::minutes(15);

/// A list that is to be prepared.
#[derive(Clone, Debug)]
pub(crate) struct Preparation {
    pub account: AccountId,
    /// The name of its counter.
    pub list: String,
    pub table: &'static str,
    /// What its rows have in common.
    pub definition: Vec<Restriction>,
    /// Whether its counter is not known from the beginning, as that of a filter.
    pub is_to_be_counted: bool,
    /// Whether it gets segments; otherwise only its counter.
    pub with_segments: bool,
}
