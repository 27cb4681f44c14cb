use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::pipeline::Phase;

const AT: At<'static> = At::ROOT;

/// Pipelines 10 (inactive), 20 and 30 with phases 11, 12 and 21, 22 and 31.
fn board() -> Vec<Pipeline> {
    let phase = |id: u128| Phase { id: Uuid::from_u128(id), name: format!("Phase {id}"), order: 1 };
    let pipeline = |id: u128, active, phases: &[u128]| Pipeline {
        id: Uuid::from_u128(id),
        name: format!("Pipeline {id}"),
        active,
        phases: phases.iter().map(|id| phase(*id)).collect(),
    };
    vec![pipeline(10, false, &[11, 12]), pipeline(20, true, &[21, 22]), pipeline(30, true, &[31])]
}

fn at(pipeline: u128, phase: u128) -> Place {
    Place { pipeline_id: Uuid::from_u128(pipeline), phase_id: Uuid::from_u128(phase) }
}

fn text(id: u128) -> String {
    if id == 0 { String::new() } else { Uuid::from_u128(id).to_string() }
}

/// The place that a request gives a deal, 0 for what it does not name; or the place and code of its fault.
fn placed(pipeline: u128, phase: u128, current: Option<Place>) -> Result<Place, (String, Fault)> {
    let mut faults = Faults::default();
    let wanted = Wanted { pipeline: &text(pipeline), phase: &text(phase) };
    let place = place(&board(), wanted, current, &AT, &mut faults);
    let fault = faults.entries().first().map(|entry| (entry.pointer.clone(), entry.code()));
    place.ok_or_else(|| fault.expect("a reason"))
}

fn fault(place: &str, code: Fault) -> Result<Place, (String, Fault)> {
    Err((place.to_owned(), code))
}

#[test]
fn a_new_deal_begins_in_the_first_phase_of_the_first_active_pipeline() {
    assert_eq!(placed(0, 0, None), Ok(at(20, 21)));
    assert_eq!(placed(30, 0, None), Ok(at(30, 31)));
    assert_eq!(placed(10, 12, None), Ok(at(10, 12)), "an inactive one can be named");
    let mut faults = Faults::default();
    let nowhere = place(&board()[..1], Wanted::default(), None, &AT, &mut faults);
    assert_eq!((nowhere, faults.entries()[0].code()), (None, Fault::Required));
}

#[test]
fn a_deal_stays_where_it_is_unless_it_is_moved() {
    let here = Some(at(20, 22));
    assert_eq!(placed(0, 0, here), Ok(at(20, 22)));
    assert_eq!(placed(20, 0, here), Ok(at(20, 22)), "its own pipeline");
    assert_eq!(placed(0, 21, here), Ok(at(20, 21)));
    assert_eq!(placed(30, 0, here), Ok(at(30, 31)), "a new pipeline without a phase");
    assert_eq!(placed(10, 12, here), Ok(at(10, 12)));
}

#[test]
fn a_phase_must_be_one_of_the_deals_pipeline() {
    for current in [None, Some(at(20, 22))] {
        assert_eq!(placed(0, 31, current), fault("/phase_id", Fault::Conflicting));
        assert_eq!(placed(30, 22, current), fault("/phase_id", Fault::Conflicting));
        assert_eq!(placed(0, 99, current), fault("/phase_id", Fault::UnknownReference));
        assert_eq!(placed(99, 0, current), fault("/pipeline_id", Fault::UnknownReference));
    }
}

#[test]
fn what_cannot_be_read_is_not_also_wrong() {
    let mut faults = Faults::default();
    faults.add(&AT.name("pipeline_id"), Fault::NotAString, "carried");
    let wanted = Wanted { pipeline: "", phase: &text(31) };
    assert_eq!(place(&board(), wanted, None, &AT, &mut faults), None);
    assert_eq!(faults.len(), 1);
}

fn ovens() -> Values {
    Values {
        title: "Ovens".into(),
        client_id: Uuid::from_u128(1),
        place: at(20, 21),
        amount: "12.50".parse().ok(),
        priority: DealPriority::High,
        status: DealStatus::Open,
        expected_close_date: "2026-12-01".parse().ok(),
        source: "Website".into(),
    }
}

