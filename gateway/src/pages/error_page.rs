//! The error page for people, whose link is wrong or whose request fails: plain words in their language, and everything it
//! needs inside it.

use std::fmt::Write;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_base::html::escaped;
use http::HeaderValue;
use proto::api::Problem;
use sha2::{Digest, Sha256};

use super::file::NO_CONTENT_POLICY;
use super::html::document_in;
use super::language::Language;
use super::problems::STYLE;

/// A page, and the content security policy that it needs.
pub struct ErrorPage {
    pub html: String,
    pub policy: HeaderValue,
}

/// In English. `faults` has the details of each field of a form that is not valid.
pub fn error_page(problem: Problem, detail: &str, faults: &[String], request_id: &str) -> ErrorPage {
    error_page_in(Language::English, problem, detail, faults, request_id)
}

/// `detail` and `faults` are English.
pub fn error_page_in(
    language: Language,
    problem: Problem,
    detail: &str,
    faults: &[String],
    request_id: &str,
) -> ErrorPage {
    let english = if language == Language::English { "" } else { " lang=\"en\"" };
    let mut content = String::from("<main>\n");
    let heading = if let Some((heading, text)) = wording(language, problem) {
        let _ = write!(content, "<h1>{}</h1>\n<p>{}</p>\n", escaped(heading), escaped(text));
        heading
    } else {
        let heading = problem.info().title;
        let _ =
            write!(content, "<h1{english}>{}</h1>\n<p{english}>{}</p>\n", escaped(heading), escaped(detail));
        heading
    };
    if !faults.is_empty() {
        let _ = writeln!(content, "<ul{english}>");
        for fault in faults {
            // Writing to a String cannot fail.
            let _ = writeln!(content, "<li>{}</li>", escaped(fault));
        }
        content.push_str("</ul>\n");
    }
    let _ = write!(
        content,
        "<p class=\"reference\">{}: <code>{}</code></p>\n</main>",
        reference(language),
        escaped(request_id)
    );
    let head = format!("<meta name=\"robots\" content=\"noindex\">\n<style>{STYLE}</style>");
    ErrorPage { html: document_in(language, heading, &head, &content), policy: policy().clone() }
}

/// Heading and text, for people who do not use an API. `None` where what happened is said best by the problem itself.
fn wording(language: Language, problem: Problem) -> Option<(&'static str, &'static str)> {
    let texts = match problem {
        Problem::NotFound => NOT_FOUND,
        Problem::Validation => NOT_VALID,
        Problem::RateLimited => TOO_MANY,
        Problem::Unavailable | Problem::Timeout => UNAVAILABLE,
        Problem::Internal | Problem::Unspecified => INTERNAL,
        _ => return None,
    };
    let [english, dutch, german, french] = texts;
    Some(match language {
        Language::English => english,
        Language::Dutch => dutch,
        Language::German => german,
        Language::French => french,
    })
}

fn reference(language: Language) -> &'static str {
    match language {
        Language::English => "Reference",
        Language::Dutch => "Kenmerk",
        Language::German => "Kennung",
        Language::French => "Référence",
    }
}

/// Heading and text, in English, Dutch, German and French.
type Texts = [(&'static str, &'static str); 4];

