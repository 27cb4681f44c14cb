use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::pipeline::Phase;

const AT: At<'static> = At::ROOT;

/// Pipelines 10 (inactive), 20 and 30 with phases 11, 12 and 21, 22 and 31.
fn pipelines() -> Vec<Pipeline> {
    let now = DateTime::UNIX_EPOCH;
    let phase = |id: u128| Phase {
        id: Uuid::from_u128(id),
        name: format!("Phase {id}"),
        order: 1,
        version: 1,
        updated_at: now,
    };
    let pipeline = |id: u128, active, phases: &[u128]| Pipeline {
        id: Uuid::from_u128(id),
        name: format!("Pipeline {id}"),
        active,
        phases: phases.iter().map(|id| phase(*id)).collect(),
        version: 1,
        updated_at: now,
    };
    vec![pipeline(10, false, &[11, 12]), pipeline(20, true, &[21, 22]), pipeline(30, true, &[31])]
}

fn at(pipeline: u128, phase: u128) -> PhaseRef {
    PhaseRef { pipeline_id: Uuid::from_u128(pipeline), phase_id: Uuid::from_u128(phase) }
}

fn text(id: u128) -> String {
    if id == 0 { String::new() } else { Uuid::from_u128(id).to_string() }
}

/// The phase that a request gives a deal, with 0 for what the request does not name; or the pointer and code of the fault.
fn resolved(pipeline: u128, phase: u128, current: Option<PhaseRef>) -> Result<PhaseRef, (String, Fault)> {
    let mut faults = Faults::default();
    let requested = RequestedPhase { pipeline: &text(pipeline), phase: &text(phase) };
    let resolved = resolve_phase(&pipelines(), requested, current, &AT, &mut faults);
    let fault = faults.entries().first().map(|entry| (entry.pointer.clone(), entry.code()));
    resolved.ok_or_else(|| fault.expect("a reason"))
}

fn fault(pointer: &str, code: Fault) -> Result<PhaseRef, (String, Fault)> {
    Err((pointer.to_owned(), code))
}

#[test]
fn a_new_deal_begins_in_the_first_phase_of_the_first_active_pipeline() {
    assert_eq!(resolved(0, 0, None), Ok(at(20, 21)));
    assert_eq!(resolved(30, 0, None), Ok(at(30, 31)));
    assert_eq!(resolved(10, 12, None), Ok(at(10, 12)), "an inactive one can be named");
    let mut faults = Faults::default();
    let none = resolve_phase(&pipelines()[..1], RequestedPhase::default(), None, &AT, &mut faults);
    assert_eq!((none, faults.entries()[0].code()), (None, Fault::Required));
}

#[test]
fn a_deal_stays_where_it_is_unless_it_is_moved() {
    let here = Some(at(20, 22));
    assert_eq!(resolved(0, 0, here), Ok(at(20, 22)));
    assert_eq!(resolved(20, 0, here), Ok(at(20, 22)), "its own pipeline");
    assert_eq!(resolved(0, 21, here), Ok(at(20, 21)));
    assert_eq!(resolved(30, 0, here), Ok(at(30, 31)), "a new pipeline without a phase");
    assert_eq!(resolved(10, 12, here), Ok(at(10, 12)));
}

#[test]
fn a_phase_must_be_one_of_the_deals_pipeline() {
    for current in [None, Some(at(20, 22))] {
        assert_eq!(resolved(0, 31, current), fault("/phase_id", Fault::Conflicting));
        assert_eq!(resolved(30, 22, current), fault("/phase_id", Fault::Conflicting));
        assert_eq!(resolved(0, 99, current), fault("/phase_id", Fault::UnknownReference));
        assert_eq!(resolved(99, 0, current), fault("/pipeline_id", Fault::UnknownReference));
    }
}

#[test]
fn a_field_that_could_not_be_read_gets_no_second_fault() {
    let mut faults = Faults::default();
    faults.add(&AT.name("pipeline_id"), Fault::NotAString, "carried");
    let requested = RequestedPhase { pipeline: "", phase: &text(31) };
    assert_eq!(resolve_phase(&pipelines(), requested, None, &AT, &mut faults), None);
    assert_eq!(faults.len(), 1);
}

fn ovens() -> Values {
    Values {
        title: "Ovens".into(),
        client_id: Uuid::from_u128(1),
        phase: at(20, 21),
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
    let values = apply(UpdateMask::Only(&paths), &given, at(20, 21), ovens());
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
    assert_eq!(faults_of(UpdateMask::Only(&paths)), all);
    assert_eq!(faults_of(UpdateMask::Only(&[])), Vec::<String>::new());
    assert_eq!(faults_of(UpdateMask::All), all[..2], "the other fields have defaults");
    assert_eq!(faults_of(UpdateMask::Only(&["colour".to_owned()])), ["/update_mask"]);
}

#[test]
fn the_mask_can_name_exactly_the_fields_of_the_contract() {
    let message = proto::policy::pool().get_message_by_name("admin.crm.v1.DealInput").unwrap();
    let mut names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
    let mut fields = FIELDS.map(str::to_owned);
    names.sort();
    fields.sort();
    assert_eq!(names, fields);
}

fn record() -> Record {
    let now = DateTime::UNIX_EPOCH;
    Record {
        id: Uuid::from_u128(1),
        version: 1,
        timed_events: 0,
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
    /// For any moves: the times are set exactly while they apply, and a move that changes nothing leaves no trace.
    #[test]
    fn times_and_version_follow_the_moves(moves in prop::collection::vec((statuses(), 21_u128..23), 0..20)) {
        let mut record = record();
        let mut steps = 0;
        for (minute, (status, phase)) in (1..).zip(moves) {
            let now = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
            let before = record.clone();
            let values = Values { status, phase: at(20, phase), ..record.values.clone() };
            let changes = update(&mut record, values.clone(), now);
            prop_assert_eq!(&record.values, &values);
            prop_assert_eq!(record.won_at.is_some(), status == DealStatus::Won);
            prop_assert_eq!(record.lost_at.is_some(), status == DealStatus::Lost);
            prop_assert_eq!(changes.any, before.values != values);
            prop_assert_eq!(changes.is_step(), changes.any);
            prop_assert_eq!(changes.previous_status.is_some(), before.values.status != status);
            let phase_before = before.values.phase.phase_id;
            let has_moved = phase_before != values.phase.phase_id;
            prop_assert_eq!(changes.previous_phase, has_moved.then_some(phase_before));
            prop_assert_eq!(record.phase_since == now, changes.previous_phase.is_some());
            prop_assert_eq!(record.updated_at == now, changes.any);
            steps += i64::from(changes.any);
            prop_assert_eq!(record.version, 1 + steps);
        }
    }
}
