//! The languages of pages for people, and the one that a browser asks for.

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Dutch,
    German,
    French,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::English, Self::Dutch, Self::German, Self::French];

    /// As `lang` of a page says it.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Dutch => "nl",
            Self::German => "de",
            Self::French => "fr",
        }
    }

    /// The one that `Accept-Language` puts first (RFC 9110, 12.5.4); English if it names none of them.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let lists = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
        let mut best: Option<(f32, Self)> = None;
        for range in lists.flat_map(|list| list.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
            let primary = name.split('-').next().unwrap_or_default();
            let language =
                Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(primary));
            if let Some(language) = language.filter(|_| quality > 0.0)
                && best.is_none_or(|(most, _)| quality > most)
            {
                best = Some((quality, language));
            }
        }
        best.map_or(Self::default(), |(_, language)| language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_language_that_it_likes_best_of_those_there_are() {
        for (accepted, expected) in [
            ("nl-BE,nl;q=0.9,en;q=0.8", Language::Dutch),
            ("pt-BR,fr;q=0.3,DE;q=0.7", Language::German),
            ("es, it", Language::English),
            ("nl;q=0, fr;q=0.1", Language::French),
            ("nl;q=x", Language::English),
            ("*", Language::English),
            ("", Language::English),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, accepted.parse().unwrap())]);
            assert_eq!(Language::accepted(&headers), expected, "{accepted}");
        }
        assert_eq!(Language::accepted(&HeaderMap::new()), Language::English);
    }
}
