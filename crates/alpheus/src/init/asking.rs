//! Questions at a terminal, and what is answered.

use super::{FileFacts, say};
use alpheus_node::failure::{Blame, Category, Failure};
use clap::Parser;
use std::io::BufRead;

/// The answer to a question, written as options.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Answer {
    #[command(flatten)]
    known: FileFacts,
}

/// Reads an answer to the questions that were shown. None if the person accepts the best guess.
pub(super) fn ask() -> Result<Option<FileFacts>, Failure> {
    loop {
        let line = line(
            "Your answer, as the option that the question names (empty: take the best guess): ",
        )?;
        if line.trim().is_empty() {
            return Ok(None);
        }
        match Answer::try_parse_from(line_words(&line)) {
            Ok(answer) => return Ok(Some(answer.known)),
            Err(error) => say(&not_understood(&error.to_string()))?,
        }
    }
}

/// Asks for a line.
///
/// # Errors
/// The input ends.
pub(super) fn line(question: &str) -> Result<String, Failure> {
    say(question)?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).blame(Category::Io)?;
    if read == 0 {
        // The shell's prompt begins on a line of its own.
        say("\n")?;
        let what = "the question has no answer, so nothing was written";
        let help = "answer with the option that it names, here or on the command line; an empty line, or `--yes`, takes the best guess";
        return Err(Failure::new(Category::Undecided, what).with_help(help));
    }
    Ok(line)
}

/// What is wrong with an answer, without the usage of a command line.
fn not_understood(error: &str) -> String {
    let said = error.split("\nUsage:").next().unwrap_or(error).trim_end();
    format!(
        "{said}\nAn answer is an option and its value, such as `--day-first` or `--owner 'Name'`.\n"
    )
}

/// The words of a line; quotes keep spaces.
fn line_words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut open) = (Vec::<String>::new(), None, false);
    for c in line.trim().chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                if !open {
                    words.push(String::new());
                }
                open = true;
            }
            None if c.is_whitespace() => open = false,
            _ => {
                if !open {
                    words.push(String::new());
                }
                open = true;
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_discover::clock::Region;

    #[test]
    fn answers_are_options() {
        let words = line_words("--owner 'Survey ID' --day-first\n");
        assert_eq!(words, ["--owner", "Survey ID", "--day-first"]);
        let mut known = FileFacts { zone: Some("UTC".to_owned()), ..FileFacts::default() };
        known.add(Answer::try_parse_from(words).unwrap().known);
        let hints = known.hints().unwrap();
        assert_eq!(
            (hints.owner.as_deref(), hints.day_first, hints.zone),
            (Some("Survey ID"), Some(true), Some(Region::Fixed(0)))
        );
        assert!(Answer::try_parse_from(line_words("--nothing")).is_err());
    }
}
