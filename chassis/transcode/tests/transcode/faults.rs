//! What integrators get wrong, with the place and the code they are told, and the finer rules of reading a body.

use chassis_transcode::{Bound, Location, Malformed};
use prost_reflect::{DynamicMessage, Value};
use proto::api::Fault;

use crate::support::{product, sample};

fn bind(operation: &str, body: &str) -> Bound {
    sample().operation(operation).request.bind(&[("id", "7")], None, Some(body.as_bytes())).unwrap()
}

fn create(body: &str) -> Bound {
    bind("CreateThing", body)
}

fn update(body: &str) -> Bound {
    bind("UpdateThing", body)
}

fn list(query: &str) -> Bound {
    sample().operation("ListThings").request.bind(&[], Some(query), None).unwrap()
}

fn faults(bound: &Bound) -> Vec<(&str, Fault)> {
    bound.faults.entries().iter().map(|entry| (entry.pointer.as_str(), entry.code())).collect()
}

/// The request as prost-reflect reads it, in its text format.
fn text(operation: &str, bound: &Bound) -> String {
    let input = sample().method(sample().operation(operation)).input();
    DynamicMessage::decode(input, bound.message.as_slice()).unwrap().to_string()
}

fn mask(bound: &Bound) -> Vec<String> {
    let input = sample().method(sample().operation("UpdateThing")).input();
    let request = DynamicMessage::decode(input, bound.message.as_slice()).unwrap();
    let mask = request.get_field_by_name("update_mask").unwrap().as_message().unwrap().clone();
    let paths = mask.get_field_by_name("paths").unwrap();
    paths.as_list().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn a_wrong_value_is_reported_with_its_place_and_code() {
    let cases: &[(&str, &str, Fault)] = &[
        ("[]", "/input", Fault::NotAnObject),
        ("null", "/input", Fault::NotAnObject),
        ("\"x\"", "/input", Fault::NotAnObject),
        (r#"{"text": 5}"#, "/input/text", Fault::NotAString),
        (r#"{"text": {"a": 1}}"#, "/input/text", Fault::NotAString),
        (r#"{"note": false}"#, "/input/note", Fault::NotAString),
        (r#"{"flag": "true"}"#, "/input/flag", Fault::NotABoolean),
        (r#"{"flag": 1}"#, "/input/flag", Fault::NotABoolean),
        (r#"{"small": "5"}"#, "/input/small", Fault::NotAnInteger),
        (r#"{"small": 1.5}"#, "/input/small", Fault::NotAnInteger),
        (r#"{"small": 2147483648}"#, "/input/small", Fault::OutOfRange),
        (r#"{"usmall": -1}"#, "/input/usmall", Fault::OutOfRange),
        (r#"{"big": 9223372036854775808}"#, "/input/big", Fault::OutOfRange),
        (r#"{"maybe_big": 1e400}"#, "/input/maybe_big", Fault::OutOfRange),
        (r#"{"color": "green"}"#, "/input/color", Fault::NotAllowed),
        (r#"{"color": "RED"}"#, "/input/color", Fault::NotAllowed),
        (r#"{"color": 1}"#, "/input/color", Fault::NotAllowed),
        (r#"{"colors": "red"}"#, "/input/colors", Fault::NotAnArray),
        (r#"{"colors": ["red", ""]}"#, "/input/colors/1", Fault::NotAllowed),
        (r#"{"price": true}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": "1,50"}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": " 1"}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": "--1"}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": "-"}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": ""}"#, "/input/price", Fault::NotANumber),
        (r#"{"price": "00."}"#, "/input/price", Fault::NotANumber),
        (r#"{"free": [1]}"#, "/input/free", Fault::NotAnObject),
        (r#"{"free": "{}"}"#, "/input/free", Fault::NotAnObject),
        (r#"{"free": {"a": ["\u0000"]}}"#, "/input/free", Fault::BadText),
        (r#"{"at": "2026-02-30T00:00:00Z"}"#, "/input/at", Fault::NotATime),
        (r#"{"at": 5}"#, "/input/at", Fault::NotATime),
        (r#"{"times": ["2026-01-01T00:00:00Z", "x"]}"#, "/input/times/1", Fault::NotATime),
        (r#"{"part": []}"#, "/input/part", Fault::NotAnObject),
        (r#"{"parts": {}}"#, "/input/parts", Fault::NotAnArray),
        (r#"{"parts": [{}, null]}"#, "/input/parts/1", Fault::NotAnObject),
        (
            r#"{"parts": [{}, {"pieces": [{"count": "x"}]}]}"#,
            "/input/parts/1/pieces/0/count",
            Fault::NotAnInteger,
        ),
        (r#"{"numbers": [1, null]}"#, "/input/numbers/1", Fault::NotAnInteger),
        (r#"{"thing": 5}"#, "/input/thing", Fault::NotAnObject),
    ];
    for (body, pointer, fault) in cases {
        assert_eq!(faults(&create(body)), [(*pointer, *fault)], "{body}");
    }
}

#[test]
fn a_fault_says_what_to_do() {
    let bound = create(r#"{"color": "green", "small": 3000000000, "parts": [{"name": 1}]}"#);
    let details: Vec<&str> = bound.faults.entries().iter().map(|entry| entry.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "small must be between -2147483648 and 2147483647",
            "color must be one of: red, dark_blue",
            "name must be a text",
        ]
    );
}

#[test]
fn an_entry_that_cannot_be_read_keeps_its_place() {
    let bound = create(r#"{"parts": [5, {"name": "b"}], "texts": ["a", 5, "c"], "numbers": ["x", 2]}"#);
    assert_eq!(bound.faults.len(), 3);
    assert_eq!(
        text("CreateThing", &bound),
        r#"input{parts:[{},{name:"b"}],numbers:[0,2],texts:["a","","c"]}"#
    );
}

#[test]
fn all_faults_are_reported_at_once_but_not_without_end() {
    let bound = create(r#"{"text": 1, "flag": 1, "small": "", "price": {}, "ok": 1, "note": "fine"}"#);
    assert_eq!(bound.faults.len(), 4);
    assert_eq!(text("CreateThing", &bound), r#"input{note:"fine"}"#);
    let endless = format!(r#"{{"texts": [{}1]}}"#, "1,".repeat(400_000));
    assert_eq!(create(&endless).faults.len(), 100);
}

#[test]
fn too_deep_is_a_fault_of_the_body() {
    let nested = |depth: usize| format!("{}1{}", r#"{"x":"#.repeat(depth), "}".repeat(depth));
    assert!(create(&nested(32)).faults.is_empty());
    assert_eq!(faults(&create(&nested(33))), [("/input", Fault::TooDeep)]);
    assert_eq!(faults(&create(&"[".repeat(500_000))), [("/input", Fault::TooDeep)]);
}

#[test]
fn what_cannot_be_read_is_malformed() {
    let malformed = |path: &str, query: Option<&str>, body: Option<&[u8]>| -> Malformed {
        sample().operation("UpdateThing").request.bind(&[("id", path)], query, body).unwrap_err()
    };
    malformed("1", None, Some(b"{"));
    malformed("1", None, Some(b""));
    malformed("1", None, Some(br#"{"text": "\ud800"}"#));
    assert!(malformed("1", None, Some(b"{\"\xff\": 1}")).detail.contains("UTF-8"));
    assert!(malformed("%f", None, None).detail.contains("path"));
    assert!(malformed("1", Some("x=%ff"), None).detail.contains("query"));
}

#[test]
fn numbers_are_read_exactly() {
    let bound = create(
        r#"{"small": 14.0, "big": 1e1, "price": 0.10, "maybe_price": "-0012345678901234567890.50",
            "free": {"a": 0.10, "b": 12345678901234567890.123, "a": 1E400}}"#,
    );
    assert!(bound.faults.is_empty(), "{:?}", bound.faults);
    assert_eq!(
        text("CreateThing", &bound),
        r#"input{small:14,big:10,price:"0.10",maybe_price:"-0012345678901234567890.50",free:"{\"b\":12345678901234567890.123,\"a\":1E400}"}"#
    );
}

#[test]
fn in_a_create_null_is_the_same_as_absent() {
    let nulls = create(
        r#"{"flag": null, "small": null, "color": null, "text": null, "note": null, "part": null, "parts": null,
            "at": null, "price": null, "free": null, "thing": null}"#,
    );
    assert_eq!(nulls, create("{}"));
    assert!(nulls.faults.is_empty());
    assert_eq!(nulls.message, [0x0a, 0]);
}

#[test]
fn presence_is_kept_where_it_has_a_meaning() {
    let bound = create(
        r#"{"flag": false, "maybe_flag": false, "maybe_big": 0, "note": "", "text": "", "color": "", "maybe_color": ""}"#,
    );
    assert_eq!(text("CreateThing", &bound), r#"input{maybe_flag:false,maybe_big:0,note:""}"#);
    let no_body = sample().operation("CreateThing").request.bind(&[], None, None).unwrap();
    assert!(no_body.message.is_empty() && no_body.faults.is_empty());
}

#[test]
fn an_update_names_the_fields_that_it_has() {
    let bound =
        update(r#"{"text": null, "small": 0, "note": "x", "unknown": 1, "id": "other", "parts": null}"#);
    assert_eq!(mask(&bound), ["small", "parts", "note", "text"]);
    assert_eq!(
        text("UpdateThing", &bound),
        r#"update_mask{paths:["small","parts","note","text"]},input{note:"x"},id:"7""#
    );
    assert!(bound.faults.is_empty());
}

#[test]
fn an_update_cannot_empty_what_has_no_empty_value() {
    let bound = update(
        r#"{"flag": null, "small": null, "color": null, "maybe_flag": null, "maybe_big": null, "maybe_color": null}"#,
    );
    assert_eq!(
        faults(&bound),
        [
            ("/input/flag", Fault::NotNullable),
            ("/input/small", Fault::NotNullable),
            ("/input/color", Fault::NotNullable)
        ]
    );
    // Inside a nested message there is no mask, so `null` is absent there.
    assert!(update(r#"{"part": {"color": null}}"#).faults.is_empty());
}

fn lacks_a_field(bound: &Bound) -> bool {
    faults(bound).iter().any(|(_, code)| *code == Fault::NoField)
}

#[test]
fn an_update_that_needs_a_field_says_when_there_is_none() {
    for body in [
        "{}",
        r#"{"unknown": 1}"#,
        r#"{"thing": {}}"#,
        r#"{"color": ""}"#,
        r#"{"id": "x", "update_mask": "text"}"#,
    ] {
        assert_eq!(faults(&update(body)), [("/input", Fault::NoField)], "{body}");
        assert!(mask(&update(body)).is_empty());
    }
    for body in [r#"{"text": null}"#, r#"{"thing": {"text": "x"}}"#, r#"{"small": "wrong"}"#, "[]"] {
        assert!(!lacks_a_field(&update(body)), "{body}");
    }
    assert!(lacks_a_field(
        &sample().operation("UpdateThing").request.bind(&[("id", "7")], None, None).unwrap()
    ));
    assert!(!lacks_a_field(&create("{}")));
}

#[test]
fn a_wrapper_may_hold_the_fields_and_the_top_wins() {
    let bound =
        update(r#"{"thing": {"text": "inner", "note": "inner", "small": "x"}, "text": "outer", "big": "y"}"#);
    assert_eq!(mask(&bound), ["small", "big", "note", "text"]);
    assert!(text("UpdateThing", &bound).contains(r#"input{note:"inner",text:"outer"}"#));
    assert_eq!(faults(&bound), [("/input/small", Fault::NotAnInteger), ("/input/big", Fault::NotAnInteger)]);
    let plan = &sample().operation("UpdateThing").request;
    let pointer = |pointer: &str| plan.locate(&bound, pointer);
    assert_eq!(pointer("/input/small"), Location::Pointer("/thing/small".into()));
    assert_eq!(pointer("/input/big"), Location::Pointer("/big".into()));
    assert_eq!(pointer("/input/text"), Location::Pointer("/text".into()));
    assert_eq!(pointer("/input/note/x/0"), Location::Pointer("/thing/note/x/0".into()));
    assert_eq!(pointer("/input/thing"), Location::Pointer("/thing".into()));
    assert_eq!(pointer("/input"), Location::Pointer(String::new()));
    assert_eq!(pointer(""), Location::Pointer(String::new()));
    assert_eq!(pointer("/update_mask"), Location::Pointer(String::new()));
    assert_eq!(pointer("/id"), Location::Parameter("id".into()));
    assert_eq!(update(r#"{"thing": null, "text": "x"}"#).message, update(r#"{"text": "x"}"#).message);
    // The last of a repeated key counts, inside the wrapper too.
    let twice = update(r#"{"thing": {"text": 1}, "thing": {"text": "a", "text": "b"}}"#);
    assert!(twice.faults.is_empty() && text("UpdateThing", &twice).contains(r#"text:"b""#));
}

#[test]
fn a_wrapped_client_is_a_client() {
    let create = &product().operation("CreateClient").request;
    let wrapped = create.bind(&[], None, Some(br#"{"client": {"email": "a@b.example"}}"#)).unwrap();
    let plain = create.bind(&[], None, Some(br#"{"email": "a@b.example"}"#)).unwrap();
    assert_eq!(wrapped.message, plain.message);
    assert_eq!(create.locate(&wrapped, "/client/email"), Location::Pointer("/client/email".into()));
    assert_eq!(create.locate(&plain, "/client/email"), Location::Pointer("/email".into()));
    let list = &product().operation("ListClients").request;
    let bound = list.bind(&[], Some("page=x"), None).unwrap();
    assert_eq!(faults(&bound), [("/page", Fault::NotAnInteger)]);
    assert_eq!(list.locate(&bound, "/page"), Location::Parameter("page".into()));
}

#[test]
fn a_body_may_be_the_whole_request() {
    let bound = bind("CreatePart", r#"{"name": "n", "id": "mine", "pieces": [{"amount": "x"}]}"#);
    assert_eq!(text("CreatePart", &bound), r#"name:"n",id:"7",pieces:[{}]"#);
    assert_eq!(faults(&bound), [("/pieces/0/amount", Fault::NotANumber)]);
    let plan = &sample().operation("CreatePart").request;
    assert_eq!(plan.locate(&bound, "/pieces/0/amount"), Location::Pointer("/pieces/0/amount".into()));
    assert_eq!(faults(&bind("CreatePart", "3")), [("", Fault::NotAnObject)]);
}

#[test]
fn query_parameters_are_read_by_their_kind() {
    let bound = list(
        "page=2&page=3&color=red&colors=red,dark_blue&colors=red&flag=1&maybe_flag=false&search=a+b%26&ids=x,,y&numbers=1,-2&price=1.50&since=2026-01-01T00:00:00Z&x=1",
    );
    assert!(bound.faults.is_empty(), "{:?}", bound.faults);
    assert_eq!(
        text("ListThings", &bound),
        r#"page:3,color:COLOR_RED,colors:[COLOR_RED,COLOR_DARK_BLUE,COLOR_RED],flag:true,maybe_flag:false,search:"a b&",ids:["x","y"],numbers:[1,-2],price:"1.50",since{seconds:1767225600}"#
    );
    assert!(list("page=&color=&flag=&search&since=&ids=,&small=").message.is_empty());
}

#[test]
fn a_wrong_parameter_is_reported_by_its_name() {
    for (query, name, fault) in [
        ("page=x", "page", Fault::NotAnInteger),
        ("page=1.0", "page", Fault::NotAnInteger),
        ("page=%2B1", "page", Fault::NotAnInteger),
        ("page=-", "page", Fault::NotAnInteger),
        ("page=9223372036854775808", "page", Fault::OutOfRange),
        ("small=2147483648", "small", Fault::OutOfRange),
        ("color=green", "color", Fault::NotAllowed),
        ("colors=red,green,blue", "colors", Fault::NotAllowed),
        ("flag=yes", "flag", Fault::NotABoolean),
        ("numbers=1,x", "numbers", Fault::NotAnInteger),
        ("price=1,5", "price", Fault::NotANumber),
        ("since=yesterday", "since", Fault::NotATime),
    ] {
        let bound = list(query);
        assert_eq!(faults(&bound), [(format!("/{name}").as_str(), fault)], "{query}");
        let plan = &sample().operation("ListThings").request;
        assert_eq!(plan.locate(&bound, &format!("/{name}/1")), Location::Parameter(name.to_owned()));
    }
}

#[test]
fn path_values_are_decoded_once() {
    let get = |id: &str| sample().operation("GetThing").request.bind(&[("id", id)], None, None).unwrap();
    assert_eq!(text("GetThing", &get("a%20b%2Fc+%2525")), r#"id:"a b/c+%25""#);
}

#[test]
fn a_megabyte_of_keys_or_parameters_is_only_read_once() {
    let same = format!(r#"{{{}"text": "last"}}"#, r#""text":1,"#.repeat(110_000));
    assert_eq!(text("CreateThing", &create(&same)), r#"input{text:"last"}"#);
    let unknown: Vec<String> = (0..100_000).map(|index| format!(r#""{index}":0"#)).collect();
    assert_eq!(text("CreateThing", &create(&format!("{{{}}}", unknown.join(",")))), "input{}");
    let wrapped = format!(r#"{{"thing": {{{}"text": "last"}}}}"#, r#""text":1,"#.repeat(110_000));
    assert_eq!(text("CreateThing", &create(&wrapped)), r#"input{text:"last"}"#);
    assert!(list(&"page=x&colors=x&".repeat(60_000)).faults.len() <= 2);
    let parts = format!(r#"{{"parts": [{}{{}}]}}"#, r#"{"name":1},"#.repeat(90_000));
    assert_eq!(create(&parts).faults.len(), 100);
}

#[test]
fn a_percentage_is_taken_as_a_text_or_as_a_number() {
    let sent = |json: &str| {
        let bound = create(&format!(r#"{{"share": {json}}}"#));
        assert_eq!(faults(&bound), [], "{json}");
        text("CreateThing", &bound)
    };
    assert_eq!(sent("21"), r#"input{share:"21"}"#);
    assert_eq!(sent("21.50"), r#"input{share:"21.50"}"#);
    assert_eq!(sent(r#"" 21% ""#), r#"input{share:" 21% "}"#);
    assert_eq!(sent("null"), "input{}");
    let list = create(r#"{"shares": [9, "21%"]}"#);
    assert_eq!(text("CreateThing", &list), r#"input{shares:["9","21%"]}"#);
    for wrong in ["true", "{}", "[21]"] {
        let bound = create(&format!(r#"{{"share": {wrong}}}"#));
        assert_eq!(faults(&bound), [("/input/share", Fault::NotANumber)], "{wrong}");
        assert_eq!(
            bound.faults.entries()[0].detail,
            "share must be a percentage, for example 21, \"21\" or \"21%\""
        );
    }
}

#[test]
fn null_in_an_update_empties_what_can_be_empty() {
    let emptied =
        ["share", "maybe_share", "shares", "price", "maybe_price", "note", "text", "at", "part", "parts"];
    for name in emptied {
        let bound = update(&format!(r#"{{"{name}": null}}"#));
        assert_eq!((faults(&bound), mask(&bound)), (vec![], vec![name.to_owned()]), "{name}");
        let text = text("UpdateThing", &bound);
        assert!(![":", "{"].iter().any(|sign| text.contains(&format!("{name}{sign}"))), "{text}");
    }
    for name in ["flag", "small", "color"] {
        let bound = update(&format!(r#"{{"{name}": null}}"#));
        let place = format!("/input/{name}");
        assert_eq!(faults(&bound), [(place.as_str(), Fault::NotNullable)], "{name}");
    }
}
