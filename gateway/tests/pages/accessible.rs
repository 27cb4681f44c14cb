//! Everybody can read it: with a screen reader, with the keyboard, on a telephone, in the dark.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::reader::Reader;

/// One page of each kind.
const PAGES: [&str; 12] = [
    "/",
    "/docs",
    "/docs/operations/createInvoice",
    "/docs/operations/listInvoices",
    "/docs/operations/deleteTask",
    "/docs/operations/getInvoiceUbl",
    "/docs/areas/Deals",
    "/docs/guides/webhooks",
    "/docs/events",
    "/docs/events/deal.won",
    "/docs/operations/noSuchOperation",
    "/problems/validation",
];

/// axe, of `deploy/requirements.txt`. `None`, with a message, when it is not installed.
fn axe(test: &str) -> Option<String> {
    let python = chassis_testing::python_tool(test, "python")?;
    let find =
        "import importlib.util as u; print(u.find_spec('axe_core_python').submodule_search_locations[0])";
    let found = std::process::Command::new(python).args(["-c", find]).output().unwrap();
    assert!(found.status.success(), "axe is missing; ./deploy/test installs it into .local/venv");
    let folder = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    Some(std::fs::read_to_string(folder.join("axe.min.js")).unwrap())
}

#[tokio::test]
async fn axe_finds_nothing_on_any_kind_of_page() {
    let test = "axe_finds_nothing_on_any_kind_of_page";
    let Some(axe) = axe(test) else { return };
    let Some(mut reader) = Reader::start(test).await else { return };
    for path in PAGES {
        reader.open(path).await;
        reader.unfold().await;
        reader.tab.evaluate(&axe).await;
        for (width, scheme) in [(1440, "light"), (390, "dark")] {
            reader.screen(width, scheme).await;
            assert_eq!(findings(&mut reader).await, json!([]), "{path} at {width} in {scheme}");
        }
    }
    // What comes when one types, and the menu of a narrow screen.
    reader.open("/docs/events").await;
    reader.tab.evaluate(&axe).await;
    reader.press("/").await;
    reader.write("invoice").await;
    assert_eq!(findings(&mut reader).await, json!([]), "with results");
    reader.press("Escape").await;
    reader.tab.evaluate("document.getElementById('menu').click()").await;
    assert_eq!(findings(&mut reader).await, json!([]), "with the menu");
}

async fn findings(reader: &mut Reader) -> Value {
    let found = "axe.run(document, { resultTypes: ['violations'] }) \
                 .then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes[0].html}`))";
    reader.promised(found).await
}

#[tokio::test]
async fn no_page_sticks_out_of_a_screen() {
    let Some(mut reader) = Reader::start("no_page_sticks_out_of_a_screen").await else { return };
    for path in PAGES {
        reader.open(path).await;
        reader.unfold().await;
        for width in [320, 390, 768, 1024, 1440, 2200] {
            reader.screen(width, "light").await;
            let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(reader.tab.evaluate(beyond).await, 0, "{path} sticks out at {width}");
        }
    }
}

#[tokio::test]
async fn headings_are_in_order_and_there_is_one_of_the_first_level() {
    let Some(mut reader) = Reader::start("headings_are_in_order_and_there_is_one_of_the_first_level").await
    else {
        return;
    };
    for path in PAGES {
        reader.open(path).await;
        let levels = reader.tab.evaluate("[...document.querySelectorAll('main :is(h1, h2, h3, h4)')].map((heading) => Number(heading.localName[1]))").await;
        let levels: Vec<u64> = serde_json::from_value(levels).unwrap();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{path}: {levels:?}");
        assert!(levels[0] == 1 && levels.windows(2).all(|two| two[1] <= two[0] + 1), "{path}: {levels:?}");
    }
}
