//! Tests of templates.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn scope() -> Value {
    json!({
        "data": {
            "number": "INV-1", "total": 121.5, "client": null, "text": "x".repeat(10_000),
            "rows": [{"name": "a", "price": 2}, {"name": "b", "price": 1}, {"name": "c", "price": 3}],
        },
        "steps": {"ask": {"answer": {"n": 3}}},
    })
}

fn render(text: &str) -> Result<Value, String> {
    Engine::default().rendering(&scope()).render(text)
}

fn condition(text: &str) -> Result<bool, String> {
    Engine::default().rendering(&scope()).condition(text)
}

#[test]
fn a_sole_expression_keeps_its_type_and_other_texts_stay_texts() {
    assert_eq!(render("{{ data.total }}"), Ok(json!(121.5)));
    assert_eq!(render(" {{- steps.ask.answer -}} "), Ok(json!({"n": 3})));
    assert_eq!(render("{{ data.client }}"), Ok(Value::Null));
    assert_eq!(render("Invoice {{ data.number }}: {{ data.total }}"), Ok(json!("Invoice INV-1: 121.5")));
    assert_eq!(render("no template"), Ok(json!("no template")));
    assert_eq!(render("<b>{{ data.number }}</b>"), Ok(json!("<b>INV-1</b>")));
}

#[test]
fn an_undefined_value_is_an_error_that_names_it() {
    for (text, name) in [
        ("{{ data.colour }}", "`data.colour`"),
        ("A {{ data.colour }}", "`data.colour`"),
        ("{{ data.colour.name }}", "`data.colour`"),
        ("{{ data['colour'] }}", "`data[\"colour\"]`"),
        ("{{ data.total * data.rate }}", "`data.rate`"),
        ("{{ data.colour | upper }}", "`data.colour`"),
        ("{{ 'a' ~ data.colour }}", "`data.colour`"),
        ("{% for x in data.lines %}{{ x }}{% endfor %}", "`data.lines`"),
        ("{% for row in data.rows %}{{ row.size }}{% endfor %}", "`row.size`"),
        ("{{ data.rows | map(attribute='name') | join(data.comma) }}", "`data.comma`"),
    ] {
        let error = render(text).unwrap_err();
        assert!(error.contains(name), "{text}: {error}");
    }
    assert!(condition("data.colour > 3").unwrap_err().contains("`data.colour`"));
    assert_eq!(condition("data.colour"), Ok(false));
    assert_eq!(render("{{ data.colour or 'red' }}"), Ok(json!("red")));
    assert_eq!(render("{{ data.colour | default('red') }}"), Ok(json!("red")));
}

#[test]
fn every_text_of_a_value_is_rendered_and_an_error_has_its_pointer() {
    let engine = Engine::default();
    let (scope, value) = (scope(), json!({"a": ["{{ data.number }}", 1], "{{ b }}": true}));
    let rendering = engine.rendering(&scope);
    assert_eq!(rendering.render_all(&value), Ok(json!({"a": ["INV-1", 1], "{{ b }}": true})));
    let error = rendering.render_all(&json!({"a": [{"b": "{{ data.x }}"}]})).unwrap_err();
    assert!(error.starts_with("/a/0/b: "), "{error}");
}

