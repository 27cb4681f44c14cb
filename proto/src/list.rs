//! What every request for a page of a list can ask for, whatever the list is of.

/// A request for a page of a list. Empty texts, and no ids, do not restrict the list. Implemented by the build for every
/// request with a `page`.
pub trait ListRequest {
    /// Always empty where the path has the id of a record that the list is below.
    fn ids(&self) -> &[String];
    /// A day, or a time; likewise the other three.
    fn created_from(&self) -> &str;
    fn created_to(&self) -> &str;
    fn updated_from(&self) -> &str;
    fn updated_to(&self) -> &str;
    /// The name of a field.
    fn sort(&self) -> &str;
    /// `asc` or `desc`.
    fn order(&self) -> &str;
}

include!(concat!(env!("OUT_DIR"), "/lists.rs"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::ListPaymentsRequest;
    use crate::work::ListTasksRequest;

    #[test]
    fn a_list_below_a_record_takes_no_ids_since_the_path_has_one() {
        let payments = ListPaymentsRequest { id: "an invoice".to_owned(), ..ListPaymentsRequest::default() };
        assert!(payments.ids().is_empty());
        let tasks = ListTasksRequest {
            id: vec!["a task".to_owned()],
            updated_from: "2026-03-29".to_owned(),
            sort: "updated_at".to_owned(),
            ..ListTasksRequest::default()
        };
        assert_eq!(tasks.ids(), ["a task"]);
        assert_eq!((tasks.updated_from(), tasks.updated_to()), ("2026-03-29", ""));
        assert_eq!((tasks.sort(), tasks.order()), ("updated_at", ""));
    }
}
