//! The walks of ARCHITECTURE.md lead to functions that exist, each in the file and the type that the
//! walk names.

use super::{Finding, rust};
use crate::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";
const DECLARATIONS: [&str; 7] = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "mod "];

/// Each step of a walk names a crate, and functions in files of it (or `of` another one).
pub(super) fn steps_lead_to_code(tree: &Tree) -> Vec<Finding> {
    let lines = tree.files.get(MAP).map_or("", String::as_str).lines();
    let rows = lines.enumerate().filter_map(|(at, line)| Some((at + 1, step(line)?)));
    let mut findings = Vec::new();
    for (number, Step { home, references, homeless }) in rows {
        let mut find = |what: String| findings.push(Finding::new(MAP, number, what));
        for name in homeless {
            find(format!("`{name}` names no file: say `{name}` in `FILE.rs`"));
        }
        for Reference { file, of, names } in references {
            let package = of.unwrap_or(home);
            let Some(content) = source(tree, package, file) else {
                find(format!("`{package}` has no file `{file}`"));
                continue;
            };
            let items = items(content);
            for wrong in names.into_iter().filter_map(|name| fault(&items, name)) {
                find(format!("`{file}` of `{package}` {wrong}"));
            }
        }
    }
    findings
}

/// A row `| step | crate | function and file |`.
struct Step<'a> {
    home: &'a str,
    references: Vec<Reference<'a>>,
    /// Names that no file follows.
    homeless: Vec<&'a str>,
}

/// Functions in one file.
struct Reference<'a> {
    file: &'a str,
    of: Option<&'a str>,
    names: Vec<&'a str>,
}

fn step(line: &str) -> Option<Step<'_>> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let (_, home, code) = (cells.next()?, quoted(cells.next()?)?, cells.next()?);
    let (mut names, mut references) = (Vec::new(), Vec::<Reference<'_>>::new());
    // What stands between backquotes is at the odd places.
    let parts: Vec<&str> = code.split('`').collect();
    for pair in parts.chunks_exact(2) {
        let [before, code] = pair else { continue };
        match *code {
            file if file.ends_with(".rs") => {
                let names =
                    if before.ends_with(" in ") { std::mem::take(&mut names) } else { Vec::new() };
                references.push(Reference { file, of: None, names });
            }
            package if *before == " of " => {
                references.last_mut().into_iter().for_each(|place| place.of = Some(package));
            }
            name if is_name(name) => names.push(name),
            _ => {}
        }
    }
    (!references.is_empty()).then_some(Step { home, references, homeless: names })
}

fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|name| !name.contains('`'))
}

fn is_name(code: &str) -> bool {
    code.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':')
}

fn source<'a>(tree: &'a Tree, package: &str, file: &str) -> Option<&'a str> {
    let prefix = format!("crates/{package}/");
    let suffix = format!("/{file}");
    let is_there = |path: &str| path.starts_with(&prefix) && path.ends_with(&suffix);
    tree.ending(".rs").find(|(path, _)| is_there(path)).map(|(_, content)| content)
}

/// A declaration.
struct Item {
    /// The type whose `impl` holds it, or the trait; none outside of both.
    owner: Option<String>,
    name: String,
}

/// What a file declares, without its tests.
fn items(content: &str) -> Vec<Item> {
    let (mut items, mut owner, mut header) = (Vec::new(), None, String::new());
    for (_, line) in rust::shipped_code(content) {
        let opens = line.starts_with("impl") || is_trait(&line);
        if opens || !header.is_empty() {
            header.push_str(&line);
            header.push(' ');
        }
        items.extend(declared(&line).map(|name| Item { owner: owner.clone(), name }));
        if !header.is_empty() && line.contains(['{', ';']) {
            owner = owner_of(&std::mem::take(&mut header)).filter(|_| !line.ends_with('}'));
        } else if line == "}" {
            owner = None;
        }
    }
    items
}

fn is_trait(line: &str) -> bool {
    line.starts_with("trait ") || line.starts_with("pub") && line.contains(" trait ")
}

