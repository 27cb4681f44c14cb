//! What a request can ask of every list: records by their ids, by the times of their creation and last change, and the
//! order.

use chassis_base::time::{first_moment, last_moment};
use chassis_base::{Account, Error, id};
use chrono::{DateTime, Utc};
use proto::api::Fault;
use proto::{At, Faults, ListRequest};
use uuid::Uuid;

use super::{List, Order, Total};

const CREATED_AT: &str = "created_at";
const UPDATED_AT: &str = "updated_at";

/// Which records of a list a request asks for, and in which order. The default is all of them in the list's own order.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    ids: Option<Vec<Uuid>>,
    created: Bounds,
    updated: Bounds,
    sort: String,
    order: String,
}

/// The earliest and the latest time; `None` is open.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
}

impl Selection {
    /// Days are those of the account's time zone.
    pub fn new(account: &Account, request: &impl ListRequest) -> Self {
        let zone = account.timezone;
        let bounds = |from, to| Bounds { from: first_moment(from, zone), to: last_moment(to, zone) };
        // A text that is not an id matches nothing.
        let ids = request.ids().iter().filter_map(|text| id::parse(text)).collect();
        Self {
            ids: (!request.ids().is_empty()).then_some(ids),
            created: bounds(request.created_from(), request.created_to()),
            updated: bounds(request.updated_from(), request.updated_to()),
            sort: request.sort().to_owned(),
            order: request.order().to_owned(),
        }
    }
}

/// The columns that a [`Selection`] is applied to.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    pub created_at: &'static str,
    pub updated_at: &'static str,
    /// What else the list can be sorted by: the contract's name and the column.
    pub sorts: &'static [(&'static str, &'static str)],
}

impl Fields {
    /// Those of most tables.
    pub const TIMES: Self = Self { created_at: CREATED_AT, updated_at: UPDATED_AT, sorts: &[] };

    /// The same, and more to sort by.
    pub const fn with_sorts(sorts: &'static [(&'static str, &'static str)]) -> Self {
        Self { sorts, ..Self::TIMES }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [(CREATED_AT, self.created_at), (UPDATED_AT, self.updated_at)]
            .into_iter()
            .chain(self.sorts.iter().copied())
    }
}

impl List<'_> {
    /// Applies what the request selects. A field that the list cannot be sorted by, and an order other than `asc` and
    /// `desc`, are faults of the request.
    pub fn select(&mut self, selection: &Selection, fields: &Fields) -> Result<&mut Self, Error> {
        let mut faults = Faults::default();
        self.sort(selection, fields, &mut faults);
        if !faults.is_empty() {
            return Err(faults.into());
        }
        if let Some(ids) = &selection.ids {
            self.any("id", ids);
        }
        // After the order, which decides what an index covers.
        self.within(fields.created_at, selection.created);
        self.within(fields.updated_at, selection.updated);
        Ok(self)
    }

    fn sort(&mut self, Selection { sort, order, .. }: &Selection, fields: &Fields, faults: &mut Faults) {
        if let Some((name, column)) = fields.all().find(|(name, _)| *name == sort.as_str()) {
            let is_indexed = [CREATED_AT, UPDATED_AT].contains(&name);
            self.order = Order { column, is_indexed, ..self.order };
        } else if !sort.is_empty() {
            let names: Vec<&str> = fields.all().map(|(name, _)| name).collect();
            let detail = format!("sort must be one of: {}", names.join(", "));
            faults.add(&At::ROOT.name("sort"), Fault::NotAllowed, detail);
        }
        match order.as_str() {
            "" => {}
            "asc" => self.order.descending = false,
            "desc" => self.order.descending = true,
            _ => faults.add(&At::ROOT.name("order"), Fault::NotAllowed, "order must be asc or desc"),
        }
    }

    fn within(&mut self, column: &'static str, Bounds { from, to }: Bounds) {
        for (operator, bound) in [(">=", from), ("<=", to)] {
            if let Some(bound) = bound {
                self.total = Total::Matching;
                // The index of a filter has the order of creation only.
                if self.filter.take().is_some() && self.order.column != CREATED_AT {
                    self.is_covered = false;
                }
                if column != self.order.column {
                    self.is_covered = false;
                    self.is_sparse = true;
                }
                self.compare(column, operator, bound);
            }
        }
    }
}
