//! What makes a task valid. Pure.

use chassis_base::Timezone;
use chassis_base::time::{first_moment, last_moment};
use chassis_base::update_mask::UpdateMask;
use chrono::{DateTime, SubsecRound, Utc};
use proto::api::Fault;
use proto::work::{TaskCategory, TaskInput, TaskPatch};
use proto::{At, Faults};

use super::{Deadline, DeadlineBound, DeadlineRange, Values};

const FIELDS: [&str; 5] = ["title", "category", "notes", "deadline", "duration_minutes"];

/// The values of a new task.
pub(super) fn create(given: &TaskInput) -> Values {
    let category = match given.category() {
        TaskCategory::Unspecified => TaskCategory::Task,
        category => category,
    };
    Values {
        title: given.title.clone(),
        category,
        notes: given.notes.clone(),
        deadline: deadline(&given.deadline),
        duration: given.duration_minutes,
    }
}

/// Sets the named values of `given` in `values`.
pub(super) fn change(named: UpdateMask<'_>, given: &TaskPatch, values: &mut Values, faults: &mut Faults) {
    let at = At::ROOT.name("task");
    named.check(|name| FIELDS.contains(&name), "task", faults);
    let category = match given.category() {
        TaskCategory::Unspecified => TaskCategory::Task,
        category => category,
    };
    // A whole task may leave the category out, and it gets its default. A mask that names it must come with a value.
    let named_empty = matches!(named, UpdateMask::Only(_)) && given.category() == TaskCategory::Unspecified;
    if named_empty && named.has("category") {
        let detail = "category must be task, call or meeting";
        faults.add(&at.name("category"), Fault::NotNullable, detail);
    }
    named.put("title", &given.title, &mut values.title);
    named.put("category", &category, &mut values.category);
    named.put("notes", &given.notes, &mut values.notes);
    named.put("deadline", &deadline(&given.deadline), &mut values.deadline);
    named.put("duration_minutes", &given.duration_minutes, &mut values.duration);
}

/// The deadline that a text stands for; `None` for an empty one. The general checks have refused every other text. A moment
/// is cut to milliseconds, which is what is shown, so that sending back what was shown changes nothing.
fn deadline(text: &str) -> Option<Deadline> {
    if let Ok(day) = text.parse() {
        return Some(Deadline::Day(day));
    }
    let moment = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
    Some(Deadline::Moment(moment.trunc_subsecs(3)))
}

/// The deadlines from one text to the other, each a day in the time zone or a time. A task that is due on a day is in the
/// range if part of that day is.
pub(super) fn deadline_range(from: &str, to: &str, zone: Timezone) -> DeadlineRange {
    let bound =
        |moment: DateTime<Utc>| DeadlineBound { day: moment.with_timezone(&zone).date_naive(), moment };
    DeadlineRange { from: first_moment(from, zone).map(bound), to: last_moment(to, zone).map(bound) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Values {
        Values {
            title: "Call".into(),
            category: TaskCategory::Call,
            notes: "n".into(),
            deadline: deadline("2026-11-20"),
            duration: Some(5),
        }
    }

    fn changed(paths: &[&str], given: &TaskPatch) -> (Values, Vec<(String, Fault)>) {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let (mut values, mut faults) = (call(), Faults::default());
        change(UpdateMask::Only(&paths), given, &mut values, &mut faults);
        (values, faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect())
    }

    #[test]
    fn only_what_the_mask_names_changes_and_what_may_be_empty_is_emptied() {
        let given = TaskPatch { title: "Visit".into(), notes: "x".into(), ..TaskPatch::default() };
        let (values, faults) = changed(&["title", "deadline", "duration_minutes"], &given);
        assert_eq!(faults, []);
        assert_eq!(values, Values { title: "Visit".into(), deadline: None, duration: None, ..call() });
    }

    #[test]
    fn a_category_cannot_be_emptied_and_other_names_are_refused() {
        let (_, faults) = changed(&["category", "client_id"], &TaskPatch::default());
        let expected = [
            ("/update_mask".to_owned(), Fault::NotAllowed),
            ("/task/category".to_owned(), Fault::NotNullable),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_deadline_is_shown_as_a_day_or_as_a_moment_in_utc() {
        let shown = |text: &str| deadline(text).map(Deadline::text).unwrap_or_default();
        assert_eq!(shown("2026-11-20"), "2026-11-20");
        assert_eq!(shown("2026-11-20T09:30:00.123456+02:00"), "2026-11-20T07:30:00.123Z");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn a_new_task_is_of_the_category_task_unless_it_says_otherwise() {
        let category = |category: TaskCategory| {
            create(&TaskInput { category: category.into(), ..TaskInput::default() }).category
        };
        assert_eq!(category(TaskCategory::Unspecified), TaskCategory::Task);
        assert_eq!(category(TaskCategory::Meeting), TaskCategory::Meeting);
    }
}