/// The name that a line declares.
fn declared(line: &str) -> Option<String> {
    let starts_word = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    };
    let found = DECLARATIONS.iter().flat_map(|word| line.match_indices(word));
    let mut found: Vec<(usize, &str)> = found.filter(|(at, _)| starts_word(*at)).collect();
    found.sort_unstable();
    // `const fn` declares the function.
    let names = found.iter().filter_map(|(at, word)| rust::identifier(&line[at + word.len()..]));
    names.map(str::to_owned).find(|name| name != "fn")
}

/// The type of an `impl`, or the trait, by its head.
fn owner_of(header: &str) -> Option<String> {
    let head = match header.strip_prefix("impl") {
        Some(rest) => without_generics(rest),
        None => header.split("trait ").nth(1)?,
    };
    let head = head.split(" where ").next()?.split('{').next()?;
    let subject = head.rsplit(" for ").next()?.trim().trim_start_matches('&');
    let path = subject.split('<').next()?;
    rust::identifier(path.rsplit("::").next()?).map(str::to_owned)
}

/// The rest after `<…>`, if it begins so.
fn without_generics(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if c == '>' { &text[at + 1..] } else { &text[at..] };
        }
    }
    text
}

/// Why a name does not lead to one place of a file; none if it does.
fn fault(items: &[Item], name: &str) -> Option<String> {
    let (owner, name) = match name.rsplit_once("::") {
        Some((owner, name)) => (owner.rsplit("::").next(), name),
        None => (None, name),
    };
    let of_name = || items.iter().filter(|item| item.name == name);
    match owner {
        Some(owner) => {
            let is_owned = of_name().any(|item| item.owner.as_deref() == Some(owner));
            (!is_owned).then(|| format!("does not declare `{name}` of `{owner}`"))
        }
        None if of_name().any(|item| item.owner.is_none()) => None,
        None => match of_name().count() {
            0 => Some(format!("does not declare `{name}`")),
            1 => None,
            _ => Some(format!("declares `{name}` of several types: say `Type::{name}`")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const PAGE: &str = "\
| step | crate | function and file |
| --- | --- | --- |
| One. | `board` | `Server::write` and `read` in `server/mod.rs`, called by `send` in `main.rs` of `alpheus` (`POST /v1/x`) |
| Two. | `board` | `gone` in `server/mod.rs`, `send` in `nowhere.rs` |
| Three. | `board` | `Client::write` in `server/mod.rs`, which calls `Server::lost` |
| Four. | `board` | served by `absent.rs`; `close` and `Server::close` in `server/mod.rs` |
";

    const SERVER: &str = "\
/// A server: `fn gone()` is no declaration here.
pub struct Server<'a>(&'a str);

impl<'a, F: Fn() -> u8> From<&'a F> for Server<'a>
where
    F: Clone,
{
    pub const fn write(
        self,
    ) {
    }

    fn close() {}
}

impl crate::Client {
    fn close() {}
}

fn read<T>() {}

#[cfg(test)]
mod tests {
    fn gone() {}
}
";

    #[test]
    fn refuses_a_step_to_what_is_not_there() {
        let tree = Tree::from([
            (MAP, PAGE),
            ("crates/board/src/server/mod.rs", SERVER),
            ("crates/alpheus/src/main.rs", "fn send() {}\n"),
        ]);
        let expected = [
            "ARCHITECTURE.md:4: `server/mod.rs` of `board` does not declare `gone`",
            "ARCHITECTURE.md:4: `board` has no file `nowhere.rs`",
            "ARCHITECTURE.md:5: `Server::lost` names no file: say `Server::lost` in `FILE.rs`",
            "ARCHITECTURE.md:5: `server/mod.rs` of `board` does not declare `write` of `Client`",
            "ARCHITECTURE.md:6: `board` has no file `absent.rs`",
            "ARCHITECTURE.md:6: `server/mod.rs` of `board` declares `close` of several types: say `Type::close`",
        ];
        assert_eq!(messages(&steps_lead_to_code(&tree)), expected);
        let without = Tree::from([(MAP, PAGE), ("crates/alpheus/src/main.rs", "fn sends() {}\n")]);
        assert_eq!(messages(&steps_lead_to_code(&without)).len(), 8);
    }
}
