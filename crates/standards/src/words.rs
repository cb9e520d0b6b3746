//! The words that a name or a text is made of.

/// The words of a name or a text in lower case, also where capitals join them.
#[must_use]
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        if before.is_lowercase() && c.is_uppercase() || !c.is_alphanumeric() {
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
    }
}