const NOT_FOUND: Texts = [
    (
        "This page is not here",
        "The link may be incomplete, or what it led to is gone. Check the link, or ask for a new one where you got it from.",
    ),
    (
        "Deze pagina is er niet",
        "De link is misschien niet volledig, of wat erachter stond is weg. Controleer de link, of vraag een nieuwe waar u hem vandaan hebt.",
    ),
    (
        "Diese Seite gibt es nicht",
        "Der Link ist vielleicht unvollständig, oder das Ziel ist nicht mehr da. Prüfen Sie den Link, oder bitten Sie dort um einen neuen, wo Sie ihn herhaben.",
    ),
    (
        "Cette page n’est pas ici",
        "Le lien est peut-être incomplet, ou ce qu’il désignait n’existe plus. Vérifiez le lien, ou demandez-en un nouveau là où vous l’avez reçu.",
    ),
];
const NOT_VALID: Texts = [
    ("Something is not right yet", "Go back, correct what is listed here, and send it again."),
    ("Er klopt nog iets niet", "Ga terug, verbeter wat hier staat, en verstuur het opnieuw."),
    (
        "Etwas stimmt noch nicht",
        "Gehen Sie zurück, berichtigen Sie, was hier steht, und senden Sie es noch einmal.",
    ),
    (
        "Quelque chose n’est pas encore correct",
        "Revenez en arrière, corrigez ce qui est indiqué ici, et renvoyez.",
    ),
];
const TOO_MANY: Texts = [
    ("One moment, please", "There were too many requests from your address. Try again in a minute."),
    ("Een ogenblik geduld", "Er kwamen te veel verzoeken van uw adres. Probeer het over een minuut opnieuw."),
    (
        "Einen Moment bitte",
        "Von Ihrer Adresse kamen zu viele Anfragen. Versuchen Sie es in einer Minute noch einmal.",
    ),
    ("Un instant, s’il vous plaît", "Votre adresse a envoyé trop de demandes. Réessayez dans une minute."),
];
const UNAVAILABLE: Texts = [
    ("This does not work right now", "Nothing is wrong with your link. Try again in a moment."),
    ("Dit werkt op dit moment niet", "Met uw link is niets mis. Probeer het zo dadelijk opnieuw."),
    ("Das geht gerade nicht", "Mit Ihrem Link ist alles in Ordnung. Versuchen Sie es gleich noch einmal."),
    ("Cela ne fonctionne pas pour le moment", "Votre lien est correct. Réessayez dans un instant."),
];
const INTERNAL: Texts = [
    (
        "Something went wrong on our side",
        "Nothing is wrong with your link. Try again later; if it happens again, tell us the reference below.",
    ),
    (
        "Er ging bij ons iets mis",
        "Met uw link is niets mis. Probeer het later opnieuw; gebeurt het weer, noem ons dan het kenmerk hieronder.",
    ),
    (
        "Bei uns ist etwas schiefgegangen",
        "Mit Ihrem Link ist alles in Ordnung. Versuchen Sie es später noch einmal; passiert es wieder, nennen Sie uns die Kennung unten.",
    ),
    (
        "Une erreur s’est produite chez nous",
        "Votre lien est correct. Réessayez plus tard ; si cela se reproduit, donnez-nous la référence ci-dessous.",
    ),
];

/// The style is part of the page, and the policy allows exactly this style and nothing else.
fn policy() -> &'static HeaderValue {
    static POLICY: OnceLock<HeaderValue> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // Plain ASCII; if it ever were not, the page goes without its style.
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(NO_CONTENT_POLICY))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_page_is_whole_in_itself_and_cannot_be_given_markup() {
        let page =
            error_page(Problem::Validation, "", &["<b>name</b> is required".to_owned()], "\"><script>");
        assert!(page.html.contains("&lt;b&gt;name&lt;/b&gt; is required"));
        assert!(page.html.contains("&quot;&gt;&lt;script&gt;") && !page.html.contains("<script"));
        assert!(page.html.contains("content=\"noindex\"") && page.html.contains("light dark"));
        assert!(!page.html.contains("://") && !page.html.contains("href=\"/"), "it loads and leads nowhere");
        let style = page.html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(page.policy.to_str().unwrap().contains(&format!("style-src 'sha256-{hash}'")));
    }

    #[test]
    fn every_problem_has_a_page_in_every_language() {
        for info in proto::policy::problems() {
            for language in Language::ALL {
                let page = error_page_in(language, info.problem, "What happened.", &[], "id-1").html;
                assert!(page.contains(&format!("<html lang=\"{}\">", language.tag())), "{page}");
                assert!(page.contains("</h1>\n<p") && !page.contains('`'), "{}: {page}", info.code);
            }
        }
    }

    #[test]
    fn what_stays_english_on_a_page_in_another_language_says_so() {
        let faults = ["name is required".to_owned()];
        let page = error_page_in(Language::Dutch, Problem::Validation, "", &faults, "id-1").html;
        assert!(
            page.contains("<h1>Er klopt nog iets niet</h1>") && page.contains("<ul lang=\"en\">"),
            "{page}"
        );
        let page = error_page_in(Language::French, Problem::Ended, "It has ended.", &[], "id-1").html;
        assert!(page.contains("<p lang=\"en\">It has ended.</p>"), "{page}");
        let page = error_page(Problem::Ended, "It has ended.", &[], "id-1").html;
        assert!(page.contains("<p>It has ended.</p>"), "{page}");
    }
}
