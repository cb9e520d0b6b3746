//! Why a text is no YAML, in words that say what to change in the file.

use serde_saphyr::Error;

const ENDLESS: &str = "an alias stands inside the part that it repeats; write that part out";
const LARGE: &str = "the file, with its aliases written out, has too many parts or levels; import its tables in several files";

/// What is wrong, and where.
pub(crate) fn message(error: &Error) -> String {
    let Some(advice) = advice(error.without_snippet()) else {
        let message = error.to_string();
        return message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    };
    match error.location() {
        Some(at) => format!("{advice} at line {}, column {}", at.line(), at.column()),
        None => advice,
    }
}

/// Where the library's own message is about its settings, and not about the file.
fn advice(error: &Error) -> Option<String> {
    Some(match error {
        Error::MultipleDocuments { .. } => {
            "there are several YAML documents; put each into a file of its own: the next one starts"
                .to_owned()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` appears twice; remove one of them: the second is")
        }
        Error::DuplicateMappingKey { .. } => {
            "a key appears twice; remove one of them: the second is".to_owned()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => ENDLESS.to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => LARGE.to_owned(),
        Error::UnknownAnchor { .. } => {
            "an alias repeats a part that has no anchor; write `&NAME` at that part".to_owned()
        }
        // Inside an alias, the library keeps only the text of its error.
        other => {
            let text = other.to_string();
            let is = |part: &str| text.contains(part);
            let found = [("budget breached", LARGE), ("weak recursion", ENDLESS)];
            return found.iter().find(|(part, _)| is(part)).map(|(_, says)| (*says).to_owned());
        }
    })
}
