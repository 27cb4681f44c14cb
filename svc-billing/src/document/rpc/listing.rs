//! What a list request asks for.

use chassis::Context;
use chassis::paging::Page;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use proto::billing::ListDocumentsRequest;
use uuid::Uuid;

use crate::document::store::Wanted;

pub fn wanted(context: &Context, input: ListDocumentsRequest) -> (Wanted, Page) {
    let zone = context.account().timezone;
    // An id that is none matches nothing.
    let id = |text: &String| chassis::id::parse(text);
    let wanted = Wanted {
        ids: (!input.id.is_empty()).then(|| input.id.iter().filter_map(id).collect()),
        client: Some(&input.client_id)
            .filter(|text| !text.is_empty())
            .map(|text| id(text).unwrap_or(Uuid::nil())),
        number: input.number,
        dates: (input.date_from.parse().ok(), input.date_to.parse().ok()),
        due_dates: (input.due_date_from.parse().ok(), input.due_date_to.parse().ok()),
        created: (start(&input.created_from, zone), end(&input.created_to, zone)),
        search: input.search.trim().to_owned(),
        payment_status: input.payment_status,
        sort: input.sort,
        order: input.order,
    };
    (wanted, Page::new(input.page, input.per_page))
}

/// A time, or the first moment of a day.
fn start(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    match text.parse::<NaiveDate>() {
        Ok(day) => Some(midnight(day, zone)),
        Err(_) => time(text),
    }
}

/// A time, or the last moment of a day. Times are kept in milliseconds.
fn end(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    match text.parse::<NaiveDate>() {
        Ok(day) => Some(midnight(day.checked_add_days(Days::new(1))?, zone) - TimeDelta::milliseconds(1)),
        Err(_) => time(text),
    }
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

/// The first moment of a day in a time zone. Where the clock is put forward at midnight the day begins later.
fn midnight(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let local = day.and_time(NaiveTime::MIN);
    let at = |hours: i64| zone.from_local_datetime(&(local + TimeDelta::hours(hours))).earliest();
    (0..3).find_map(at).map_or(local.and_utc(), |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_accounts_own_day() {
        let zone = chrono_tz::Europe::Amsterdam;
        assert_eq!(start("2026-03-29", zone).unwrap().to_rfc3339(), "2026-03-28T23:00:00+00:00");
        assert_eq!(
            end("2026-03-29", zone).unwrap().to_rfc3339(),
            "2026-03-29T21:59:59.999+00:00",
            "23 hours"
        );
        assert_eq!(
            start("2026-03-29T10:00:00+02:00", zone).unwrap().to_rfc3339(),
            "2026-03-29T08:00:00+00:00"
        );
        assert_eq!((start("", zone), end("", zone)), (None, None));
    }

    #[test]
    fn a_day_without_midnight_begins_with_its_first_hour() {
        let begins = start("2018-11-04", chrono_tz::America::Sao_Paulo).unwrap();
        assert_eq!(begins.to_rfc3339(), "2018-11-04T03:00:00+00:00");
    }
}