#[test]
fn only_what_the_mask_names_changes_and_what_it_empties_is_empty() {
    let paths = ["amount", "expected_close_date", "source"].map(str::to_owned);
    let given = DealInput { title: "Another".into(), ..DealInput::default() };
    let values = apply(Named::Only(&paths), &given, at(20, 21), ovens());
    let expected = Values { amount: None, expected_close_date: None, source: String::new(), ..ovens() };
    assert_eq!(values, expected);
}

#[test]
fn a_new_deal_is_open_and_of_medium_priority_unless_it_says_otherwise() {
    let values = create(&DealInput { title: "Ovens".into(), ..DealInput::default() }, at(20, 21));
    assert_eq!((values.status, values.priority), (DealStatus::Open, DealPriority::Medium));
    let given = DealInput {
        status: DealStatus::Won.into(),
        priority: DealPriority::Low.into(),
        ..DealInput::default()
    };
    let values = create(&given, at(20, 21));
    assert_eq!((values.status, values.priority), (DealStatus::Won, DealPriority::Low));
}

#[test]
fn what_a_deal_must_have_cannot_be_emptied() {
    let faults_of = |named| {
        let mut faults = Faults::default();
        check_fields(named, &DealInput::default(), &AT, &mut faults);
        faults.entries().iter().map(|entry| entry.pointer.clone()).collect::<Vec<_>>()
    };
    let paths = FIELDS.map(str::to_owned);
    let all = ["/title", "/client_id", "/pipeline_id", "/phase_id", "/priority", "/status"];
    assert_eq!(faults_of(Named::Only(&paths)), all);
    assert_eq!(faults_of(Named::Only(&[])), Vec::<String>::new());
    assert_eq!(faults_of(Named::All), all[..2], "the others have defaults");
    assert_eq!(faults_of(Named::Only(&["colour".to_owned()])), ["/update_mask"]);
}

#[test]
fn the_mask_can_name_exactly_the_fields_of_the_contract() {
    let message = proto::policy::pool().get_message_by_name("admin.crm.v1.DealInput").unwrap();
    let mut names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
    let mut known = FIELDS.map(str::to_owned);
    names.sort();
    known.sort();
    assert_eq!(names, known);
}

fn record() -> Record {
    let now = DateTime::UNIX_EPOCH;
    Record {
        id: Uuid::from_u128(1),
        version: 1,
        values: ovens(),
        phase_since: now,
        won_at: None,
        lost_at: None,
        created_at: now,
        updated_at: now,
    }
}

fn statuses() -> impl Strategy<Value = DealStatus> {
    prop_oneof![Just(DealStatus::Open), Just(DealStatus::Won), Just(DealStatus::Lost)]
}

proptest! {
    /// Whatever the moves: the times are set exactly while they apply, and a move that changes nothing leaves no trace.
    #[test]
    fn times_and_version_follow_the_moves(moves in prop::collection::vec((statuses(), 21_u128..23), 0..20)) {
        let mut record = record();
        let mut steps = 0;
        for (minute, (status, phase)) in (1..).zip(moves) {
            let now = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
            let before = record.clone();
            let values = Values { status, place: at(20, phase), ..record.values.clone() };
            let happened = settle(&mut record, values.clone(), now);
            prop_assert_eq!(&record.values, &values);
            prop_assert_eq!(record.won_at.is_some(), status == DealStatus::Won);
            prop_assert_eq!(record.lost_at.is_some(), status == DealStatus::Lost);
            prop_assert_eq!(happened.changed, before.values != values);
            prop_assert_eq!(happened.is_step(), happened.changed);
            prop_assert_eq!(happened.was.is_some(), before.values.status != status);
            let left = before.values.place.phase_id;
            prop_assert_eq!(happened.left, (left != values.place.phase_id).then_some(left));
            prop_assert_eq!(record.phase_since == now, happened.left.is_some());
            prop_assert_eq!(record.updated_at == now, happened.changed);
            steps += i64::from(happened.changed);
            prop_assert_eq!(record.version, 1 + steps);
        }
    }
}
