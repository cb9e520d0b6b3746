//! The words that a name or a text is made of.

/// The words of a name or a text in lower case, also where capitals join them: `PIIFlag` has two.
#[must_use]
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // An acronym ends before the capital of the next word, but `IDs` is one word.
        let mut ahead = rest.clone();
        let next = ahead.next().unwrap_or(' ');
        let is_plural = next == 's' && !ahead.next().is_some_and(char::is_lowercase);
        let begins = before.is_uppercase() && next.is_lowercase() && !is_plural;
        if c.is_uppercase() && (before.is_lowercase() || begins) || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_split_where_people_see_them() {
        assert_eq!(words("customerId"), ["customer", "id"]);
        assert_eq!(words("CUSTOMER_ID"), ["customer", "id"]);
        assert_eq!(words("non-pii: E-mail"), ["non", "pii", "e", "mail"]);
        assert_eq!(words("hasPIIData"), ["has", "pii", "data"]);
        assert_eq!(words("GDPRRelevant"), ["gdpr", "relevant"]);
        assert_eq!(words("customerIDs"), ["customer", "ids"]);
    }
}