#[test]
fn the_language_is_that_of_jinja() {
    for (text, expected) in [
        ("{{ 7 // 2 + 2 ** 3 - 10 % 4 }}", json!(9)),
        ("{{ 3 / 2 }}", json!(1.5)),
        ("{{ 2 * data.total }}", json!(243.0)),
        ("{{ -(data.rows[1].price) }}", json!(-1)),
        ("{{ '=' * 3 }}", json!("===")),
        ("{{ [1, 2] * 2 + [3] }}", json!([1, 2, 1, 2, 3])),
        ("{{ 'abcd'[1:3] ~ 'abcd'[::-1] ~ 'abcd'[-2:] ~ 'abc'[0:2:-1] }}", json!("bcdcbacd")),
        ("{{ range(1, 8, 3) }}", json!([1, 4, 7])),
        ("{{ range(3, 0, -1) }}", json!([3, 2, 1])),
        ("{{ dict(a=1) }}", json!({"a": 1})),
        ("{{ {'a': [1, (2, 3)]} }}", json!({"a": [1, [2, 3]]})),
        ("{{ data.rows | map(attribute='name') | join(', ') | upper }}", json!("A, B, C")),
        ("{{ data.rows | map(attribute='name') | map('upper') | list }}", json!(["A", "B", "C"])),
        ("{{ data.rows | selectattr('price', 'gt', 1) | map(attribute='price') | sum }}", json!(5)),
        ("{{ data.rows | sort(attribute='price') | map(attribute='name') | first }}", json!("b")),
        ("{{ (data.rows | length) is odd and 'b' in 'abc' and 2 not in [1] }}", json!(true)),
        ("{{ 1 < 2 < 3 }}", json!(true)),
        ("{{ 'yes' if data.client is none else 'no' }}", json!("yes")),
        ("{{ '%.2f' | format(data.total) }}", json!("121.50")),
        ("{{ 'a-b-c' | replace('-', '+') | split('+') | reverse | join }}", json!("cba")),
        ("{{ [3, 1, 2] | batch(2, 0) | list }}", json!([[3, 1], [2, 0]])),
        ("{{ [1, 2] | zip(['a', 'b']) | list }}", json!([[1, "a"], [2, "b"]])),
        ("{{ 'a\nb' | indent(2) }}", json!("a\n  b")),
        ("{% for r in data.rows if r.price > 1 %}{{ loop.index }}{{ r.name }}{% endfor %}!", json!("1a2c!")),
        ("{% for k, v in {'a': 1} | items %}{{ k }}={{ v }}{% else %}none{% endfor %}.", json!("a=1.")),
        ("{% for x in [] %}a{% else %}none{% endfor %}.", json!("none.")),
        ("{% for x in 'ab' %}{{ loop.cycle('-', '+') }}{{ x }}{% endfor %}.", json!("-a+b.")),
        ("{% if data.client %}a{% elif data.total > 100 %}b{% else %}c{% endif %}.", json!("b.")),
        ("a{#- nothing -#} b{%- if true %} c {%- endif %}", json!("ab c")),
    ] {
        assert_eq!(check(text, &HashSet::new()), Ok(()), "{text}");
        assert_eq!(render(text), Ok(expected), "{text}");
    }
}

#[test]
fn names_statements_filters_and_steps_are_checked_before_they_are_used() {
    let earlier = HashSet::from(["ask"]);
    for right in [
        "{{ steps.ask.answer.n }}",
        "{% if data.x %}a{% endif %}",
        "plain",
        "{{ range(3) }}",
        "{% for step in data.a %}{{ step }}{{ loop.index }}{% endfor %}",
    ] {
        assert_eq!(check(right, &earlier), Ok(()), "{right}");
    }
    for wrong in [
        "{{ data. }}",
        "{{ evnt.type }}",
        "{{ steps.later.answer }}",
        "{{ steps['later'].answer }}",
        "{% set x = 1 %}",
        "{% filter upper %}a{% endfilter %}",
        "{% include 'a' %}",
        "{{ namespace() }}",
        "{{ data.call() }}",
        "{{ data.x | nothing }}",
        "{{ data.x is nothing }}",
        "{% for x in data.a %}",
        "{% for x in data.a %}{% endfor %}{{ x }}",
        "{% for x in data.a recursive %}{{ loop(x) }}{% endfor %}",
        "a {{ b",
    ] {
        assert!(check(wrong, &earlier).is_err(), "{wrong}");
    }
    assert!(check_condition("data.total > 100 and not steps.ask.error", &earlier).is_ok());
    assert!(check_condition("data.total >", &earlier).is_err());
    for wrong in ["}}A", "1 }} A", "1 -}} A", "'a' }}", "(1) }} (2)", "\"\\\"\" }} b"] {
        assert!(check_condition(wrong, &earlier).is_err(), "{wrong}");
    }
    for right in ["{'a': {'b': 1}} and 1", "data.x == '}} b'", "\"\\\"}}\" == data.x"] {
        assert_eq!(check_condition(right, &earlier), Ok(()), "{right}");
    }
}

