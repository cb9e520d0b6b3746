//! Why a text is no YAML, in words that say what to change in the file.

use serde_saphyr::Error;

const ENDLESS: &str = "an alias stands inside the part that it repeats; write that part out";
const DEEP: &str = "nested too deeply";
const TEMPLATE: &str = "a map or list stands where a key belongs; put a template such as `{{ name }}` in quotes, or fill it in";
const INFINITE: &str = "a number is infinite, or none at all, which is no limit; remove it";
const NO_KEY: &str = "a key is empty or null; write it in quotes, or remove it";
const LARGE: &str = "the file, with its aliases written out, has too many parts or levels; import its tables in several files";

/// What is wrong, and where.
pub(crate) fn message(error: &Error) -> String {
    let Some(advice) = advice(error.without_snippet()) else {
        let message = error.to_string();
        return message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    };
    let Some(at) = error.location() else { return advice.to_owned() };
    let what = match error.without_snippet() {
        Error::MultipleDocuments { .. } => ": the next one starts",
        Error::DuplicateMappingKey { .. } => ": the second is",
        _ => "",
    };
    format!("{advice}{what} at line {}, column {}", at.line(), at.column())
}

/// Where the library's own message is about its settings, or shows a part of the file.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::MultipleDocuments { .. } => {
            "there are several YAML documents; put each into a file of its own"
        }
        Error::DuplicateMappingKey { .. } => "a key appears twice; remove one of them",
        Error::RecursiveReferencesRequireWeakTypes { .. } => ENDLESS,
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => LARGE,
        Error::NonFiniteFloat { .. } => INFINITE,
        Error::NullIntoString { .. } => NO_KEY,
        Error::UnknownAnchor { .. } => {
            "an alias repeats a part that has no anchor; write `&NAME` at that part"
        }
        // Inside an alias, the library keeps only the text of its error.
        other => {
            let text = other.to_string();
            let is = |part: &str| text.contains(part);
            let found = [
                ("budget breached", LARGE),
                ("weak recursion", ENDLESS),
                ("recursion limit", DEEP),
                ("expected string scalar", TEMPLATE),
                ("non-finite", INFINITE),
                ("null into string", NO_KEY),
            ];
            return found.iter().find(|(part, _)| is(part)).map(|(_, says)| *says);
        }
    })
}
