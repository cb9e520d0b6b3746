//! Questions at a terminal, and what is answered.

use super::{FileFacts, say};
use alpheus_discover::Understanding;
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

/// Reads an answer to the questions that were shown. None if the person accepts the best guess, which
/// is no answer to whose a row is: a wrong guess would release single owners' rows.
pub(super) fn ask(found: &Understanding) -> Result<Option<FileFacts>, Failure> {
    let whose = found.asks_whose();
    let empty = if whose { "" } else { " (empty: take the best guess)" };
    loop {
        let line = line(&format!("Your answer, as the option that the question names{empty}: "))?;
        if line.trim().is_empty() {
            if !whose {
                return Ok(None);
            }
            say(
                "This decides whose data results show, so no guess is accepted: type an option, such as `--owner COLUMN` or `--owner none`. Ctrl-C ends without writing anything.\n",
            )?;
            continue;
        }
        if let Some(known) = named(&line, found).filter(|_| whose) {
            return Ok(Some(known));
        }
        match Answer::try_parse_from(line_words(&line)) {
            Ok(answer) => return Ok(Some(answer.known)),
            Err(error) => say(&not_understood(&error.to_string()))?,
        }
    }
}

/// The owner's column, if the line is nothing but its name, or `none`.
fn named(line: &str, found: &Understanding) -> Option<FileFacts> {
    let name = line.trim().trim_matches(['`', '\'', '"']);
    let known = name == "none" || found.names.iter().any(|own| own == name);
    known.then(|| FileFacts { owner: Some(name.to_owned()), ..FileFacts::default() })
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
        let help = "answer with the option that it names, here or on the command line; `--yes` writes the files with the best guess, and runs nothing where that matters";
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
    use alpheus_discover::Hints;
    use alpheus_discover::clock::Region;

    #[test]
    fn the_bare_name_of_a_column_is_an_owner() {
        let rows = "a b,time,v\nx,2024-01-01,1\ny,2024-01-02,2\n";
        let found = alpheus_discover::understand(rows.as_bytes(), &Hints::default()).unwrap();
        let owner = |line: &str| named(line, &found).and_then(|known| known.owner);
        assert_eq!(owner("a b\n").as_deref(), Some("a b"));
        assert_eq!(owner(" `a b` ").as_deref(), Some("a b"));
        assert_eq!(owner("none\n").as_deref(), Some("none"));
        assert_eq!(owner("--owner 'a b'"), None);
    }

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
