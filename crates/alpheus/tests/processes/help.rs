//! Every example in `--help` can be pasted: as it is shown, it is a command that a shell and the
//! program understand. Here each is parsed; `pasted` runs them.

#![expect(clippy::panic, reason = "a test's way to fail")]

use alpheus::commands::Cli;
use clap::{CommandFactory, Parser};

/// What stands for the content of a file in an example, by the flag before it.
const SAMPLES: [(&str, &str); 3] = [
    ("--stream", "00112233445566778899aabbccddeeff"),
    ("--owner", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
    ("-key", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
];

/// The command and all below it, each with the words that lead to it.
pub(crate) fn all(command: &clap::Command, above: &str, found: &mut Vec<(String, clap::Command)>) {
    let name = format!("{above} {}", command.get_name()).trim().to_owned();
    found.push((name.clone(), command.clone()));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        all(below, &name, found);
    }
}

/// The examples of a help page as it is shown, each as it is pasted.
pub(crate) fn examples(page: &str) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    let mut lines = page.lines().skip_while(|line| *line != "Examples:").skip(1);
    while let Some(line) = lines.next() {
        let Some(begin) = line.strip_prefix("  ") else { break };
        let mut example = begin.to_owned();
        while example.ends_with('\\') || example.matches('\'').count() % 2 == 1 {
            let next = lines.next().unwrap_or_else(|| panic!("unfinished: {example}"));
            example = format!("{example}\n{next}");
        }
        assert!(!begin.starts_with(' '), "a line is broken without `\\` before it: {line}");
        examples.push(example);
    }
    examples
}

/// The simple commands of a line of shell, each as its words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words) = (Vec::new(), Vec::<String>::new());
    let (mut word, mut begun) = (String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'\n') => drop(letters.next()),
            '\'' | '"' => {
                begun = true;
                word.extend(letters.by_ref().take_while(|inner| *inner != letter));
            }
            '$' if letters.peek() == Some(&'(') => {
                let inner: String = letters.by_ref().take_while(|inner| *inner != ')').collect();
                assert!(inner.starts_with("(cat "), "{line}");
                let flag = words.last().cloned().unwrap_or_default();
                let sample = SAMPLES.iter().find(|(end, _)| flag.ends_with(end));
                word.push_str(sample.unwrap_or_else(|| panic!("no sample for {flag}")).1);
                begun = true;
            }
            '|' | '&' | ';' | '(' | ')' => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
                all.push(std::mem::take(&mut words));
            }
            letter if letter.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            letter => {
                begun = true;
                word.push(letter);
            }
        }
    }
    if begun {
        words.push(word);
    }
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

/// The arguments of a command of ours, without redirections.
fn arguments(words: &[String]) -> Option<Vec<String>> {
    if words.first().map(String::as_str) != Some("alpheus") {
        return None;
    }
    let is_redirection = |word: &String| matches!(word.as_str(), ">" | "<" | ">>" | "2>");
    let end = words.iter().position(is_redirection).unwrap_or(words.len());
    Some(words[..end].to_vec())
}

#[test]
fn every_example_in_help_can_be_pasted() {
    let mut pages = Vec::new();
    all(&Cli::command(), "", &mut pages);
    let (mut parsed, mut without) = (0, Vec::new());
    for (name, mut page) in pages {
        let page_text = page.render_long_help().to_string();
        let shown = examples(&page_text);
        if shown.is_empty() && name != "alpheus" {
            without.push(name.clone());
        }
        for example in shown {
            let ours = commands(&example);
            let ours: Vec<_> = ours.iter().filter_map(|words| arguments(words)).collect();
            assert!(
                !ours.is_empty() || example.contains("head -c") || example.starts_with("curl"),
                "{name}: no command of ours: {example}"
            );
            for words in ours {
                let read = Cli::try_parse_from(&words);
                assert!(read.is_ok(), "{name}:\n{example}\n{}", read.err().unwrap());
                parsed += 1;
            }
        }
    }
    assert!(parsed >= 150, "only {parsed} examples were found");
    assert_eq!(without, Vec::<String>::new(), "these pages have no example");
}

#[test]
fn a_broken_line_is_noticed() {
    let whole = "Examples:\n  alpheus demo \\\n      --check\n\nMore.";
    assert_eq!(examples(whole), ["alpheus demo \\\n      --check"]);
    assert_eq!(commands(&examples(whole)[0])[0], ["alpheus", "demo", "--check"]);
    let broken = "Examples:\n  alpheus demo\n      --check\n";
    assert!(std::panic::catch_unwind(|| examples(broken)).is_err());
}