/// Texts that would take all memory, all time or the whole stack.
fn hostile() -> Vec<String> {
    let doubled = |depth: usize, double: &str| {
        let begin = (0..depth).fold(String::new(), |text, level| {
            let list = double.replace('x', &format!("x{level}"));
            text + &format!("{{% for x{} in [{list}] %}}", level + 1)
        });
        let first = "{% for x0 in [data.text] %}";
        format!("{first}{begin}{{{{ x{depth} }}}}{}", "{% endfor %}".repeat(depth + 1))
    };
    let mut texts: Vec<String> = [
        "{{ [0]*1000000000000 }}",
        "{{ [0] * 10**12 }}",
        "{{ 'x' * 10**8 }}",
        "{{ 10**8 * 'x' }} {{ 10**8 * 'x' }}",
        "{{ ('x' * 10**6) * 10**6 }}",
        "{{ range(10**9) }}",
        "{{ range(-9223372036854775807, 9223372036854775807) }}",
        "{{ range(10**5) | map('string') | join('x' * 100000) }}",
        "{{ data.text | replace('x', data.text) }}",
        "{{ data.text | replace('', data.text) }}",
        "{{ 'a' | indent(10**12) }}",
        "{{ 'a' | indent(width=10**12, first=true) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '%.1000000000f' | format(1) }}",
        "{{ '%*d' | format(10**9, 1) }}",
        "{{ ('%(a)s' * 10000) | format(a=data.text) }}",
        "{{ [1] | batch(10**12, 0) }}",
        "{{ [1] | slice(10**12) }}",
        "{{ data.text | list | map('replace', 'x', data.text) | join }}",
        "{{ [data.text] * 1000 | join }}",
        "{{ data.rows | map('format', data.text) | list * 10**9 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ [[[[0] * 1000] * 1000] * 1000] * 1000 }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
        "{% for a in range(9999) %}{{ data.text }}{% endfor %}",
        "{% for a in range(9999) %}{% if data.text in data.text ~ data.text %}{% endif %}{% endfor %}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([
        doubled(40, "x ~ x"),
        doubled(40, "[x, x]"),
        doubled(40, "x + x"),
        doubled(40, "{1: x, 2: x}"),
    ]);
    for chain in ["not ", "-", "1 + ", "1 if 1 else ", "data.", "(", "[", "{1:", "1 ~ "] {
        texts.push(format!("{{{{ {}1 }}}}", chain.repeat(50_000)));
    }
    texts.push(format!("{{{{ 1{} }}}}", " | abs".repeat(50_000)));
    texts.push(format!("{{{{ data{} }}}}", "[0]".repeat(50_000)));
    texts.push(format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(20_000)));
    texts.push("{% if 1 %}".repeat(20_000));
    texts
}

#[test]
fn no_text_takes_more_than_its_budget() {
    for text in hostile() {
        let start: String = text.chars().take(60).collect();
        let _ = check(&text, &HashSet::new());
        assert!(render(&text).is_err(), "{start}");
        if let Some(inner) = sole_expression(&text) {
            let _ = check_condition(inner, &HashSet::new());
            assert!(condition(inner).is_err(), "{start}");
        }
    }
}

#[test]
fn the_length_of_a_text_and_the_operations_of_a_step_are_bounded() {
    let long = |times: usize| {
        render(&format!("{{% for a in range({times}) %}}{}{{% endfor %}}", "x".repeat(1 << 10)))
    };
    assert!(long(250).is_ok());
    assert!(long(260).unwrap_err().contains("256 KiB"));
    let busy = |times: usize| {
        render(&format!("{{% for a in range({times}) %}}{{% if a %}}{{% endif %}}{{% endfor %}}"))
    };
    assert!(busy(10_000).is_ok());
    let turns =
        "{% for a in range(400) %}{% for b in range(400) %}{% if a %}{% endif %}{% endfor %}{% endfor %}";
    assert!(render(turns).unwrap_err().contains("operations"));
}

#[test]
fn the_texts_of_a_step_share_their_budget() {
    let many = json!(vec!["{{ data.text }}"; 200]);
    let engine = Engine::default();
    assert!(engine.rendering(&scope()).render_all(&many).is_err());
    let some = json!(vec!["{{ data.text }}"; 50]);
    assert!(engine.rendering(&scope()).render_all(&some).is_ok());
}

/// Expressions of every kind, inside of each other.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("data.text".to_owned()),
        Just("data.rows".to_owned()),
        Just("data".to_owned()),
        Just("10**9".to_owned()),
        Just("[0]".to_owned()),
        Just("'%9999d'".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
    ];
    leaf.prop_recursive(6, 64, 4, |inner| {
        let filter = prop::sample::select(filters::FILTERS);
        let operator =
            prop::sample::select(&["*", "+", "~", "**", "//", "%", "==", "<", "in", "and", "or"][..]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), filter.clone()).prop_map(|(a, filter)| format!("({a} | {filter})")),
            (inner.clone(), filter.clone(), inner.clone())
                .prop_map(|(a, filter, b)| format!("({a} | {filter}({b}))")),
            (inner.clone(), filter.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, filter, b, c)| format!("({a} | {filter}({b}, {c}))")),
            (inner.clone(), filter).prop_map(|(a, filter)| format!("({a} | map('{filter}', {a}))")),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}:]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("range({a}, {b})")),
            inner.prop_map(|a| format!("(-{a})")),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~{}%#\u{e9}]{0,60}") {
        let _ = check(&text, &HashSet::new());
        let _ = render(&text);
        let _ = condition(&text);
    }

    /// Without the limits this takes all memory within a few cases.
    #[test]
    fn no_expression_makes_more_than_its_budget(expression in expressions()) {
        let text = format!("{{% for x in [{expression}, 1] %}}{{{{ x }}}}{{% endfor %}}.");
        if let Ok(Value::String(text)) = render(&text) {
            prop_assert!(text.len() <= budget::MAX_TEXT);
        }
        if let Ok(value) = render(&format!("{{{{ {expression} }}}}")) {
            prop_assert!(value.to_string().len() <= 4 * budget::MAX_VALUE);
        }
    }
}
